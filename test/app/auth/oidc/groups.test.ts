import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/app/config/config.ts'
import { readGroups } from '../../../../src/app/auth/oidc/groups.ts'
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
  ['missing', undefined],
  ['an object', { admins: true }],
  ['a number', 7],
  ['a list of mixed types', ['admins', 7]],
  ['null', null],
])('a claim that is %s changes nothing, and the log says so', async (_what, groups) => {
  await open(ALL)
  await enter(['readers'])
  const rows = changes().length
  expect(await enter(groups)).toMatchObject({ to: '302 /', isAdmin: false, permissions: PRESETS.viewer })
  expect(changes().length).toBe(rows)
  expect(app.logged.join('\n')).toContain('sends no readable groups')
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
  [{ a: 'text' }, 'a.length', 'missing'],
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
  for (const text of ['a', 'a=boss', '=viewer', 'a=nodes:x', 'a=nodes:r+nodes:rw', 'a=__proto__:r']) {
    expect(problems({ OIDC_GROUPS_CLAIM: 'groups', OIDC_GROUP_PERMISSIONS: text }), text).toEqual([
      'OIDC_GROUP_PERMISSIONS',
    ])
  }
})
