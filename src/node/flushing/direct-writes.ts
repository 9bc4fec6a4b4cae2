import type { Writes } from './writes.ts'

type Values = Record<string, unknown>

const METHODS = ['run', 'all', 'get', 'values'] as const

/**
 * Lets every statement that a database of Drizzle prepares from now on, and that writes, go through `change`, so that its
 * result is a promise. Inside a transaction of `change` nothing changes.
 */
export function awaitWrites(db: object, change: Writes['change']): void {
  const session = Object(Reflect.get(db, 'session'))
  const prepareQuery: unknown = session.prepareQuery
  if (typeof prepareQuery !== 'function') throw new TypeError('a database of Drizzle has a session')
  session.prepareQuery = (...query: unknown[]): unknown => {
    const prepared = Reflect.apply(prepareQuery, session, query)
    if (Reflect.get(Object(Reflect.get(prepared, 'stmt')), 'readonly') === true) return prepared
    // Not set on the query itself, whose methods call each other.
    const methods = METHODS.map((name) => [name, { value: (values?: Values) => change(() => prepared[name](values)) }])
    return Object.create(prepared, Object.fromEntries(methods))
  }
}
