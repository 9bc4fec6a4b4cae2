import type { D1Database, D1DatabaseSession, D1PreparedStatement } from '@cloudflare/workers-types'

export type CountedDatabase = {
  readonly database: D1Database
  /** Round trips to D1 since the last call: a single query is one, and so is a batch. */
  takeTrips(): number
  /** Queries since the last call: each statement of a batch is one. */
  takeQueries(): number
  /** Rows read since the last call, including index entries; those of selects only with `reads`. */
  takeRead(): number
  /** Rows written since the last call, including index entries. */
  takeWritten(): number
}

/** The same database with counted requests. `reads`: also the rows that selects read, for which each runs twice. */
export function countTrips(database: D1Database, { reads = true } = {}): CountedDatabase {
  let trips = 0
  let queries = 0
  let read = 0
  let written = 0
  const note = ({ meta }: { readonly meta: { readonly rows_read: number; readonly rows_written: number } }) => {
    read += meta.rows_read
    written += meta.rows_written
  }
  const originals = new WeakMap<object, D1PreparedStatement>()
  const counted = (statement: D1PreparedStatement, query: string): D1PreparedStatement => {
    const proxy = new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name === 'bind') return (...values: unknown[]) => counted(target.bind(...values), query)
        return async (...values: unknown[]) => {
          trips += 1
          queries += 1
          // Bare rows come without figures: a select is repeated for them, a change is asked for rows with names.
          if (/^\s*(?:select|with)\b/i.test(query)) {
            if (reads) read += (await target.all()).meta.rows_read
            return value.apply(target, values)
          }
          const answer = await target.all()
          note(answer)
          return name === 'raw' ? answer.results.map((row) => Object.values(row)) : answer
        }
      },
    })
    originals.set(proxy, statement)
    return proxy
  }
  const asking = <T extends D1Database | D1DatabaseSession>(asked: T): T =>
    new Proxy(asked, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name === 'prepare') return (query: string) => counted(target.prepare(query), query)
        if (name === 'withSession') return (from: string) => asking(database.withSession(from))
        if (name !== 'batch') return value.bind(target)
        return async (statements: D1PreparedStatement[]) => {
          trips += 1
          queries += statements.length
          const answers = await target.batch(statements.map((each) => originals.get(each) ?? each))
          answers.forEach(note)
          return answers
        }
      },
    })
  const take = (count: number, forget: () => void) => {
    forget()
    return count
  }
  return {
    database: asking(database),
    takeTrips: () => take(trips, () => (trips = 0)),
    takeQueries: () => take(queries, () => (queries = 0)),
    takeRead: () => take(read, () => (read = 0)),
    takeWritten: () => take(written, () => (written = 0)),
  }
}
