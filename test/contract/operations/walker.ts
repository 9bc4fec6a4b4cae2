import { expect } from 'vitest'
import { readEventStream } from '../../support/event-stream.ts'
import { type Client, createClient, type Service, signIn } from '../service.ts'

/** Stands for the live events without an account. */
export const VISITORS = 'GET /api/events of a visitor'

/** The answer to one call of an operation. */
export type Called = { readonly operation: string; readonly status: number; readonly body: unknown }

type Given = {
  /** Of the path, in their order. */
  readonly ids?: readonly (string | number)[]
  /** With its `?`. */
  readonly query?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly by?: Client
}

/** Calls operations of the API by their names in the document, and keeps what they answered. */
export type Walker = {
  readonly admin: Client
  readonly called: readonly Called[]
  /** `operation`: as `GET /api/nodes/:id`. Returns the body. */
  call(operation: string, given?: Given): Promise<Record<string, unknown>>
  /** The same, with the cookies that the answer sets beside that of the session: `name=value` each. */
  callForCookies(operation: string, given?: Given): Promise<[body: Record<string, unknown>, cookies: string]>
  /** Opens the live events, and reads the first one. */
  listen(): Promise<void>
  /** Opens them without an account. */
  listenAsVisitor(): Promise<void>
  stranger(): Client
  signIn(username: string, password?: string): Promise<Client>
}

export function createWalker(service: Service, admin: Client): Walker {
  const called: Called[] = []
  const send = async (operation: string, { ids = [], query = '', body, headers, by = admin }: Given) => {
    const [method = '', pattern = ''] = operation.split(' ')
    const left = [...ids]
    const path = pattern.replace(/:\w+/g, () => encodeURIComponent(String(left.shift() ?? 'missing')))
    const answer = await by.send(method, `${path}${query}`, body, headers)
    called.push({ operation, status: answer.status, body: answer.body })
    return answer
  }
  return {
    admin,
    called,
    call: async (operation, given = {}) => Object((await send(operation, given)).body),
    async callForCookies(operation, given = {}) {
      const answer = await send(operation, given)
      const set = answer.headers.getSetCookie().map((line) => String(line.split(';')[0]))
      return [Object(answer.body), set.filter((one) => !one.startsWith('mesh_session=')).join('; ')]
    },
    async listen() {
      const headers = { cookie: String(admin.cookie), [service.addressHeader]: '198.51.100.251' }
      const answer = await fetch(new URL('/api/events?brief=true', service.url), { headers })
      const stream = readEventStream(answer)
      const first = await stream.next()
      expect(first?.id).toMatch(/-\d+$/)
      await stream.end()
      called.push({ operation: 'GET /api/events', status: answer.status, body: { event: first?.event ?? null } })
    },
    async listenAsVisitor() {
      const headers = { [service.addressHeader]: '198.51.100.252' }
      const answer = await fetch(new URL('/api/events', service.url), { headers })
      called.push({ operation: VISITORS, status: answer.status, body: null })
      await answer.body?.cancel()
    },
    stranger: () => createClient(service),
    signIn: (username, password) => signIn(service, username, password),
  }
}

/**
 * Where two answers have other fields, other types, or a list is empty in one of them only. What is null in either says
 * nothing.
 */
export function differences(one: unknown, other: unknown, path = ''): string[] {
  if (one === null || other === null || one === undefined || other === undefined) return []
  if (Array.isArray(one) && Array.isArray(other)) {
    if ((one.length === 0) !== (other.length === 0)) return [`${path}[]: ${one.length} and ${other.length} items`]
    return differences(one[0], other[0], `${path}[]`)
  }
  if (typeof one !== typeof other || Array.isArray(one) !== Array.isArray(other)) {
    return [`${path}: ${typeof one} and ${typeof other}`]
  }
  if (typeof one !== 'object') return []
  const [fields, others] = [Object.keys(one), Object.keys(Object(other))]
  const missing = fields.filter((name) => !others.includes(name)).map((name) => `${path}.${name}: only in the first`)
  const more = others.filter((name) => !fields.includes(name)).map((name) => `${path}.${name}: only in the second`)
  const within = fields
    .filter((name) => others.includes(name))
    .flatMap((name) => differences(Object(one)[name], Object(other)[name], `${path}.${name}`))
  return [...missing, ...more, ...within]
}
