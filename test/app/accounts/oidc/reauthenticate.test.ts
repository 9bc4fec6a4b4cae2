import { afterEach, beforeEach, expect, test } from 'vitest'
import { auditRows, createTestApp, type TestApp } from '../../../support/app.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../../support/oidc/provider.ts'
import { type Browser, createBrowser, signInBy } from '../../../support/web/browser.ts'

const QUARTER_MS = 15 * 60_000

let provider: TestProvider
let app: TestApp
let browser: Browser
beforeEach(async () => {
  provider = await startProvider()
  app = await createTestApp({ env: oidcEnv(provider) })
  provider.now = () => app.clock.now
  browser = createBrowser((path, init) => app.request(path, init))
})
afterEach(async () => {
  app.close()
  await provider.close()
})

/** The time at which the provider says it asked the user, ms. */
const asksAt = (at: unknown) => {
  provider.behave = { claims: (claims) => ({ ...claims, auth_time: at }) }
}
const seconds = () => Math.floor(app.clock.now / 1000)

const proof = async () => {
  const answer = await browser.request('/api/auth/reauthenticate')
  return answer.status === 204 ? 'fresh' : Object(await answer.json()).ways
}

async function again(): Promise<string> {
  const begun = await browser.request('/api/auth/oidc/login?reauthenticate=true&returnTo=/backups')
  const location = new URL(begun.headers.get('location') ?? '')
  expect(location.searchParams.get('prompt')).toBe('login')
  expect(location.searchParams.get('max_age')).toBe('0')
  const { pathname, search } = await provider.authorize(location.href)
  const answer = await browser.request(`${pathname}${search}`)
  return answer.headers.get('location') ?? ''
}

test('a sign-in within the last 15 minutes is a proof; later the provider must ask again', async () => {
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(await proof()).toBe('fresh')
  app.clock.advance(QUARTER_MS)
  expect(await proof()).toEqual(['oidc'])
  asksAt(seconds())
  expect(await again()).toBe('/backups')
  expect(await proof()).toBe('fresh')
})

test('a user whom the provider admits without asking has no fresh proof', async () => {
  asksAt(seconds() - 3600)
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(await proof()).toEqual(['oidc'])
})

test.each([
  ['an hour ago', () => seconds() - 3600],
  ['never', () => undefined],
  ['in words', () => 'just now'],
  ['without end', () => Number.POSITIVE_INFINITY],
])('an answer that says the user was asked %s proves nothing', async (_when, at) => {
  await signInBy(browser, provider)
  app.clock.advance(QUARTER_MS)
  asksAt(at())
  expect(await again()).toBe('/login?error=oidc_failed')
  expect(await proof()).toEqual(['oidc'])
  expect(auditRows(app).at(-1)).toMatchObject({ action: 'oidc_login_failed', details: { reason: 'claim_auth_time' } })
})
