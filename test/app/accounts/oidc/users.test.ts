import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_PERMISSIONS } from '../../../../src/shared/access/resources.ts'
import { warnIfNobodyEnters } from '../../../../src/app/accounts/recovery/ways-in.ts'
import { type Browser, createBrowser, reachCallback, signInBy, whoIs } from '../../../support/web/browser.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, createTestApp, type TestApp } from '../../../support/app.ts'
import { type Json, oidcEnv, startProvider, type TestProvider } from '../../../support/oidc/provider.ts'

let provider: TestProvider
let app: TestApp

beforeEach(async () => {
  provider = await startProvider()
  await open()
})
afterEach(async () => {
  app.close()
  await provider.close()
})

async function open(env: Record<string, string> = {}): Promise<void> {
  app?.close()
  app = await createTestApp({ env: oidcEnv(provider, env) })
  provider.now = () => app.clock.now
}

function browser(): Browser {
  return createBrowser((path, init) => app.request(path, init))
}

/** Signs somebody in with a new browser; returns who they are. */
async function signIn(claims: Json & { sub: string }): Promise<Json> {
  const own = browser()
  provider.user = claims
  expect(await signInBy(own, provider)).toBe('302 /')
  return (await whoIs(own)) ?? {}
}

function users(): Json[] {
  return app.store.sqlite.prepare("select * from users where auth_provider = 'oidc' order by id").all().map(Object)
}

test('the first sign-in creates a user with the default permissions, and records it', async () => {
  const own = browser()
  expect(await signInBy(own, provider)).toBe('302 /')
  const status = Object(await (await own.request('/api/auth/status')).json())
  expect(status).toMatchObject({
    oidcEnabled: true,
    localAuthDisabled: false,
    mustChangePassword: false,
    permissions: DEFAULT_PERMISSIONS,
    user: { username: 'anna', authProvider: 'oidc', oidcSubject: 'subject 1', isAdmin: false, createdBy: null },
  })
  expect(status.user.lastLoginAt).toBe(app.clock.now)
  const { id } = status.user
  const by = { provider: 'oidc', providerId: 'default' }
  expect(auditRows(app).slice(1)).toEqual([
    { action: 'oidc_user_created', username: 'anna', details: { ...by, username: 'anna', userId: id } },
    { action: 'login_success', username: 'anna', details: by },
  ])
  const rows = app.store.sqlite.prepare('select user_id, resource from audit_log order by id desc limit 2').all()
  expect(rows).toEqual([
    { user_id: id, resource: 'auth' },
    { user_id: id, resource: 'users' },
  ])
})

test('display name and e-mail follow the provider at each sign-in; missing claims and local settings are kept', async () => {
  await signIn(provider.user)
  const admin = await app.admin()
  const { id } = Object(users()[0])
  await admin.send('PUT', `/api/users/${id}`, { username: 'boss' })
  await admin.send('PUT', `/api/users/${id}/admin`, { isAdmin: true })
  const changed = { sub: 'subject 1', preferred_username: 'other', name: 'Anna Tal', email: 'tal@example.org' }
  const expected = { id, username: 'boss', displayName: 'Anna Tal', email: 'tal@example.org', isAdmin: true }
  expect(await signIn(changed)).toMatchObject(expected)
  expect(await signIn({ sub: 'subject 1' })).toMatchObject(expected)
  expect(await signIn({ sub: 'subject 1', name: 7, email: ['x'] })).toMatchObject(expected)
  expect(users()).toHaveLength(1)
})

test('no claim makes an administrator or grants anything', async () => {
  const claims = { sub: 's', isAdmin: true, is_admin: true, admin: true, roles: ['admin'], groups: ['admin'] }
  const own = browser()
  provider.user = { ...claims, permissions: { users: { write: true } }, role: 'admin' }
  expect(await signInBy(own, provider)).toBe('302 /')
  expect(await (await own.request('/api/auth/status')).json()).toMatchObject({
    user: { isAdmin: false },
    permissions: DEFAULT_PERMISSIONS,
  })
})

test('users are never linked by name or e-mail, and subjects are compared exactly', async () => {
  const admin = await app.admin()
  const body = { username: 'anna', password: 'a password for everyone', email: 'anna.berg@example.org' }
  expect((await admin.send('POST', '/api/users', body)).status).toBe(201)
  expect(await signIn({ ...provider.user, sub: 'Subject' })).toMatchObject({ username: 'anna-2' })
  expect(await signIn({ ...provider.user, sub: 'subject' })).toMatchObject({ username: 'anna-3' })
  expect(await signIn({ ...provider.user, sub: 'subject ' })).toMatchObject({ username: 'anna-4' })
  expect(await signIn({ ...provider.user, sub: 'x', preferred_username: 'ADMIN' })).toMatchObject({
    username: 'ADMIN-2',
    isAdmin: false,
  })
  expect(await signIn({ ...provider.user, sub: 'y', preferred_username: 'system' })).toMatchObject({
    username: 'system-2',
  })
  const locals = app.store.sqlite
    .prepare(
      "select username, (select count(*) from identities where user_id = users.id) as links from users where auth_provider = 'local'",
    )
    .all()
  expect(locals).toEqual([
    { username: 'admin', links: 0 },
    { username: 'anna', links: 0 },
  ])
})

test('the same subject at another issuer is another user', async () => {
  const first = await signIn(provider.user)
  app.store.sqlite.exec(`update users set oidc_issuer = 'https://former.example' where auth_provider = 'oidc';
    update identities set issuer = 'https://former.example'`)
  expect(await signIn(provider.user)).toMatchObject({ username: 'anna-2' })
  expect(users()[0]).toMatchObject({
    id: first['id'],
    oidc_issuer: 'https://former.example',
    last_login_at: app.clock.now,
  })
})

test('twenty first sign-ins of one subject at once create one user, and all succeed', async () => {
  const browsers = Array.from({ length: 20 }, browser)
  const callbacks = await Promise.all(browsers.map((own) => reachCallback(own, provider)))
  const ends = await Promise.all(browsers.map((own, i) => own.request(callbacks[i] ?? '')))
  expect(ends.map(({ headers }) => headers.get('location'))).toEqual(browsers.map(() => '/'))
  expect(users()).toMatchObject([{ username: 'anna' }])
  const ids = await Promise.all(browsers.map(async (own) => (await whoIs(own))?.['id']))
  expect(new Set(ids)).toEqual(new Set([users()[0]?.['id']]))
  const actions = auditRows(app).map(({ action }) => action)
  expect(actions.filter((action) => action === 'oidc_user_created')).toHaveLength(1)
  expect(actions.filter((action) => action === 'login_success')).toHaveLength(20)
})

test('thirty people with the same name at once each get their own username', async () => {
  const browsers = Array.from({ length: 30 }, browser)
  const callbacks: string[] = []
  for (const [i, own] of browsers.entries()) {
    provider.user = { sub: `subject ${i}`, preferred_username: 'anna' }
    callbacks.push(await reachCallback(own, provider))
  }
  const ends = await Promise.all(browsers.map((own, i) => own.request(callbacks[i] ?? '')))
  expect(ends.map(({ headers }) => headers.get('location'))).toEqual(browsers.map(() => '/'))
  const names = users().map(({ username }) => String(username))
  expect(new Set(names).size).toBe(30)
  expect(names.every((name) => /^anna(-\d+)?$/.test(name))).toBe(true)
})

test('without auto-creation an unknown user is refused and a known one is not', async () => {
  await signIn(provider.user)
  const rows = users()
  const store = app.store
  app = await createTestApp({ env: oidcEnv(provider, { OIDC_AUTO_CREATE_USERS: 'false' }), store })
  expect(await signIn(provider.user)).toMatchObject({ username: 'anna' })
  provider.user = { ...provider.user, sub: 'somebody new' }
  const own = browser()
  expect(await signInBy(own, provider)).toBe('302 /login?error=oidc_user_unknown')
  expect(await whoIs(own)).toBeNull()
  expect(users()).toHaveLength(rows.length)
  expect(auditRows(app).at(-1)).toEqual({
    action: 'oidc_login_failed',
    username: null,
    details: {
      provider: 'oidc',
      providerId: 'default',
      reason: 'user_unknown',
      issuer: provider.issuer,
      subject: 'somebody new',
    },
  })
  expect(app.logged.at(-1)).toContain('"reason":"user_unknown"')
  expect(app.logged.join('\n')).not.toContain('somebody new')
})

/** The same database under another configuration. */
async function reopen(env: Record<string, string>): Promise<void> {
  app = await createTestApp({ env: oidcEnv(provider, env), store: app.store })
}

const statusOf = async (path: string, headers: Record<string, string>) => (await app.request(path, { headers })).status

test('sessions and tokens stop working when the sign-in method of their user is off, and resume with it', async () => {
  const [admin, own] = [await app.admin(), browser()]
  expect(await signInBy(own, provider)).toBe('302 /')
  const cookies = { local: String(admin.cookie), oidc: `mesh_session=${own.cookies.get('mesh_session') ?? ''}` }
  const token = async (cookie: string) => {
    const body = { name: 'x', scopes: ['nodes:read'] }
    const made = await app.client().send('POST', '/api/tokens', body, { cookie })
    return `Bearer ${Object(await made.json()).token}`
  }
  const tokens = { local: await token(cookies.local), oidc: await token(cookies.oidc) }
  const outcomes = async () => ({
    local: [
      await statusOf('/api/auth/sessions', { cookie: cookies.local }),
      await statusOf('/api/nodes', { authorization: tokens.local }),
    ],
    oidc: [
      await statusOf('/api/auth/sessions', { cookie: cookies.oidc }),
      await statusOf('/api/nodes', { authorization: tokens.oidc }),
    ],
  })
  const [open, closed] = [
    [200, 200],
    [401, 401],
  ]
  expect(await outcomes()).toEqual({ local: open, oidc: open })
  await reopen({ DISABLE_LOCAL_AUTH: 'true' })
  expect(await outcomes()).toEqual({ local: closed, oidc: open })
  await reopen({ OIDC_ISSUER: 'https://another.example.org' })
  expect(await outcomes()).toEqual({ local: open, oidc: closed })
  await reopen({ OIDC_ENABLED: 'false' })
  expect(await outcomes()).toEqual({ local: open, oidc: closed })
  await reopen({})
  expect(await outcomes()).toEqual({ local: open, oidc: open })
})

test('while local accounts are disabled nobody can unlink their only way to sign in', async () => {
  app.store.sqlite
    .prepare("insert into identities (user_id, issuer, subject, created_at) values (1, ?, 'boss', 1)")
    .run(provider.issuer)
  const admin = Number(Object(app.store.sqlite.prepare("select id from users where username = 'admin'").get()).id)
  await reopen({ DISABLE_LOCAL_AUTH: 'true' })
  const own = browser()
  provider.user = { sub: 'boss' }
  expect(await signInBy(own, provider)).toBe('302 /')
  const rows = auditRows(app).length
  for (const path of ['/api/auth/oidc/link', `/api/users/${admin}/link`]) {
    expect(await outcomeOf(own.request(path, { method: 'DELETE' }))).toBe('409 last_way_in')
  }
  expect(auditRows(app)).toHaveLength(rows)
  expect(await whoIs(own)).toMatchObject({ username: 'admin' })
})

describe('at the start', () => {
  const said = async () => {
    await warnIfNobodyEnters(app.ports)
    return app.logged.filter((line) => line.includes('Nobody can sign in')).map((line) => JSON.parse(line).message)
  }

  test('a warning is logged when the provider may not create users and none exist', async () => {
    await open({ DISABLE_LOCAL_AUTH: 'true', OIDC_AUTO_CREATE_USERS: 'false' })
    expect(await said()).toEqual([
      'Nobody can sign in: DISABLE_LOCAL_AUTH is true, and OIDC_AUTO_CREATE_USERS is false while OIDC_ISSUER has no active user here',
    ])
  })

  test('a warning is logged when all users belong to a provider that is gone', async () => {
    await signIn(provider.user)
    app.store.sqlite.exec("update users set is_admin = 1; update users set is_active = 0 where auth_provider = 'local'")
    await reopen({ OIDC_ENABLED: 'false' })
    expect(await said()).toEqual(['Nobody can sign in: there is no active local user, and OIDC_ENABLED is not true'])
  })

  test('there is no warning while somebody can sign in', async () => {
    expect(await said()).toEqual([])
    await reopen({ OIDC_ENABLED: 'false' })
    expect(await said()).toEqual([])
    await open({ DISABLE_LOCAL_AUTH: 'true' })
    expect(await said()).toEqual([])
    await signIn(provider.user)
    await reopen({ DISABLE_LOCAL_AUTH: 'true', OIDC_AUTO_CREATE_USERS: 'false' })
    expect(await said()).toEqual([])
  })
})

describe('OIDC_ADMIN_SUBJECT', () => {
  test('is the first administrator of an empty service, also where nobody else gets an account', async () => {
    const env = { DISABLE_LOCAL_AUTH: 'true', OIDC_AUTO_CREATE_USERS: 'false', OIDC_ADMIN_SUBJECT: 'boss' }
    await open(env)
    expect(await signInBy(browser(), provider)).toBe('302 /login?error=oidc_user_unknown')
    expect(await signIn({ sub: 'boss', preferred_username: 'boss' })).toMatchObject({ isAdmin: true })
    expect(auditRows(app).map(({ action }) => action)).toEqual([
      'oidc_login_failed',
      'oidc_user_created',
      'login_success',
      'admin_bootstrapped',
    ])
    expect(await signIn({ sub: 'boss' })).toMatchObject({ isAdmin: true })
    expect(auditRows(app).at(-1)).toMatchObject({ action: 'login_success' })
  })

  test('means nothing while there is an active administrator', async () => {
    await open({ OIDC_ADMIN_SUBJECT: 'boss' })
    expect(await signIn({ sub: 'boss' })).toMatchObject({ isAdmin: false })
    await open({ OIDC_ADMIN_SUBJECT: 'boss', OIDC_AUTO_CREATE_USERS: 'false' })
    provider.user = { sub: 'boss' }
    expect(await signInBy(browser(), provider)).toBe('302 /login?error=oidc_user_unknown')
  })
})

test('a deactivated user is refused and loses the session; reactivation admits them again', async () => {
  const own = browser()
  expect(await signInBy(own, provider)).toBe('302 /')
  const { id } = Object(await whoIs(own))
  const admin = await app.admin()
  expect((await admin.send('DELETE', `/api/users/${id}`)).status).toBe(204)
  expect(await whoIs(own)).toBeNull()
  const sessions = app.store.sqlite.prepare('select count(*) as n from sessions').get()
  expect(await signInBy(own, provider)).toBe('302 /login?error=oidc_user_inactive')
  expect(await whoIs(own)).toBeNull()
  expect(app.store.sqlite.prepare('select count(*) as n from sessions').get()).toEqual(sessions)
  expect(auditRows(app).at(-1)).toMatchObject({
    action: 'oidc_login_failed',
    details: { reason: 'user_inactive', userId: id },
  })
  expect((await admin.send('PUT', `/api/users/${id}`, { isActive: true })).status).toBe(200)
  expect(await signInBy(own, provider)).toBe('302 /')
})

test('a deactivation during a sign-in wins: the new session never works', async () => {
  const first = await signIn(provider.user)
  const own = browser()
  const callback = await reachCallback(own, provider)
  const admin = await app.admin()
  let deactivated: Promise<Response> | undefined
  const { sessions } = app.ports
  const insert = sessions.insert.bind(sessions)
  sessions.insert = async (session) => {
    deactivated ??= admin.send('DELETE', `/api/users/${String(first['id'])}`)
    await deactivated
    return insert(session)
  }
  expect((await own.request(callback)).headers.get('location')).toBe('/')
  expect((await deactivated)?.status).toBe(204)
  expect(await whoIs(own)).toBeNull()
})

test('a new session replaces the previous one of the browser', async () => {
  const own = browser()
  expect(await signInBy(own, provider)).toBe('302 /')
  const before = own.cookies.get('mesh_session') ?? ''
  expect(await signInBy(own, provider)).toBe('302 /')
  expect(own.cookies.get('mesh_session')).not.toBe(before)
  own.cookies.set('mesh_session', before)
  expect(await whoIs(own)).toBeNull()
})

test('an OpenID user has no password to check, change or reset', async () => {
  const own = browser()
  expect(await signInBy(own, provider)).toBe('302 /')
  const { id } = Object(await whoIs(own))
  const login = await app.client().send('POST', '/api/auth/login', { username: 'anna', password: 'x' })
  expect(login.status).toBe(401)
  const reset = await (await app.admin()).send('POST', `/api/users/${id}/reset-password`)
  expect(await reset.json()).toMatchObject({ code: 'not_a_local_user' })
})

test('OIDC-only: local sign-in is closed, and the status says so', async () => {
  await open({ DISABLE_LOCAL_AUTH: 'true' })
  expect(app.store.sqlite.prepare('select count(*) as n from users').get()).toEqual({ n: 0 })
  const client = app.client()
  const login = await client.send('POST', '/api/auth/login', { username: 'admin', password: 'the first administrator' })
  expect([login.status, Object(await login.json()).code]).toEqual([403, 'local_auth_disabled'])
  const own = browser()
  expect(await signInBy(own, provider)).toBe('302 /')
  app.store.sqlite.exec('update users set is_admin = 1')
  const admin = async (method: string, path: string, body: unknown) => {
    const cookie = `mesh_session=${own.cookies.get('mesh_session') ?? ''}`
    const answer = await client.send(method, path, body, { cookie })
    return [answer.status, Object(await answer.json()).code]
  }
  const user = { username: 'new', password: 'a password for everyone' }
  expect(await admin('POST', '/api/users', user)).toEqual([403, 'local_auth_disabled'])
  expect(await admin('POST', '/api/users/1/reset-password', undefined)).toEqual([403, 'local_auth_disabled'])
  const change = { currentPassword: 'x', newPassword: 'a password for everyone' }
  expect(await admin('POST', '/api/auth/change-password', change)).toEqual([403, 'local_auth_disabled'])
  expect(await (await own.request('/api/auth/status')).json()).toMatchObject({
    authenticated: true,
    oidcEnabled: true,
    localAuthDisabled: true,
  })
})
