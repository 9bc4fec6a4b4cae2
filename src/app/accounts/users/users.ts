import { identitySchema, type ListedUser, listedUserSchema, type User, userSchema } from './user.ts'
import { and, asc, count, eq, isNotNull, or, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { contains } from '../../../db/contains.ts'
import { differs } from '../../../db/differs.ts'
import { apiTokens, invitations, users } from '../../../db/schema.ts'
import { prepareShapes, type Statement, type Store } from '../../../db/store.ts'
import { holdDestinations } from './hold-destinations.ts'
import { type Actor, audit, SYSTEM } from '../../audit/audit.ts'
import { endVerifiedEmail, forgetPreviousEmail, isEmailVerified } from './verified-email.ts'
import { firstSubject, identitiesJson, providerIdOf } from './identities.ts'
import { endInvitationsBy, endInvitationTo } from './invitation-ends.ts'
import { forgiveAttempts } from '../passwords/login-limiter.ts'
import { hashNewPassword, randomPassword } from '../passwords/passwords.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import type { Remember } from '../../http/idempotency.ts'
import { timeInput } from '../../http/validate.ts'
import { type Granting, permissionsSchema, storedPermissionsJson, writePermissions } from './permissions.ts'
import { NEW_SCOPE_ROW, scopeRow, scopeSchema } from './scope.ts'
import { stillAdmin } from './still-admin.ts'
import { keepRealAdmin } from './way-in.ts'
import { wholeForAdmins } from './whole-for-admins.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS, permissionsFrom } from '../../../shared/access/resources.ts'
import { MAX_DISPLAY_NAME, MAX_EMAIL, MAX_USERNAME } from '../../../shared/limits.ts'

/** The columns of a `User`. No others are selected here. */
export const userColumns = {
  id: users.id,
  username: users.username,
  email: users.email,
  emailVerified: isEmailVerified.mapWith(Boolean),
  displayName: users.displayName,
  authProvider: users.authProvider,
  oidcSubject: firstSubject,
  isAdmin: users.isAdmin,
  isActive: users.isActive,
  createdAt: users.createdAt,
  lastLoginAt: users.lastLoginAt,
  createdBy: users.createdBy,
}

export function publicUser(row: User): User {
  const { id, username, email, emailVerified, displayName, authProvider, oidcSubject } = row
  const { isAdmin, isActive, createdAt, lastLoginAt, createdBy } = row
  return {
    id,
    username,
    email,
    emailVerified,
    displayName,
    authProvider,
    oidcSubject,
    isAdmin,
    isActive,
    createdAt,
    lastLoginAt,
    createdBy,
  }
}

const printable = (max: number) =>
  z
    .string()
    .max(max)
    // No control characters and no lone surrogates.
    .regex(/^[^\p{Cc}\p{Cs}]*$/u)

/**
 * ASCII only, so that two different usernames never look the same.
 * Decision: docs/decisions/short-decisions.md#usernames-are-ascii
 */
export const usernameSchema = z
  .string()
  .regex(new RegExp(`^[A-Za-z0-9._@-]{1,${MAX_USERNAME}}$`), `1–${MAX_USERNAME} letters, digits and . _ - @`)
  .refine((name) => name.toLowerCase() !== SYSTEM.username, 'not the name that stands for the service in the audit log')
export const emailSchema = printable(MAX_EMAIL).pipe(z.email())
export const displayNameSchema = printable(MAX_DISPLAY_NAME).min(1)

export const newUserSchema = wholeForAdmins(
  z.strictObject({
    username: usernameSchema,
    password: z.string().optional().describe('If missing, the response contains a random, temporary password, once'),
    email: emailSchema.nullish(),
    invite: z
      .boolean()
      .optional()
      .describe('true: no password; a link to choose one is sent to `email`, valid for a week'),
    displayName: displayNameSchema.nullish(),
    authProvider: z.literal('local').optional(),
    isAdmin: z.boolean().optional(),
    permissions: permissionsSchema
      .partial()
      .optional()
      .describe(
        'Resources that are not named get the permissions of a new user; an administrator has every permission',
      ),
    scope: scopeSchema.optional().describe('Which contents the user sees; default: as for a new user'),
  }),
)

const { id, emailVerified, authProvider, oidcSubject, isAdmin, createdBy } = userSchema.shape
const times = { createdAt: timeInput, lastLoginAt: timeInput.nullable() }
/** Fields that a body may repeat but not change. */
const readOnly = { id, emailVerified, authProvider, oidcSubject, isAdmin, ...times, createdBy }
const READ_ONLY = [
  'id',
  'emailVerified',
  'authProvider',
  'oidcSubject',
  'isAdmin',
  'createdAt',
  'lastLoginAt',
  'createdBy',
] as const

export const userChangesSchema = z.strictObject({
  username: usernameSchema.optional(),
  email: emailSchema.nullish(),
  displayName: displayNameSchema.nullish(),
  isActive: z.boolean().optional().describe('true reactivates, false deactivates'),
  ...z.object(readOnly).partial().shape,
  secondFactor: listedUserSchema.shape.secondFactor.optional(),
  links: listedUserSchema.shape.links.max(100).optional(),
})

/** The id of a user inserted earlier in the same atomic step. */
export function userIdByName(username: string): SQL {
  return sql`(select ${users.id} from ${users} where ${isNamed(username)})`
}

/** A condition on `users`: the name, regardless of case. */
export function isNamed(username: string): SQL {
  return sql`lower(${users.username}) = lower(${username})`
}

const listedColumns = {
  ...userColumns,
  hasTotp: sql<number>`exists (select 1 from "totp_factors" where "totp_factors"."user_id" = "users"."id")`,
  hasPasskey: sql<number>`exists (select 1 from "passkeys" where "passkeys"."user_id" = "users"."id")`,
  linked: identitiesJson,
}

type ListedRow = User & { readonly hasTotp: number; readonly hasPasskey: number; readonly linked: string }
type ListCtx = Pick<Ctx, 'store' | 'providers'>

const linkedSchema = z.array(identitySchema.omit({ provider: true }))

function asListed(ctx: ListCtx, { hasTotp, hasPasskey, linked, ...user }: ListedRow): ListedUser {
  const secondFactor = [...(hasTotp === 1 ? ['totp' as const] : []), ...(hasPasskey === 1 ? ['passkey' as const] : [])]
  const links = linked === '[]' ? [] : linkedSchema.parse(JSON.parse(linked))
  return { ...user, secondFactor, links: links.map((link) => ({ provider: providerIdOf(ctx, link.issuer), ...link })) }
}

/** As `getUser`, with the second factors and links. Throws `user_not_found`. */
export async function getListedUser(ctx: ListCtx, id: number): Promise<ListedUser> {
  const user = await ctx.store.db.select(listedColumns).from(users).where(eq(users.id, id)).get()
  if (user === undefined) throw new AppError('user_not_found')
  return asListed(ctx, user)
}

/** Throws `user_not_found`. */
export async function getUser(store: Store, id: number): Promise<User> {
  const user = await store.db.select(userColumns).from(users).where(eq(users.id, id)).get()
  if (user === undefined) throw new AppError('user_not_found')
  return user
}

/** The owner of something, for an entry of the audit log; empty if it is the viewer. Throws `user_not_found`. */
export async function otherOwner(ctx: SignedInCtx, userId: number): Promise<{ userId?: number; username?: string }> {
  return userId === ctx.viewer.user.id ? {} : { userId, username: (await getUser(ctx.store, userId)).username }
}

const lists = prepareShapes((db, shape) => {
  const q = sql.placeholder('q')
  const columns = [users.username, users.displayName, users.email]
  const found = shape === 'found' ? or(...columns.map((column) => contains(column, q))) : undefined
  return {
    page: db
      .select(listedColumns)
      .from(users)
      .where(found)
      .orderBy(asc(sql`lower(${users.username})`))
      .limit(sql.placeholder('limit'))
      .offset(sql.placeholder('offset'))
      .prepare(),
    total: db.select({ n: count() }).from(users).where(found).prepare(),
  }
})

/** Users sorted by name. `q` matches a part of username, display name or e-mail. */
export async function listUsers(
  ctx: ListCtx,
  page: { q?: string | undefined; limit: number; offset: number },
): Promise<{ users: ListedUser[]; total: number }> {
  const list = lists(ctx.store, page.q === undefined ? 'all' : 'found')
  const total = await list.total.get(page)
  return { users: (await list.page.all(page)).map((row) => asListed(ctx, row)), total: total?.n ?? 0 }
}

/**
 * Creates a local account. Without a password it gets a random one, which is returned here and must be changed at the
 * first sign-in. `invite`: without any password, and with the statements that invite the new user. `remember`: the last
 * statements. Throws `local_auth_disabled`, `weak_password`, `username_taken`.
 */
export async function createUser(
  ctx: Ctx,
  input: z.infer<typeof newUserSchema>,
  { invite = null, remember = () => [] }: { invite?: ((id: SQL) => Statement[]) | null; remember?: Remember } = {},
): Promise<{ user: User; password: string | null; invitation: null }> {
  if (ctx.config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
  const { username, isAdmin = false, permissions: given, scope } = input
  if ((await findUserByName(ctx.store, username)) !== null) throw new AppError('username_taken')
  const random = input.password === undefined && invite === null ? randomPassword() : null
  const passwordHash = invite === null ? await hashNewPassword(ctx, input.password ?? random ?? '', username) : null
  const row = {
    username,
    email: input.email ?? null,
    displayName: input.displayName ?? null,
    authProvider: 'local' as const,
    passwordHash,
    mustChangePassword: random !== null,
    isAdmin,
    createdAt: ctx.now(),
    createdBy: viewerId(ctx),
    ...(scope === undefined || isAdmin ? NEW_SCOPE_ROW : scopeRow(scope)),
  }
  const permissions = isAdmin ? ALL_PERMISSIONS : permissionsFrom((name) => given?.[name] ?? DEFAULT_PERMISSIONS[name])
  const details = { username, userId: userIdByName(username), email: row.email, displayName: row.displayName, isAdmin }
  await ctx.store.atomic([
    ctx.store.db.insert(users).values(row),
    writePermissions(ctx.store, isNamed(username), permissions, granting(ctx)),
    audit(ctx, 'user_created', {
      ...details,
      ...(given !== undefined && { permissions }),
      ...(scope !== undefined && { scope }),
    }),
    ...(invite?.(userIdByName(username)) ?? []),
    ...stillAdmin(ctx),
    ...remember(userIdByName(username)),
  ])
  const created = await findUserByName(ctx.store, username)
  if (created === null) throw new Error('the user that was just created is gone')
  return { user: created, password: random, invitation: null }
}

function viewerId({ viewer }: Pick<Ctx, 'viewer'>): number | null {
  return viewer?.user.id ?? null
}

function granting(ctx: Ctx): Granting {
  return { at: ctx.now(), by: viewerId(ctx) }
}

/** By name, regardless of case. */
export async function findUserByName(store: Store, username: string): Promise<User | null> {
  const found = await store.db.select(userColumns).from(users).where(isNamed(username)).get()
  return found ?? null
}

const CHANGEABLE = ['username', 'email', 'displayName', 'isActive'] as const

/**
 * Changes profile fields; `isActive` reactivates, or deactivates as `deactivateUser` does. Throws `user_not_found`,
 * `username_taken`, `invalid_request` for a field that is not changed here, `self_change_forbidden`, `last_admin`.
 */
export async function updateUser(ctx: Ctx, id: number, changes: z.infer<typeof userChangesSchema>): Promise<User> {
  const before = await getUser(ctx.store, id)
  refuseReadOnly(before, changes)
  await refuseWays(ctx, id, changes)
  const after = {
    username: changes.username ?? before.username,
    email: changes.email === undefined ? before.email : changes.email,
    displayName: changes.displayName === undefined ? before.displayName : changes.displayName,
    isActive: changes.isActive ?? before.isActive,
  }
  const ends = before.isActive && !after.isActive
  if (ends) refuseSelf(ctx, id)
  const fields = CHANGEABLE.filter((key) => after[key] !== before[key] && !(ends && key === 'isActive'))
  const profile = fields.length > 0 ? profileStatements(ctx, before, after, fields) : []
  const [first, ...rest] = [...profile, ...(ends ? deactivation(ctx, before) : [])]
  if (first === undefined) return before
  await ctx.store.atomic([first, ...rest, ...stillAdmin(ctx)])
  if (ends) await ctx.sessions.removeForUser(id)
  return getUser(ctx.store, id)
}

type Profile = Pick<User, (typeof CHANGEABLE)[number]>

function profileStatements(
  ctx: Ctx,
  before: User,
  after: Profile,
  fields: readonly (typeof CHANGEABLE)[number][],
): Statement[] {
  const { id, username } = before
  const pick = (from: Profile) => Object.fromEntries(fields.map((key) => [key, from[key]]))
  // Somebody else may have changed them meanwhile, or other fields since they were read.
  const which = and(eq(users.id, id), differs(users, fields, after))
  return [
    audit(
      ctx,
      'user_updated',
      { userId: id, username, before: pick(before), after: pick(after) },
      { onlyIf: sql`exists (select 1 from ${users} where ${which})` },
    ),
    ctx.store.db.update(users).set(pick(after)).where(which),
    ...(fields.includes('email') ? forgetPreviousEmail(ctx.store, id, ctx.now()) : []),
  ]
}

const PROVIDERS_OWN = ['email', 'displayName'] as const

function refuseReadOnly(before: User, changes: z.infer<typeof userChangesSchema>): void {
  const fixed = before.authProvider === 'oidc' ? [...READ_ONLY, ...PROVIDERS_OWN] : READ_ONLY
  const changed = fixed.filter((key) => changes[key] !== undefined && changes[key] !== before[key])
  if (changed.length === 0) return
  const issues = changed.map((key) => ({ path: key, message: WHY_FIXED[key] ?? 'not changed here' }))
  throw new AppError('invalid_request', issues.map(({ path, message }) => `${path}: ${message}`).join('; '), { issues })
}

/** How a user signs in may be repeated, but is not changed here. */
async function refuseWays(ctx: Ctx, id: number, given: z.infer<typeof userChangesSchema>): Promise<void> {
  const { secondFactor, links } = given
  if (secondFactor === undefined && links === undefined) return
  const held = await getListedUser(ctx, id)
  if (secondFactor !== undefined && !isSameSet(secondFactor, held.secondFactor)) {
    throw notHere('secondFactor', 'changed by the user, or removed by POST /api/users/:id/reset-second-factor')
  }
  const keys = (all: ListedUser['links']) => all.map(({ issuer, subject }) => JSON.stringify([issuer, subject]))
  if (links !== undefined && !isSameSet(keys(links), keys(held.links))) {
    throw notHere('links', 'changed by the user, or removed by DELETE /api/users/:id/link')
  }
}

function isSameSet(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one) => others.includes(one))
}

function notHere(path: string, message: string): AppError {
  return new AppError('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}

const WHY_FIXED: Partial<Record<keyof User, string>> = {
  isAdmin: 'changed by PUT /api/users/:id/admin',
  email: 'belongs to the OpenID provider of this user',
  displayName: 'belongs to the OpenID provider of this user',
}

/**
 * Deactivates an account: sessions and tokens end at once and for good, destinations of alerts are held. Deactivating twice is no error. Throws
 * `user_not_found`, `self_change_forbidden`, `last_admin`.
 */
export async function deactivateUser(ctx: Ctx, id: number): Promise<void> {
  const user = await getUser(ctx.store, id)
  refuseSelf(ctx, id)
  await ctx.store.atomic([...deactivation(ctx, user), ...stillAdmin(ctx)])
  await ctx.sessions.removeForUser(id)
}

function refuseSelf({ viewer }: Ctx, id: number): void {
  if (id === viewer?.user.id) throw new AppError('self_change_forbidden')
}

function deactivation(ctx: Ctx, user: User): [Statement, ...Statement[]] {
  const { db } = ctx.store
  const which = and(eq(users.id, user.id), eq(users.isActive, true))
  return [
    keepRealAdmin(ctx, user.id),
    audit(
      ctx,
      'user_deleted',
      { userId: user.id, username: user.username, before: { isActive: true }, after: { isActive: false } },
      { onlyIf: sql`exists (select 1 from ${users} where ${which})` },
    ),
    db.update(users).set({ isActive: false, sessionEpoch: nextEpoch }).where(which),
    db.delete(apiTokens).where(eq(apiTokens.userId, user.id)),
    ...holdDestinations(ctx, user, 'user_deactivated'),
    ...endVerifiedEmail(ctx.store, user.id, ctx.now()),
    ...endInvitationsBy(ctx, user, 'maker_deactivated'),
    ...endInvitationTo(ctx, user, 'user_deactivated'),
  ]
}

/** From here on, every session of the user has an older epoch. */
export const nextEpoch = sql`${users.sessionEpoch} + 1`

/**
 * Makes a user, active or not, an administrator or a regular user, with the corresponding permissions; without
 * `isAdmin` it toggles. The audit entry contains the permissions before and after. Throws `user_not_found`,
 * `self_change_forbidden`, `last_admin`.
 */
export async function setAdmin(ctx: Ctx, id: number, isAdmin: boolean | undefined): Promise<void> {
  const user = await getUser(ctx.store, id)
  const wanted = isAdmin ?? !user.isAdmin
  if (wanted !== user.isAdmin) refuseSelf(ctx, id)
  if (wanted === user.isAdmin) return
  // Of two simultaneous changes the second one finds nothing to change, and changes neither permissions nor log.
  const still = and(eq(users.id, id), eq(users.isAdmin, !wanted))
  const permissions = wanted ? ALL_PERMISSIONS : DEFAULT_PERMISSIONS
  const held = wanted ? storedPermissionsJson(id) : sql`${JSON.stringify(ALL_PERMISSIONS)}`
  const details = {
    userId: id,
    username: user.username,
    before: sql`json_object('isAdmin', json(${String(!wanted)}), 'permissions', json(${held}))`,
    after: { isAdmin: wanted, permissions },
  }
  await ctx.store.atomic([
    audit(ctx, 'admin_status_changed', details, { onlyIf: sql`exists (select 1 from ${users} where ${still})` }),
    ...(wanted
      ? []
      : [
          keepRealAdmin(ctx, id),
          ...endInvitationsBy(ctx, user, 'maker_demoted', {
            onlyIf: sql`exists (select 1 from ${users} where ${still})`,
          }),
        ]),
    writePermissions(ctx.store, still, permissions, granting(ctx)),
    ctx.store.db
      .update(users)
      .set({ isAdmin: wanted, ...(wanted ? {} : NEW_SCOPE_ROW) })
      .where(still),
    ...stillAdmin(ctx),
  ])
}

/**
 * Gives a local user a random, temporary password, ends sessions and API tokens, holds destinations of alerts, ends the
 * proof of the e-mail address and clears failed attempts at the old one. Returns the password in clear, once. Throws
 * `local_auth_disabled`, `user_not_found`, `not_a_local_user`, `user_inactive`.
 */
export async function resetPassword(ctx: Ctx, id: number): Promise<string> {
  if (ctx.config.DISABLE_LOCAL_AUTH) throw new AppError('local_auth_disabled')
  const user = await getUser(ctx.store, id)
  if (user.authProvider !== 'local') throw new AppError('not_a_local_user')
  if (!user.isActive) throw new AppError('user_inactive')
  const password = randomPassword()
  const passwordHash = await ctx.passwords.hash(password)
  const ended = endAccessByReset(ctx, user)
  const { db } = ctx.store
  await ctx.store.atomic([
    // A deactivation while the password was being hashed wins.
    db
      .update(users)
      .set({ passwordHash, mustChangePassword: true, sessionEpoch: nextEpoch })
      .where(and(eq(users.id, id), eq(users.isActive, true))),
    audit(ctx, 'password_reset', { userId: id, username: user.username, ...ended.details }, { onlyIfChanged: true }),
    ...ended.statements,
    ...endVerifiedEmail(ctx.store, id, ctx.now()),
    ...stillAdmin(ctx),
  ])
  const { isActive } = await getUser(ctx.store, id)
  if (!isActive) throw new AppError('user_inactive')
  await ctx.sessions.removeForUser(id)
  await forgiveAttempts(ctx, user)
  return password
}

/**
 * What else a password reset ends: statements for the same atomic step, and the details for its audit entry, which must
 * come before them. `onlyIf`: a condition under which the reset took place. Why tokens end: docs/decisions/resets-end-tokens.md.
 */
export function endAccessByReset(
  ctx: Ctx,
  { id, username }: Pick<User, 'id' | 'username'>,
  options: { readonly onlyIf?: SQL; readonly actor?: Actor } = {},
): { readonly details: { readonly tokensRevoked: SQL }; readonly statements: Statement[] } {
  const owned = eq(apiTokens.userId, id)
  return {
    details: { tokensRevoked: sql`(select count(*) from ${apiTokens} where ${owned})` },
    statements: [
      ctx.store.db.delete(apiTokens).where(and(owned, options.onlyIf)),
      ...holdDestinations(ctx, { id, username }, 'password_reset', options),
      ctx.store.db
        .delete(invitations)
        .where(and(eq(invitations.userId, id), isNotNull(invitations.email), options.onlyIf)),
    ],
  }
}
