import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/app/config/config.ts'
import { readGroups } from '../../../../src/app/accounts/oidc/groups.ts'
import { NO_PERMISSIONS, PRESETS } from '../../../../src/shared/access/resources.ts'
import { auditRows, createTestApp, type TestApp } from '../../../support/app.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../../support/oidc/provider.ts'
import { createBrowser, signInBy } from '../../../support/web/browser.ts'

let provider: TestProvider
let app: TestApp
beforeEach(async () => {
  provider = await startProvider()
})
afterEach(async () => {
  app.close()
  await provider.close()
})

const ALL = {
  OIDC_GROUPS_CLAIM: 'groups',
  OIDC_ADMIN_GROUPS: 'admins,owners',
  OIDC_GROUP_PERMISSIONS: 'readers=viewer,club=nodes:rw+settings:r',
}

async function open(env: Record<string, string>): Promise<void> {
  app = await createTestApp({ env: oidcEnv(provider, env) })
  provider.now = () => app.clock.now
}

/** Signs anna in with these groups; returns the final location and who she is then. */
async function enter(groups: unknown): Promise<{ to: string; isAdmin?: boolean; permissions?: unknown }> {
  const browser = createBrowser((path, init) => app.request(path, init))
  provider.user = { sub: 'subject 1', preferred_username: 'anna', ...(groups !== undefined && { groups }) }
  const to = await signInBy(browser, provider)
  const { user, permissions } = Object(await (await browser.request('/api/auth/status')).json())
  return { to, ...(user !== null && { isAdmin: user.isAdmin, permissions }) }
}

const changes = () =>
  auditRows(app).filter(({ action }) => action === 'admin_status_changed' || action === 'permissions_updated')

test("by default groups change nobody's role", async () => {
  await open({})
  expect(await enter(['admins'])).toEqual({ to: '302 /', isAdmin: false, permissions: PRESETS.viewer })
  expect(changes()).toEqual([])
})

test('joining, staying and leaving: each change is recorded once with before and after', async () => {
  await open(ALL)
  expect(await enter(['admins', 'others'])).toMatchObject({ isAdmin: true, permissions: PRESETS.everything })
  expect(await enter(['owners'])).toMatchObject({ isAdmin: true })
  expect(changes()).toMatchObject([
    {
      action: 'admin_status_changed',
      username: 'anna',
      details: { before: { isAdmin: false }, after: { isAdmin: true } },
    },
  ])
  const club = { ...NO_PERMISSIONS, nodes: { read: true, write: true }, settings: { read: true, write: false } }
  expect(await enter('club')).toMatchObject({ isAdmin: false, permissions: club })
  expect(await enter(['club', 'readers'])).toMatchObject({ permissions: { ...PRESETS.viewer, ...pick(club) } })
  expect(await enter([])).toMatchObject({ isAdmin: false, permissions: NO_PERMISSIONS })
  expect(changes().map(({ action }) => action)).toEqual([
    'admin_status_changed',
    'admin_status_changed',
    'permissions_updated',
    'permissions_updated',
  ])
})

const pick = ({ nodes, settings }: typeof NO_PERMISSIONS) => ({ nodes, settings })

test.each([
  ['an object', { admins: true }],
  ['a number', 7],
  ['a list of mixed types', ['admins', 7]],
])('a claim that is %s changes nothing, and the log says so', async (_what, groups) => {
  await open(ALL)
  await enter(['readers'])
  const rows = changes().length
  expect(await enter(groups)).toMatchObject({ to: '302 /', isAdmin: false, permissions: PRESETS.viewer })
  expect(changes().length).toBe(rows)
  expect(app.logged.join('\n')).toContain('sends no readable groups')
})

const ADMIN = { to: '302 /', isAdmin: true }
const NO_LONGER = { to: '302 /', isAdmin: false, permissions: NO_PERMISSIONS }
const logins = () => auditRows(app).filter(({ action, username }) => action === 'login_success' && username === 'anna')

test.each([
  [undefined, undefined],
  [undefined, null],
])('a missing claim changes nothing until the provider has sent it; then it names no group', async (_, groups) => {
  await open(ALL)
  app.store.sqlite.prepare("update users set is_admin = 1 where username = 'anna'").run()
  await enter(undefined)
  app.store.sqlite.prepare("update users set is_admin = 1 where username = 'anna'").run()
  expect(await enter(groups)).toMatchObject(ADMIN)
  expect(logins().at(-1)).toMatchObject({ details: { providerId: 'default', groups: 'missing' } })
  expect(await enter(['admins'])).toMatchObject(ADMIN)
  expect(logins().at(-1)?.details).not.toHaveProperty('groups')
  expect(await enter(groups)).toMatchObject(NO_LONGER)
  expect(changes().at(-1)).toMatchObject({ details: { by: 'groups at the provider', providerId: 'default' } })
})

test('that a provider sends the claim is remembered over restarts, and for this claim only', async () => {
  await open(ALL)
  await enter(['admins'])
  const { store } = app
  app = await createTestApp({ env: oidcEnv(provider, { ...ALL, OIDC_GROUPS_CLAIM: 'roles' }), store })
  expect(await enter(undefined)).toMatchObject(ADMIN)
  app = await createTestApp({ env: oidcEnv(provider, ALL), store })
  expect(await enter(undefined)).toMatchObject(NO_LONGER)
})

test('OIDC_GROUPS_MISSING=keep changes nothing, none takes everything at once, and refuse admits nobody', async () => {
  await open({ ...ALL, OIDC_GROUPS_MISSING: 'keep' })
  await enter(['admins'])
  expect(await enter(undefined)).toMatchObject(ADMIN)
  const { store } = app
  app = await createTestApp({ env: oidcEnv(provider, { ...ALL, OIDC_GROUPS_MISSING: 'refuse' }), store })
  expect(await enter(undefined)).toMatchObject({ to: '302 /login?error=oidc_not_allowed' })
  expect(auditRows(app).at(-1)).toMatchObject({
    action: 'oidc_login_failed',
    details: { provider: 'oidc', providerId: 'default', reason: 'group_missing', groups: 'missing' },
  })
  app.store.sqlite.prepare('delete from provider_claims').run()
  app = await createTestApp({ env: oidcEnv(provider, { ...ALL, OIDC_GROUPS_MISSING: 'none' }), store })
  expect(await enter(undefined)).toMatchObject(NO_LONGER)
})

test.each([
  ['too many for a token', { _claim_names: { groups: 'src1' } }, 'overage', 'too many groups'],
  ['too many for a short token', { hasgroups: true }, 'overage', 'too many groups'],
])('groups that are %s take nothing, and log and audit say so', async (_what, claims, groups, line) => {
  await open(ALL)
  await enter(['admins'])
  const browser = createBrowser((path, init) => app.request(path, init))
  provider.user = { sub: 'subject 1', ...claims }
  expect(await signInBy(browser, provider)).toBe('302 /')
  const { user } = Object(await (await browser.request('/api/auth/status')).json())
  expect(user.isAdmin).toBe(true)
  expect(logins().at(-1)).toMatchObject({ details: { groups } })
  expect(app.logged.join('\n')).toContain(line)
})

test('an outage of UserInfo takes nothing from somebody whose groups are there', async () => {
  await open(ALL)
  await enter(['admins'])
  provider.behave = { userInfo: { status: 500 } }
  expect(await enter(['admins'])).toMatchObject(ADMIN)
  expect(logins().at(-1)).toMatchObject({ details: { groups: 'unavailable' } })
})

test('10,000 groups are read, and the relevant one is found', async () => {
  await open(ALL)
  const groups = Array.from({ length: 10_000 }, (_, i) => `group ${i}`)
  expect(await enter([...groups, 'admins'])).toMatchObject({ isAdmin: true })
})

test('the last administrator keeps the role, with a warning', async () => {
  await open(ALL)
  await enter(['admins'])
  app.store.sqlite.prepare("update users set is_active = 0 where username = 'admin'").run()
  const rows = changes().length
  expect(await enter(['readers'])).toMatchObject({ to: '302 /', isAdmin: true })
  expect(changes().length).toBe(rows)
  expect(app.logged.join('\n')).toContain('The last administrator is in no group')
})

test('a change by hand holds until the next sign-in', async () => {
  await open(ALL)
  await enter(['readers'])
  app.store.sqlite.prepare("update user_permissions set can_write = 1 where resource = 'nodes' and user_id = 2").run()
  expect(await enter(['readers'])).toMatchObject({ permissions: PRESETS.viewer })
})

describe('OIDC_ALLOWED_GROUPS', () => {
  test.each([
    [['mesh'], '302 /'],
    ['mesh', '302 /'],
    [['other'], '302 /login?error=oidc_not_allowed'],
    [undefined, '302 /login?error=oidc_not_allowed'],
    [{ mesh: 1 }, '302 /login?error=oidc_not_allowed'],
  ])('a user with the groups %j is sent to %s', async (groups, to) => {
    await open({ OIDC_GROUPS_CLAIM: 'groups', OIDC_ALLOWED_GROUPS: 'mesh' })
    expect((await enter(groups)).to).toBe(to)
    const made = app.store.sqlite.prepare("select count(*) as n from users where auth_provider = 'oidc'").get()
    expect(made).toEqual({ n: to === '302 /' ? 1 : 0 })
    if (to !== '302 /') expect(auditRows(app).at(-1)).toMatchObject({ details: { reason: 'group_missing' } })
  })
})

test.each([
  [{ a: { b: ['x'] } }, 'a.b', ['x']],
  [{ 'https://x.example/roles': ['x'] }, 'https://x.example/roles', ['x']],
  [{ a: {} }, 'a.constructor.name', 'missing'],
  [{}, '__proto__', 'missing'],
  [{}, 'toString', 'missing'],
  [{ a: 'text' }, 'a.length', 'malformed'],
  [{ a: ['x'] }, 'a.b', 'malformed'],
  [{ a: null }, 'a.b', 'missing'],
  [{ _claim_names: { groups: 's' } }, 'groups', 'overage'],
  [{ _claim_names: { groups: 's' } }, 'roles', 'missing'],
  [{ _claim_names: { groups: 's' }, groups: ['x'] }, 'groups', ['x']],
  [{ hasgroups: 'true' }, 'groups', 'overage'],
  [{ hasgroups: true }, 'roles', 'missing'],
  [{ _claim_names: 'groups' }, 'groups', 'missing'],
  [{ a: ['x'] }, 'a.0', ['x']],
])('in %j the path %s leads to %j', (claims, path, groups) => {
  expect(readGroups(claims, path)).toEqual(groups)
})

test('settings that are contradictory or unknown stop the start', () => {
  const problems = (env: Record<string, string>) => {
    const parsed = parseConfig({ SESSION_SECRET: 's'.repeat(40), ...env })
    return parsed.ok ? [] : parsed.problems.map((line) => line.split(':')[0])
  }
  expect(problems({ OIDC_ADMIN_GROUPS: 'admins' })).toEqual(['OIDC_GROUPS_CLAIM'])
  expect(problems({ OIDC_GROUPS_MISSING: 'none' })).toEqual(['OIDC_GROUPS_CLAIM'])
  expect(problems({ OIDC_GROUPS_CLAIM: 'groups', OIDC_GROUPS_MISSING: 'ignore' })).toEqual(['OIDC_GROUPS_MISSING'])
  for (const text of ['a', 'a=boss', '=viewer', 'a=nodes:x', 'a=nodes:r+nodes:rw', 'a=__proto__:r']) {
    expect(problems({ OIDC_GROUPS_CLAIM: 'groups', OIDC_GROUP_PERMISSIONS: text }), text).toEqual([
      'OIDC_GROUP_PERMISSIONS',
    ])
  }
})
