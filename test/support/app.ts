import { readTranslation } from '../../src/node/translations.ts'
import type { Scope } from '../../src/shared/access/scope.ts'
import type { PasswordHasher } from '../../src/app/accounts/passwords/hasher.ts'
import type { Radio } from '../../src/app/mesh/radios/radio.ts'
import type { Hono } from 'hono'
import type { RouterRoute } from 'hono/types'
import { createApp } from '../../src/app/app.ts'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { createProviders } from '../../src/app/accounts/oidc/oidc.ts'
import { parseConfig } from '../../src/app/config/config.ts'
import { NO_PORTS, type Ports } from '../../src/app/base/context.ts'
import { memoryBuckets } from '../../src/app/http/limits/buckets.ts'
import { AppError } from '../../src/app/http/errors.ts'
import { createLog } from '../../src/app/base/log.ts'
import { makeFirstAdmin } from '../../src/app/accounts/users/first-admin.ts'
import { zlibCompressor } from '../../src/node/http/compressor.ts'
import { type SqliteStore } from '../../src/node/database.ts'
import { documentCheck } from './documented.ts'
import { openMemoryStore } from './memory-store.ts'

export const ADMIN_PASSWORD = 'the first administrator'
export const USER_PASSWORD = 'a password for everyone'
export const START = Date.UTC(2026, 0, 15, 12)

/** A clock that only advances when told. */
export type Clock = { now: number; advance(ms: number): void }

export type TestApp = {
  readonly ports: Ports
  /** Every handler of the app with its method and path. */
  readonly routes: readonly RouterRoute[]
  readonly store: SqliteStore
  readonly clock: Clock
  readonly logged: string[]
  /** The address of the next requests. */
  ip: string
  /** Whom an authenticating proxy names. */
  proxyUser: string | null
  /** The origin of the next requests. */
  origin: string
  /** Sends any request; fails the test when the answer does not match the route's documentation. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** A browser: sends JSON, keeps its cookie. */
  client(): Client
  /** A client that is signed in. */
  signIn(username: string, password?: string): Promise<Client>
  admin(): Promise<Client>
  /** A regular user created by the administrator, signed in. */
  user(
    username: string,
    permissions?: Record<string, { read: boolean; write: boolean }>,
    scope?: Scope,
  ): Promise<Client & { id: number }>
  close(): void
}

export type Client = {
  cookie: string | null
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
}

/**
 * The real app on a real SQLite database, in memory unless a `store` is given; only the clock and the bcrypt cost are
 * replaced.
 */
export async function createTestApp(
  options: {
    env?: Record<string, string>
    ports?: Partial<Ports>
    passwords?: PasswordHasher
    store?: SqliteStore
  } = {},
): Promise<TestApp> {
  const parsed = parseConfig({ SESSION_SECRET: 's'.repeat(40), ADMIN_PASSWORD, LOG_LEVEL: 'debug', ...options.env })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const clock: Clock = {
    now: START,
    advance: (ms) => {
      clock.now += ms
    },
  }
  const logged: string[] = []
  const store = options.store ?? openMemoryStore()
  const now = options.ports?.now ?? (() => clock.now)
  const log = createLog({ level: 'debug', format: 'json', now, write: (line) => logged.push(line) })
  const ports: Ports = {
    config: parsed.config,
    store,
    sessions: databaseSessions(store),
    buckets: memoryBuckets(),
    passwords: options.passwords ?? plainHasher(),
    log,
    ...NO_PORTS,
    translations: readTranslation,
    providers: createProviders({ config: parsed.config, log, now }),
    radio: NO_RADIO,
    compressor: zlibCompressor(),
    version: '1.2.3',
    startedAt: START,
    now,
    clientIp: () => app.ip,
    proxyUser: () => app.proxyUser,
    origin: () => app.origin,
    ...options.ports,
  }
  await makeFirstAdmin(ports)
  const hono: Hono<never> = Object(createApp(() => ports))
  const checkDocumented = documentCheck(hono.routes)
  const app: TestApp = {
    ports,
    routes: hono.routes,
    store,
    clock,
    logged,
    ip: '192.0.2.1',
    proxyUser: null,
    origin: 'http://localhost',
    request: async (path, init) => {
      const answer = await hono.request(path, init)
      await checkDocumented(init?.method ?? 'GET', path, answer)
      return answer
    },
    client: () => createClient(app),
    signIn: async (username, password = USER_PASSWORD) => {
      const client = createClient(app)
      const answer = await client.send('POST', '/api/auth/login', { username, password })
      if (answer.status !== 200) throw new Error(`sign-in of ${username}: ${answer.status} ${await answer.text()}`)
      return client
    },
    admin: () => app.signIn('admin', ADMIN_PASSWORD),
    user: async (username, permissions, scope) => {
      const admin = await app.admin()
      const made = await admin.send('POST', '/api/users', { username, password: USER_PASSWORD, scope })
      const { user } = Object(await made.json())
      if (permissions) await admin.send('PUT', `/api/users/${user.id}/permissions`, { permissions })
      return Object.assign(await app.signIn(username), { id: Number(user.id) })
    },
    close: () => store.close(),
  }
  return app
}

function createClient(app: TestApp): Client {
  const client: Client = {
    cookie: null,
    send: async (method, path, body, headers = {}) => {
      const answer = await app.request(path, {
        method,
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(client.cookie !== null && { cookie: client.cookie }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const set = answer.headers.getSetCookie().find((cookie) => /^(__Host-)?mesh_session[^=_]*=/.test(cookie))
      if (set !== undefined) client.cookie = /max-age=0/i.test(set) ? null : (set.split(';')[0] ?? null)
      return answer
    },
  }
  return client
}

/** Turns signed-in users into users of an OpenID provider, which the service trusts from then on. */
export function moveToProvider(app: TestApp, ids: readonly number[]): void {
  const issuer = 'https://id.example.org'
  const parsed = parseConfig({
    OIDC_ENABLED: 'true',
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: 'secret',
    OIDC_REDIRECT_URI: 'http://localhost/api/auth/oidc/callback',
  })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const config = { ...app.ports.config, OIDC_PROVIDERS: parsed.config.OIDC_PROVIDERS }
  Object.assign(app.ports, { config, providers: createProviders({ ...app.ports, config }) })
  const move = app.store.sqlite.prepare("update users set auth_provider = 'oidc', oidc_issuer = ? where id = ?")
  const link = app.store.sqlite.prepare(
    'insert into identities (user_id, issuer, subject, created_at) values (?, ?, ?, 0)',
  )
  for (const id of ids) {
    move.run(issuer, id)
    link.run(id, issuer, `subject ${id}`)
  }
}

/** A service without a radio. */
export const NO_RADIO: Radio = {
  links: () => [],
  devices: () => [],
  waiting: () => 0,
  sending: () => 0,
  collector: () => null,
  reserve: () => {
    throw new AppError('radio_unavailable')
  },
  withdraw: () => {},
  hearings: () => [],
  lora: () => null,
}

/** The form of bcrypt without its cost: these tests check who gets in, not how long it takes. */
function plainHasher(): PasswordHasher {
  return {
    hash: async (password) => `$2b$12$${Buffer.from(password).toString('base64url')}`,
    verify: async (password, hash) => hash === `$2b$12$${Buffer.from(password).toString('base64url')}`,
  }
}

/** The audit log, oldest first, without what differs from run to run. */
export function auditRows(app: TestApp): { action: string; username: string; details: Record<string, unknown> }[] {
  const rows = app.store.sqlite.prepare('select action, username, details from audit_log order by id').all()
  return rows.map((row) => {
    const { action, username, details } = Object(row)
    return { action, username, details: JSON.parse(details) }
  })
}
