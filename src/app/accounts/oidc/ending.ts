import { and, eq, gt, inArray, isNull, lt, max, or } from 'drizzle-orm'
import { providerCutoffs, providerLogouts, providerSessions, users } from '../../../db/schema.ts'
import { audit, SYSTEM } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { seal, unseal } from '../../base/sealing.ts'
import { hashToken } from '../sessions/session-token.ts'
import { OidcFailure } from './failure.ts'
import { issuerIn } from './protocol/logout-token.ts'
import type { EndedSession, Identity, Provider } from './provider.ts'
import { findAccount } from './users.ts'

/** A longer ID token would make a URL that servers refuse. */
const MAX_HINT_LENGTH = 4000

/** A logout token is valid for less than this. */
const REPLAY_MS = 30 * MINUTE_MS

/** The maximum time for ending the sessions of a token. */
const ENDING_MS = MINUTE_MS

/** The label under which the ID token of a session is sealed. */
export const idTokenLabel = (tokenHash: string) => `id-token:${tokenHash}`

/** Stores the data for ending a session on both sides: the provider's session ID, and the sealed ID token as a hint. */
export async function noteProviderSession(
  ctx: Ctx,
  tokenHash: string,
  { userId, identity }: { readonly userId: number; readonly identity: Identity },
): Promise<void> {
  const { idToken, issuer, sid } = identity
  const hint = idToken.length > MAX_HINT_LENGTH ? null : idToken
  const values = {
    tokenHash,
    userId,
    issuer,
    sid,
    idToken: hint === null ? null : await seal(ctx.config.SESSION_SECRET, idTokenLabel(tokenHash), hint),
    createdAt: ctx.now(),
  }
  await ctx.store.db.insert(providerSessions).values(values).onConflictDoNothing().run()
}

/**
 * Moves the data for ending a session on both sides to the session that replaces it. `since` is the number of the
 * latest logout before that. Throws an `OidcFailure` if the provider has ended it.
 */
export async function moveProviderSession(
  ctx: Ctx,
  from: string,
  to: string,
  { subject, since }: { readonly subject: string; readonly since: number },
): Promise<void> {
  const { db } = ctx.store
  const secrets = ctx.config.SESSION_SECRET
  const row = await db.select().from(providerSessions).where(eq(providerSessions.tokenHash, from)).get()
  if (row === undefined) return
  const hint = row.idToken === null ? null : await unseal(secrets, idTokenLabel(from), row.idToken)
  const idToken = hint === null ? null : await seal(secrets, idTokenLabel(to), hint)
  await ctx.store.atomic([
    db.insert(providerSessions).values({ ...row, tokenHash: to, idToken }),
    db.delete(providerSessions).where(eq(providerSessions.tokenHash, from)),
  ])
  await refuseEndedSession(ctx, to, { identity: { issuer: row.issuer, sid: row.sid, subject }, since })
}

/** The number of the latest logout. A sign-in reads it before the provider says who signs in. */
export async function latestLogout({ store }: Ctx): Promise<number> {
  const row = await store.db
    .select({ id: max(providerLogouts.id) })
    .from(providerLogouts)
    .get()
  return row?.id ?? 0
}

/**
 * Ends the session that has just begun if the provider ended it meanwhile, after the logout number `since`. Store the
 * session's data before, so that later logouts find it. Throws an `OidcFailure`.
 */
export async function refuseEndedSession(
  ctx: Ctx,
  tokenHash: string,
  { identity, since }: { readonly identity: Pick<Identity, 'issuer' | 'sid' | 'subject'>; readonly since: number },
): Promise<void> {
  const { db } = ctx.store
  const { id, issuer, sid, subject } = providerLogouts
  const named = and(
    gt(id, since),
    eq(issuer, identity.issuer),
    identity.sid === null ? isNull(sid) : or(isNull(sid), eq(sid, identity.sid)),
    or(isNull(subject), eq(subject, identity.subject)),
  )
  if ((await db.select({ id }).from(providerLogouts).where(named).limit(1).get()) === undefined) return
  await ctx.sessions.remove(tokenHash)
  await db.delete(providerSessions).where(eq(providerSessions.tokenHash, tokenHash)).run()
  throw new OidcFailure('ended_at_provider')
}

/**
 * The URL at which the browser also signs out at the provider, for a session that began there; null without such a
 * session, or if the provider is unreachable. Deletes the stored data of the session.
 */
export async function providerLogoutUrl(ctx: Ctx): Promise<string | null> {
  const credential = ctx.viewer?.credential
  if (credential?.kind !== 'session') return null
  const { oidcIssuer, tokenHash } = credential.session
  const provider = ctx.providers.find(({ issuer }) => issuer === oidcIssuer)
  if (provider === undefined) return null
  const hint = await takeHint(ctx, tokenHash)
  return provider.logoutUrl(hint).catch((error: unknown) => {
    if (!(error instanceof OidcFailure)) throw error
    const why = { provider: provider.settings.id, reason: error.reason, ...error.details }
    ctx.log.warn('The OpenID provider does not say where to sign out', why)
    return null
  })
}

async function takeHint({ store, config, log }: Ctx, tokenHash: string): Promise<string | null> {
  try {
    const mine = eq(providerSessions.tokenHash, tokenHash)
    const row = await store.db.select({ sealed: providerSessions.idToken }).from(providerSessions).where(mine).get()
    if (row === undefined) return null
    await store.db.delete(providerSessions).where(mine).run()
    return row.sealed === null ? null : await unseal(config.SESSION_SECRET, idTokenLabel(tokenHash), row.sealed)
  } catch (error) {
    // If the database is read-only, the user is still signed out.
    log.warn('The stored data of a session at the provider cannot be read', { error })
    return null
  }
}

/**
 * Ends the sessions that a logout token names: of one browser (`sid`) or of a user (`sub`). OpenID Connect Back-Channel
 * Logout 1.0, section 2.6. Throws `invalid_request` for any other token, and `oidc_disabled`.
 */
export async function endByProvider(ctx: Ctx, token: string): Promise<void> {
  if (ctx.providers.length === 0) throw new AppError('oidc_disabled')
  const issuer = issuerIn(token)
  const provider = ctx.providers.find((each) => each.issuer === issuer)
  if (provider === undefined) throw refused()
  const ended = await provider.checkLogout(token).catch((error: unknown) => {
    throw error instanceof OidcFailure ? refused() : error
  })
  const tokenHash = hashToken(`${provider.issuer} ${ended.id}`)
  // Of several simultaneous calls, one ends the sessions. It claims the token only for as long as that takes.
  const key = `oidc:logout:${tokenHash}`
  const { count } = await ctx.sessions.hit(key, ENDING_MS, ctx.now())
  if (count > 1 || (await isUsedUp(ctx, tokenHash))) throw refused()
  try {
    await endSessions(ctx, provider, { ...ended, tokenHash })
  } catch (error) {
    // The provider may send the token again: at once if the count can be taken back.
    await ctx.sessions.forgive(key, 'all').catch(() => null)
    throw error
  }
}

async function isUsedUp({ store }: Ctx, tokenHash: string): Promise<boolean> {
  const used = and(eq(providerLogouts.tokenHash, tokenHash), eq(providerLogouts.isDone, true))
  return (
    (await store.db.select({ id: providerLogouts.id }).from(providerLogouts).where(used).limit(1).get()) !== undefined
  )
}

function refused(): AppError {
  return new AppError('invalid_request', 'This logout token is not valid')
}

async function endSessions(
  ctx: Ctx,
  provider: Provider,
  { sid, subject, tokenHash: logout }: EndedSession & { readonly tokenHash: string },
): Promise<void> {
  const { db } = ctx.store
  const { issuer } = provider
  // Stored before looking for sessions, so that a session stored later finds this logout.
  await db.insert(providerLogouts).values({ issuer, sid, subject, createdAt: ctx.now(), tokenHash: logout }).run()
  const isDone = db.update(providerLogouts).set({ isDone: true }).where(eq(providerLogouts.tokenHash, logout))
  const owner = subject === null ? null : await findAccount(ctx.store, { issuer, subject })
  if (subject !== null && owner === null) {
    await isDone.run()
    return
  }
  const named = and(
    eq(providerSessions.issuer, issuer),
    sid === null ? undefined : eq(providerSessions.sid, sid),
    owner === null ? undefined : eq(providerSessions.userId, owner.id),
  )
  const { tokenHash, userId } = providerSessions
  const rows = await db.select({ tokenHash, userId }).from(providerSessions).where(named).all()
  // A user's sessions that began before this data existed end too.
  const unnoted =
    sid === null && owner !== null
      ? (await ctx.sessions.list(owner.id, ctx.now())).filter(({ oidcIssuer }) => oidcIssuer === issuer)
      : []
  const found = new Map([...rows, ...unnoted].map((row) => [row.tokenHash, row.userId]))
  const counts = new Map<number, number>()
  for (const [hash, id] of found) {
    if (await ctx.sessions.remove(hash)) counts.set(id, (counts.get(id) ?? 0) + 1)
    await db.delete(providerSessions).where(eq(tokenHash, hash)).run()
  }
  const who = await db
    .select({ id: users.id, username: users.username })
    .from(users)
    .where(inArray(users.id, [...counts.keys()]))
    .all()
  const entries = who.map(({ id: userId, username }) => {
    const by = { by: 'the OpenID provider', providerId: provider.settings.id }
    return audit(ctx, 'session_revoked', { userId, username, ...by, sessions: counts.get(userId) }, { actor: SYSTEM })
  })
  await ctx.store.atomic([isDone, ...entries])
}

/** Deletes the data of expired sessions, and of logouts that no sign-in in progress can have missed. */
export async function sweepProviderSessions({
  store,
  config,
  now,
}: Pick<Ctx, 'store' | 'config' | 'now'>): Promise<void> {
  const oldest = now() - config.SESSION_ABSOLUTE_TIMEOUT_SECONDS * 1000
  await store.db.delete(providerSessions).where(lt(providerSessions.createdAt, oldest)).run()
  await store.db.delete(providerCutoffs).where(lt(providerCutoffs.endedAt, oldest)).run()
  await store.db
    .delete(providerLogouts)
    .where(lt(providerLogouts.createdAt, now() - REPLAY_MS))
    .run()
}
