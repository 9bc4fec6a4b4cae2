import type { Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../support/servers/free-port.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { ADMIN_PASSWORD, openSignedIn } from '../../support/signed-in.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const BUTTON = 'Sign in with your organisation'
/** Longer than a phone is wide. */
const CLUB = 'the Amateur Radio Club of the Lower Valley and Its Hills'

describe('with local accounts', () => {
  let provider: TestProvider
  let site: Site
  beforeAll(async () => {
    provider = await startProvider()
    // The provider knows where it sends users back before the service runs.
    const port = await freePort()
    const env = oidcEnv(provider, { OIDC_REDIRECT_URI: `http://127.0.0.1:${port}/api/auth/oidc/callback` })
    site = await openSite({ ...env, ADMIN_PASSWORD, PORT: String(port) })
  })
  afterAll(async () => {
    await site.close()
    await provider.close()
  })

  const signInBy = async (visitor: Visitor, path: string) => {
    await visitor.goto(path)
    await visitor.page.getByRole('link', { name: BUTTON }).click()
  }

  test('the button leads to the provider and back to the requested page, as a user of the organisation', async () => {
    const visitor = await site.visit()
    await signInBy(visitor, '/nodes?sort=name&show=active')
    const { page } = visitor
    await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
    await expect.poll(() => page.url()).toBe(`${site.base}/nodes?sort=name&show=active`)
    await page.getByRole('link', { name: 'Anna Berg' }).click()
    await page.getByText('through your organisation', { exact: true }).waitFor()
    await page.getByText('You sign in through your organisation. Change your password there.').waitFor()
    await expect.poll(() => page.locator('input[type=password]').count()).toBe(0)
    // A read that is still on its way is cut off: its answer would be a refusal.
    await page.route('**/api/tokens', () => undefined)
    const isRead = (request: Request) => request.url().endsWith('/api/tokens')
    const [begun, ended] = [page.waitForRequest(isRead), page.waitForEvent('requestfailed', isRead)]
    await page.reload()
    await begun
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
    await ended
    // Signing out on purpose needs no explanation.
    await expect.poll(() => page.getByText('Your session has ended').count()).toBe(0)
    expect(visitor.complaints.filter((url) => !url.startsWith(provider.issuer))).toEqual([])
  })

  test('each failure there is shown as a sentence that says what to do', async () => {
    const visitor = await site.visit()
    const { page } = visitor
    const failure = async (text: string) => {
      await signInBy(visitor, '/login')
      await expect.poll(() => page.getByRole('alert').textContent()).toContain(text)
      await expect.poll(() => page.getByLabel('Username').count()).toBe(1)
    }
    provider.behave = {
      callback: (query) => {
        query.delete('code')
        query.set('error', 'access_denied')
      },
    }
    await failure('The sign-in was cancelled, or your organisation refused it.')
    provider.behave = { token: { status: 500 } }
    await failure('an administrator can find the reason in the audit log')
    provider.behave = { callback: (query) => query.set('state', 'of somebody else') }
    await failure('Please start again.')
    provider.behave = {}
    await visitor.goto('/login')
    await visitor.signIn('admin', ADMIN_PASSWORD)
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('link', { name: 'Anna Berg' }).click()
    await expect.poll(() => page.getByLabel('E-mail').isDisabled()).toBe(true)
    await expect.poll(() => page.getByRole('button', { name: 'Reset password' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('User deactivated').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
    await failure('Your account here is deactivated.')
  })

  test('administrators see what failed last, and test the provider', async () => {
    const visitor = await openSignedIn(site, '/settings')
    const { page } = visitor
    const card = page.locator('.card').filter({ hasText: 'Sign-in with OpenID Connect' })
    await card.getByText(`${site.base}/api/auth/oidc/callback`).waitFor()
    provider.behave = { discovery: (document) => ({ ...document, issuer: `${provider.issuer}/` }) }
    await card.getByRole('button', { name: 'Test' }).click()
    await card.getByText('names another issuer than the configured one').waitFor()
    provider.behave = {}
    await visitor.page.reload()
    await card.getByText('Last failure').waitFor()
    await card.getByText('names another issuer than the configured one').waitFor()
    await card.getByRole('button', { name: 'Test' }).click()
    await card.getByText('The test succeeded. Keys that can check tokens: 1').waitFor()
    expect(await visitor.violations()).toStrictEqual([])
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  })

  test.each([
    ['oidc_denied', 'cancelled'],
    ['oidc_failed', 'could not be trusted'],
    ['oidc_state_invalid', 'took too long'],
    ['oidc_user_unknown', 'no account here yet'],
    ['oidc_user_inactive', 'deactivated'],
    ['oidc_unavailable', 'does not respond right now'],
    ['of_a_later_version', 'Please try again'],
  ])('the code %s has its own text', async (code, words) => {
    const { page, goto } = await site.visit()
    await goto(`/login?error=${code}`)
    await expect.poll(() => page.getByRole('alert').textContent()).toContain(words)
  })
})

describe('accounts that exist already', () => {
  let provider: TestProvider
  let site: Site
  let admin: Visitor
  beforeAll(async () => {
    provider = await startProvider()
    const port = await freePort()
    const env = oidcEnv(provider, { OIDC_REDIRECT_URI: `http://127.0.0.1:${port}/api/auth/oidc/callback` })
    site = await openSite({ ...env, ADMIN_PASSWORD, DEMO: 'false', PORT: String(port) })
    admin = await openSignedIn(site, '/account')
  })
  afterAll(async () => {
    await site.close()
    await provider.close()
  })

  test('a user links the account to one at the provider, signs in either way, and unlinks it', async () => {
    provider.user = { sub: 'the owner', name: 'Somebody else there' }
    const { page } = admin
    await page.getByRole('button', { name: 'Link with your organisation' }).click()
    await page.getByText('Account linked').waitFor()
    await page.getByText('Subject there: the owner').waitFor()
    expect(await admin.violations()).toEqual([])
    const other = await site.visit()
    await other.goto('/account')
    await other.page.getByRole('link', { name: BUTTON }).click()
    await other.page.getByRole('button', { name: 'Unlink' }).waitFor()
    await page.getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
    await page.getByText('Account unlinked').waitFor()
    await page.getByRole('button', { name: 'Link with your organisation' }).waitFor()
    // What began at the provider has ended.
    await other.page.reload()
    await other.page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
    await other.page.context().close()
  })

  test('an invitation is created, shown once, opened by its user, and invalid afterwards', async () => {
    const { page } = admin
    await admin.goto('/users/new')
    await page.getByRole('radio', { name: 'at a provider' }).check()
    await page.getByLabel('Username').fill('guest')
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.getByRole('heading', { name: 'The account guest is ready', level: 1 }).waitFor()
    expect(await admin.violations()).toEqual([])
    await page.locator('code', { hasText: '/login?invitation=' }).waitFor()
    await page.getByRole('link', { name: 'Open the user' }).click()
    await page.getByText(/^A link to this account is open until /).waitFor()
    await page.getByRole('button', { name: 'Make a link' }).click()
    const link = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
    await page.keyboard.press('Escape')

    provider.user = { sub: 'the guest', preferred_username: 'another name there', name: 'Guest of the club' }
    const guest = await site.visit()
    await guest.goto(new URL(link).pathname + new URL(link).search)
    expect(await guest.violations()).toEqual([])
    await guest.page.getByRole('link', { name: BUTTON }).click()
    await guest.page.getByRole('link', { name: 'Guest of the club' }).click()
    await guest.page.getByText('guest', { exact: true }).waitFor()
    provider.user = { sub: 'somebody else' }
    const late = await site.visit()
    await late.goto(new URL(link).pathname + new URL(link).search)
    await late.page.getByRole('link', { name: BUTTON }).click()
    await expect.poll(() => late.page.getByRole('alert').textContent()).toContain('link')
  })
})

describe('several providers, and straight to the first one', () => {
  let one: TestProvider
  let two: TestProvider
  let site: Site
  beforeAll(async () => {
    ;[one, two] = [await startProvider(), await startProvider()]
    const port = await freePort()
    const redirect = { OIDC_REDIRECT_URI: `http://127.0.0.1:${port}/api/auth/oidc/callback` }
    const env = {
      OIDC_PROVIDERS: 'club',
      OIDC_CLUB_ISSUER: two.issuer,
      OIDC_CLUB_CLIENT_ID: two.clientId,
      OIDC_CLUB_CLIENT_SECRET: two.clientSecret,
      OIDC_CLUB_NAME: CLUB,
      OIDC_AUTO_LOGIN: 'true',
    }
    site = await openSite({ ...oidcEnv(one, redirect), ...env, ADMIN_PASSWORD, PORT: String(port) })
  })
  afterAll(async () => {
    await site.close()
    await Promise.all([one.close(), two.close()])
  })

  test('signs in there without a click; after a sign-out the page stays, with a button for each provider', async () => {
    const { page, goto } = await site.visit()
    await goto('/nodes')
    await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
    await expect.poll(() => page.url()).toBe(`${site.base}/nodes`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
    await expect.poll(() => page.getByRole('link', { name: BUTTON }).count()).toBe(1)
    await page.getByRole('link', { name: `Sign in with ${CLUB}` }).click()
    await page.getByRole('link', { name: 'Anna Berg' }).waitFor()
    expect([one.count('/authorize'), two.count('/authorize')]).toEqual([1, 1])
  })

  test('an error does not cause a redirect loop, and /login?local=1 offers the local sign-in', async () => {
    const visitor = await site.visit()
    one.behave = { callback: (query) => query.set('error', 'server_error') }
    const before = one.count('/authorize')
    await visitor.goto('/')
    await expect.poll(() => visitor.page.getByRole('alert').textContent()).toContain('could not be trusted')
    expect(one.count('/authorize')).toBe(before + 1)
    one.behave = {}
    const other = await site.visit({ viewport: { width: 390, height: 844 } })
    await other.goto('/login?local=1')
    await other.page.getByRole('link', { name: CLUB }).waitFor()
    expect(await overflowOf(other.page)).toBeLessThanOrEqual(0)
    await other.signIn('admin', ADMIN_PASSWORD)
    await other.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
    await other.goto('/account')
    await other.page.getByRole('button', { name: CLUB }).waitFor()
    expect(await overflowOf(other.page)).toBeLessThanOrEqual(0)
    expect(one.count('/authorize')).toBe(before + 1)
    // What to register: each provider with its own address.
    await other.goto('/settings')
    const row = (name: string) => other.page.getByRole('listitem').filter({ has: other.page.getByText(name) })
    const callback = `${site.base}/api/auth/oidc/callback`
    await row(CLUB).getByText(`${callback}/club`, { exact: true }).waitFor()
    await row('Your organisation').getByText(callback, { exact: true }).waitFor()
    expect(await other.page.getByText(`${site.base}/login`, { exact: true }).count()).toBe(2)
    expect(await overflowOf(other.page)).toBeLessThanOrEqual(0)
  })
})

describe('without local accounts', () => {
  let site: Site
  beforeAll(async () => {
    site = await openSite({
      OIDC_ENABLED: 'true',
      DISABLE_LOCAL_AUTH: 'true',
      // The discard port: nothing answers there.
      OIDC_ISSUER: 'http://127.0.0.1:9',
      OIDC_CLIENT_ID: 'mesh',
      OIDC_CLIENT_SECRET: 'a secret of the client',
      OIDC_REDIRECT_URI: 'http://127.0.0.1:8080/api/auth/oidc/callback',
    })
  })
  afterAll(() => site.close())

  test('the provider is the only sign-in, and its failure is explained', async () => {
    const { page, goto, violations } = await site.visit()
    await goto('/nodes?sort=name')
    const link = page.getByRole('link', { name: BUTTON })
    await expect.poll(() => link.getAttribute('href')).toBe('/api/auth/oidc/login?returnTo=%2Fnodes%3Fsort%3Dname')
    await expect.poll(() => page.locator('input').count()).toBe(0)
    expect(await violations()).toEqual([])
    await link.click()
    await page.getByText('Your organisation’s sign-in does not respond right now. Try again in a minute.').waitFor()
    await expect.poll(() => new URL(page.url()).search).toBe('?error=oidc_unavailable&returnTo=%2Fnodes%3Fsort%3Dname')
    await expect.poll(() => link.getAttribute('href')).toBe('/api/auth/oidc/login?returnTo=%2Fnodes%3Fsort%3Dname')
    expect(await violations()).toEqual([])
  })
})
