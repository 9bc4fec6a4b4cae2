import { said } from '../../words/words.ts'
import { userSchema } from '../users/user.ts'
import { and, eq, getTableColumns, gt, isNull, lt, or, sql } from 'drizzle-orm'
import type { Context } from 'hono'
import * as z from 'zod'
import { apiTokens, sessions, users } from '../../../db/schema.ts'
import { changeAndRead, prepareOnce, rememberUnchanged, type Statement } from '../../../db/store.ts'
import type { Ctx, Viewer } from '../../base/context.ts'
import { AppError, toAppError } from '../../http/errors.ts'
import { scopeColumns, scopeOf, scopeSchema } from '../users/scope.ts'
import { hiddenNodes, viewOf } from './visible.ts'
import { packedPermissions, permissionsSchema, unpackPermissions } from '../users/permissions.ts'
import { publicUser, userColumns } from '../users/users.ts'
import { languageIn, unitsIn } from '../users/reader.ts'
import { hasSecondFactor } from '../users/has-factor.ts'
import { hashToken } from '../sessions/session-token.ts'
import type { StoredSession } from '../sessions/store.ts'
import { findLive, findSession, findSessionWith, touchSession } from '../sessions/sessions.ts'
import { cutoffsJson, isCutOff } from '../sessions/cutoffs.ts'
import { subjectsJson } from '../users/identities.ts'
import { isByProxy, isTrustedIssuer } from '../proxy-issuer.ts'
import { storedMeshName } from '../../settings/settings.ts'
import { destinationsToReview } from '../to-review.ts'
import { heldScopes, withinScopes } from '../tokens/tokens.ts'
import { ALL_PERMISSIONS, permissionsFrom } from '../../../shared/access/resources.ts'
import { MINUTE_MS } from '../../../shared/time.ts'

/** How often a token's last use is written. */
const TOKEN_TOUCH_MS = 5 * MINUTE_MS

/** What `accountOf` needs of a user. */
export const account = {
  ...userColumns,
  subjects: subjectsJson,
  mustChangePassword: users.mustChangePassword,
  epoch: users.sessionEpoch,
  ...scopeColumns,
  hidden: hiddenNodes,
  packed: packedPermissions,
  hasFactor: hasSecondFactor,
  language: users.language,
  units: users.units,
  cutoffs: cutoffsJson,
  factorsResetAt: sql<
    number | null
  >`(select "reset_at" from "factor_resets" where "factor_resets"."user_id" = "users"."id")`,
}

// Permissions are read by one packed sub-select, because a join would repeat the user's row for each resource.
const queries = prepareOnce((db) => ({
  byId: db
    .select(account)
    .from(users)
    .where(and(eq(users.id, sql.placeholder('id')), eq(users.isActive, true)))
    .prepare(),
  bySession: db
    .select({
      session: getTableColumns(sessions),
      account,
      nodesRevision: sql<number>`(select value from revisions where name = 'nodes')`,
      toReview: destinationsToReview,
      meshName: storedMeshName,
    })
    .from(sessions)
    .innerJoin(users, and(eq(users.id, sessions.userId), eq(users.isActive, true)))
    .where(eq(sessions.tokenHash, sql.placeholder('tokenHash')))
    .prepare(),
  tokenByHash: db
    .select({
      id: apiTokens.id,
      userId: apiTokens.userId,
      scopes: apiTokens.scopes,
      lastUsedAt: apiTokens.lastUsedAt,
      heldAt: apiTokens.heldAt,
    })
    .from(apiTokens)
    .where(
      and(
        eq(apiTokens.tokenHash, sql.placeholder('hash')),
        or(isNull(apiTokens.expiresAt), gt(apiTokens.expiresAt, sql.placeholder('now'))),
      ),
    )
    .prepare(),
  liveToken: db
    .select({ id: apiTokens.id, scopes: apiTokens.scopes })
    .from(apiTokens)
    .where(
      and(
        eq(apiTokens.id, sql.placeholder('id')),
        isNull(apiTokens.heldAt),
        or(isNull(apiTokens.expiresAt), gt(apiTokens.expiresAt, sql.placeholder('now'))),
      ),
    )
    .prepare(),
}))

/**
 * Identifies the caller with the current permissions. If there is an Authorization header, it alone decides: an invalid
 * token never falls back to a cookie.
 */
export async function resolveViewer(
  c: Context,
  ctx: Ctx,
): Promise<{
  readonly viewer: Viewer | null
  readonly nodesRevision?: number
  readonly toReview?: number
  readonly meshName?: string | null
  readonly isTokenHeld?: true
}> {
  const authorization = c.req.header('authorization')
  if (authorization !== undefined) return tokenViewer(ctx, authorization)
  if (ctx.store.batch !== undefined && ctx.sessions.isInDatabase) return distantViewer(c, ctx)
  return { viewer: await sessionViewer(c, ctx) }
}

/** If each query is a network round trip, one query reads session, account and the revision that lists need. */
async function distantViewer(c: Context, ctx: Ctx) {
  const { bySession } = queries(ctx.store)
  const found = await findSessionWith(c, ctx, async (tokenHash) => bySession.get({ tokenHash }))
  const owner = found === null ? null : ifOpen(ctx, accountOf(found.account), found.session)
  if (found === null || owner === null || owner.epoch !== found.session.epoch) {
    return { viewer: null }
  }
  await unlessUnwritable(touchSession(ctx, found.session))
  const { nodesRevision, toReview, meshName } = found
  return { viewer: bySessionOf(owner, found.session), nodesRevision, toReview, meshName }
}

function bySessionOf(
  { user, permissions, scope, hidden, mustChangePassword, secondFactor, language, units }: Account,
  session: StoredSession,
): Viewer {
  const view = viewOf(scope, permissions, hidden)
  const credential = { kind: 'session' as const, session }
  return { user, permissions, scope, view, mustChangePassword, secondFactor, language, units, credential }
}

async function sessionViewer(c: Context, ctx: Ctx): Promise<Viewer | null> {
  const session = await findSession(c, ctx)
  if (session === null) return null
  const found = await findAccount(ctx, session.userId, session)
  if (found === null || found.epoch !== session.epoch) return null
  await unlessUnwritable(touchSession(ctx, session))
  return bySessionOf(found, session)
}

async function tokenViewer(ctx: Ctx, authorization: string) {
  const token = /^Bearer +(mm_[\w-]{43})$/i.exec(authorization)?.[1]
  if (token === undefined) return { viewer: null }
  const row = await queries(ctx.store).tokenByHash.get({ hash: hashToken(token), now: ctx.now() })
  if (row === undefined) return { viewer: null }
  const found = await findAccount(ctx, row.userId)
  if (found === null) return { viewer: null }
  if (row.heldAt !== null) return { viewer: null, isTokenHeld: true as const }
  await unlessUnwritable(touchToken(ctx, row))
  return { viewer: byToken(found, row) }
}

/**
 * A caller is admitted even if their last use cannot be recorded: administrators must be able to free space on a full
 * disk.
 */
async function unlessUnwritable(noting: Promise<void>): Promise<void> {
  try {
    await noting
  } catch (error) {
    if (toAppError(error).code !== 'database_unavailable') throw error
  }
}

type Account = NonNullable<Awaited<ReturnType<typeof findAccount>>>

/** A token can do what its scopes permit, but never more than its owner may do now. */
function byToken(account: Account, token: { readonly id: number; readonly scopes: readonly string[] }): Viewer {
  const { user, permissions: held, scope, hidden, mustChangePassword, secondFactor, language, units } = account
  const scopes = heldScopes({ isAdmin: user.isAdmin, permissions: held }, token.scopes)
  const permissions = withinScopes(held, scopes)
  return {
    user,
    permissions,
    scope,
    view: viewOf(scope, permissions, hidden),
    mustChangePassword,
    secondFactor,
    language,
    units,
    credential: { kind: 'token', tokenId: token.id, scopes, held },
  }
}

/**
 * The current state of an earlier viewer; null if the session or token has ended. Does not count as a use of either.
 */
export async function refreshViewer(ctx: Ctx, { user, credential }: Viewer): Promise<Viewer | null> {
  const found = await readAccount(ctx.store, user.id)
  if (found === null) return null
  if (credential.kind === 'session') {
    return refreshedBySession(ctx, found, credential, await findLive(ctx, credential.session.tokenHash))
  }
  const token = await queries(ctx.store).liveToken.get({ id: credential.tokenId, now: ctx.now() })
  return refreshedByToken(ctx, found, token)
}

/** `live`: the session as it is now, unless it has ended. */
export function refreshedBySession(
  ctx: Ctx,
  found: Account,
  credential: Extract<Viewer['credential'], { kind: 'session' }>,
  live: StoredSession | null,
): Viewer | null {
  const owner = ifOpen(ctx, found, credential.session)
  if (owner === null || live === null || live.epoch !== owner.epoch) return null
  return { ...bySessionOf(owner, credential.session), credential }
}

/** `live`: the token as it is now, unless it has ended. */
export function refreshedByToken(
  ctx: Ctx,
  found: Account,
  live: { readonly id: number; readonly scopes: readonly string[] } | undefined,
): Viewer | null {
  const owner = ifOpen(ctx, found, null)
  return owner === null || live === undefined ? null : byToken(owner, live)
}

/**
 * A user's view for an administrator: what the user may read, in the administrator's session. Null for a user who
 * cannot sign in, and for administrators.
 */
export async function viewerSeenAs(ctx: Ctx, { credential }: Viewer, userId: number): Promise<Viewer | null> {
  const account = await findAccount(ctx, userId)
  if (account === null || account.user.isAdmin || credential.kind !== 'session') return null
  const { user, permissions, scope, hidden } = account
  return {
    user,
    permissions: permissionsFrom((resource) => ({ read: permissions[resource].read, write: false })),
    scope,
    view: viewOf(scope, permissions, hidden),
    mustChangePassword: false,
    secondFactor: { isSetUp: true, resetAt: null },
    language: account.language,
    units: account.units,
    credential: { ...credential, isSeenAs: true },
  }
}

export type AccountRow = NonNullable<Awaited<ReturnType<ReturnType<typeof queries>['byId']['get']>>>

const readAccount = rememberUnchanged(1000, async (store, id: number) => {
  const row = await queries(store).byId.get({ id })
  return row === undefined ? null : accountOf(row)
})

const cutoffsSchema = z.record(z.string(), z.number())
const subjectsSchema = z.record(z.string(), z.string())

export function accountOf(row: AccountRow) {
  return {
    user: publicUser(row),
    permissions: row.isAdmin ? ALL_PERMISSIONS : unpackPermissions(row.packed),
    scope: scopeOf(row),
    hidden: row.hidden,
    /** The user's subject at each linked issuer. */
    subjects: subjectsSchema.parse(JSON.parse(row.subjects)),
    mustChangePassword: row.mustChangePassword,
    epoch: row.epoch,
    cutoffs: cutoffsSchema.parse(JSON.parse(row.cutoffs)),
    secondFactor: { isSetUp: row.hasFactor === 1, resetAt: row.factorsResetAt },
    language: languageIn(row.language),
    units: unitsIn(row.units),
  }
}

/**
 * Also null if the sign-in method is off: for a session the method by which it began, for a token all methods of its
 * owner. DISABLE_LOCAL_AUTH turns local sign-in off, and providers that are not configured are off too.
 */
async function findAccount(
  ctx: Pick<Ctx, 'store' | 'config' | 'providers'> & { readonly namedByProxy?: string | null },
  id: number,
  session: StoredSession | null = null,
) {
  const account = await readAccount(ctx.store, id)
  return account === null ? null : ifOpen(ctx, account, session)
}

function ifOpen(
  ctx: Pick<Ctx, 'config' | 'providers'> & { readonly namedByProxy?: string | null },
  account: ReturnType<typeof accountOf>,
  session: StoredSession | null,
) {
  const { subjects, user } = account
  const isLocal = user.authProvider === 'local' && !ctx.config.DISABLE_LOCAL_AUTH
  const isLinked = Object.keys(subjects).some((issuer) => isTrustedIssuer(ctx, issuer))
  if (session === null) return isLocal || isLinked ? account : null
  const began = session.oidcIssuer
  if (began === null) {
    // The session began with the password alone, before the user had a second factor.
    if (account.secondFactor.isSetUp && session.factors !== 2) return null
    return isLocal || (user.authProvider === 'oidc' && isLinked) ? account : null
  }
  const subject = Object.hasOwn(subjects, began) && isTrustedIssuer(ctx, began) ? subjects[began] : undefined
  // The proxy must still name the same user.
  const isStill = !isByProxy(session) || ctx.namedByProxy === subject
  return subject !== undefined && isStill && !isCutOff(account.cutoffs, session) ? account : null
}

/** A user on whose behalf the service acts by itself, with their current permissions; null if they cannot sign in. */
export async function findOwner({ store, config, providers }: Pick<Ctx, 'store' | 'config' | 'providers'>, id: number) {
  const account = await findAccount({ store, config, providers }, id)
  if (account === null) return null
  const { user, permissions, scope, hidden } = account
  const { isAdmin, username } = user
  return { isAdmin, username, permissions, view: viewOf(scope, permissions, hidden) }
}

async function touchToken(ctx: Ctx, token: { id: number; lastUsedAt: number | null }): Promise<void> {
  const now = ctx.now()
  if (token.lastUsedAt !== null && now - token.lastUsedAt < TOKEN_TOUCH_MS) return
  const stale = or(isNull(apiTokens.lastUsedAt), lt(apiTokens.lastUsedAt, now))
  await ctx.store.db
    .update(apiTokens)
    .set({ lastUsedAt: now })
    .where(and(eq(apiTokens.id, token.id), stale))
    .run()
}

const HELD = said(
  'This API token is held, because the OpenID provider refused its owner. It works again after the owner has signed in',
)

/** Throws `unauthenticated`; used where a rule needs a viewer. */
export function demandViewer(ctx: Ctx): Viewer {
  if (ctx.isTokenHeld) throw new AppError('unauthenticated', HELD)
  if (ctx.viewer === null) throw new AppError('unauthenticated')
  return ctx.viewer
}

export const signedInSchema = z.object({
  user: userSchema,
  permissions: permissionsSchema,
  scope: scopeSchema,
  mustChangePassword: z.boolean(),
})

/** The answer to a sign-in: the account as it is now. */
export async function signedInAnswer(ctx: Ctx, userId: number) {
  const found = await findAccount(ctx, userId)
  if (found === null) throw new AppError('invalid_credentials')
  return signedInAs(found)
}

function signedInAs({ user, permissions, scope, mustChangePassword }: Account) {
  return { user, permissions, scope, mustChangePassword }
}

/**
 * Runs the statements of a sign-in by password alone, and reads its answer in the same round trip. Null: nobody is
 * signed in, because `user` was deactivated, got another password or a second factor meanwhile.
 */
export async function signInBy(
  ctx: Ctx,
  { id, epoch }: { readonly id: number; readonly epoch: number },
  statements: readonly [Statement, ...Statement[]],
): Promise<z.infer<typeof signedInSchema> | null> {
  const [row] = await changeAndRead(ctx.store, statements, queries(ctx.store).byId, { id })
  const found = row === undefined ? null : ifOpen(ctx, accountOf(row), null)
  return found === null || found.epoch !== epoch || found.secondFactor.isSetUp ? null : signedInAs(found)
}
