import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
type Town = { readonly origin: string; shows: string; close(): void }
let site: Site
let admin: Visitor
let town: Town
let foreign: Town

/** A page of somebody else that shows `shows`. */
async function openTown(): Promise<Town> {
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html')
    answer.end(opened.shows)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : null
  const opened = { origin: `http://127.0.0.1:${port}`, shows: '', close: () => server.close() }
  return opened
}

beforeAll(async () => {
  town = await openTown()
  foreign = await openTown()
  site = await openSite({ ADMIN_PASSWORD })
  admin = await site.visit()
  await admin.goto('/public-access')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await admin.page.getByRole('heading', { name: 'Public access', level: 1 }).waitFor()
})
afterAll(async () => {
  await site.close()
  town.close()
  foreign.close()
})

test('an administrator makes a frame; the named site shows it, another one does not, and a deleted one nobody', async () => {
  const { page } = admin
  await page.getByText('Show the mesh to everybody').click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Public access saved').waitFor()

  await page.getByRole('button', { name: 'New frame' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('Town hall')
  await dialog.getByLabel('Sites that may show it').fill(`${town.origin}/path`)
  await dialog.getByLabel('Latitude').fill('47.1')
  await dialog.getByLabel('Longitude').fill('8.25')
  await dialog.getByLabel('Zoom').fill('11')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByRole('alert').getByText('an origin such as', { exact: false }).waitFor()
  await dialog.getByLabel('Sites that may show it').fill(town.origin)
  expect(await admin.violations()).toStrictEqual([])
  await page.setViewportSize({ width: 390, height: 780 })
  expect(await overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })

  const known = page.getByRole('region', { name: 'Town hall' })
  const code = (await known.getByLabel('HTML for the site').textContent()) ?? ''
  await known.getByRole('button', { name: 'Preview Town hall' }).click()
  const preview = known.frameLocator('iframe')
  await preview.getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  expect(await overflowOf(page)).toBe(0)
  await known.getByRole('button', { name: 'Hide the preview' }).click()
  await page.setViewportSize({ width: 390, height: 780 })
  await known.scrollIntoViewIfNeeded()
  expect(await overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })

  town.shows = code
  foreign.shows = code
  const visitor = await site.visit({ viewport: { width: 900, height: 600 } })
  await visitor.page.goto(town.origin)
  await visitor.page.frameLocator('iframe').getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  const framed = visitor.page.frames().find((frame) => frame.url().startsWith(site.base))
  const query = new URL(framed?.url() ?? '').searchParams
  expect([query.get('center'), query.get('zoom'), query.get('layers')]).toStrictEqual([
    '47.1,8.25',
    '11',
    'labels,clusters,precision,waypoints',
  ])
  await visitor.page.goto(foreign.origin)
  await expect.poll(() => visitor.complaints.join('\n')).toContain('frame-ancestors')
  expect(await visitor.page.frameLocator('iframe').getByRole('heading', { name: 'Map' }).count()).toBe(0)

  await known.getByRole('button', { name: 'Delete Town hall' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No site shows the map yet.').waitFor()
  const before = visitor.complaints.length
  await visitor.page.goto(town.origin)
  await expect.poll(() => visitor.complaints.slice(before).join('\n')).toContain('frame-ancestors')
})
