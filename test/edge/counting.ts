import type { D1Database, D1PreparedStatement } from '@cloudflare/workers-types'

export type CountedDatabase = {
  readonly database: D1Database
  /** Round trips to D1 since the last call: a single query is one, and so is a batch. */
  takeTrips(): number
  /** Rows written by batches and statements without an answer since the last call, including index entries. */
  takeWritten(): number
}

/** The same database with counted requests. */
export function countTrips(database: D1Database): CountedDatabase {
  let trips = 0
  let written = 0
  const originals = new WeakMap<object, D1PreparedStatement>()
  const counted = (statement: D1PreparedStatement): D1PreparedStatement => {
    const proxy = new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name === 'bind') return (...values: unknown[]) => counted(target.bind(...values))
        return (...values: unknown[]) => {
          trips += 1
          return value.apply(target, values)
        }
      },
    })
    originals.set(proxy, statement)
    return proxy
  }
  const proxy = new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name === 'prepare') return (query: string) => counted(target.prepare(query))
      if (name !== 'batch') return value.bind(target)
      return async (statements: D1PreparedStatement[]) => {
        trips += 1
        const answers = await target.batch(statements.map((each) => originals.get(each) ?? each))
        for (const { meta } of answers) written += meta.rows_written
        return answers
      }
    },
  })
  const take = (count: number, forget: () => void) => {
    forget()
    return count
  }
  return {
    database: proxy,
    takeTrips: () => take(trips, () => (trips = 0)),
    takeWritten: () => take(written, () => (written = 0)),
  }
}
