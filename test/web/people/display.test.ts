import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openSite, type Site } from '../../support/web/site.ts'

let site: Site
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
})
afterEach(closeVisits)
afterAll(() => site.close())

test('a user reads measures in feet and times in 12 hours, on every page and after a reload', async () => {
  const { page, goto, violations, complaints } = await openSignedIn(site, '/account')
  await page.getByRole('radio', { name: 'Feet, miles, °F' }).check({ force: true })
  await page.getByRole('radio', { name: '12 hours' }).check({ force: true })
  expect(await violations()).toEqual([])
  await goto('/nodes/!a0cb0001')
  const altitude = page.locator('dt', { hasText: 'Altitude' }).locator('xpath=following-sibling::dd[1]')
  await expect.poll(() => altitude.textContent()).toMatch(/^\d+ ft$/)
  await goto('/map')
  await expect.poll(() => page.locator('.leaflet-control-scale-line').textContent()).toMatch(/ (?:mi|ft)$/)
  await goto('/packets')
  await expect.poll(() => page.locator('tbody time').first().textContent()).toMatch(/[ap]m$/)
  const exact = () => page.locator('tbody time').first().getAttribute('title')
  await expect.poll(exact).toMatch(/[ap]m$/)
  await goto('/account')
  await page.getByRole('radio', { name: '24 hours' }).check({ force: true })
  await goto('/packets')
  await expect.poll(exact).toMatch(/\d$/)
  expect(complaints).toEqual([])
})

test('another browser shows the units of the account, and hours of its own', async () => {
  const { page, goto } = await openSignedIn(site, '/nodes/!a0cb0001')
  const altitude = page.locator('dt', { hasText: 'Altitude' }).locator('xpath=following-sibling::dd[1]')
  await expect.poll(() => altitude.textContent()).toMatch(/^\d+ ft$/)
  await goto('/packets')
  await expect.poll(() => page.locator('tbody time').first().getAttribute('title')).toMatch(/\d$/)
})
