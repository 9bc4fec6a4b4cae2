import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import * as z from 'zod'
import { users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { stillAdmin } from '../users/still-admin.ts'
import { getUser } from '../users/users.ts'
import { hasLocalWay } from '../users/way-in.ts'
import { cutOff } from '../sessions/cutoffs.ts'
import { OidcFailure } from './failure.ts'
import { type Identity, providerIdOf } from './provider.ts'
import { findAccount } from './users.ts'

export const linkSchema = z
  .object({
    issuer: z.string(),
    subject: z.string(),
    provider: z.string().nullable().describe('Name as in GET /api/auth/status; null: no longer configured'),
    canUnlink: z.boolean().describe('Whether another way to sign in remains'),
  })
  .meta({ id: 'ProviderLink', description: 'The account at an OpenID provider that signs in to this one' })

/** The account at a provider that signs the viewer in; null: none. */
export async function readLink(ctx: SignedInCtx): Promise<z.infer<typeof linkSchema> | null> {
  const row = await ctx.store.db
    .select({ issuer: users.oidcIssuer, subject: users.oidcSubject, hasOther: hasOtherWay(ctx) })
    .from(users)
    .where(eq(users.id, ctx.viewer.user.id))
    .get()
  const { issuer = null, subject = null } = row ?? {}
  if (row === undefined || issuer === null || subject === null) return null
  return {
    issuer,
    subject,
    provider: providerIdOf(ctx, issuer),
    canUnlink: row.hasOther === 1,
  }
}

/** Throws `not_a_local_user`, `already_linked`. */
export function refuseSecondLink({ viewer }: SignedInCtx): void {
  if (viewer.user.authProvider !== 'local') throw new AppError('not_a_local_user')
  if (viewer.user.oidcSubject !== null) throw new AppError('already_linked')
}

/**
 * Links the account of the viewer to an account at a provider. `userId` is the user who began this. Throws an
 * `OidcFailure`, also for an identity of another account.
 */
export async function linkIdentity(ctx: Ctx, userId: number, identity: Identity): Promise<void> {
  const { viewer, store } = ctx
  if (viewer?.credential.kind !== 'session' || viewer.user.id !== userId) throw new OidcFailure('link_of_another_user')
  const { issuer, subject } = identity
  const unlinked = and(eq(users.id, userId), eq(users.authProvider, 'local'), isNull(users.oidcSubject))
  const refusal = await store
    .atomic([
      store.db.update(users).set({ oidcIssuer: issuer, oidcSubject: subject }).where(unlinked),
      audit(ctx, 'account_linked', { issuer, subject, providerId: providerIdOf(ctx, issuer) }, { onlyIfChanged: true }),
    ])
    .then(
      () => null,
      (error: unknown) => ({ error }),
    )
  const owner = await findAccount(store, identity)
  if (owner?.id === userId) return
  if (owner !== null) throw new OidcFailure('identity_taken', { userId: owner.id })
  if (refusal !== null) throw refusal.error
  throw new OidcFailure('already_linked')
}

/** Unlinks the viewer's account; sessions that began at the provider end. Throws `not_found`, `last_way_in`. */
export async function unlink(ctx: SignedInCtx): Promise<void> {
  const link = await readLink(ctx)
  if (link === null) throw new AppError('not_found')
  if (!link.canUnlink) throw new AppError('last_way_in')
  const { issuer, subject, provider: providerId } = link
  const { id } = ctx.viewer.user
  await ctx.store.atomic([
    cutLink(ctx, id),
    audit(ctx, 'account_unlinked', { issuer, subject, providerId }, { onlyIfChanged: true }),
    cutOff(ctx, id, issuer),
  ])
}

/** Whether a user can sign in without the link. */
function hasOtherWay({ config }: Ctx) {
  return sql<number>`(${hasLocalWay(config)})`
}

function cutLink(ctx: Ctx, id: number): Statement {
  const linked = and(eq(users.id, id), isNotNull(users.oidcSubject), hasOtherWay(ctx))
  return ctx.store.db.update(users).set({ oidcIssuer: null, oidcSubject: null }).where(linked)
}

/** As `unlink`, for an administrator. Throws `user_not_found`, `not_a_local_user`, `not_found`, `last_way_in`. */
export async function unlinkUser(ctx: SignedInCtx, id: number): Promise<void> {
  if (id === ctx.viewer.user.id) return unlink(ctx)
  const { username, authProvider, oidcSubject: subject } = await getUser(ctx.store, id)
  if (authProvider !== 'local') throw new AppError('not_a_local_user')
  if (subject === null) throw new AppError('not_found')
  const other = await ctx.store.db
    .select({ isLeft: hasOtherWay(ctx), issuer: users.oidcIssuer })
    .from(users)
    .where(eq(users.id, id))
    .get()
  if (other?.isLeft !== 1) throw new AppError('last_way_in')
  const { issuer } = other
  const details = { userId: id, username, issuer, subject, providerId: providerIdOf(ctx, issuer) }
  await ctx.store.atomic([
    cutLink(ctx, id),
    audit(ctx, 'account_unlinked', details, { onlyIfChanged: true }),
    ...(issuer === null ? [] : [cutOff(ctx, id, issuer)]),
    ...stillAdmin(ctx),
  ])
}
