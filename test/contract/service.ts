import { expect } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import { documentCheck } from '../support/documented.ts'

/** A running service on any runtime. */
export type Service = {
  /** Its HTTP address. */
  readonly url: URL
  /** The header from which this runtime takes the address of a client. */
  readonly addressHeader: 'x-forwarded-for' | 'cf-connecting-ip'
  /** How many event streams an account may have at a time; without it 10. */
  readonly streamsOfAccount?: number
  /** Runs one statement in its database. */
  readonly sql: (query: string) => Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

export const ADMIN_PASSWORD = 'the first administrator'
export const USER_PASSWORD = 'a password for everyone'

/** The environment that the scenarios rely on. */
export const SCENARIO_ENV = {
  SESSION_SECRET: 'the secret of the scenarios is longer than 32 characters',
  ADMIN_PASSWORD,
  LOGIN_MAX_FAILURES: '3',
} as const

type Answer = {
  readonly status: number
  readonly headers: Headers
  /** Parsed if it is JSON, otherwise the text. */
  readonly body: unknown
}

/** A browser at its own address: sends JSON and keeps its session cookie. */
export type Client = {
  readonly service: Service
  cookie: string | null
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

let addresses = 0

const { routes } = createApp(() => {
  throw new Error('only its routes are needed')
})
const check = documentCheck(routes)

/** Every answer of the API is as its document says, on every runtime and for everybody. */
async function checkDocumented(method: string, path: string, { status, headers }: Response, text: string) {
  if (!path.startsWith('/api/')) return
  const plain = new Headers(headers)
  // `fetch` has decompressed it.
  plain.delete('content-encoding')
  await check(method, path, new Response(text === '' ? null : text, { status, headers: plain }))
}

/** A client whose address no other client has. */
export function createClient(service: Service): Client {
  const address = `198.51.100.${++addresses}`
  const client: Client = {
    service,
    cookie: null,
    send: async (method, path, body, headers = {}) => {
      const response = await fetch(new URL(path, service.url), {
        method,
        redirect: 'manual',
        headers: {
          [service.addressHeader]: address,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(client.cookie !== null && { cookie: client.cookie }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const set = response.headers.getSetCookie().find((cookie) => cookie.startsWith('mesh_session='))
      if (set !== undefined) client.cookie = /max-age=0/i.test(set) ? null : (set.split(';')[0] ?? null)
      const text = await response.text()
      await checkDocumented(method, path, response, text)
      const isJson = /[/+]json$/.test(response.headers.get('content-type') ?? '')
      return {
        status: response.status,
        headers: response.headers,
        body: isJson && text !== '' ? JSON.parse(text) : text,
      }
    },
  }
  return client
}

/** Signs in, and fails the test if that is refused. */
export async function signIn(service: Service, username: string, password = USER_PASSWORD): Promise<Client> {
  const client = createClient(service)
  const answer = await client.send('POST', '/api/auth/login', { username, password })
  expect(answer).toMatchObject({ status: 200, body: { user: { username } } })
  return client
}

/** A new regular user; no session yet. */
export async function makeUser(admin: Client, username: string): Promise<number> {
  const answer = await admin.send('POST', '/api/users', { username, password: USER_PASSWORD })
  expect(answer.status).toBe(201)
  return Number(Object(answer.body).user.id)
}

/** The statuses of answers to simultaneous requests, in ascending order. */
export function statuses(answers: readonly Answer[]): number[] {
  return answers.map(({ status }) => status).toSorted((a, b) => a - b)
}

/** The shape of a refusal. */
export function refusal(status: number, code: string) {
  return { status, body: { type: 'about:blank', status, code, requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) } }
}

/** The audit entries of an action, newest first. */
export async function auditOf(admin: Client, action: string): Promise<Record<string, unknown>[]> {
  const answer = await admin.send('GET', `/api/audit?limit=500&action=${action}`)
  expect(answer.status).toBe(200)
  return Object(answer.body).entries
}
