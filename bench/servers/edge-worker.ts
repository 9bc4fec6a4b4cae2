// The worker's own code on the D1 of workerd, with counts of what D1 charges.
import type { D1Database, D1DatabaseSession } from '@cloudflare/workers-types'
import worker from '../../src/edge/worker.ts'
import { PASSWORD } from './processes.ts'

const ORIGIN = 'http://edge.test'

type Prepared = ReturnType<D1Database['prepare']>
type Answer = { readonly meta: { readonly rows_read: number; readonly rows_written: number } }
export type Counted = {
  trips: number
  read: number
  written: number
  /** Written rows by the table that a statement names; those of its triggers count with it. */
  readonly byTable: Map<string, number>
  readonly database: D1Database
}

const TARGET = /^\s*(?:with .*?)?(?:insert(?: or \w+)? into|update(?: or \w+)?|delete from)\s+["`]?(\w+)/is

/**
 * The same database with counts. Bare rows come without figures: a select is repeated for them, and a change is asked for
 * rows with names.
 */
export function counting(database: D1Database): Counted {
  const byTable = new Map<string, number>()
  const counted = { trips: 0, read: 0, written: 0, byTable }
  const real = new WeakMap<object, { readonly statement: Prepared; readonly query: string }>()
  const note = <T extends Answer>(answer: T, query: string): T => {
    const { rows_read: read, rows_written: written } = answer.meta
    counted.read += read
    counted.written += written
    const table = TARGET.exec(query)?.[1] ?? 'others'
    if (written > 0) byTable.set(table, (byTable.get(table) ?? 0) + written)
    return answer
  }
  const wrap = (statement: Prepared, query: string): Prepared => {
    const isSelect = /^\s*(?:select|with)/i.test(query)
    const wrapped = new Proxy(statement, {
      get: (target, name) => {
        switch (name) {
          case 'bind':
            return (...values: unknown[]) => wrap(target.bind(...values), query)
          case 'all':
          case 'run':
            return async () => {
              counted.trips++
              return note(await target.all(), query)
            }
          case 'raw':
          case 'first':
            return async (...given: []) => {
              counted.trips++
              const answer = note(await target.all(), query)
              if (isSelect || name === 'first') return Reflect.apply(Reflect.get(target, name), target, given)
              return answer.results.map((row) => Object.values(row))
            }
          default:
            return Reflect.get(target, name)
        }
      },
    })
    real.set(wrapped, { statement, query })
    return wrapped
  }
  const asking = <T extends D1Database | D1DatabaseSession>(asked: T): T =>
    new Proxy(asked, {
      get: (target, name) => {
        if (name === 'prepare') return (query: string) => wrap(target.prepare(query), query)
        if (name === 'withSession') return (from: string) => asking(database.withSession(from))
        const value: unknown = Reflect.get(target, name)
        if (name !== 'batch') return typeof value === 'function' ? value.bind(target) : value
        return async (statements: Prepared[]) => {
          counted.trips++
          const known = statements.map((each) => real.get(each) ?? { statement: each, query: '' })
          const answers = await target.batch(known.map(({ statement }) => statement))
          return answers.map((answer, n) => note(answer, known[n]?.query ?? ''))
        }
      },
    })
  return Object.assign(counted, { database: asking(database) })
}

/** The worker with its administrator signed in. */
export type EdgeWorker = {
  /** Throws on an error. */
  ask(path: string, init?: RequestInit): Promise<Response>
  login(): Promise<Response>
  /** As the administrator. */
  readonly headers: Readonly<Record<string, string>>
  /** Waits for what the worker does after its answers. */
  settle(): Promise<void>
}

export async function openWorker(database: D1Database): Promise<EdgeWorker> {
  const environment = { DB: database, ASSETS: null, SESSION_SECRET: 's'.repeat(40), ADMIN_PASSWORD: PASSWORD }
  const waiting: Promise<unknown>[] = []
  const execution = { waitUntil: (work: Promise<unknown>) => waiting.push(work) }
  const address = { 'cf-connecting-ip': '192.0.2.1' }
  // The worker has the types of its platform; at run time a Request is a Request.
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const request = new Request(`${ORIGIN}${path}`, init)
    const answer: unknown = await Reflect.apply(worker.fetch, worker, [request, environment, execution])
    if (!(answer instanceof Response)) throw new Error('no response')
    if (answer.status >= 400) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  const login = () =>
    ask('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...address },
      body: JSON.stringify({ username: 'admin', password: PASSWORD }),
    })
  const settle = async () => {
    await Promise.all(waiting.splice(0))
  }
  const cookie = (await login()).headers.getSetCookie()[0]?.split(';')[0] ?? ''
  await settle()
  return { ask, login, headers: { cookie, ...address }, settle }
}
