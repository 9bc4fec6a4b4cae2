import { afterEach, beforeEach, expect, test } from 'vitest'
import { NO_PERMISSIONS, PRESETS } from '../../../../src/shared/access/resources.ts'
import { auditedBy, outcomeOf } from '../../../support/answers.ts'
import { auditRows, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'
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

const GROUPS = { OIDC_GROUPS_CLAIM: 'groups', OIDC_GROUP_PERMISSIONS: 'readers=viewer' }

/** Signs anna in with this claim; answers her id. */
async function enter(groups: unknown): Promise<number> {
  const browser = createBrowser((path, init) => app.request(path, init))
  provider.user = { sub: 'subject 1', preferred_username: 'anna', groups }
  expect(await signInBy(browser, provider)).toBe('302 /')
  const { user } = Object(await (await browser.request('/api/auth/status')).json())
  return Number(user.id)
}

async function roleOf(id: number): Promise<unknown> {
  const answer = await (await app.admin()).send('GET', `/api/users/${id}/provider-role`)
  return Object(await answer.json()).role
}

test('shows what the groups set, when, and whether they will set it again', async () => {
  app = await createTestApp({ env: oidcEnv(provider, GROUPS) })
  provider.now = () => app.clock.now
  const id = await enter(['readers'])
  const set = { issuer: provider.issuer, isAdmin: null, appliedAt: app.clock.now }
  expect(await roleOf(id)).toEqual({ ...set, permissions: PRESETS.viewer, isInForce: true })
  await enter([])
  expect(await roleOf(id)).toMatchObject({ permissions: NO_PERMISSIONS })
  const { store } = app
  app = await createTestApp({ env: oidcEnv(provider), store })
  expect(await roleOf(id)).toMatchObject({ permissions: NO_PERMISSIONS, isInForce: false })
})

test('an administrator’s own setting holds until the next sign-in applies the groups again', async () => {
  app = await createTestApp({ env: oidcEnv(provider, GROUPS) })
  provider.now = () => app.clock.now
  const id = await enter(['readers'])
  const admin = await app.admin()
  const permissions = { automation: { read: true, write: true } }
  expect(await outcomeOf(admin.send('PUT', `/api/users/${id}/permissions`, { permissions }))).toBe('200')
  const held = async () => Object(await (await admin.send('GET', `/api/users/${id}/permissions`)).json()).permissions
  expect(await held()).toMatchObject(permissions)
  await enter(['readers'])
  expect(await held()).toEqual(PRESETS.viewer)
})

test('is empty for a user without groups, and not found for an unknown user', async () => {
  app = await createTestApp({ env: oidcEnv(provider) })
  provider.now = () => app.clock.now
  expect(await roleOf(await enter(['readers']))).toBeNull()
  const admin = await app.admin()
  expect(await outcomeOf(admin.send('GET', '/api/users/999/provider-role'))).toBe('404 user_not_found')
})

test('groups decide about a linked local account only after an administrator allowed it, separately for each provider', async () => {
  const old = provider
  app = await createTestApp({ env: oidcEnv(old, GROUPS) })
  const anna = await app.user('anna')
  /** Links her account at that provider, and signs in there. */
  const link = async (here: TestApp, at: TestProvider, groups: unknown) => {
    at.now = () => here.clock.now
    at.user = { sub: 'her subject', groups }
    const browser = createBrowser((path, init) => here.request(path, init))
    const json = { 'content-type': 'application/json' }
    const login = JSON.stringify({ username: 'anna', password: USER_PASSWORD })
    await browser.request('/api/auth/login', { method: 'POST', headers: json, body: login })
    const begun = await browser.request('/api/auth/oidc/link', { method: 'POST', headers: json, body: '{}' })
    const { pathname, search } = await at.authorize(Object(await begun.json()).location)
    expect((await browser.request(`${pathname}${search}`)).headers.get('location')).toBe('/account?linked=1')
    expect(await signInBy(browser, at)).toBe('302 /')
    return browser
  }
  const first = await link(app, old, ['readers'])
  expect(await roleOf(anna.id)).toBeNull()
  const rule = async (provider: string | null) =>
    outcomeOf((await app.admin()).send('PUT', `/api/users/${anna.id}/provider-role`, { provider }))
  expect(await auditedBy(app, async () => rule('default'))).toStrictEqual(['login_success', 'groups_provider_changed'])
  expect(auditRows(app).at(-1)?.details).toMatchObject({
    userId: anna.id,
    before: { groupsOf: null },
    after: { groupsOf: old.issuer },
    providerId: 'default',
  })
  expect(await signInBy(first, old)).toBe('302 /')
  expect(await roleOf(anna.id)).toMatchObject({ issuer: old.issuer, permissions: PRESETS.viewer, isInForce: true })
  const { store } = app
  provider = await startProvider()
  app = await createTestApp({
    env: oidcEnv(provider, { ...GROUPS, OIDC_GROUP_PERMISSIONS: 'readers=operator' }),
    store,
  })
  // What the old provider set stays, but is no longer in force; its subject belongs to nobody at the new one.
  expect(await roleOf(anna.id)).toMatchObject({ issuer: old.issuer, permissions: PRESETS.viewer, isInForce: false })
  const later = app
  provider.now = () => later.clock.now
  const still = createBrowser((path, init) => later.request(path, init))
  for (const [name, value] of first.cookies) still.cookies.set(name, value)
  expect(await outcomeOf(still.request('/api/nodes'))).toBe('401 unauthenticated')
  expect(await enter(['readers'])).not.toBe(anna.id)
  const admin = await app.admin()
  expect(await outcomeOf(admin.send('DELETE', `/api/users/${anna.id}/link`))).toBe('204')
  expect(await rule('default')).toBe('404 not_found')
  const second = await link(app, provider, ['readers'])
  expect(await roleOf(anna.id)).toMatchObject({ issuer: old.issuer, permissions: PRESETS.viewer, isInForce: false })
  expect(await rule('default')).toBe('200')
  expect(await rule('nobody')).toBe('404 oidc_disabled')
  expect(await signInBy(second, provider)).toBe('302 /')
  expect(await roleOf(anna.id)).toMatchObject({ issuer: provider.issuer, permissions: PRESETS.operator })
  // From then on they are what an administrator sets.
  expect(await rule(null)).toBe('200')
  expect(await roleOf(anna.id)).toMatchObject({ isInForce: false })
  provider.user = { ...provider.user, groups: [] }
  expect(await signInBy(second, provider)).toBe('302 /')
  expect(await roleOf(anna.id)).toMatchObject({ permissions: PRESETS.operator })
  await old.close()
})
