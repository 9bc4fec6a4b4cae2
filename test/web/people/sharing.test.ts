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
  await visitor.page.getByLabel('Heard', { exact: true }).waitFor()
  // They are told of no favourites.
  expect(await visitor.page.getByLabel('Favourites only').count()).toBe(0)
  await visitor.page.getByRole('link', { name: 'Nodes' }).first().click()
  await visitor.page.getByRole('radio', { name: 'Active' }).waitFor()
  expect(await visitor.page.getByRole('radio', { name: 'Favourites' }).count()).toBe(0)
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
  // The map itself fills the frame: no search, no list, no navigation.
  await frame.locator('.map-name').filter({ hasText: 'HALL' }).waitFor({ state: 'attached' })
  const map = await frame.locator('.map').boundingBox()
  expect(map?.width).toBe(800)
  expect(map?.height).toBeGreaterThan(440)
  expect(await frame.getByRole('searchbox').count()).toBe(0)
  expect(await frame.getByRole('navigation').count()).toBe(0)
  expect(await frame.getByText('Sign in').count()).toBe(0)
  expect(await frame.getByText('active: heard in the last 2 h').isVisible()).toBe(false)
  await frame.getByText('Legend').click()
  await frame.getByText('active: heard in the last 2 h').waitFor()
  await frame.getByText('Legend').click()
  // A pressed node says what matters most, and leads to its page, which opens outside the frame.
  await frame.locator('.map').click({ position: await middleOfNode(visitor) })
  const chosen = frame.getByRole('region', { name: 'Town Hall Gateway' })
  await chosen.getByText('Client base').waitFor()
  await expect
    .poll(() => chosen.getByRole('link', { name: 'Open the node' }).getAttribute('href'))
    .toBe('/nodes/!a0cb0001')
  expect(await chosen.getByRole('link').getAttribute('target')).toBe('_blank')
  const opening = visitor.page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Open the map on its own page' }).click()
  await (await opening).getByRole('searchbox', { name: 'Search nodes' }).waitFor()
  await visitor.page.goto(foreign.origin)
  await expect.poll(() => visitor.complaints.join('\n')).toContain('frame-ancestors')
  expect(await visitor.page.frameLocator('iframe').getByRole('heading', { name: 'Map' }).count()).toBe(0)
})

/** Where the own radio is drawn, from the corner of the map. */
async function middleOfNode({ page }: Visitor): Promise<{ x: number; y: number }> {
  const frame = page.frameLocator('iframe')
  const name = await frame.locator('.map-name').filter({ hasText: 'HALL' }).boundingBox()
  const map = await frame.locator('.map').boundingBox()
  if (name === null || map === null) throw new Error('the node has no place')
  return { x: name.x - map.x, y: name.y - map.y }
}

test('a frame begins where the site around it wants, with the layers that it wants', async () => {
  const { page, goto, violations, complaints } = await site.visit({ viewport: { width: 360, height: 480 } })
  await goto('/embed/map?center=49.8917,10.8871&zoom=9&layers=precision')
  await expect.poll(() => page.locator('.leaflet-control-scale-line').textContent()).toBe('10 km')
  await page.getByText(/^\d+ nodes? on the map$/).waitFor()
  expect(await page.locator('.map-name').count()).toBe(0)
  await goto('/embed/map?center=49.8917,10.8871&zoom=9&layers=labels')
  await expect.poll(() => page.locator('.map-name').count()).toBeGreaterThan(0)
  // Neither does it change what the user of this browser last saw on the full page.
  expect(await page.evaluate(`localStorage.getItem('map-view')`)).toBe(null)
  // What is no place shows all nodes.
  await goto('/embed/map?center=north')
  await expect.poll(() => page.locator('.leaflet-control-scale-line').textContent()).toMatch(/^(?:\d+ m|[1-5] km)$/)
  expect(await violations()).toEqual([])
  expect(await overflowOf(page)).toBe(0)
  expect(complaints).toEqual([])
})

test.each([
  ['at a desk', { viewport: { width: 800, height: 500 } }],
  ['on a phone', { viewport: { width: 360, height: 480 }, isMobile: true, hasTouch: true }],
] as const)('the frame of a node shows where it is, and what matters most: %s', async (_, options) => {
  const { page, goto, violations, complaints } = await site.visit(options)
  await goto('/embed/node/!a0cb0001')
  await page.getByRole('heading', { name: 'Town Hall Gateway', level: 1 }).waitFor()
  await page.getByText('Client base').waitFor()
  await page.locator('.map-name.chosen').waitFor({ state: 'attached' })
  const map = await page.locator('.map').boundingBox()
  expect(Number(map?.width) * Number(map?.height)).toBeGreaterThan(80_000)
  expect(await page.getByRole('link').evaluateAll((all) => all.map((link) => link.getAttribute('href')))).toEqual([
    '/nodes/!a0cb0001',
  ])
  expect(await violations()).toEqual([])
  expect(await overflowOf(page)).toBe(0)
  expect(complaints).toEqual([])
  // One that public access does not show.
  await goto('/embed/node/!12345678')
  await page.getByText('This node is not shown here').waitFor()
})
