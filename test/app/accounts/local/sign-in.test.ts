import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { auditedBy, outcomeOf, threeCallers } from '../../../support/answers.ts'
import {
  ADMIN_PASSWORD,
  auditRows,
  createTestApp,
  moveToProvider,
  START,
  type TestApp,
  USER_PASSWORD,
} from '../../../support/app.ts'

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const login = (body: unknown, headers?: Record<string, string>) =>
  app.client().send('POST', '/api/auth/login', body, headers)

const NO = { read: false, write: false }
const YES = { read: true, write: true }
const RESOURCES = ['dashboard', 'nodes', 'messages', 'settings', 'configuration', 'info', 'automation']
const every = (grant: unknown) => Object.fromEntries(RESOURCES.map((name) => [name, grant]))

describe('status', () => {
  test('tells callers who they are', async () => {
    const { anonymous, user, admin } = await threeCallers(app)
    const audited = await auditedBy(app, async () => {
      expect(await (await anonymous.send('GET', '/api/auth/status')).json()).toMatchObject({
        authenticated: false,
        user: null,
        permissions: every(NO),
        mustChangePassword: false,
        localAuthDisabled: false,
        passwordMinLength: 15,
      })
      expect(await (await user.send('GET', '/api/auth/status')).json()).toMatchObject({
        authenticated: true,
        user: { username: 'regular', isAdmin: false, isActive: true, authProvider: 'local', createdBy: 1 },
        permissions: { ...every(NO), ...Object.fromEntries(['dashboard', 'nodes', 'messages', 'info'].map(readOnly)) },
      })
      expect(await (await admin.send('GET', '/api/auth/status')).json()).toMatchObject({
        user: { id: 1, username: 'admin', isAdmin: true, createdBy: null, lastLoginAt: START },
        permissions: every(YES),
      })
    })
    expect(audited).toStrictEqual([])
  })

  test('names the features that the runtime lacks', async () => {
    const unsupported = async () => (await app.request('/api/auth/status')).headers.get('x-unsupported')
    expect(await unsupported()).toBe('backups, events')
    app.close()
    app = await createTestApp({ ports: { radio: null } })
    expect(await unsupported()).toBe('backups, events, radio')
  })

  test('a form posted while passwords are switched off is refused for that reason, not for not being JSON', async () => {
    const form = () =>
      app.request('/api/auth/login', {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'username=admin&password=x',
      })
    expect(await outcomeOf(form())).toBe('415 unsupported_media_type')
    Object.assign(app.ports, { config: { ...app.ports.config, DISABLE_LOCAL_AUTH: true } })
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(form())).toBe('403 local_auth_disabled')
    })
    expect(audited).toStrictEqual([])
  })

  test('says when local sign-in is off', async () => {
    app.close()
    app = await createTestApp({ ports: { config: { ...app.ports.config, DISABLE_LOCAL_AUTH: true } } })
    expect(await (await app.request('/api/auth/status')).json()).toMatchObject({ localAuthDisabled: true })
  })
})

function readOnly(name: string): [string, { read: boolean; write: boolean }] {
  return [name, { read: true, write: false }]
}

describe('login', () => {
  test('answers who signed in, sets the cookie, and is recorded', async () => {
    app.clock.advance(5000)
    const answer = await login({ username: 'ADMIN', password: ADMIN_PASSWORD })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({
      user: { id: 1, username: 'admin', lastLoginAt: START + 5000 },
      permissions: every(YES),
      mustChangePassword: false,
    })
    expect(answer.headers.getSetCookie().map((line) => line.split('=')[0])).toEqual(['mesh_session', 'mesh_browser'])
    expect(auditRows(app).slice(1)).toStrictEqual([
      { action: 'login_success', username: 'admin', details: { provider: 'local', newBrowser: true } },
    ])
    const row = app.store.sqlite.prepare('select * from audit_log order by id desc limit 1').get()
    expect(row).toMatchObject({
      timestamp: START + 5000,
      user_id: 1,
      resource: 'auth',
      ip: '192.0.2.1',
      request_id: answer.headers.get('x-request-id'),
    })
  })

  test('wrong, unknown, inactive and OpenID users get the same answer and are recorded as attempted', async () => {
    const admin = await app.admin()
    const gone = await app.user('gone')
    await admin.send('DELETE', `/api/users/${gone.id}`)
    app.store.sqlite
      .prepare(
        `insert into users (username, auth_provider, oidc_issuer, password_hash, created_at)
          select 'outside', 'oidc', 'https://id.example.org', password_hash, 1 from users where id = 1`,
      )
      .run()
    const before = auditRows(app).length
    const attempts = ['admin', 'nobody', 'gone', 'outside']
    const bodies: unknown[] = []
    for (const username of attempts) {
      const right = username === 'outside' ? ADMIN_PASSWORD : USER_PASSWORD
      const answer = await login({ username, password: username === 'admin' ? 'wrong' : right })
      expect(answer.headers.getSetCookie()).toStrictEqual([])
      const { requestId, ...body } = Object(await answer.json())
      expect(requestId).toBe(answer.headers.get('x-request-id'))
      bodies.push([answer.status, body])
    }
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1)
    expect(bodies[0]).toMatchObject([401, { code: 'invalid_credentials', title: 'Invalid credentials' }])
    expect(auditRows(app).slice(before)).toStrictEqual(
      attempts.map((username) => ({
        action: 'login_failed',
        username,
        details: { username, provider: 'local' },
      })),
    )
  })

  test('the attempted name is cut at 64 characters and cannot break the entry', async () => {
    for (const username of ['x'.repeat(1024), '🦊'.repeat(100), '\ud800"\u0000\n{}', '__proto__', `admin' or 1=1 --`]) {
      expect(await outcomeOf(login({ username, password: 'x' }))).toBe('401 invalid_credentials')
    }
    const names = auditRows(app)
      .slice(1)
      .map(({ username }) => username)
    expect(names).toStrictEqual(['x'.repeat(64), '🦊'.repeat(64), '\ufffd"\u0000\n{}', '__proto__', `admin' or 1=1 --`])
    const admin = await app.admin()
    expect((await admin.send('GET', '/api/audit')).status).toBe(200)
  })

  test.each([
    [{}],
    [{ username: 'admin' }],
    [{ username: '', password: 'x' }],
    [{ username: 'admin', password: '' }],
    [{ username: 1, password: 'x' }],
    [{ username: 'admin', password: 'x', remember: true }],
    [{ username: 'x'.repeat(1025), password: 'x' }],
    [{ username: 'admin', password: 'x'.repeat(4097) }],
    [[]],
    [null],
    ['text'],
  ])('a body of %j is refused without a trace', async (body) => {
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(login(body))).toBe('400 invalid_request')
    })
    expect(audited).toStrictEqual([])
  })

  test('says that it is switched off before anything else', async () => {
    app.close()
    app = await createTestApp({ ports: { config: { ...app.ports.config, DISABLE_LOCAL_AUTH: true } } })
    for (const body of [{ username: 'admin', password: ADMIN_PASSWORD }, {}, []]) {
      expect(await outcomeOf(login(body))).toBe('403 local_auth_disabled')
    }
    expect(auditRows(app)).toStrictEqual([])
  })
})

describe('logout', () => {
  test('ends the session on the server, clears the cookie, and is recorded once', async () => {
    const { user } = await threeCallers(app)
    const stolen = user.cookie
    const audited = await auditedBy(app, async () => {
      const answer = await user.send('POST', '/api/auth/logout')
      expect([answer.status, await answer.json()]).toStrictEqual([200, { logoutUrl: null }])
      expect(answer.headers.getSetCookie()).toStrictEqual(['mesh_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'])
      user.cookie = stolen
      expect(await outcomeOf(user.send('GET', '/api/auth/sessions'))).toBe('401 unauthenticated')
      expect((await user.send('POST', '/api/auth/logout')).status).toBe(200)
    })
    expect(audited).toStrictEqual(['logout'])
  })

  test('gives anonymous callers the same answer and leaves no trace', async () => {
    const audited = await auditedBy(app, async () => {
      const answer = await app.client().send('POST', '/api/auth/logout')
      expect([answer.status, await answer.json()]).toStrictEqual([200, { logoutUrl: null }])
      expect(answer.headers.getSetCookie()).toStrictEqual([])
    })
    expect(audited).toStrictEqual([])
  })
})

describe('change-password', () => {
  const NEXT = 'quite another password'
  const change = (currentPassword: string, newPassword: string) => ({ currentPassword, newPassword })

  test('needs a session', async () => {
    const answer = app.client().send('POST', '/api/auth/change-password', change(USER_PASSWORD, NEXT))
    expect(await outcomeOf(answer)).toBe('401 unauthenticated')
  })

  test('keeps the caller signed in under a new id, ends the other sessions, and is recorded', async () => {
    const user = await app.user('anna')
    const other = await app.signIn('anna')
    const before = user.cookie
    const audited = await auditedBy(app, async () => {
      const answer = await user.send('POST', '/api/auth/change-password', change(USER_PASSWORD, NEXT))
      expect([answer.status, await answer.text()]).toStrictEqual([204, ''])
    })
    expect(audited).toStrictEqual(['password_changed'])
    expect(auditRows(app).at(-1)).toStrictEqual({ action: 'password_changed', username: 'anna', details: {} })
    expect(user.cookie).not.toBe(before)
    expect((await user.send('GET', '/api/auth/sessions')).status).toBe(200)
    expect(await outcomeOf(other.send('GET', '/api/auth/sessions'))).toBe('401 unauthenticated')
    user.cookie = before
    expect(await outcomeOf(user.send('GET', '/api/auth/sessions'))).toBe('401 unauthenticated')
    expect(await outcomeOf(login({ username: 'anna', password: USER_PASSWORD }))).toBe('401 invalid_credentials')
    expect(await outcomeOf(login({ username: 'anna', password: NEXT }))).toBe('200')
  })

  test.each([
    ['a wrong current password', change('wrong', NEXT), '403 wrong_password'],
    ['a new password that is too short', change(USER_PASSWORD, 'short'), '422 weak_password'],
    ['the same one', change(USER_PASSWORD, USER_PASSWORD), '422 weak_password'],
    ['an empty one', change(USER_PASSWORD, ''), '422 weak_password'],
    ['an unknown field', { ...change(USER_PASSWORD, NEXT), isAdmin: true }, '400 invalid_request'],
    ['no current one', { newPassword: NEXT }, '400 invalid_request'],
  ])('%s is refused: nothing changes and nothing is recorded', async (_what, body, outcome) => {
    const user = await app.user('anna')
    const { cookie } = user
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(user.send('POST', '/api/auth/change-password', body))).toBe(outcome)
    })
    expect(audited).toStrictEqual([])
    expect(user.cookie).toBe(cookie)
    expect(await outcomeOf(login({ username: 'anna', password: USER_PASSWORD }))).toBe('200')
  })

  test('an OpenID user has no password to change', async () => {
    const user = await app.user('anna')
    moveToProvider(app, [user.id])
    const answer = user.send('POST', '/api/auth/change-password', change(USER_PASSWORD, NEXT))
    expect(await outcomeOf(answer)).toBe('409 not_a_local_user')
  })

  test('says that local sign-in is off, after the access check', async () => {
    const [user, local] = [await app.user('anna'), await app.user('bert')]
    moveToProvider(app, [user.id])
    Object.assign(app.ports, { config: { ...app.ports.config, DISABLE_LOCAL_AUTH: true } })
    expect(await outcomeOf(user.send('POST', '/api/auth/change-password', {}))).toBe('403 local_auth_disabled')
    expect(await outcomeOf(local.send('POST', '/api/auth/change-password', {}))).toBe('401 unauthenticated')
    expect(await outcomeOf(app.client().send('POST', '/api/auth/change-password', {}))).toBe('401 unauthenticated')
  })
})

describe('a temporary password', () => {
  test('lets its owner only see the status, sign out and choose another password', async () => {
    const admin = await app.admin()
    const user = await app.user('anna', { nodes: { read: true, write: true } })
    const reset = await admin.send('POST', `/api/users/${user.id}/reset-password`)
    const { password } = Object(await reset.json())
    const answer = await login({ username: 'anna', password })
    expect(await answer.json()).toMatchObject({ mustChangePassword: true })
    const temporary = await app.signIn('anna', password)
    expect(await (await temporary.send('GET', '/api/auth/status')).json()).toMatchObject({ mustChangePassword: true })
    for (const path of ['/api/auth/sessions', '/api/tokens', '/api/users']) {
      expect(await outcomeOf(temporary.send('GET', path)), path).toBe('403 password_change_required')
    }
    expect((await temporary.send('POST', '/api/auth/logout')).status).toBe(200)
    const again = await app.signIn('anna', password)
    const body = { currentPassword: password, newPassword: 'quite another password' }
    expect((await again.send('POST', '/api/auth/change-password', body)).status).toBe(204)
    expect(await (await again.send('GET', '/api/auth/status')).json()).toMatchObject({ mustChangePassword: false })
    expect((await again.send('GET', '/api/auth/sessions')).status).toBe(200)
  })

  test('the first administrator gets one unless a password was configured', async () => {
    app.close()
    app = await createTestApp({ env: { ADMIN_PASSWORD: '' } })
    const row = app.store.sqlite.prepare('select username, must_change_password from users').all()
    expect(row).toStrictEqual([{ username: 'admin', must_change_password: 1 }])
    expect(auditRows(app)).toStrictEqual([
      { action: 'admin_bootstrapped', username: 'system', details: { username: 'admin', userId: 1 } },
    ])
  })
})
