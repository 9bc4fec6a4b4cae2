import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../../src/app/app.ts'
import { createAddressing } from '../../../src/node/http/client-address.ts'
import { listen, type Listening } from '../../../src/node/http/server.ts'
import { auditRows, createTestApp, type TestApp } from '../../support/app.ts'
import { type CertifiedProvider, startCertifiedProvider } from '../../support/oidc/certified-provider.ts'
import { CHROMIUM_PATH } from '../../support/web/chromium.ts'

let chrome: Browser
let provider: CertifiedProvider
let app: TestApp
let server: Listening
let site: string

beforeAll(async () => {
  chrome = await chromium.launch({ executablePath: CHROMIUM_PATH, args: ['--no-sandbox'] })
  let fetch: ReturnType<typeof createApp>['fetch'] | undefined
  server = await listen(
    (request, env) => fetch?.(request, Object(env)) ?? new Response(null, { status: 503 }),
    0,
    '127.0.0.1',
  )
  site = `http://127.0.0.1:${server.port}`
  provider = await startCertifiedProvider({
    origin: site,
    method: 'client_secret_basic',
    alg: 'RS256',
    secret: 'a secret with +, : and %',
  })
  app = await createTestApp({
    env: provider.env,
    ports: { now: Date.now, ...createAddressing([], { warn: () => {} }) },
  })
  fetch = createApp(() => app.ports).fetch
})
afterAll(async () => {
  await chrome.close()
  await server.close(1000)
  await provider.close()
  app.close()
})

async function status(page: Page): Promise<Record<string, unknown>> {
  await page.goto(`${site}/api/auth/status`)
  return Object(JSON.parse(await page.innerText('body')))
}

test('in Chromium: signing in at the provider leads to the requested page, and signing out ends both sessions', async () => {
  const context = await chrome.newContext()
  const page = await context.newPage()
  const begin = `${site}/api/auth/oidc/login?returnTo=${encodeURIComponent('/api/auth/status?from=oidc')}`
  await page.goto(begin)
  await expect.poll(() => new URL(page.url()).origin).toBe(provider.issuer)
  await page.fill('[name=login]', 'anna')
  await page.fill('[name=password]', 'any')
  await page.click('button[type=submit]')
  await page.locator('[name=prompt][value=consent]').waitFor({ state: 'attached' })
  await page.click('button[type=submit]')
  await page.waitForURL(`${site}/api/auth/status?from=oidc`)
  expect(JSON.parse(await page.innerText('body'))).toMatchObject({
    authenticated: true,
    user: { oidcSubject: 'anna', authProvider: 'oidc' },
  })
  const cookies = await context.cookies(site)
  expect(cookies.filter(({ name }) => name.startsWith('mesh_')).map(({ name }) => name)).toEqual(['mesh_session'])

  const second = await context.newPage()
  await second.goto(begin)
  await second.waitForURL(`${site}/api/auth/status?from=oidc`)
  await second.close()

  const logoutUrl = await page.evaluate(async () => {
    const answer = await fetch('/api/auth/logout', { method: 'POST' })
    return String(Object(await answer.json()).logoutUrl)
  })
  expect(logoutUrl).toMatch(`${provider.issuer}/`)
  await page.goto(logoutUrl)
  await page.click('button[type=submit][name=logout]')
  await page.waitForURL(`${site}/login`)
  expect(await status(page)).toMatchObject({ authenticated: false, user: null })
  await page.goto(begin)
  await page.locator('[name=password]').waitFor()
  expect(auditRows(app).map(({ action, username }) => `${action} ${username}`)).toEqual([
    'admin_bootstrapped system',
    'oidc_user_created user',
    'login_success user',
    'login_success user',
    'logout user',
  ])
})
