import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { sweepAttempts } from '../../src/app/auth/oidc/attempts.ts'
import { createBrowser, reachCallback, signInBy } from '../support/browser.ts'
import { auditRows } from '../support/app.ts'
import { app, begin, browser, lastReason, open, provider } from '../support/provider-site.ts'

test.each([
  [
    'over plain HTTP',
    'http://localhost',
    /^mesh_oidc_[\w-]{16}=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
  ],
  [
    'over HTTPS',
    'https://mesh.example.org',
    /^__Host-mesh_oidc_[\w-]{16}=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  ],
])('the cookie of an attempt %s', async (_how, origin, shape) => {
  app.origin = origin
  const answer = await browser.request('/api/auth/oidc/login')
  expect(answer.headers.getSetCookie()).toEqual([expect.stringMatching(shape)])
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test('what the database keeps of an attempt opens nothing, and is swept', async () => {
  const url = await begin('/api/auth/oidc/login?returnTo=/nodes')
  const rows = app.store.sqlite.prepare('select * from oidc_attempts').all()
  expect(rows).toEqual([
    {
      state_hash: createHash('sha256')
        .update(url.searchParams.get('state') ?? '')
        .digest('hex'),
      issuer: provider.issuer,
      return_to: '/nodes',
      address: '192.0.2.1',
      expires_at: app.clock.now + 600_000,
    },
  ])
  const [secret = ''] = browser.cookies.values()
  expect(`${JSON.stringify(rows)}${url.href}${app.logged.join('')}`).not.toContain(secret)
  await sweepAttempts(app.store, app.clock.now + 599_999)
  expect(attempts()).toBe(1)
  await sweepAttempts(app.store, app.clock.now + 600_000)
  expect(attempts()).toBe(0)
})

test('an attempt is gone before its code is redeemed: nobody redeems it once more meanwhile', async () => {
  const callback = await reachCallback(browser, provider)
  provider.behave = { token: 'hang' }
  const other = createBrowser((path, init) => app.request(path, init))
  const hanging = await reachCallback(other, provider)
  const twin = createBrowser((path, init) => app.request(path, init))
  for (const [name, value] of other.cookies) twin.cookies.set(name, value)
  const pending = other.request(hanging)
  await expect.poll(() => provider.count('/token')).toBe(1)
  expect(attempts()).toBe(1)
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

function attempts(): number {
  return Number(Object(app.store.sqlite.prepare('select count(*) as n from oidc_attempts').get()).n)
}

test('unfinished attempts are bounded: of an address, in all, in a browser; a flood drives out its own', async () => {
  const patient = await reachCallback(browser, provider)
  const flood = async (ip: string, n: number) => {
    app.ip = ip
    for (let i = 0; i < n; i++) await app.request('/api/auth/oidc/login')
  }
  await flood('198.51.100.1', 250)
  expect(attempts()).toBe(201)
  await flood('2001:db8::1', 150)
  await flood('2001:db8::2', 100)
  expect(attempts()).toBe(401)
  expect((await browser.request(patient)).headers.get('location')).toBe('/')
  for (let i = 3; i < 8; i++) await flood(`198.51.100.${i}`, 200)
  expect(attempts()).toBe(1000)
  for (let i = 0; i < 15; i++) await browser.request('/api/auth/oidc/login')
  expect([...browser.cookies.keys()].filter((name) => name.startsWith('mesh_oidc_'))).toHaveLength(10)
  app.clock.advance(10 * 60_000)
  await browser.request('/api/auth/oidc/login')
  expect(attempts()).toBe(1)
})

test('failures of one address are recorded up to a number; none is turned away for it', async () => {
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

test('a sign-in that began at another issuer ends nowhere', async () => {
  const callback = await reachCallback(browser, provider)
  app.store.sqlite.exec("update oidc_attempts set issuer = 'https://former.example'")
  expect((await browser.request(callback)).headers.get('location')).toBe('/login?error=oidc_failed')
  expect(lastReason()).toBe('attempt_of_another_issuer')
  expect(provider.count('/token')).toBe(0)
})
