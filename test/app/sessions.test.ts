import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/auth/database-sessions.ts'
import { memorySessions } from '../../src/app/auth/memory-sessions.ts'
import type { SessionStore } from '../../src/app/context.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { auditedBy, outcomeOf } from '../support/answers.ts'
import {
  ADMIN_PASSWORD,
  auditRows,
  type Client,
  createTestApp,
  START,
  type TestApp,
  USER_PASSWORD,
} from '../support/app.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const CREDENTIALS = { username: 'admin', password: ADMIN_PASSWORD }

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const isSignedIn = async (client: Client) => (await client.send('GET', '/api/auth/sessions')).status === 200

describe('the cookie', () => {
  const TOKEN = String.raw`[\w-]{43}\.[\w-]{43}`

  test.each([
    ['http://localhost', {}, `^mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`],
    [
      'https://a.example',
      {},
      `^__Host-mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; Secure; SameSite=Lax$`,
    ],
    ['http://localhost', { COOKIE_SECURE: 'true' }, `^__Host-mesh_session=${TOKEN}; .*; Secure; `],
    [
      'https://a.example',
      { COOKIE_SECURE: 'false' },
      `^mesh_session=${TOKEN}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax$`,
    ],
    ['http://localhost', { SESSION_ABSOLUTE_TIMEOUT_SECONDS: '31536000' }, 'Max-Age=31536000;'],
  ])('at %s with %j matches %s, at sign-in and, cleared, at sign-out', async (origin, env, pattern) => {
    app.close()
    app = await createTestApp({ env })
    app.origin = origin
    const client = app.client()
    const [cookie] = (await client.send('POST', '/api/auth/login', CREDENTIALS)).headers.getSetCookie()
    expect(cookie).toMatch(new RegExp(pattern))
    expect(await isSignedIn(client)).toBe(true)
    const [cleared] = (await client.send('POST', '/api/auth/logout')).headers.getSetCookie()
    expect(cleared).toMatch(/=; Max-Age=0; Path=\//)
    expect(cleared?.split('=')[0]).toBe(cookie?.split('=')[0])
    expect(cleared?.includes('Secure')).toBe(cookie?.includes('Secure'))
  })

  test('by https the un-prefixed name is nobody, even with a good token', async () => {
    const client = await app.admin()
    expect(await isSignedIn(client)).toBe(true)
    app.origin = 'https://mesh.example.org'
    expect(await isSignedIn(client)).toBe(false)
    client.cookie = `__Host-${client.cookie}`
    expect(await isSignedIn(client)).toBe(true)
  })

  test('a tampered, cut, swapped or foreign token is anonymous and never an error', async () => {
    const { cookie } = await app.admin()
    const [name, value = ''] = String(cookie).split('=')
    const [token = '', mac = ''] = value.split('.')
    const last = (text: string, by: string) => text.slice(0, -1) + by
    const values = [
      ...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
        .filter((character) => !mac.endsWith(character))
        .map((character) => `${token}.${last(mac, character)}`),
      `${last(token, token.endsWith('A') ? 'B' : 'A')}.${mac}`,
      `${mac}.${token}`,
      token,
      `${token}.`,
      `${value}.${mac}`,
      `${value}=`,
      `${value}%00`,
      '%',
      '%ff%fe',
      '',
      'x'.repeat(8000),
      `"${value}`,
    ]
    for (const wrong of values) {
      const answer = await app.request('/api/auth/status', { headers: { cookie: `${name}=${wrong}` } })
      expect(answer.status, wrong).toBe(200)
      expect(await answer.json(), wrong).toMatchObject({ authenticated: false })
    }
  })

  test('a token that somebody planted is not taken over at sign-in', async () => {
    const planted = await app.user('mallory')
    const victim = app.client()
    victim.cookie = planted.cookie
    expect((await victim.send('POST', '/api/auth/login', CREDENTIALS)).status).toBe(200)
    expect(victim.cookie).not.toBe(planted.cookie)
    const status = await planted.send('GET', '/api/auth/status')
    expect(await status.json()).toMatchObject({ authenticated: false })
  })

  test('each sign-in gives a new token and ends the one before', async () => {
    const client = await app.admin()
    const first = client.cookie
    await client.send('POST', '/api/auth/login', CREDENTIALS)
    const second = client.cookie
    expect(second).not.toBe(first)
    client.cookie = first
    expect(await isSignedIn(client)).toBe(false)
    client.cookie = second
    expect(await isSignedIn(client)).toBe(true)
  })

  test('a failed sign-in leaves the session that is there', async () => {
    const client = await app.admin()
    await client.send('POST', '/api/auth/login', { ...CREDENTIALS, password: 'wrong' })
    expect(await isSignedIn(client)).toBe(true)
  })

  test('only the SHA-256 of the token is stored, and nothing of it is logged or audited', async () => {
    const client = await app.admin()
    const token = /=([\w-]+)\./.exec(String(client.cookie))?.[1] ?? ''
    expect(token).toHaveLength(43)
    const tables = app.store.sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all()
    const dump = tables.flatMap((name) => app.store.sqlite.prepare(`select * from "${String(name)}"`).all())
    expect(JSON.stringify(dump)).not.toContain(token)
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))
    expect(JSON.stringify(dump)).toContain(Buffer.from(digest).toString('hex'))
    expect(app.logged.join('\n')).not.toContain(token)
  })

  test('anonymous requests make no session and no other row; health and bearer requests set no cookie', async () => {
    const admin = await app.admin()
    const made = await admin.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })
    const { token } = Object(await made.json())
    const count = () =>
      app.store.sqlite
        .prepare(
          'select (select count(*) from sessions) + (select count(*) from audit_log) + (select count(*) from rate_limits)',
        )
        .pluck()
        .get()
    const before = count()
    const headers = { authorization: `Bearer ${token}` }
    for (const path of ['/api/health', '/api/auth/status', '/api/users', '/api/nothing', '/api/openapi.json']) {
      expect((await app.request(path)).headers.getSetCookie()).toStrictEqual([])
      expect((await app.request(path, { headers })).headers.getSetCookie()).toStrictEqual([])
    }
    expect(count()).toBe(before)
  })
})

describe('SESSION_SECRET', () => {
  const [OLD, NEW, OTHER] = ['o'.repeat(40), 'n'.repeat(40), 'x'.repeat(40)]
  let store: SqliteStore
  beforeEach(() => {
    store = openDatabase(':memory:')
  })
  afterEach(() => store.close())

  const appWith = (secrets: string) => createTestApp({ store, env: { SESSION_SECRET: secrets } })

  test('rotates: the first signs, all verify, and one that is dropped no longer counts', async () => {
    const { cookie } = await (await appWith(OLD)).admin()
    const signedIn = async (secrets: string) => {
      const client = (await appWith(secrets)).client()
      client.cookie = cookie
      return isSignedIn(client)
    }
    expect(await signedIn(`${NEW},${OLD}`)).toBe(true)
    expect(await signedIn(`${NEW}, ${OLD} `)).toBe(true)
    expect(await signedIn(`${OLD},${NEW}`)).toBe(true)
    expect(await signedIn(NEW)).toBe(false)
    expect(await signedIn(`${NEW},${OTHER}`)).toBe(false)
    const rotated = await (await appWith(`${NEW},${OLD}`)).admin()
    const client = (await appWith(NEW)).client()
    client.cookie = rotated.cookie
    expect(await isSignedIn(client)).toBe(true)
  })
})

/** The store, and how often it was written to. */
function counted(inner: SessionStore) {
  const calls = { extend: 0 }
  const store: SessionStore = {
    ...inner,
    extend: (...args) => {
      calls.extend++
      return inner.extend(...args)
    },
  }
  return { store, calls }
}

describe('timeouts', () => {
  test('a session that is used every hour lives 30 days from sign-in and not a millisecond more', async () => {
    const client = await app.admin()
    for (let at = HOUR; at < 30 * DAY; at += HOUR) {
      app.clock.now = START + at
      if (!(await isSignedIn(client))) throw new Error(`ended after ${at / HOUR} hours`)
    }
    app.clock.now = START + 30 * DAY - 1
    expect(await isSignedIn(client)).toBe(true)
    app.clock.now = START + 30 * DAY
    expect(await isSignedIn(client)).toBe(false)
  })

  test('unused, it ends after 24 hours', async () => {
    const [one, two] = [await app.admin(), await app.admin()]
    app.clock.advance(DAY - 1)
    expect(await isSignedIn(one)).toBe(true)
    app.clock.advance(1)
    expect(await isSignedIn(two)).toBe(false)
    expect(await isSignedIn(one)).toBe(true)
  })

  test('both can be set', async () => {
    app.close()
    const env = { SESSION_IDLE_TIMEOUT_SECONDS: '60', SESSION_ABSOLUTE_TIMEOUT_SECONDS: '100' }
    app = await createTestApp({ env })
    const [idle, busy] = [await app.admin(), await app.admin()]
    app.clock.advance(50_000)
    expect(await isSignedIn(busy)).toBe(true)
    app.clock.advance(10_000)
    expect(await isSignedIn(idle)).toBe(false)
    expect(await isSignedIn(busy)).toBe(true)
    app.clock.advance(39_999)
    expect(await isSignedIn(busy)).toBe(true)
    app.clock.advance(1)
    expect(await isSignedIn(busy)).toBe(false)
  })

  test('a shorter absolute timeout counts for sessions that are there already', async () => {
    const client = await app.admin()
    app.clock.advance(HOUR)
    Object.assign(app.ports, { config: { ...app.ports.config, SESSION_ABSOLUTE_TIMEOUT_SECONDS: 3600 } })
    expect(await isSignedIn(client)).toBe(false)
  })

  test('a busy session touches its store once in five minutes', async () => {
    const store = openDatabase(':memory:')
    const { store: sessions, calls } = counted(databaseSessions(store))
    app.close()
    app = await createTestApp({ store, ports: { sessions } })
    const client = await app.admin()
    for (let second = 1; second < 300; second++) {
      app.clock.advance(1000)
      await client.send('GET', '/api/auth/status')
    }
    expect(calls.extend).toBe(0)
    for (let second = 300; second <= 900; second++) {
      app.clock.advance(1000)
      await client.send('GET', '/api/auth/status')
    }
    expect(calls.extend).toBe(3)
    const { sessions: list } = Object(await (await client.send('GET', '/api/auth/sessions')).json())
    expect(list[0].lastSeenAt).toBe(app.clock.now)
  })
})

describe.each(['database', 'memory'])('with the %s store', (kind) => {
  let memory: SessionStore
  beforeEach(async () => {
    memory = memorySessions()
    if (kind === 'database') return
    app.close()
    app = await createTestApp({ ports: { sessions: memory } })
  })

  const ENDINGS: Record<string, (admin: Client, user: Client & { id: number }) => Promise<Response>> = {
    deactivation: (admin, user) => admin.send('DELETE', `/api/users/${user.id}`),
    'a password reset': (admin, user) => admin.send('POST', `/api/users/${user.id}/reset-password`),
    'a password change elsewhere': async (_admin, user) => {
      const elsewhere = await app.signIn('anna')
      expect(user.cookie).not.toBe(elsewhere.cookie)
      const body = { currentPassword: USER_PASSWORD, newPassword: 'quite another password' }
      return elsewhere.send('POST', '/api/auth/change-password', body)
    },
    'ending the other sessions': async () => (await app.signIn('anna')).send('DELETE', '/api/auth/sessions'),
  }

  test.each(Object.entries(ENDINGS))('%s ends the sessions at once', async (_name, end) => {
    const admin = await app.admin()
    const user = await app.user('anna')
    expect(await isSignedIn(user)).toBe(true)
    expect((await end(admin, user)).ok).toBe(true)
    expect(await isSignedIn(user)).toBe(false)
    expect(await isSignedIn(admin)).toBe(true)
  })

  test('a dead session stays dead by its epoch even if the store brings it back', async () => {
    const admin = await app.admin()
    const user = await app.user('anna')
    const [kept] = await app.ports.sessions.list(user.id, app.clock.now)
    await admin.send('DELETE', `/api/users/${user.id}`)
    await admin.send('PUT', `/api/users/${user.id}`, { isActive: true })
    if (kept === undefined) throw new Error('no session to bring back')
    await app.ports.sessions.insert(kept)
    expect(await isSignedIn(user)).toBe(false)
    expect(await isSignedIn(await app.signIn('anna'))).toBe(true)
    const { sessions } = Object(await (await (await app.signIn('anna')).send('GET', '/api/auth/sessions')).json())
    expect(sessions).toHaveLength(2)
  })

  test('a demotion bites at the next request of the same session', async () => {
    const admin = await app.admin()
    const user = await app.user('anna')
    await admin.send('PUT', `/api/users/${user.id}/admin`, { isAdmin: true })
    expect((await user.send('GET', '/api/users')).status).toBe(200)
    await admin.send('PUT', `/api/users/${user.id}/admin`, { isAdmin: false })
    expect(await outcomeOf(user.send('GET', '/api/users'))).toBe('403 admin_required')
  })
})

describe("one's own sessions", () => {
  test('are listed with the most recent first, and none of anybody else', async () => {
    await app.user('anna')
    app.clock.advance(1000)
    app.ip = '2001:db8::7'
    const admin = app.client()
    await admin.send('POST', '/api/auth/login', CREDENTIALS, { 'user-agent': `Browser ${'x'.repeat(400)}` })
    const { sessions } = Object(await (await admin.send('GET', '/api/auth/sessions')).json())
    expect(sessions).toHaveLength(2)
    expect(sessions[0]).toStrictEqual({
      id: sessions[0].id,
      createdAt: START + 1000,
      lastSeenAt: START + 1000,
      ip: '2001:db8::7',
      userAgent: `Browser ${'x'.repeat(248)}`,
      current: true,
    })
    expect(sessions[1]).toMatchObject({ current: false, userAgent: null, ip: '192.0.2.1' })
  })

  test('can be ended one by one; what is not there or not one’s own is not found', async () => {
    const user = await app.user('anna')
    const admin = await app.admin()
    const { sessions: foreign } = Object(await (await user.send('GET', '/api/auth/sessions')).json())
    const { sessions } = Object(await (await admin.send('GET', '/api/auth/sessions')).json())
    const [own, other] = sessions
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(admin.send('DELETE', `/api/auth/sessions/${foreign[0].id}`))).toBe('404 not_found')
      expect(await outcomeOf(admin.send('DELETE', '/api/auth/sessions/1'))).toBe('404 not_found')
      expect(await outcomeOf(admin.send('DELETE', '/api/auth/sessions/x'))).toBe('400 invalid_request')
      expect(await outcomeOf(admin.send('DELETE', `/api/auth/sessions/${other.id}`))).toBe('204')
      expect(await outcomeOf(admin.send('DELETE', `/api/auth/sessions/${other.id}`))).toBe('404 not_found')
    })
    expect(audited).toStrictEqual(['session_revoked'])
    expect(auditRows(app).at(-1)?.details).toStrictEqual({ sessionId: other.id })
    expect(await isSignedIn(user)).toBe(true)
    expect(await outcomeOf(admin.send('DELETE', `/api/auth/sessions/${own.id}`))).toBe('204')
    expect(await isSignedIn(admin)).toBe(false)
  })

  test('ending the others is recorded only when there are any', async () => {
    const [one, two] = [await app.admin(), await app.admin()]
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(two.send('DELETE', '/api/auth/sessions'))).toBe('204')
      expect(await outcomeOf(two.send('DELETE', '/api/auth/sessions'))).toBe('204')
    })
    expect(audited).toStrictEqual(['session_revoked'])
    expect([await isSignedIn(one), await isSignedIn(two)]).toStrictEqual([false, true])
  })
})
