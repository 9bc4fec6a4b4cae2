import { and, eq, lt, not, sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { identities, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { stillAdmin } from '../users/still-admin.ts'
import { identitySchema } from '../users/user.ts'
import { getUser } from '../users/users.ts'
import { hasLocalWay, hasWayBesides } from '../users/way-in.ts'
import { isTrustedIssuer } from '../proxy-issuer.ts'
import { cutOff } from '../sessions/cutoffs.ts'
import { OidcFailure } from './failure.ts'
import { decidesByGroups } from './groups.ts'
import {
  addIdentity,
  countIdentities,
  hasIdentityAt,
  isIdentity,
  MAX_IDENTITIES,
  providerIdOf,
} from '../users/identities.ts'
import type { Identity, Provider } from './provider.ts'
import { findAccount } from './users.ts'
import { said } from '../../words/words.ts'

export const linkSchema = identitySchema
  .extend({ canUnlink: z.boolean().describe('Whether another way to sign in remains') })
  .meta({ id: 'ProviderLink', description: 'An account at an OpenID provider that signs in to this one' })

type Link = z.infer<typeof linkSchema>

/** Which link is meant; without a field the only one. */
export const linkQuery = z.object({
  provider: z
    .string()
    .max(64)
    .optional()
    .describe('Name as in GET /api/auth/status. Required with several links, unless `issuer` says which'),
  issuer: z.string().max(2048).optional().describe('For a provider that is no longer configured'),
})
type Which = z.infer<typeof linkQuery>

/** The accounts at providers that sign a user in; first the one of the provider whose groups rule. */
export async function readLinks(ctx: Ctx, userId: number): Promise<Link[]> {
  const { db } = ctx.store
  const mine = eq(users.id, userId)
  const rows = await db
    .select({ issuer: identities.issuer, subject: identities.subject, linkedAt: identities.createdAt })
    .from(identities)
    .innerJoin(users, eq(users.id, identities.userId))
    .where(mine)
    .orderBy(sql`${identities.issuer} is not ${users.oidcIssuer}`, identities.id)
    .all()
  const local = await db
    .select({ id: users.id })
    .from(users)
    .where(and(mine, hasLocalWay(ctx.config)))
    .get()
  const isWay = ({ issuer }: { issuer: string }) => isTrustedIssuer(ctx, issuer)
  return rows.map((row) => ({
    provider: providerIdOf(ctx, row.issuer),
    ...row,
    canUnlink: local !== undefined || rows.some((other) => other !== row && isWay(other)),
  }))
}

/**
 * Throws if the viewer cannot link an account at this provider: `already_linked`, `too_many_links`, `ruled_by_groups`.
 */
export async function refuseLink(ctx: SignedInCtx, { issuer }: Provider): Promise<void> {
  const { id } = ctx.viewer.user
  if (await isRuledElsewhere(ctx, id, issuer)) throw new AppError('ruled_by_groups')
  const links = await readLinks(ctx, id)
  if (links.some((link) => link.issuer === issuer)) throw new AppError('already_linked')
  if (links.length >= MAX_IDENTITIES)
    throw new AppError('too_many_links', said('At most {most}; unlink one first', { most: MAX_IDENTITIES }))
}

/**
 * Whether groups at another provider decide about an account of that provider. Its user signs in there only: whoever
 * leaves a group must not keep by another provider what the group gave.
 * Decision: docs/decisions/one-ruling-provider.md
 */
async function isRuledElsewhere({ store, providers }: Ctx, userId: number, issuer: string): Promise<boolean> {
  const account = and(eq(users.id, userId), eq(users.authProvider, 'oidc'))
  const row = await store.db.select({ ruler: users.oidcIssuer }).from(users).where(account).get()
  const ruler = providers.find((provider) => provider.issuer === row?.ruler)
  return ruler !== undefined && ruler.issuer !== issuer && decidesByGroups(ruler.settings)
}

/**
 * Links the account of the viewer to an account at a provider. `userId` is the user who began this. Throws an
 * `OidcFailure`, also for an identity of another account.
 */
export async function linkIdentity(ctx: Ctx, userId: number, identity: Identity): Promise<void> {
  const { viewer, store } = ctx
  if (viewer?.credential.kind !== 'session' || viewer.user.id !== userId) throw new OidcFailure('link_of_another_user')
  const { issuer, subject } = identity
  if (await isRuledElsewhere(ctx, userId, issuer)) throw new OidcFailure('ruled_by_groups')
  const mayLink = and(
    eq(users.id, userId),
    eq(users.isActive, true),
    // A reset while the user was at the provider ends this, too.
    eq(users.sessionEpoch, viewer.credential.session.epoch),
    not(hasIdentityAt(issuer)),
    lt(countIdentities, MAX_IDENTITIES),
  )
  const refusal = await store
    .atomic([
      addIdentity(store, mayLink, identity, ctx.now()),
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
  const links = await readLinks(ctx, userId)
  if (links.some((link) => link.issuer === issuer)) throw new OidcFailure('already_linked')
  throw new OidcFailure(links.length >= MAX_IDENTITIES ? 'too_many_links' : 'link_of_another_user')
}

/**
 * Unlinks the viewer's account from one at a provider; sessions that began there end. Throws `not_found`,
 * `invalid_request` if several are linked and none is named, `last_way_in`.
 */
export async function unlink(ctx: SignedInCtx, which: Which): Promise<void> {
  const { id } = ctx.viewer.user
  const link = chosenLink(await readLinks(ctx, id), which)
  await cutLink(ctx, id, link, {})
}

/** As `unlink`, for an administrator. Throws `user_not_found` as well. */
export async function unlinkUser(ctx: SignedInCtx, id: number, which: Which): Promise<void> {
  if (id === ctx.viewer.user.id) return unlink(ctx, which)
  const { username } = await getUser(ctx.store, id)
  const link = chosenLink(await readLinks(ctx, id), which)
  await cutLink(ctx, id, link, { userId: id, username }, stillAdmin(ctx))
}

function chosenLink(links: readonly Link[], { provider, issuer }: Which): Link {
  const isNamed = provider !== undefined || issuer !== undefined
  if (!isNamed && links.length > 1) {
    const message = 'several providers are linked: name one'
    throw new AppError('invalid_request', `provider: ${message}`, { issues: [{ path: 'provider', message }] })
  }
  const link = links.find(
    (each) => (provider ?? each.provider) === each.provider && (issuer ?? each.issuer) === each.issuer,
  )
  if (link === undefined) throw new AppError('not_found')
  return link
}

/** The condition is in the deleting statement: of two that unlink the last two ways at once, one is refused. */
async function cutLink(
  ctx: Ctx,
  id: number,
  { issuer, subject, provider: providerId, canUnlink }: Link,
  whose: { readonly userId?: number; readonly username?: string },
  then: readonly Statement[] = [],
): Promise<void> {
  if (!canUnlink) throw new AppError('last_way_in')
  const { db } = ctx.store
  const linked = and(eq(identities.userId, id), isIdentity({ issuer, subject }))
  const hasOther = sql`exists (select 1 from ${users} where ${and(eq(users.id, id), hasWayBesides(ctx.config, issuer))})`
  const isGone: SQL = sql`not exists (select 1 from ${identities} where ${linked})`
  await ctx.store.atomic([
    db.delete(identities).where(and(linked, hasOther)),
    audit(ctx, 'account_unlinked', { ...whose, issuer, subject, providerId }, { onlyIfChanged: true }),
    cutOff(ctx, id, issuer, isGone),
    ...then,
  ])
  const left = await db.select({ id: identities.id }).from(identities).where(linked).get()
  if (left !== undefined) throw new AppError('last_way_in')
}
