import { and, eq, gt, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { invitations, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { createOnce, type Keyed, type Remember } from '../../http/idempotency.ts'
import { timeField } from '../../http/fields.ts'
import { NEW_SCOPE_ROW, scopeRow, scopeSchema } from '../users/scope.ts'
import { permissionsSchema, writePermissions } from '../users/permissions.ts'
import { stillAdmin } from '../users/still-admin.ts'
import type { ListedUser, User } from '../users/user.ts'
import { wholeForAdmins } from '../users/whole-for-admins.ts'
import {
  displayNameSchema,
  emailSchema,
  findUserByName,
  getListedUser,
  getUser,
  isNamed,
  userIdByName,
  usernameSchema,
} from '../users/users.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS, permissionsFrom } from '../../../shared/access/resources.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { hashToken, randomToken } from '../sessions/session-token.ts'
import { OidcFailure } from './failure.ts'
import { addIdentity, countIdentities, ownerOf, providerIdOf } from '../users/identities.ts'
import { endInvitationTo, mayMakerInvite } from '../users/invitation-ends.ts'
import { isSubject } from './protocol/claims.ts'
import type { Identity } from './provider.ts'
import { findAccount } from './users.ts'

const LIFETIME_DAYS = 7
const MAX_LIFETIME_DAYS = 30

const days = z.int().min(1).max(MAX_LIFETIME_DAYS).default(LIFETIME_DAYS).describe('Days until the link expires')

export const invitationBody = z.strictObject({ expiresInDays: days })

export const preparedUserSchema = wholeForAdmins(
  z
    .strictObject({
      username: usernameSchema,
      provider: z
        .string()
        .max(64)
        .optional()
        .describe('Name as in GET /api/auth/status. Required with a subject; without one any provider is accepted'),
      subject: z
        .string()
        .refine(isSubject)
        .optional()
        .describe(
          '`sub` at the provider. Without it the answer contains a link by which a user takes the account over',
        ),
      email: emailSchema.nullish(),
      displayName: displayNameSchema.nullish(),
      isAdmin: z.boolean().optional(),
      permissions: permissionsSchema.partial().optional(),
      scope: scopeSchema.optional().describe('Which contents the user sees; default: as for a new user'),
      expiresInDays: days,
    })
    .refine(({ provider, subject }) => subject === undefined || provider !== undefined, {
      path: ['provider'],
      message: 'a subject needs its provider',
    }),
)

export const invitationSchema = z
  .object({
    url: z
      .string()
      .nullable()
      .describe(
        'The link, shown once: the first user who opens it and signs in gets the account. Null: it was sent by e-mail, or in the first response to this Idempotency-Key',
      ),
    sentTo: z.string().nullable().describe('The address to which the link was sent; null: hand it over yourself'),
    expiresAt: timeField,
  })
  .meta({ id: 'Invitation' })

export type Invitation = z.infer<typeof invitationSchema>

/**
 * Creates an account for a provider's user who has never signed in: for this subject, or for whoever uses the link
 * first. `site` is the address of this service, with which the link begins. A repeat with the same key gets the user
 * without the link. Throws `oidc_disabled`, `username_taken`, `identity_taken`, `idempotency_key_reused`.
 */
export async function prepareUser(
  ctx: SignedInCtx,
  input: z.infer<typeof preparedUserSchema>,
  { site, keyed }: { readonly site: string; readonly keyed: Keyed | null },
): Promise<{ user: ListedUser; invitation: Invitation | null }> {
  return createOnce(ctx, keyed, {
    async create(remember) {
      const { user, invitation } = await insertPrepared(ctx, input, site, remember)
      return { user: await getListedUser(ctx, user.id), invitation }
    },
    async repeat(id) {
      const open = await readInvitation(ctx, id)
      return { user: await getListedUser(ctx, id), invitation: open === null ? null : withoutLink(open) }
    },
  })
}

async function insertPrepared(
  ctx: SignedInCtx,
  input: z.infer<typeof preparedUserSchema>,
  site: string,
  remember: Remember,
): Promise<{ user: User; invitation: Invitation | null }> {
  const { username, subject = null, isAdmin = false, permissions: given, scope } = input
  const issuer = issuerOf(ctx, input.provider)
  const { store } = ctx
  if ((await findUserByName(store, username)) !== null) throw new AppError('username_taken')
  if (subject !== null && issuer !== null && (await findAccount(store, { issuer, subject })) !== null) {
    throw new AppError('identity_taken')
  }
  const row = { username, email: input.email ?? null, displayName: input.displayName ?? null, isAdmin }
  const permissions = isAdmin ? ALL_PERMISSIONS : permissionsFrom((name) => given?.[name] ?? DEFAULT_PERMISSIONS[name])
  const id = userIdByName(username)
  const made = subject === null ? newInvitation(ctx, input.expiresInDays, site) : null
  await store
    .atomic([
      store.db.insert(users).values({
        ...row,
        oidcIssuer: issuer,
        authProvider: 'oidc',
        createdAt: ctx.now(),
        createdBy: ctx.viewer.user.id,
        ...(scope === undefined || isAdmin ? NEW_SCOPE_ROW : scopeRow(scope)),
      }),
      ...(issuer === null || subject === null
        ? []
        : [addIdentity(store, isNamed(username), { issuer, subject }, ctx.now())]),
      writePermissions(store, isNamed(username), permissions, { at: ctx.now(), by: ctx.viewer.user.id }),
      audit(ctx, 'user_created', {
        ...row,
        userId: id,
        issuer,
        subject,
        providerId: providerIdOf(ctx, issuer),
        ...(given !== undefined && { permissions }),
        ...(scope !== undefined && { scope }),
      }),
      ...(made === null ? [] : [insertInvitation(ctx, id, made), auditInvitation(ctx, { id, username }, made)]),
      ...stillAdmin(ctx),
      ...remember(id),
    ])
    .catch((error: unknown) => {
      throw isIdentityTaken(error) ? new AppError('identity_taken', undefined, { cause: error }) : error
    })
  const user = await findUserByName(store, username)
  if (user === null) throw new Error('the user that was just created is gone')
  return { user, invitation: made?.invitation ?? null }
}

/** Throws `oidc_disabled`. */
function issuerOf({ providers }: Ctx, id: string | undefined): string | null {
  if (providers.length === 0) throw new AppError('oidc_disabled')
  if (id === undefined) return null
  const provider = providers.find(({ settings }) => settings.id === id)
  if (provider === undefined) throw new AppError('oidc_disabled', 'No such provider')
  return provider.issuer
}

function isIdentityTaken(error: unknown): boolean {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (/UNIQUE.*identities\.issuer/.test(e.message)) return true
  }
  return false
}

export type NewInvitation = { readonly tokenHash: string; readonly invitation: Invitation }

function newInvitation(ctx: SignedInCtx, expiresInDays: number, site: string): NewInvitation {
  const token = randomToken()
  const url = `${site}/login?invitation=${token}`
  return {
    tokenHash: hashToken(token),
    invitation: { url, sentTo: null, expiresAt: ctx.now() + expiresInDays * DAY_MS },
  }
}

/** Replaces an earlier invitation of the same user. */
export function insertInvitation(
  { store, viewer, now }: SignedInCtx,
  userId: ReturnType<typeof userIdByName> | number,
  { tokenHash, invitation: { expiresAt, sentTo } }: NewInvitation,
): Statement {
  const values = {
    tokenHash,
    createdAt: now(),
    expiresAt,
    createdBy: viewer.user.id,
    endedAt: null,
    endedFor: null,
    email: sentTo,
  }
  return store.db
    .insert(invitations)
    .values({ userId: sql`${userId}`, ...values })
    .onConflictDoUpdate({ target: invitations.userId, set: values })
}

export function auditInvitation(
  ctx: SignedInCtx,
  { id, username }: { id: ReturnType<typeof userIdByName> | number; username: string },
  { invitation: { expiresAt, sentTo } }: NewInvitation,
): Statement {
  return audit(ctx, 'user_invited', { userId: id, username, expiresAt, ...(sentTo !== null && { sentTo }) })
}

/**
 * Creates another link to an account that nobody has taken over yet; it replaces an earlier one. Throws
 * `user_not_found`, `user_inactive`, `identity_taken`, `oidc_disabled`.
 */
export async function inviteUser(
  ctx: SignedInCtx,
  id: number,
  { expiresInDays }: z.infer<typeof invitationBody>,
  { site, remember }: { readonly site: string; readonly remember: Remember },
): Promise<Invitation> {
  if (ctx.providers.length === 0) throw new AppError('oidc_disabled')
  const user = await getUser(ctx.store, id)
  if (!user.isActive) throw new AppError('user_inactive')
  if (user.authProvider !== 'oidc' || user.oidcSubject !== null) throw new AppError('identity_taken')
  const made = newInvitation(ctx, expiresInDays, site)
  await ctx.store.atomic([
    insertInvitation(ctx, id, made),
    auditInvitation(ctx, user, made),
    ...stillAdmin(ctx),
    ...remember(invitationMade(id)),
  ])
  return made.invitation
}

/**
 * A link that is valid for longer than the maximum was created while the clock was ahead, and counts as expired. Its
 * maker must still be an administrator.
 */
export function isOpen({ now }: Ctx): SQL | undefined {
  const { expiresAt } = invitations
  const isInTime = and(gt(expiresAt, now()), lte(expiresAt, now() + MAX_LIFETIME_DAYS * DAY_MS))
  return and(isInTime, isNull(invitations.endedAt), mayMakerInvite)
}

/** Whether a link to the account is open, and until when; null: none. Throws `user_not_found`. */
export async function readInvitation(
  ctx: Ctx,
  id: number,
): Promise<{ createdAt: number; expiresAt: number; sentTo: string | null } | null> {
  await getUser(ctx.store, id)
  const { createdAt, expiresAt, userId, email: sentTo } = invitations
  const open = and(eq(userId, id), isOpen(ctx))
  return (await ctx.store.db.select({ createdAt, expiresAt, sentTo }).from(invitations).where(open).get()) ?? null
}

/** An open invitation as it may be shown again. */
export function withoutLink({ sentTo, expiresAt }: Omit<Invitation, 'url'>): Invitation {
  return { url: null, sentTo, expiresAt }
}

/** Identifies an invitation among those of one user by its time, because each replaces the one before. */
export function invitationMade(id: number): SQL {
  return sql`(select ${invitations.createdAt} from ${invitations} where ${eq(invitations.userId, id)})`
}

/** Withdraws an unused link. Throws `user_not_found`, `not_found`. */
export async function withdrawInvitation(ctx: SignedInCtx, id: number): Promise<void> {
  const { username } = await getUser(ctx.store, id)
  if ((await readInvitation(ctx, id)) === null) throw new AppError('not_found')
  const [first, ...rest] = endInvitationTo(ctx, { id, username }, 'withdrawn')
  if (first === undefined) return
  await ctx.store.atomic([first, ...rest, ...stillAdmin(ctx)])
}

/**
 * Gives the account of an unused link to a user identified by a provider. Of several simultaneous calls, one gets it.
 * Throws an `OidcFailure`, also for an identity that already has an account.
 */
export async function acceptInvitation(ctx: Ctx, tokenHash: string, identity: Identity): Promise<void> {
  const { store } = ctx
  const { issuer, subject } = identity
  const owner = await findAccount(store, identity)
  if (owner !== null) throw new OidcFailure('identity_taken', { userId: owner.id })
  const open = sql`exists (select 1 from ${invitations}
    where ${and(eq(invitations.tokenHash, tokenHash), isOpen(ctx))}
    and "invitations"."user_id" = "users"."id")`
  const free = and(
    open,
    sql`${countIdentities} = 0`,
    eq(users.authProvider, 'oidc'),
    eq(users.isActive, true),
    or(isNull(users.oidcIssuer), eq(users.oidcIssuer, issuer)),
  )
  const taker = ownerOf(identity)
  const refusal = await store
    .atomic([
      addIdentity(store, free, identity, ctx.now()),
      audit(
        ctx,
        'account_linked',
        { by: 'invitation', userId: taker, issuer, subject, providerId: providerIdOf(ctx, issuer) },
        {
          actor: { id: taker, username: null },
          onlyIfChanged: true,
        },
      ),
      store.db
        .update(users)
        .set({ oidcIssuer: issuer })
        .where(and(eq(users.id, taker), open)),
      store.db.delete(invitations).where(and(eq(invitations.tokenHash, tokenHash), eq(invitations.userId, taker))),
    ])
    .then(
      () => null,
      (error: unknown) => ({ error }),
    )
  const account = await findAccount(store, identity)
  if (account !== null) return
  if (refusal !== null) throw refusal.error
  throw await refusalOf(ctx, tokenHash)
}

/** The reason why a link was ended. Only somebody who has the link can learn it. */
async function refusalOf({ store }: Ctx, tokenHash: string): Promise<OidcFailure> {
  const row = await store.db
    .select({ userId: invitations.userId, endedFor: invitations.endedFor, mayInvite: sql<number>`${mayMakerInvite}` })
    .from(invitations)
    .where(eq(invitations.tokenHash, tokenHash))
    .get()
  if (row === undefined || (row.endedFor === null && row.mayInvite === 1)) return new OidcFailure('invitation_invalid')
  return new OidcFailure('invitation_ended', { userId: row.userId, why: row.endedFor ?? 'maker_demoted' })
}
