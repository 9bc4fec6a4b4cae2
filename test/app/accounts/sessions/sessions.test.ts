import type { SessionStore } from '../../../../src/app/accounts/sessions/store.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { databaseSessions } from '../../../../src/app/accounts/sessions/database-sessions.ts'
import { sweepSessions } from '../../../../src/app/accounts/sessions/sessions.ts'
import { memorySessions } from '../../../../src/app/accounts/sessions/memory-sessions.ts'
import { auditedBy, outcomeOf } from '../../../support/answers.ts'
import {
  ADMIN_PASSWORD,
  auditRows,
  type Client,
  createTestApp,
  START,
  type TestApp,
  USER_PASSWORD,
} from '../../../support/app.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const CREDENTIALS = { username: 'admin', password: ADMIN_PASSWORD }

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const isSignedIn = async (client: Client) => (await client.send('GET', '/api/auth/sessions')).status === 200

/** The store, with a count of its writes. */
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
  test('a session in hourly use lives exactly 30 days from sign-in', async () => {
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

  test('an unused session ends after 24 hours', async () => {
    const [one, two] = [await app.admin(), await app.admin()]
    app.clock.advance(DAY - 1)
    expect(await isSignedIn(one)).toBe(true)
    app.clock.advance(1)
    expect(await isSignedIn(two)).toBe(false)
    expect(await isSignedIn(one)).toBe(true)
  })

  test('a use that the store has not recorded yet counts to the millisecond', async () => {
    const [one, two] = [await app.admin(), await app.admin()]
    app.clock.advance(4 * 60_000)
    for (const client of [one, two]) expect(await isSignedIn(client)).toBe(true)
    app.clock.advance(DAY - 1)
    expect(await isSignedIn(one)).toBe(true)
    app.clock.advance(1)
    expect(await isSignedIn(two)).toBe(false)
  })

  test('both timeouts can be configured', async () => {
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

  test('a shorter absolute timeout also applies to existing sessions', async () => {
    const client = await app.admin()
    app.clock.advance(HOUR)
    Object.assign(app.ports, { config: { ...app.ports.config, SESSION_ABSOLUTE_TIMEOUT_SECONDS: 3600 } })
    expect(await isSignedIn(client)).toBe(false)
  })

  test('a busy session writes to its store once in five minutes', async () => {
    const store = openMemoryStore()
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

  test.each(Object.entries(ENDINGS))('%s ends the sessions immediately', async (_name, end) => {
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

  test('a demotion takes effect at the next request of the same session', async () => {
    const admin = await app.admin()
    const user = await app.user('anna')
    await admin.send('PUT', `/api/users/${user.id}/admin`, { isAdmin: true })
    expect((await user.send('GET', '/api/users')).status).toBe(200)
    await admin.send('PUT', `/api/users/${user.id}/admin`, { isAdmin: false })
    expect(await outcomeOf(user.send('GET', '/api/users'))).toBe('403 admin_required')
  })
})

describe("one's own sessions", () => {
  test('are listed with the most recent first and without those of other users', async () => {
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

  test('are limited to a hundred: the least recently used one is removed', async () => {
    const clients: Client[] = []
    for (let n = 0; n < 100; n++) {
      app.clock.advance(1000)
      clients.push(await app.admin())
    }
    const [first, second, third] = clients
    if (first === undefined || second === undefined || third === undefined) throw new Error('nobody signed in')
    app.clock.advance(10 * 60_000)
    expect(await isSignedIn(first)).toBe(true)
    const newest = await app.admin()
    await app.signIn('admin', ADMIN_PASSWORD)
    expect([await isSignedIn(first), await isSignedIn(newest)]).toStrictEqual([true, true])
    expect([await isSignedIn(second), await isSignedIn(third)]).toStrictEqual([false, false])
    expect(app.store.sqlite.prepare('select count(*) from sessions').pluck().get()).toBe(100)
  })

  test('the newest one is never removed, even among others of the same moment or after the clock was set back', async () => {
    for (let n = 0; n < 110; n++) expect(await isSignedIn(await app.admin())).toBe(true)
    app.clock.advance(-60_000)
    expect(await isSignedIn(await app.admin())).toBe(true)
    expect(app.store.sqlite.prepare('select count(*) from sessions').pluck().get()).toBe(100)
  })

  test('can be ended one by one; an unknown session or somebody else’s is not found', async () => {
    const user = await app.user('anna')
    const admin = await app.admin()
    const { sessions: foreign } = Object(await (await user.send('GET', '/api/auth/sessions')).json())
    const { sessions } = Object(await (await admin.send('GET', '/api/auth/sessions')).json())
    const own = sessions.find((one: { current: boolean }) => one.current)
    const other = sessions.find((one: { current: boolean }) => !one.current)
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

  test('ending the others is recorded only if there are any', async () => {
    const [one, two] = [await app.admin(), await app.admin()]
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(two.send('DELETE', '/api/auth/sessions'))).toBe('204')
      expect(await outcomeOf(two.send('DELETE', '/api/auth/sessions'))).toBe('204')
    })
    expect(audited).toStrictEqual(['session_revoked'])
    expect([await isSignedIn(one), await isSignedIn(two)]).toStrictEqual([false, true])
  })
})

test('signing out while nothing can be written works here at once, and for good once writing works again', async () => {
  const client = await app.user('ursula')
  const { cookie } = client
  const { sqlite } = app.store
  sqlite.pragma('query_only = true')
  const answer = await client.send('POST', '/api/auth/logout')
  expect([answer.status, client.cookie]).toStrictEqual([200, null])
  client.cookie = cookie
  expect(await isSignedIn(client)).toBe(false)
  sqlite.pragma('query_only = false')
  expect(await isSignedIn(client)).toBe(false)
  await sweepSessions(app.ports)
  expect(sqlite.prepare('select count(*) from sessions where user_id = ?').pluck().get(client.id)).toBe(0)
})

test('signed-in users can still read while the store cannot record their use', async () => {
  const admin = await app.admin()
  app.clock.advance(HOUR)
  app.store.sqlite.pragma('query_only = true')
  expect((await admin.send('GET', '/api/users')).status).toBe(200)
  app.store.sqlite.pragma('query_only = false')
})

test('a sweep removes all expired sessions, in slices, and nothing else', async () => {
  const { sqlite } = app.store
  const series = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < 2500)'
  sqlite.exec(`${series} insert into sessions (token_hash, user_id, epoch, created_at, last_seen_at, expires_at)
    select 'hash-' || n, 1, 0, 1, 1, iif(n > 2400, ${START + DAY}, ${START - 1}) from i`)
  sqlite.exec(`${series} insert into rate_limits (key, count, expires_at)
    select 'key-' || n, 1, iif(n > 2400, ${START + DAY}, ${START - 1}) from i`)
  await databaseSessions(app.store).sweep(START)
  const left = (table: string) => sqlite.prepare(`select count(*) from ${table}`).pluck().get()
  expect([left('sessions'), left('rate_limits')]).toStrictEqual([100, 100])
})
