import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PASSWORD = 'a bench under the oak'
let site: Site
let admin: Visitor
let town: { origin: string; close(): void }
let foreign: { origin: string; close(): void }

beforeAll(async () => {
  town = await openTown()
  foreign = await openTown()
  site = await openSite({ ADMIN_PASSWORD, EMBED_ORIGINS: town.origin })
  admin = await site.visit()
  await admin.goto('/public-access')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await admin.page.getByRole('heading', { name: 'Public access', level: 1 }).waitFor()
  const made = await admin.page.request.post(`${site.base}/api/users`, {
    data: { username: 'guest', password: PASSWORD, scope: { channels: { read: [0], write: [] }, direct: NONE } },
    headers: { origin: site.base },
  })
  expect(made.status()).toBe(201)
})
afterAll(async () => {
  await site.close()
  town.close()
  foreign.close()
})

/** A page of somebody else with the map in a frame. */
async function openTown() {
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html')
    answer.end(`<iframe src="${site.base}/embed/map" width="800" height="500"></iframe>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : null
  return { origin: `http://127.0.0.1:${port}`, close: () => server.close() }
}

const NONE = { read: false, write: false }
const linksOf = async ({ page }: Visitor) => page.locator('.sidebar a.nav-link span').allTextContents()

test('what anonymous visitors would see is previewed before it is switched on, read-only and marked', async () => {
  const { page } = admin
  await page.getByLabel('Primary channel').check()
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByText('You see what people without an account see.').waitFor()
  await page.getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  expect(await linksOf(admin)).toEqual(['Map', 'Nodes', 'Sign in'])
  const visitor = await site.visit()
  await visitor.goto('/')
  await visitor.page.getByLabel('Username').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('heading', { name: 'Public access', level: 1 }).waitFor()
})

test('an anonymous visitor begins on the map, sees what is chosen, and signs in from there', async () => {
  const { page } = admin
  await page.getByRole('switch').check({ force: true })
  await page.getByLabel('Messages of the channels below').check()
  await page.getByLabel('Primary channel').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Public access saved').waitFor()
  expect(await admin.violations()).toEqual([])
  await page.setViewportSize({ width: 390, height: 800 })
  expect(await overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })

  const visitor = await site.visit()
  await visitor.goto('/')
  await visitor.page.getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  expect(await linksOf(visitor)).toEqual(['Map', 'Nodes', 'Messages', 'Sign in'])
  await visitor.page.getByRole('link', { name: 'Nodes' }).first().click()
  await visitor.page.getByText('Town Hall Gateway').first().click()
  await visitor.page.getByRole('heading', { name: 'Town Hall Gateway', level: 1 }).waitFor()
  expect(await visitor.page.getByRole('button').allTextContents()).not.toContain('Watch')
  await visitor.page.getByRole('link', { name: 'Messages' }).first().click()
  await visitor.page.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
  await visitor.page.setViewportSize({ width: 390, height: 800 })
  expect(await overflowOf(visitor.page)).toBe(0)
  await visitor.page.getByRole('link', { name: 'Sign in' }).last().click()
  await visitor.signIn('guest', PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
  expect(visitor.complaints).toEqual([])
})

test('a page that anonymous visitors do not see asks them to sign in', async () => {
  const visitor = await site.visit()
  await visitor.goto('/account')
  await visitor.page.getByLabel('Username').waitFor()
  expect(new URL(visitor.page.url()).search).toBe('?returnTo=%2Faccount')
})

test('an administrator sees the pages as a guest, and returns to where this began', async () => {
  const { page } = admin
  await page.goto(`${site.base}/users?q=guest`)
  await page.getByRole('link', { name: 'guest', exact: true }).click()
  await page.getByRole('button', { name: 'See as this user' }).click()
  await page.getByText('You see what guest sees.').waitFor()
  expect(await linksOf(admin)).not.toContain('Users')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('heading', { name: 'guest', level: 1 }).waitFor()
  expect(await linksOf(admin)).toContain('Users')
})

test('the named site shows the map in a frame, with the anonymous view; another site shows nothing', async () => {
  const visitor = await site.visit({ viewport: { width: 900, height: 600 } })
  await visitor.page.goto(town.origin)
  const frame = visitor.page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  await frame.getByText('Town Hall Gateway').first().waitFor()
  expect(await frame.getByText('Sign in').count()).toBe(0)
  await visitor.page.goto(foreign.origin)
  await expect.poll(() => visitor.complaints.join('\n')).toContain('frame-ancestors')
  expect(await visitor.page.frameLocator('iframe').getByRole('heading', { name: 'Map' }).count()).toBe(0)
})
