import { and, eq, gt, isNull, or, type SQL, sql } from 'drizzle-orm'
import { apiTokens, sessions, users } from '../../../db/schema.ts'
import { prepareOnce, readTogether } from '../../../db/store.ts'
import type { SignedInCtx, Viewer } from '../../base/context.ts'
import { ifLive } from '../sessions/sessions.ts'
import { account, accountOf, type AccountRow, refreshedBySession, refreshedByToken } from './viewer.ts'

const isOneOf = (column: SQL | typeof users.id | typeof sessions.tokenHash | typeof apiTokens.id, name: string) =>
  sql`${column} in (select value from json_each(${sql.placeholder(name)}))`

const queries = prepareOnce((db) => ({
  accounts: db
    .select(account)
    .from(users)
    .where(and(isOneOf(users.id, 'ids'), eq(users.isActive, true)))
    .prepare(),
  sessions: db.select().from(sessions).where(isOneOf(sessions.tokenHash, 'hashes')).prepare(),
  tokens: db
    .select({ id: apiTokens.id, scopes: apiTokens.scopes })
    .from(apiTokens)
    .where(
      and(
        isOneOf(apiTokens.id, 'tokens'),
        isNull(apiTokens.heldAt),
        or(isNull(apiTokens.expiresAt), gt(apiTokens.expiresAt, sql.placeholder('now'))),
      ),
    )
    .prepare(),
}))

/**
 * As `refreshViewer`, for the callers of many requests in one round trip: their current state in the same order, null if
 * the session or token has ended. The sessions must be in the database.
 */
export async function refreshTogether(asked: readonly SignedInCtx[]): Promise<(Viewer | null)[]> {
  const [first] = asked
  if (first === undefined) return []
  const credentials = asked.map(({ viewer }) => viewer.credential)
  const values = {
    ids: JSON.stringify([...new Set(asked.map(({ viewer }) => viewer.user.id))]),
    hashes: JSON.stringify(credentials.flatMap((one) => (one.kind === 'session' ? one.session.tokenHash : []))),
    tokens: JSON.stringify(credentials.flatMap((one) => (one.kind === 'token' ? one.tokenId : []))),
    now: first.now(),
  }
  const { accounts, sessions, tokens } = queries(first.store)
  const [foundAccounts, foundSessions, foundTokens] = await readTogether(first.store, values, [
    accounts,
    sessions,
    tokens,
  ])
  const accountOfUser = new Map(foundAccounts.map((row: AccountRow) => [row.id, accountOf(row)]))
  const sessionOfHash = new Map(foundSessions.map((session) => [session.tokenHash, session]))
  const tokenOfId = new Map(foundTokens.map((token) => [token.id, token]))
  return asked.map((ctx) => {
    const { user, credential } = ctx.viewer
    const found = accountOfUser.get(user.id)
    if (found === undefined) return null
    if (credential.kind === 'token') return refreshedByToken(ctx, found, tokenOfId.get(credential.tokenId))
    return refreshedBySession(ctx, found, credential, ifLive(ctx, sessionOfHash.get(credential.session.tokenHash)))
  })
}
