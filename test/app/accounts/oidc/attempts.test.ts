import { expect, test } from 'vitest'
import { seal } from '../../../../src/app/base/sealing.ts'
import { type Browser, createBrowser, reachCallback, signInBy } from '../../../support/web/browser.ts'
import { auditRows } from '../../../support/app.ts'
import {
  app,
  begin,
  browser,
  lastReason,
  open,
  provider,
  useProviderSite,
} from '../../../support/oidc/provider-site.ts'

useProviderSite()

test.each([
  [
    'over plain HTTP',
    'http://localhost',
    /^mesh_oidc_[\w-]{16}=[\w-]{200,400}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
  ],
  [
    'over HTTPS',
    'https://mesh.example.org',
    /^__Host-mesh_oidc_[\w-]{16}=[\w-]{200,400}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  ],
])('the cookie of an attempt has a safe name and attributes %s', async (_how, origin, shape) => {
  app.origin = origin
  const answer = await browser.request('/api/auth/oidc/login')
  expect(answer.headers.getSetCookie()).toEqual([expect.stringMatching(shape)])
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test.each([
  ['', 'mesh_oidc_', 'mesh_oidc.b_'],
  ['/b', 'mesh_oidc.b_', 'mesh_oidc_'],
  ['/b', 'mesh_oidc.b_', 'mesh_oidc.b%5F_'],
])('at %j attempts have names with %s, and drive out none with %s', async (path, own, other) => {
  await open({ PUBLIC_URL: `http://localhost${path}` })
  const foreign = Array.from({ length: 10 }, (_, i) => `${other}${String(i).padStart(16, 'x')}`)
  for (const name of foreign) browser.cookies.set(name, 'v'.repeat(300))
  for (let i = 0; i < 12; i += 1) await begin()
  const names = [...browser.cookies.keys()]
  expect(names.filter((name) => name.startsWith(other))).toStrictEqual(foreign)
  expect(names.filter((name) => name.startsWith(own))).toHaveLength(10)
  expect(await signInBy(browser, provider)).toBe(`302 ${path}/`)
})

const written = () => Number(Object(app.store.sqlite.prepare('select total_changes() as n').get()).n)

test('starting a sign-in writes nothing, and its cookie reveals nothing', async () => {
  const before = written()
  const url = await begin('/api/auth/oidc/login?returnTo=/nodes')
  expect(written()).toBe(before)
  const [sealed = ''] = browser.cookies.values()
  const bytes = Buffer.from(sealed, 'base64url')
  expect(Buffer.from(bytes.toString('base64url')).toString()).toBe(sealed)
  const { state, nonce } = Object.fromEntries(url.searchParams)
  for (const told of ['/nodes', provider.issuer, state, nonce, 'expiresAt']) {
    expect(`${bytes.toString('latin1')}${sealed}`).not.toContain(told)
  }
  expect(`${url.href}${app.logged.join('')}`).not.toContain(sealed)
})

test.each([
  ['truncated', (value: string) => value.slice(0, -1)],
  ['changed', (value: string) => `${value.slice(0, 30)}${value[30] === 'A' ? 'B' : 'A'}${value.slice(31)}`],
  ['empty', () => ''],
  ['not base64url', () => '%00'],
  ['only four bytes long', () => 'AAAAAA'],
])('a cookie that is %s is not accepted', async (_how, change) => {
  const callback = await reachCallback(browser, provider)
  for (const [name, value] of browser.cookies) browser.cookies.set(name, change(value))
  await expectRefused(browser, callback, 'attempt_unknown')
})

test('the cookie of one attempt is not accepted under the name of another', async () => {
  const callbacks = [await reachCallback(browser, provider), await reachCallback(browser, provider)]
  const [[one, first] = ['', ''], [two, second] = ['', '']] = [...browser.cookies]
  browser.cookies.set(one, second).set(two, first)
  for (const callback of callbacks) await expectRefused(browser, callback, 'attempt_unknown')
})

test('a cookie that was sealed without the secret is not accepted', async () => {
  const callback = await reachCallback(browser, provider)
  const id = new URL(callback, 'http://site.invalid').searchParams.get('state')?.slice(0, 16) ?? ''
  const content = { seed: 'x', issuer: provider.issuer, returnTo: '/', expiresAt: app.clock.now + 1000 }
  const made = await seal(['another secret of forty characters or more'], `oidc-attempt:${id}`, JSON.stringify(content))
  browser.cookies.set(`mesh_oidc_${id}`, made)
  await expectRefused(browser, callback, 'attempt_unknown')
})

test('another instance can finish an attempt, also under a secret being rotated out, and only once', async () => {
  const callback = await reachCallback(browser, provider)
  const cookies = [...browser.cookies]
  await open({ SESSION_SECRET: `${'n'.repeat(40)},${'s'.repeat(40)}` })
  for (const [name, value] of cookies) browser.cookies.set(name, value)
  expect((await browser.request(callback)).headers.get('location')).toBe('/')
  for (const [name, value] of cookies) browser.cookies.set(name, value)
  await expectRefused(browser, callback, 'attempt_used')
})

async function expectRefused(by: Browser, callback: string, reason: string): Promise<void> {
  const before = provider.count('/token')
  expect((await by.request(callback)).headers.get('location')).toBe('/login?error=oidc_state_invalid')
  expect(lastReason()).toBe(reason)
  expect(provider.count('/token')).toBe(before)
}

test('a state is used up before its code is redeemed, so that nobody can redeem it again meanwhile', async () => {
  const callback = await reachCallback(browser, provider)
  provider.behave = { token: 'hang' }
  const other = createBrowser((path, init) => app.request(path, init))
  const hanging = await reachCallback(other, provider)
  const twin = createBrowser((path, init) => app.request(path, init))
  for (const [name, value] of other.cookies) twin.cookies.set(name, value)
  const pending = other.request(hanging)
  await expect.poll(() => provider.count('/token')).toBe(1)
  expect((await twin.request(hanging)).headers.get('location')).toBe('/login?error=oidc_state_invalid')
  expect(provider.count('/token')).toBe(1)
  expect((await browser.request(callback)).headers.get('location')).toBe('/')
  await provider.close()
  expect((await pending).headers.get('location')).toBe('/login?error=oidc_failed')
})

test('an attempt ends after ten minutes', async () => {
  const [inTime, late] = [await reachCallback(browser, provider), await reachCallback(browser, provider)]
  app.clock.advance(10 * 60_000 - 1)
  expect((await browser.request(inTime)).headers.get('location')).toBe('/')
  app.clock.advance(1)
  expect((await browser.request(late)).headers.get('location')).toBe('/login?error=oidc_state_invalid')
  expect(lastReason()).toBe('attempt_expired')
})

test('an attempt that began while the clock was ahead does not live longer', async () => {
  app.clock.advance(86_400_000)
  const callback = await reachCallback(browser, provider)
  app.clock.advance(-86_400_000)
  await expectRefused(browser, callback, 'attempt_expired')
})

test('a flood of started sign-ins pushes out nobody who is signing in, and leaves nothing behind', async () => {
  const patient = await reachCallback(browser, provider)
  const before = written()
  for (let i = 0; i < 400; i++) {
    app.ip = i < 250 ? '192.0.2.1' : `198.51.100.${i % 250}`
    expect((await app.request('/api/auth/oidc/login')).status).toBe(302)
  }
  expect(written()).toBe(before)
  expect((await browser.request(patient)).headers.get('location')).toBe('/')
})

const waiting = () => [...browser.cookies].filter(([name]) => name.startsWith('mesh_oidc_'))

test('a browser has a bounded number of attempts: the newest ones work', async () => {
  const callbacks: string[] = []
  for (let i = 0; i < 15; i++) callbacks.push(await reachCallback(browser, provider))
  expect(waiting()).toHaveLength(10)
  for (const late of callbacks.slice(0, 5)) await expectRefused(browser, late, 'attempt_unknown')
  for (const good of callbacks.slice(5)) expect((await browser.request(good)).headers.get('location')).toBe('/')
})

test('the attempts of a browser are bounded in bytes, so that no server refuses the header', async () => {
  const returnTo = `/messages?q=${'ä'.repeat(168)}`
  const callbacks: string[] = []
  for (let i = 0; i < 10; i++) callbacks.push(await reachCallback(browser, provider, returnTo))
  for (const [name, value] of waiting()) expect(name.length + value.length).toBeLessThan(4096)
  const bytes = waiting().reduce((sum, [, value]) => sum + value.length, 0)
  expect(waiting().length).toBeGreaterThan(1)
  expect(bytes).toBeLessThan(6000)
  const latest = callbacks.at(-1) ?? ''
  expect((await browser.request(latest)).headers.get('location')).toBe(encodeURI(returnTo))
})

test('a path too long for a cookie is replaced by the start page', async () => {
  expect(await signInBy(browser, provider, `/messages?q=${'ä'.repeat(169)}`)).toBe('302 /')
})

test('recorded failures per address are bounded; nobody is refused because of them', async () => {
  await open({ LOGIN_MAX_FAILURES: '2' })
  for (let i = 0; i < 15; i++) await app.request('/api/auth/oidc/callback?state=x&code=y')
  expect(auditRows(app).filter(({ action }) => action === 'oidc_login_failed')).toHaveLength(10)
  provider.behave = { token: { status: 500 } }
  for (let i = 0; i < 45; i++) expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(auditRows(app).filter(({ action }) => action === 'oidc_login_failed')).toHaveLength(50)
  expect(app.logged.filter((line) => line.includes('failed'))).toHaveLength(50)
  provider.behave = {}
  expect(await signInBy(browser, provider)).toBe('302 /')
  app.clock.advance(15 * 60_000)
  await app.request('/api/auth/oidc/callback?state=x&code=y')
  expect(auditRows(app).filter(({ action }) => action === 'oidc_login_failed')).toHaveLength(51)
})

test('failures from thousands of addresses do not fill the disk either', async () => {
  await open({ LOGIN_MAX_FAILURES: '1' })
  for (let i = 0; i < 30; i++) {
    app.ip = `2001:db8:0:${i.toString(16)}::1`
    for (let j = 0; j < 6; j++) await app.request('/api/auth/oidc/callback?state=x&code=y')
  }
  expect(auditRows(app).filter(({ action }) => action === 'oidc_login_failed')).toHaveLength(100)
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test('a sign-in that began at another issuer is not finished', async () => {
  const callback = await reachCallback(browser, provider)
  const cookies = [...browser.cookies]
  await open({ OIDC_ISSUER: 'https://other.example' })
  for (const [name, value] of cookies) browser.cookies.set(name, value)
  expect((await browser.request(callback)).headers.get('location')).toBe('/login?error=oidc_failed')
  expect(lastReason()).toBe('attempt_of_another_issuer')
  expect(provider.count('/token')).toBe(0)
})
