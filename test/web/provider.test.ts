import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSite, type Site } from '../support/web-site.ts'

let site: Site
beforeAll(async () => {
  site = await openSite({
    OIDC_ENABLED: 'true',
    DISABLE_LOCAL_AUTH: 'true',
    // The discard port: nobody answers there.
    OIDC_ISSUER: 'http://127.0.0.1:9',
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: 'a secret of the client',
    OIDC_REDIRECT_URI: 'http://127.0.0.1:8080/api/auth/oidc/callback',
  })
})
afterAll(() => site.close())

test('without local accounts the provider is the only way in, and its failure is explained', async () => {
  const { page, goto, violations } = await site.visit()
  await goto('/nodes?sort=name')
  const link = page.getByRole('link', { name: 'Sign in with your organisation' })
  expect(await link.getAttribute('href')).toBe('/api/auth/oidc/login?returnTo=%2Fnodes%3Fsort%3Dname')
  expect(await page.locator('input').count()).toBe(0)
  expect(await violations()).toEqual([])
  await link.click()
  await page.getByText('Your organisation’s sign-in does not answer right now. Try again in a minute.').waitFor()
  expect(new URL(page.url()).search).toBe('?error=oidc_unavailable')
  expect(await violations()).toEqual([])
})
