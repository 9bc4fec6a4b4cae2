import Database from 'better-sqlite3'
import type { D1Database, D1PreparedStatement } from '@cloudflare/workers-types'
import { openMemoryStore } from '../support/memory-store.ts'

export type LaggingD1 = {
  readonly database: D1Database
  /** Who answered each query since the last call. */
  takeAsked(): ('primary' | 'replica')[]
  /** The replica receives what the primary has stored. */
  catchUp(): void
  /** The replica gives no more answers. */
  stop(): void
  /** How often somebody asked for a state that the primary does not have; such a query waits for ever. */
  readonly waiting: number
  close(): void
}

const bookmarkOf = (version: number) => `${version.toString(16).padStart(8, '0')}-00000000-00005e2c-${'0'.repeat(32)}`
const versionOf = (bookmark: string) => Number.parseInt(bookmark.slice(0, 8), 16)

/**
 * D1 with one replica, as its documentation describes the Sessions API: without a session the primary answers. The first
 * query of a session at `first-primary` too; all others are selects at the replica, which receives just what the
 * session's bookmark asks for, and no more. Miniflare has no replicas.
 */
export function laggingD1(): LaggingD1 {
  const primary = openMemoryStore().sqlite
  const changes = primary.prepare('select total_changes()').pluck()
  let version = 1
  const images = new Map([[version, primary.serialize()]])
  let replica = { sqlite: new Database(images.get(1)), version: 1 }
  const asked: ('primary' | 'replica')[] = []
  let waiting = 0
  let isStopped = false

  const moveTo = (wanted: number) => {
    replica.sqlite.close()
    replica = { sqlite: new Database(images.get(wanted)), version: wanted }
  }

  const atPrimary = <T>(work: (sqlite: Database.Database) => T): { answer: T; at: number } => {
    asked.push('primary')
    const before = changes.get()
    const answer = work(primary)
    if (changes.get() !== before) images.set(++version, primary.serialize())
    return { answer, at: version }
  }

  const atReplica = async <T>(wanted: number, work: (sqlite: Database.Database) => T) => {
    asked.push('replica')
    if (isStopped || wanted > version) {
      waiting += 1
      await new Promise(() => {})
    }
    if (replica.version < wanted) moveTo(wanted)
    return { answer: work(replica.sqlite), at: replica.version }
  }

  const isChange = (sql: string) => !/^\s*(?:select|with)\b/i.test(sql)

  type Run = <T>(sqls: readonly string[], work: (sqlite: Database.Database) => T) => Promise<T>
  const bounds = new WeakMap<D1PreparedStatement, (sqlite: Database.Database) => unknown>()
  const rowsOf = (sqlite: Database.Database, sql: string, values: readonly unknown[], isRaw: boolean): unknown[] => {
    const statement = sqlite.prepare(sql)
    if (statement.reader) return (isRaw ? statement.raw() : statement).all(...values)
    statement.run(...values)
    return []
  }
  const meta = { size_after: 1, changes: 0, rows_read: 0, rows_written: 0 }
  const client = (run: Run) => {
    const prepare = (sql: string, values: readonly unknown[] = []): D1PreparedStatement => {
      const all = (sqlite: Database.Database) => ({ results: rowsOf(sqlite, sql, values, false), meta })
      const made: D1PreparedStatement = Object({
        sql,
        bind: (...given: unknown[]) => prepare(sql, given),
        all: async () => run([sql], all),
        run: async () => run([sql], all),
        raw: async () => run([sql], (sqlite) => rowsOf(sqlite, sql, values, true)),
      })
      bounds.set(made, all)
      return made
    }
    return {
      prepare: (sql: string) => prepare(sql),
      batch: async (statements: D1PreparedStatement[]) =>
        run(
          statements.map((one) => String(Object(one).sql)),
          (sqlite) => sqlite.transaction(() => statements.map((one) => bounds.get(one)?.(sqlite)))(),
        ),
    }
  }

  const database: D1Database = Object({
    ...client(async (_sqls, work) => atPrimary(work).answer),
    withSession(from: string) {
      let bookmark = from === 'first-primary' ? null : from
      const run: Run = async (sqls, work) => {
        const goesFirst = bookmark === null || sqls.some(isChange)
        const { answer, at } = goesFirst ? atPrimary(work) : await atReplica(versionOf(bookmark ?? ''), work)
        const now = bookmarkOf(at)
        if (bookmark === null || bookmark < now) bookmark = now
        return answer
      }
      return { ...client(run), getBookmark: () => bookmark }
    },
  })

  return {
    database,
    takeAsked: () => asked.splice(0),
    catchUp: () => moveTo(version),
    stop: () => (isStopped = true),
    get waiting() {
      return waiting
    },
    close() {
      primary.close()
      replica.sqlite.close()
    },
  }
}
