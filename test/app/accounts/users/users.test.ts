import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { expectRefused, outcomeOf, threeCallers } from '../../../support/answers.ts'
import {
  auditRows,
  type Client,
  createTestApp,
  moveToProvider,
  START,
  type TestApp,
  USER_PASSWORD,
} from '../../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

const NEW = { username: 'Anna.Berg-1_@x', password: USER_PASSWORD }

async function json(answer: Response | Promise<Response>) {
  return Object(await (await answer).json())
}

describe('creating a user', () => {
  test('returns the user and the location; the entry names both users', async () => {
    const body = { ...NEW, email: 'anna@example.org', displayName: 'Anna Å. 🦊' }
    const answer = await admin.send('POST', '/api/users', body)
    expect([answer.status, answer.headers.get('location')]).toStrictEqual([201, '/api/users/2'])
    expect(await answer.json()).toStrictEqual({
      user: {
        id: 2,
        username: 'Anna.Berg-1_@x',
        email: 'anna@example.org',
        displayName: 'Anna Å. 🦊',
        authProvider: 'local',
        oidcSubject: null,
        emailVerified: false,
        isAdmin: false,
        isActive: true,
        createdAt: START,
        lastLoginAt: null,
        createdBy: 1,
        secondFactor: [],
        links: [],
      },
      secretShown: false,
    })
    expect(auditRows(app).at(-1)).toStrictEqual({
      action: 'user_created',
      username: 'admin',
      details: {
        username: 'Anna.Berg-1_@x',
        userId: 2,
        email: 'anna@example.org',
        displayName: 'Anna Å. 🦊',
        isAdmin: false,
      },
    })
    const permissions = await json(admin.send('GET', '/api/users/2/permissions'))
    expect(Object.keys(permissions.permissions)).toHaveLength(7)
    expect(permissions.permissions).toMatchObject({ nodes: { read: true, write: false }, settings: { read: false } })
  })

  test('as an administrator takes effect at once', async () => {
    expect((await admin.send('POST', '/api/users', { ...NEW, isAdmin: true })).status).toBe(201)
    const other = await app.signIn(NEW.username)
    expect((await other.send('GET', '/api/users')).status).toBe(200)
    const { permissions } = await json(admin.send('GET', '/api/users/2/permissions'))
    expect(permissions.settings).toStrictEqual({ read: true, write: true })
  })

  test('without a password gives a random, temporary one, shown once', async () => {
    const answer = await admin.send('POST', '/api/users', { username: 'anna', authProvider: 'local' })
    expect([answer.status, answer.headers.get('cache-control')]).toStrictEqual([201, 'no-store'])
    const { user, password } = await json(answer)
    expect(user).toMatchObject({ username: 'anna', authProvider: 'local' })
    expect(password).toMatch(/^[A-Za-z0-9]{20}$/)
    const client = app.client()
    const login = await json(client.send('POST', '/api/auth/login', { username: 'anna', password }))
    expect(login).toMatchObject({ mustChangePassword: true })
    expect(await outcomeOf(client.send('GET', '/api/nodes'))).toBe('403 password_change_required')
    expect(JSON.stringify([auditRows(app), app.logged])).not.toContain(password)
    expect(await json(admin.send('GET', `/api/users/${user.id}`))).toStrictEqual({
      user: { ...user, lastLoginAt: START, secondFactor: [], links: [] },
    })
  })

  test('as an administrator may list every permission', async () => {
    const permissions = { nodes: { read: true, write: true } }
    expect((await admin.send('POST', '/api/users', { ...NEW, isAdmin: true, permissions })).status).toBe(201)
  })

  test.each([
    [{ ...NEW, username: '' }],
    [{ ...NEW, username: 'x'.repeat(65) }],
    [{ ...NEW, username: 'with space' }],
    [{ ...NEW, username: 'ünna' }],
    [{ ...NEW, username: 'аnna' }],
    [{ ...NEW, username: 'a\u0000b' }],
    [{ ...NEW, username: 7 }],
    [{ ...NEW, email: 'no address' }],
    [{ ...NEW, email: `${'x'.repeat(250)}@example.org` }],
    [{ ...NEW, displayName: '' }],
    [{ ...NEW, displayName: 'a\u0007b' }],
    [{ ...NEW, displayName: '\ud800' }],
    [{ ...NEW, displayName: 'x'.repeat(101) }],
    [{ ...NEW, isAdmin: 'yes' }],
    [{ ...NEW, isActive: false }],
    [{ ...NEW, id: 1 }],
    [{ ...NEW, passwordHash: 'x' }],
    [{ ...NEW, authProvider: 'oidc' }],
    [{ ...NEW, password: null }],
    [{ ...NEW, permissions: { users: { read: true, write: false } } }],
    [{ ...NEW, permissions: { nodes: { read: false, write: true } } }],
    [{ ...NEW, isAdmin: true, permissions: { nodes: { read: true, write: false } } }],
    [{ ...NEW, permissions: null }],
    [{ password: USER_PASSWORD }],
    [[NEW]],
  ])('%j is refused', async (body) => {
    await expectRefused(app, () => admin.send('POST', '/api/users', body), '400 invalid_request')
  })

  test('a name is unique without regard to case, also among deactivated users', async () => {
    await expectRefused(
      app,
      () => admin.send('POST', '/api/users', { ...NEW, username: 'ADMIN' }),
      '409 username_taken',
    )
    const gone = await app.user('gone')
    await admin.send('DELETE', `/api/users/${gone.id}`)
    await expectRefused(app, () => admin.send('POST', '/api/users', { ...NEW, username: 'Gone' }), '409 username_taken')
  })

  test('of twenty at once with one name one is created and recorded', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () => outcomeOf(admin.send('POST', '/api/users', NEW))),
    )
    expect(outcomes.toSorted()).toStrictEqual(['201', ...Array.from({ length: 19 }, () => '409 username_taken')])
    expect(auditRows(app).filter(({ action }) => action === 'user_created')).toHaveLength(1)
  })

  test('is off with local sign-in, after the access check and before the body', async () => {
    const { anonymous, user } = await threeCallers(app)
    moveToProvider(app, [1, 2])
    Object.assign(app.ports, { config: { ...app.ports.config, DISABLE_LOCAL_AUTH: true } })
    await expectRefused(app, () => admin.send('POST', '/api/users', {}), '403 local_auth_disabled')
    await expectRefused(app, () => user.send('POST', '/api/users', {}), '403 admin_required')
    await expectRefused(app, () => anonymous.send('POST', '/api/users', {}), '401 unauthenticated')
    await expectRefused(app, () => admin.send('POST', '/api/users/1/reset-password'), '403 local_auth_disabled')
  })
})

describe('listing', () => {
  beforeEach(async () => {
    const people = [
      ['zoe', null, 'Zoe'],
      ['Bert', 'b_100@example.org', 'Bert \\ 100%'],
      ['anna', null, 'Änna'],
    ] as const
    for (const [username, email, displayName] of people) {
      await admin.send('POST', '/api/users', { username, password: USER_PASSWORD, email, displayName })
    }
  })

  const names = async (query: string) => {
    const { users, total } = await json(admin.send('GET', `/api/users${query}`))
    return [total, ...users.map((user: { username: string }) => user.username)]
  }

  test.each([
    ['', [4, 'admin', 'anna', 'Bert', 'zoe']],
    ['?limit=2', [4, 'admin', 'anna']],
    ['?limit=2&offset=3', [4, 'zoe']],
    ['?offset=1000000', [4]],
    ['?q=AN', [1, 'anna']],
    ['?q=ber', [1, 'Bert']],
    ['?q=%25', [1, 'Bert']],
    ['?q=_', [1, 'Bert']],
    ['?q=%5C', [1, 'Bert']],
    ["?q='", [0]],
    [`?q=${'x'.repeat(200)}`, [0]],
    ['?q=n&limit=1', [2, 'admin']],
  ])('%s answers %j', async (query, expected) => {
    expect(await names(query)).toStrictEqual(expected)
  })

  test.each([
    'q=',
    'limit=0',
    'limit=501',
    'limit=-1',
    'limit=1.5',
    'limit=1e2',
    'limit=',
    'limit=abc',
    'limit=%2B1',
    'limit=99999999999999999999',
    'limit=10&limit=20',
    'offset=-1',
    'offset=1000001',
    `q=${'x'.repeat(201)}`,
    'q=a&q=b',
  ])('%s is out of bounds and never clamped', async (query) => {
    expect(await outcomeOf(admin.send('GET', `/api/users?${query}`))).toBe('400 invalid_request')
  })
})

test('the location of a new user includes the path under which a proxy serves the site', async () => {
  const site = await createTestApp({ env: { PUBLIC_URL: 'https://example.org/mesh/' } })
  const admin = await site.admin()
  const answer = await admin.send('POST', '/api/users', { username: 'far', password: USER_PASSWORD })
  expect([answer.status, answer.headers.get('location')]).toStrictEqual([201, '/mesh/api/users/2'])
  site.close()
})
