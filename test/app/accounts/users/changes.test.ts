import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { auditedBy, expectRefused, outcomeOf, stateOf, threeCallers } from '../../../support/answers.ts'
import { auditRows, type Client, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

async function json(answer: Response | Promise<Response>) {
  return Object(await (await answer).json())
}

describe('one user', () => {
  test.each([
    '0',
    '-1',
    '1.0',
    '01',
    '+1',
    '1e0',
    '0x1',
    '9007199254740993',
    '99999999999999999999',
    'abc',
    '%00',
    '1%20',
  ])('the id %s is invalid, and 2^53 - 1 is valid but unknown', async (id) => {
    expect(await outcomeOf(admin.send('GET', `/api/users/${id}`))).toBe('400 invalid_request')
    expect(await outcomeOf(admin.send('GET', '/api/users/9007199254740991'))).toBe('404 user_not_found')
  })

  test('an unknown user is not found, for every verb', async () => {
    const verbs = [
      ['GET', '/api/users/99', undefined],
      ['PUT', '/api/users/99', { displayName: 'x' }],
      ['DELETE', '/api/users/99', undefined],
      ['PUT', '/api/users/99/admin', { isAdmin: true }],
      ['POST', '/api/users/99/reset-password', undefined],
      ['GET', '/api/users/99/permissions', undefined],
      ['PUT', '/api/users/99/permissions', { permissions: {} }],
    ] as const
    const { anonymous, user } = await threeCallers(app)
    for (const [method, path, body] of verbs) {
      await expectRefused(app, () => admin.send(method, path, body), '404 user_not_found')
      await expectRefused(app, () => user.send(method, path, body), '403 admin_required')
      await expectRefused(app, () => anonymous.send(method, path, body), '401 unauthenticated')
    }
  })
})

describe('changing a user', () => {
  test('changes the named fields, and records them before and after', async () => {
    const { id } = await app.user('anna')
    const first = await json(admin.send('PUT', `/api/users/${id}`, { email: 'a@example.org', displayName: 'Anna' }))
    expect(first.user).toMatchObject({ username: 'anna', email: 'a@example.org', displayName: 'Anna' })
    expect(auditRows(app).at(-1)).toMatchObject({
      action: 'user_updated',
      details: {
        userId: id,
        username: 'anna',
        before: { email: null, displayName: null },
        after: { email: 'a@example.org', displayName: 'Anna' },
      },
    })
    const second = await json(admin.send('PUT', `/api/users/${id}`, { username: 'ANNA', email: null }))
    expect(second.user).toMatchObject({ username: 'ANNA', email: null, displayName: 'Anna' })
  })

  test('to the present values is not a change and not recorded', async () => {
    const { id } = await app.user('anna')
    const audited = await auditedBy(app, async () => {
      for (const body of [{}, { username: 'anna' }, { isActive: true }, { email: null }]) {
        expect((await admin.send('PUT', `/api/users/${id}`, body)).status).toBe(200)
      }
    })
    expect(audited).toStrictEqual([])
  })

  test('to exactly the answer of GET is not a change, bare or wrapped', async () => {
    const { id } = await app.user('anna')
    const answered = await json(admin.send('GET', `/api/users/${id}`))
    const audited = await auditedBy(app, async () => {
      for (const body of [answered.user, answered]) {
        const answer = await admin.send('PUT', `/api/users/${id}`, body)
        expect([answer.status, await answer.json()]).toStrictEqual([200, answered])
      }
    })
    expect(audited).toStrictEqual([])
    const renamed = await json(admin.send('PUT', `/api/users/${id}`, { ...answered.user, displayName: 'Anna' }))
    expect(renamed.user).toStrictEqual({ ...answered.user, displayName: 'Anna' })
    await expectRefused(
      app,
      () => admin.send('PUT', `/api/users/${id}`, { ...answered, displayName: 'x' }),
      '400 invalid_request',
    )
  })

  test('a field that cannot be changed here is refused by name if it differs', async () => {
    const { id } = await app.user('anna')
    const { user } = await json(admin.send('GET', `/api/users/${id}`))
    const others = {
      id: 7,
      authProvider: 'oidc',
      oidcSubject: 'x',
      isAdmin: true,
      createdAt: 7,
      lastLoginAt: 7,
      createdBy: null,
    }
    for (const [path, value] of Object.entries(others)) {
      const body = { ...user, displayName: 'x', [path]: value }
      const before = stateOf(app)
      const answer = await admin.send('PUT', `/api/users/${id}`, body)
      expect([answer.status, (await json(answer)).issues]).toMatchObject([400, [{ path }]])
      expect(stateOf(app)).toBe(before)
    }
  })

  test('isActive: false deactivates like DELETE, in one step with other changes', async () => {
    const user = await app.user('anna')
    const { token } = await json(user.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] }))
    const audited = await auditedBy(app, async () => {
      const body = { isActive: false, displayName: 'Anna' }
      expect((await json(admin.send('PUT', `/api/users/${user.id}`, body))).user).toMatchObject(body)
      expect((await admin.send('PUT', `/api/users/${user.id}`, body)).status).toBe(200)
    })
    expect(audited).toStrictEqual(['user_updated', 'user_deleted'])
    expect(auditRows(app).slice(-2)).toMatchObject([
      { details: { before: { displayName: null }, after: { displayName: 'Anna' } } },
      { details: { before: { isActive: true }, after: { isActive: false } } },
    ])
    expect(await json(user.send('GET', '/api/auth/status'))).toMatchObject({ authenticated: false })
    const byToken = app.request('/api/auth/status', { headers: { authorization: `Bearer ${token}` } })
    expect(await json(byToken)).toMatchObject({ authenticated: false })
    expect(app.store.sqlite.prepare('select count(*) from api_tokens').pluck().get()).toBe(0)
    await expectRefused(app, () => admin.send('PUT', '/api/users/1', { isActive: false }), '403 self_change_forbidden')
  })

  test.each([
    [{ isAdmin: true }],
    [{ id: 7 }],
    [{ passwordHash: 'x' }],
    [{ sessionEpoch: 0 }],
    [{ oidcSubject: 'x' }],
    [{ username: null }],
    [JSON.parse('{"__proto__": {"isAdmin": true}}')],
    [{ constructor: 'x' }],
  ])('%j is refused', async (body) => {
    const { id } = await app.user('anna')
    await expectRefused(app, () => admin.send('PUT', `/api/users/${id}`, body), '400 invalid_request')
  })

  test('to an existing name is refused', async () => {
    const { id } = await app.user('anna')
    await expectRefused(app, () => admin.send('PUT', `/api/users/${id}`, { username: 'Admin' }), '409 username_taken')
  })

  test('an OpenID user keeps the e-mail and the name from the provider', async () => {
    const { id } = await app.user('anna')
    app.store.sqlite.prepare("update users set auth_provider = 'oidc' where id = ?").run(id)
    await expectRefused(
      app,
      () => admin.send('PUT', `/api/users/${id}`, { email: 'x@example.org' }),
      '400 invalid_request',
    )
    await expectRefused(app, () => admin.send('PUT', `/api/users/${id}`, { displayName: 'x' }), '400 invalid_request')
    expect((await admin.send('PUT', `/api/users/${id}`, { username: 'anna2' })).status).toBe(200)
    app.store.sqlite.prepare("update users set email = 'a@example.org', display_name = 'A' where id = ?").run(id)
    const { user } = await json(admin.send('GET', `/api/users/${id}`))
    expect((await json(admin.send('PUT', `/api/users/${id}`, { ...user, username: 'anna3' }))).user).toMatchObject({
      username: 'anna3',
      email: 'a@example.org',
      displayName: 'A',
    })
  })
})

describe('deactivation', () => {
  test('answers 204 each time, and is recorded once', async () => {
    const { id } = await app.user('anna')
    const audited = await auditedBy(app, async () => {
      for (let i = 0; i < 3; i++) expect(await outcomeOf(admin.send('DELETE', `/api/users/${id}`))).toBe('204')
    })
    expect(audited).toStrictEqual(['user_deleted'])
    expect((await json(admin.send('GET', `/api/users/${id}`))).user).toMatchObject({ isActive: false })
    expect(
      await outcomeOf(app.client().send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })),
    ).toBe('401 invalid_credentials')
  })

  test('ends the tokens, and reactivation restores neither them nor the sessions', async () => {
    const user = await app.user('anna')
    const { token } = await json(user.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] }))
    const byToken = () => app.request('/api/auth/status', { headers: { authorization: `Bearer ${token}` } })
    expect(await json(byToken())).toMatchObject({ authenticated: true })
    await admin.send('DELETE', `/api/users/${user.id}`)
    expect(await json(byToken())).toMatchObject({ authenticated: false })
    const audited = await auditedBy(app, async () => {
      const answer = await json(admin.send('PUT', `/api/users/${user.id}`, { isActive: true }))
      expect(answer.user.isActive).toBe(true)
    })
    expect(audited).toStrictEqual(['user_updated'])
    expect(await json(byToken())).toMatchObject({ authenticated: false })
    expect(await json(user.send('GET', '/api/auth/status'))).toMatchObject({ authenticated: false })
    const again = await app.signIn('anna')
    expect(await json(again.send('GET', '/api/tokens'))).toStrictEqual({ tokens: [] })
  })

  test('of oneself is refused, also for the last administrator', async () => {
    await expectRefused(app, () => admin.send('DELETE', '/api/users/1'), '403 self_change_forbidden')
  })
})

describe('administrators', () => {
  const setAdmin = (id: number, body?: unknown) => admin.send('PUT', `/api/users/${id}/admin`, body)

  test('are promoted and demoted together with their permissions', async () => {
    const { id } = await app.user('anna', {
      nodes: { read: false, write: false },
      automation: { read: true, write: true },
    })
    const permissions = async () => (await json(admin.send('GET', `/api/users/${id}/permissions`))).permissions
    expect((await json(setAdmin(id, { isAdmin: true }))).user.isAdmin).toBe(true)
    expect(Object.values(await permissions())).toStrictEqual(
      Array.from({ length: 7 }, () => ({ read: true, write: true })),
    )
    expect((await json(setAdmin(id, { isAdmin: false }))).user.isAdmin).toBe(false)
    expect(await permissions()).toMatchObject({ nodes: { read: true, write: false }, automation: { read: false } })
    const { permissions: defaults } = await json(admin.send('GET', `/api/users/${id}/permissions`))
    const everything = Object.fromEntries(Object.keys(defaults).map((name) => [name, { read: true, write: true }]))
    const byHand = { ...defaults, nodes: { read: false, write: false }, automation: { read: true, write: true } }
    expect(auditRows(app).slice(-2)).toStrictEqual([
      {
        action: 'admin_status_changed',
        username: 'admin',
        details: {
          userId: id,
          username: 'anna',
          before: { isAdmin: false, permissions: byHand },
          after: { isAdmin: true, permissions: everything },
        },
      },
      {
        action: 'admin_status_changed',
        username: 'admin',
        details: {
          userId: id,
          username: 'anna',
          before: { isAdmin: true, permissions: everything },
          after: { isAdmin: false, permissions: defaults },
        },
      },
    ])
  })

  test('toggle without a body, with an empty one and with an empty object', async () => {
    const { id } = await app.user('anna')
    const states: boolean[] = []
    for (const init of [{}, { body: '', headers: { 'content-length': '0' } }]) {
      const headers = { ...init.headers, cookie: String(admin.cookie) }
      const answer = await app.request(`/api/users/${id}/admin`, { method: 'PUT', ...init, headers })
      states.push((await json(answer)).user.isAdmin)
    }
    states.push((await json(setAdmin(id, {}))).user.isAdmin)
    expect(states).toStrictEqual([true, false, true])
  })

  test('may be active or not: demoting a deactivated one does not reactivate the account', async () => {
    const user = await app.user('anna')
    await setAdmin(user.id, { isAdmin: true })
    await admin.send('DELETE', `/api/users/${user.id}`)
    expect((await json(setAdmin(user.id, { isAdmin: false }))).user).toMatchObject({ isAdmin: false, isActive: false })
    expect((await json(setAdmin(user.id, {}))).user).toMatchObject({ isAdmin: true, isActive: false })
    expect((await json(user.send('GET', '/api/auth/status'))).authenticated).toBe(false)
  })

  test('an unchanged role is not a change and not recorded', async () => {
    const { id } = await app.user('anna')
    const audited = await auditedBy(app, async () => {
      expect((await setAdmin(id, { isAdmin: false })).status).toBe(200)
      expect((await setAdmin(1, { isAdmin: true })).status).toBe(200)
    })
    expect(audited).toStrictEqual([])
  })

  test.each([
    [{ isAdmin: 1 }, '400 invalid_request'],
    [{ isAdmin: null }, '400 invalid_request'],
    [{ admin: true }, '400 invalid_request'],
    [[], '400 invalid_request'],
    [null, '400 invalid_request'],
  ])('%j is refused with %s', async (body, outcome) => {
    const { id } = await app.user('anna')
    await expectRefused(app, () => setAdmin(id, body), outcome)
  })

  test('nobody changes their own role', async () => {
    await expectRefused(app, () => setAdmin(1, { isAdmin: false }), '403 self_change_forbidden')
    await expectRefused(app, () => setAdmin(1), '403 self_change_forbidden')
    await expectRefused(app, () => setAdmin(1, {}), '403 self_change_forbidden')
  })
})

describe('resetting a password', () => {
  test('returns a temporary one once, uncached, and the old one stops working', async () => {
    const { id } = await app.user('anna')
    const answer = await admin.send('POST', `/api/users/${id}/reset-password`)
    expect([answer.status, answer.headers.get('cache-control')]).toStrictEqual([200, 'no-store'])
    const { password } = await json(answer)
    expect(password).toMatch(/^[A-Za-z0-9]{20}$/)
    const login = (text: string) => app.client().send('POST', '/api/auth/login', { username: 'anna', password: text })
    expect(await outcomeOf(login(USER_PASSWORD))).toBe('401 invalid_credentials')
    expect(await json(login(password))).toMatchObject({ mustChangePassword: true })
    const entries = auditRows(app).filter(({ action }) => action === 'password_reset')
    expect(entries).toStrictEqual([
      { action: 'password_reset', username: 'admin', details: { userId: id, username: 'anna', tokensRevoked: 0 } },
    ])
  })

  test('ends the API tokens, and records how many', async () => {
    const user = await app.user('anna')
    const tokens: string[] = []
    for (const name of ['one', 'two']) {
      tokens.push((await json(user.send('POST', '/api/tokens', { name, scopes: ['nodes:read'] }))).token)
    }
    const audited = await auditedBy(app, async () => {
      expect((await admin.send('POST', `/api/users/${user.id}/reset-password`)).status).toBe(200)
    })
    expect(audited).toStrictEqual(['password_reset'])
    expect(auditRows(app).at(-1)?.details).toMatchObject({ tokensRevoked: 2 })
    for (const token of tokens) {
      const answer = app.request('/api/auth/status', { headers: { authorization: `Bearer ${token}` } })
      expect(await json(answer)).toMatchObject({ authenticated: false })
    }
    expect(app.store.sqlite.prepare('select count(*) from api_tokens').pluck().get()).toBe(0)
  })

  test('is for active local users only', async () => {
    const [gone, outside] = [await app.user('gone'), await app.user('outside')]
    await admin.send('DELETE', `/api/users/${gone.id}`)
    app.store.sqlite.prepare("update users set auth_provider = 'oidc' where id = ?").run(outside.id)
    await expectRefused(app, () => admin.send('POST', `/api/users/${gone.id}/reset-password`), '409 user_inactive')
    await expectRefused(
      app,
      () => admin.send('POST', `/api/users/${outside.id}/reset-password`),
      '409 not_a_local_user',
    )
  })
})
