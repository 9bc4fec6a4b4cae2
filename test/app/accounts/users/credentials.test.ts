import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { auditedBy, outcomeOf, threeCallers } from '../../../support/answers.ts'
import { auditRows, type Client, createTestApp, START, type TestApp, USER_PASSWORD } from '../../../support/app.ts'

let app: TestApp
let admin: Client
let anna: Client & { id: number }
beforeEach(async () => {
  app = await createTestApp()
  anna = await app.user('anna')
  admin = await app.admin()
})
afterEach(() => app.close())

const json = async (answer: Response | Promise<Response>) => Object(await (await answer).json())
const sessionsOf = async (id: number) => (await json(admin.send('GET', `/api/users/${id}/sessions`))).sessions
const tokensOf = async (id: number) => (await json(admin.send('GET', `/api/users/${id}/tokens`))).tokens
const isSignedIn = async (client: Client) => (await json(client.send('GET', '/api/auth/status'))).authenticated

async function makeToken(name: string, client: Client = anna) {
  return json(client.send('POST', '/api/tokens', { name, scopes: ['nodes:read'] }))
}

async function works(token: string) {
  const answer = app.request('/api/auth/status', { headers: { authorization: `Bearer ${token}` } })
  return (await json(answer)).authenticated
}

describe('access by role, and the audit entry', () => {
  test.each([
    ['GET', '/sessions', 'session', '200', []],
    ['DELETE', '/sessions/:one', 'session', '204', ['session_revoked']],
    ['DELETE', '/sessions', 'session', '204', ['session_revoked']],
    ['GET', '/tokens', 'token', '200', []],
    ['DELETE', '/tokens/:one', 'token', '204', ['token_revoked']],
    ['DELETE', '/tokens', 'token', '204', ['token_revoked']],
  ] as const)('%s /api/users/:id%s is for administrators only', async (method, path, kind, granted, written) => {
    const { anonymous, user } = await threeCallers(app)
    const { id: token } = await makeToken('meter')
    const [{ id: session }] = await sessionsOf(anna.id)
    const full = `/api/users/${anna.id}${path.replace(':one', String(kind === 'token' ? token : session))}`
    const refused = await auditedBy(app, async () => {
      expect(await outcomeOf(anonymous.send(method, full))).toBe('401 unauthenticated')
      expect(await outcomeOf(user.send(method, full))).toBe('403 admin_required')
      expect(await outcomeOf(anna.send(method, full))).toBe('403 admin_required')
    })
    expect(refused).toStrictEqual([])
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(admin.send(method, full))).toBe(granted)
    })
    expect(audited).toStrictEqual(written)
  })

  test.each([
    ['GET', '/api/users/99/sessions', '404 user_not_found'],
    ['DELETE', '/api/users/99/sessions', '404 user_not_found'],
    ['DELETE', '/api/users/99/sessions/1', '404 user_not_found'],
    ['DELETE', '/api/users/2/sessions/1', '404 not_found'],
    ['DELETE', '/api/users/2/sessions/x', '400 invalid_request'],
    ['GET', '/api/users/99/tokens', '404 user_not_found'],
    ['DELETE', '/api/users/99/tokens', '404 user_not_found'],
    ['DELETE', '/api/users/99/tokens/1', '404 user_not_found'],
    ['DELETE', '/api/users/2/tokens/99', '404 token_not_found'],
    ['DELETE', '/api/users/2/tokens/0', '400 invalid_request'],
    ['DELETE', '/api/users/0/tokens/1', '400 invalid_request'],
  ])('%s %s is %s, and changes nothing', async (method, path, outcome) => {
    const { token } = await makeToken('meter')
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(admin.send(method, path))).toBe(outcome)
    })
    expect(audited).toStrictEqual([])
    expect([await isSignedIn(anna), await works(token)]).toStrictEqual([true, true])
  })
})

describe('the sessions of a user', () => {
  test('are shown as to the user, and none is marked as the administrator’s current one', async () => {
    const own = (await json(anna.send('GET', '/api/auth/sessions'))).sessions
    expect(await sessionsOf(anna.id)).toStrictEqual([{ ...own[0], current: false }])
    expect((await sessionsOf(1)).filter(({ current }: { current: boolean }) => current)).toHaveLength(1)
  })

  test('end one by one, and the entry names their user', async () => {
    const other = await app.signIn('anna')
    const [, { id }] = await sessionsOf(anna.id)
    const ended = async () => [await isSignedIn(anna), await isSignedIn(other)].filter((isIn) => !isIn)
    expect((await admin.send('DELETE', `/api/users/${anna.id}/sessions/${id}`)).status).toBe(204)
    expect(await ended()).toHaveLength(1)
    expect(auditRows(app).at(-1)).toStrictEqual({
      action: 'session_revoked',
      username: 'admin',
      details: { userId: anna.id, username: 'anna', sessionId: id },
    })
    expect(await outcomeOf(admin.send('DELETE', `/api/users/1/sessions/${id}`))).toBe('404 not_found')
  })

  test('end all at once, also one that the store brings back; without any, nothing is recorded', async () => {
    await app.signIn('anna')
    const kept = await app.ports.sessions.list(anna.id, app.clock.now)
    const audited = await auditedBy(app, async () => {
      for (let n = 0; n < 2; n++) {
        expect(await outcomeOf(admin.send('DELETE', `/api/users/${anna.id}/sessions`))).toBe('204')
      }
    })
    expect(audited).toStrictEqual(['session_revoked'])
    expect(auditRows(app).at(-1)?.details).toStrictEqual({ userId: anna.id, username: 'anna', sessions: 2 })
    for (const session of kept) await app.ports.sessions.insert(session)
    expect(await isSignedIn(anna)).toBe(false)
    expect(await sessionsOf(anna.id)).toStrictEqual([])
    expect(await isSignedIn(await app.signIn('anna'))).toBe(true)
    expect(await isSignedIn(admin)).toBe(true)
  })

  test('are empty for a deactivated user', async () => {
    await admin.send('DELETE', `/api/users/${anna.id}`)
    expect(await sessionsOf(anna.id)).toStrictEqual([])
  })
})

describe('the tokens of a user', () => {
  test('are shown without their text', async () => {
    const { token, secretShown: _, ...listed } = await makeToken('meter')
    expect(await tokensOf(anna.id)).toStrictEqual([listed])
    expect(JSON.stringify(await tokensOf(anna.id))).not.toContain(token)
    expect(await tokensOf(1)).toStrictEqual([])
  })

  test('end one by one or all at once, each with its own entry', async () => {
    const [one, two, three] = [await makeToken('one'), await makeToken('two'), await makeToken('three')]
    const mine = await makeToken('mine', admin)
    expect(await outcomeOf(admin.send('DELETE', `/api/users/1/tokens/${one.id}`))).toBe('404 token_not_found')
    expect((await admin.send('DELETE', `/api/users/${anna.id}/tokens/${two.id}`)).status).toBe(204)
    expect(await Promise.all([one, two, three].map(({ token }) => works(token)))).toStrictEqual([true, false, true])
    const audited = await auditedBy(app, async () => {
      for (let n = 0; n < 2; n++) {
        expect(await outcomeOf(admin.send('DELETE', `/api/users/${anna.id}/tokens`))).toBe('204')
      }
    })
    expect(audited).toStrictEqual(['token_revoked', 'token_revoked'])
    expect(auditRows(app).at(-1)).toStrictEqual({
      action: 'token_revoked',
      username: 'admin',
      details: { userId: anna.id, username: 'anna', tokenId: one.id, name: 'one', prefix: one.prefix },
    })
    expect(await Promise.all([one, three, mine].map(({ token }) => works(token)))).toStrictEqual([false, false, true])
  })
})

describe('changing the password', () => {
  const change = (more: object) =>
    anna.send('POST', '/api/auth/change-password', {
      currentPassword: USER_PASSWORD,
      newPassword: 'quite another password',
      ...more,
    })

  test.each([
    [{}, true, {}],
    [{ revokeTokens: false }, true, {}],
    [{ revokeTokens: true }, false, { tokensRevoked: 1 }],
  ])('with %j keeps the tokens: %s', async (more, isLeft, details) => {
    const { token } = await makeToken('meter')
    expect((await change(more)).status).toBe(204)
    expect(await works(token)).toBe(isLeft)
    expect(auditRows(app).at(-1)).toStrictEqual({ action: 'password_changed', username: 'anna', details })
  })

  test('that is refused keeps them, too', async () => {
    const { token } = await makeToken('meter')
    const body = { revokeTokens: true, currentPassword: 'not this one' }
    expect(await outcomeOf(change(body))).toBe('403 wrong_password')
    expect(await works(token)).toBe(true)
  })
})

describe('the idle timeout counts from the last use', () => {
  const IDLE = 60_000
  beforeEach(async () => {
    app.close()
    app = await createTestApp({ env: { SESSION_IDLE_TIMEOUT_SECONDS: '60' } })
    admin = await app.admin()
  })

  test.each([1, 2_999, 3_000, 29_999, 30_000, 59_999])('%i ms after the sign-in', async (used) => {
    const dead = await app.admin()
    app.clock.now = START + used
    expect([await isSignedIn(admin), await isSignedIn(dead)]).toStrictEqual([true, true])
    app.clock.now = START + used + IDLE - 1
    expect(await isSignedIn(admin)).toBe(true)
    app.clock.now = START + used + IDLE
    expect([await isSignedIn(admin), await isSignedIn(dead)]).toStrictEqual([true, false])
  })

  test('to the millisecond, in the list as well', async () => {
    app.clock.advance(1000)
    await isSignedIn(admin)
    app.clock.advance(500)
    const other = await app.admin()
    const { sessions } = await json(other.send('GET', '/api/auth/sessions'))
    expect(sessions).toMatchObject([{ lastSeenAt: START + 1500 }, { lastSeenAt: START + 1000 }])
    app.clock.now = START + 1000 + IDLE
    expect((await json(other.send('GET', '/api/auth/sessions'))).sessions).toHaveLength(1)
  })

  test('also after a restart: never earlier, and at most a twentieth later', async () => {
    app.clock.now = START + 2_000
    expect(await isSignedIn(admin)).toBe(true)
    const again = await createTestApp({
      env: { SESSION_IDLE_TIMEOUT_SECONDS: '60' },
      store: app.store,
      ports: { now: () => app.clock.now },
    })
    const statusAt = async (at: number) => {
      app.clock.now = at
      const answer = await again.request('/api/auth/status', { headers: { cookie: String(admin.cookie) } })
      return (await json(answer)).authenticated
    }
    expect(await statusAt(START + IDLE + 3_000)).toBe(false)
    expect(await statusAt(START + 2_000 + IDLE - 1)).toBe(true)
  })
})

/** Begins a request whose body is held back until it is released. */
function holdBack(client: Client, method: string, path: string, body: unknown) {
  const [begun, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const text = new TextEncoder().encode(JSON.stringify(body))
  const stream = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      begun.resolve()
      await rest.promise
      controller.enqueue(text)
      controller.close()
    },
  })
  const headers = {
    'content-type': 'application/json',
    'content-length': String(text.length),
    cookie: String(client.cookie),
  }
  const outcome = outcomeOf(app.request(path, { method, headers, body: stream, duplex: 'half' }))
  return { begun: begun.promise, outcome, end: () => rest.resolve() }
}

describe('a request with a held-back body ends with the permissions that its sender has by then', () => {
  test('a token requested before a reset is not created after it', async () => {
    const held = holdBack(anna, 'POST', '/api/tokens', { name: 'kept', scopes: ['nodes:read'], expiresInDays: null })
    await held.begun
    await admin.send('POST', `/api/users/${anna.id}/reset-password`)
    held.end()
    expect(await held.outcome).toBe('401 unauthenticated')
    expect(await tokensOf(anna.id)).toStrictEqual([])
  })

  test.each([
    ['deactivated', () => admin.send('DELETE', `/api/users/${anna.id}`), '401 unauthenticated'],
    ['demoted', () => admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: false }), '403 admin_required'],
  ])('an administrator who was %s creates no other administrator', async (_how, end, outcome) => {
    await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
    const held = holdBack(anna, 'POST', '/api/users', { username: 'backdoor', isAdmin: true })
    await held.begun
    await end()
    held.end()
    expect(await held.outcome).toBe(outcome)
    expect((await json(admin.send('GET', '/api/users?q=backdoor'))).users).toStrictEqual([])
  })
})
