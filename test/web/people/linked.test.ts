import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../support/servers/free-port.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { ADMIN_PASSWORD, openSignedIn } from '../../support/signed-in.ts'
import { openSite, overflowOf, type Site } from '../../support/web/site.ts'

let office: TestProvider
let club: TestProvider
let site: Site
beforeAll(async () => {
  ;[office, club] = [await startProvider(), await startProvider()]
  const port = await freePort()
  const callback = `http://127.0.0.1:${port}/api/auth/oidc/callback`
  site = await openSite({
    ...oidcEnv(office, { OIDC_REDIRECT_URI: callback, OIDC_NAME: 'the office' }),
    OIDC_PROVIDERS: 'club',
    OIDC_CLUB_ISSUER: club.issuer,
    OIDC_CLUB_CLIENT_ID: club.clientId,
    OIDC_CLUB_CLIENT_SECRET: club.clientSecret,
    OIDC_CLUB_NAME: 'the Amateur Radio Club of the Lower Valley and Its Hills',
    ADMIN_PASSWORD,
    DEMO: 'false',
    PORT: String(port),
  })
})
afterAll(async () => {
  await site.close()
  await Promise.all([office.close(), club.close()])
})

test('a user of one provider links another one, sees both, and keeps the last way to sign in', async () => {
  office.user = { sub: 'anna at the office', preferred_username: 'anna', name: 'Anna Berg' }
  club.user = { sub: 'anna in the club', preferred_username: 'anna.club' }
  const visitor = await site.visit()
  const { page } = visitor
  await visitor.goto('/account')
  await page.getByRole('link', { name: 'the office' }).click()
  const card = page
    .locator('section.card')
    .filter({ has: page.getByRole('heading', { name: 'Sign-in through providers' }) })
  await card.getByText('The only way to sign in to this account').waitFor()
  await card.getByRole('button', { name: /^Link with the Amateur Radio Club/ }).click()
  await page.getByText('Account linked').waitFor()
  await card.getByText('Subject there: anna in the club').waitFor()
  await expect.poll(() => card.getByRole('button', { name: /^Unlink / }).count()).toBe(2)
  await expect.poll(() => card.getByRole('button', { name: /^Link with/ }).count()).toBe(0)
  expect(await visitor.violations()).toEqual([])
  await page.setViewportSize({ width: 360, height: 740 })
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  await page.setViewportSize({ width: 1280, height: 800 })

  // Administrators see both on the page of the user, and whose groups count.
  const admin = await openSignedIn(site, '/users')
  await admin.page.getByRole('link', { name: 'Anna Berg' }).click()
  await admin.page.getByText('Subject there: anna at the office').waitFor()
  await admin.page.getByText('Subject there: anna in the club').waitFor()
  expect(await admin.violations()).toEqual([])
  const ruler = admin.page.getByLabel('Provider whose groups decide what this user may do')
  await expect.poll(() => ruler.inputValue()).toBe('default')
  await ruler.selectOption({ label: 'None' })
  await admin.page.getByText('User saved').waitFor()
  await admin.page.reload()
  await expect.poll(() => ruler.inputValue()).toBe('')

  await card.getByRole('button', { name: /^Unlink the Amateur Radio Club/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
  await page.getByText('Account unlinked').waitFor()
  await card.getByText('The only way to sign in to this account').waitFor()
  await expect.poll(() => card.getByRole('button', { name: /^Unlink / }).count()).toBe(0)

  // The page of the administrator still shows what was there; the service refuses, and says why.
  await admin.page.reload()
  await admin.page.getByRole('button', { name: 'Unlink the office' }).click()
  await admin.page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
  await admin.page.getByRole('dialog').getByText('This is the last way to sign in to this account.').waitFor()
})
