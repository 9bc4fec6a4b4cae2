import { MINUTE_MS } from '../../shared/time.ts'

/** What a select at a replica may lack: what was stored within this time, and this isolate has not seen. */
export const STALE_MS = 5000
/** A replica that is further behind is not waited for. */
const PATIENCE_MS = 2000
/** How long only the primary is asked after a replica failed. */
const AVOIDED_MS = MINUTE_MS

/** What a store needs of a database. */
export type Client = Pick<D1Database, 'prepare' | 'batch'>

/**
 * One database with its read replicas (developers.cloudflare.com/d1/best-practices/read-replication), as one isolate
 * uses it.
 */
export type Replicas = {
  /** Asks the primary. */
  readonly primary: Client
  /**
   * Selects from any replica that has at least what this isolate has seen from whatever instance, so that nothing here
   * ever goes back in time. Everything else asks the primary.
   */
  readonly nearest: Client
  /** The latest state of the database that this isolate has seen; null: none. */
  bookmark(): string | null
}

type Query<T> = (session: D1DatabaseSession) => Promise<T>

/**
 * Decision: docs/decisions/reads-from-replicas.md
 */
export function openReplicas(database: D1Database, now: () => number, patienceMs = PATIENCE_MS): Replicas {
  let seen: string | null = null
  /** When the primary was last asked how far it is. */
  let checkedAt = Number.NEGATIVE_INFINITY
  let avoidedUntil = Number.NEGATIVE_INFINITY

  // Bookmarks sort as texts.
  const note = (session: D1DatabaseSession) => {
    const bookmark = session.getBookmark()
    if (bookmark !== null && (seen === null || seen < bookmark)) seen = bookmark
  }

  const askPrimary = async <T>(query: Query<T>): Promise<T> => {
    const at = now()
    // Only the first query of a session is sure to go there, so each one has its own.
    const session = database.withSession('first-primary')
    const answer = await query(session)
    note(session)
    checkedAt = Math.max(checkedAt, at)
    return answer
  }

  const askNearest = async <T>(query: Query<T>): Promise<T> => {
    const at = now()
    const isFresh = at >= checkedAt && at - checkedAt < STALE_MS
    if (seen === null || !isFresh || at < avoidedUntil) return askPrimary(query)
    const session = database.withSession(seen)
    try {
      const answer = await within(query(session), patienceMs)
      note(session)
      return answer
    } catch {
      // Whatever the cause is, also a bookmark that another database gave: the primary says what is so.
      seen = null
      avoidedUntil = at + AVOIDED_MS
      return askPrimary(query)
    }
  }

  return {
    primary: clientOf(() => askPrimary),
    nearest: clientOf((isSelect) => (isSelect ? askNearest : askPrimary)),
    bookmark: () => seen,
  }
}

async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('the replica is too far behind')), ms)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

type Bound = { readonly sql: string; readonly values: readonly unknown[] }
type Ask = <T>(query: Query<T>) => Promise<T>

/** A client whose statements choose their session when they run: they are prepared once for all requests. */
function clientOf(choose: (isSelect: boolean) => Ask): Client {
  const bounds = new WeakMap<D1PreparedStatement, Bound>()
  const prepared = (sql: string, values: readonly unknown[]): D1PreparedStatement => {
    const ask = choose(isSelect(sql))
    const on = (session: D1DatabaseSession) => session.prepare(sql).bind(...values)
    const statement = asStatement({
      bind: (...given: unknown[]) => prepared(sql, given),
      run: () => ask((session) => on(session).run()),
      all: () => ask((session) => on(session).all()),
      raw: () => ask((session) => on(session).raw()),
    })
    bounds.set(statement, { sql, values })
    return statement
  }
  return {
    prepare: (sql) => prepared(sql, []),
    batch: (statements) => {
      const all = statements.map((statement) => {
        const bound = bounds.get(statement)
        if (bound === undefined) throw new Error('a statement of another client')
        return bound
      })
      const ask = choose(all.every(({ sql }) => isSelect(sql)))
      return ask((session) => session.batch(all.map(({ sql, values }) => session.prepare(sql).bind(...values))))
    },
  }
}

/** Changes that begin with `with` are found by their word; a select with such a word in a text asks the primary. */
function isSelect(sql: string): boolean {
  return /^\s*select\b/i.test(sql) || (/^\s*with\b/i.test(sql) && !/\b(?:insert|update|delete)\b/i.test(sql))
}

// What drizzle calls of a statement (drizzle-orm/d1/session).
function asStatement(statement: Record<'bind' | 'run' | 'all' | 'raw', unknown>): D1PreparedStatement {
  const any: unknown = statement
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return any as D1PreparedStatement
}
