import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { writePmtiles } from '../../support/web/pmtiles.ts'
import { solidPng } from '../../support/web/png.ts'
import { ADMIN_PASSWORD, closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openTileServer, type TileServer } from '../../support/web/tile-server.ts'
import { openSite, type Site } from '../../support/web/site.ts'

const RED = [200, 40, 40] as const

afterEach(closeVisits)

/** What the map drew of tiles: the colour in the middle of each, or null while it is empty. */
async function tileColours(page: Page): Promise<(readonly number[])[]> {
  const found = await page.evaluate(`[...document.querySelectorAll('.leaflet-tile-loaded')].map((tile) => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 1
    const pen = canvas.getContext('2d')
    pen.drawImage(tile, 0, 0, 1, 1)
    return [...pen.getImageData(0, 0, 1, 1).data]
  })`)
  return z.array(z.array(z.number())).parse(found)
}

describe('tiles of another host', () => {
  let tiles: TileServer
  let site: Site
  beforeAll(async () => {
    tiles = await openTileServer(RED)
    site = await openSite({
      ADMIN_PASSWORD,
      MAP_TILE_URL: `${tiles.origin}/{z}/{x}/{y}.png`,
      MAP_TILE_ATTRIBUTION: '© <b>Somebody</b>',
    })
  })
  afterAll(async () => {
    await site.close()
    await tiles.close()
  })

  test('are requested and shown, the policy allows only that host, and it only learns the origin', async () => {
    const policy = (await fetch(site.base)).headers.get('content-security-policy') ?? ''
    expect(policy.split('; ')).toContain(`img-src 'self' data: ${tiles.origin}`)
    expect(policy).not.toContain('unsafe')
    const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0001')
    await page.locator('.leaflet-tile-loaded').first().waitFor()
    await page.getByText('© <b>Somebody</b>').waitFor()
    expect(tiles.asked.length).toBeGreaterThan(0)
    for (const { path, referer } of tiles.asked) {
      expect([path, referer]).toEqual([expect.stringMatching(/^\/\d+\/\d+\/\d+\.png$/), `${site.base}/`])
    }
    // The only other origin; nothing was blocked, nothing failed.
    expect(complaints.filter((complaint) => !complaint.startsWith(`${tiles.origin}/`))).toEqual([])
    const blocked = await page.evaluate(`new Promise((resolve) => {
      const image = new Image()
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => resolve(effectiveDirective))
      image.src = 'http://127.0.0.1:9/other.png'
    })`)
    expect(blocked).toBe('img-src')
  })

  test('leave the grid when they fail: the page says so, makes few requests, and retries on demand', async () => {
    tiles.isUp = false
    tiles.asked.length = 0
    const { page } = await openSignedIn(site, '/map')
    const notice = page.getByText('The map background could not be loaded.')
    await notice.waitFor()
    await page.locator('.graticule-label').first().waitFor()
    await expect.poll(() => page.locator('.leaflet-tile').count()).toBe(0)
    const scale = page.locator('.leaflet-control-scale-line')
    await expect.poll(() => scale.textContent()).toMatch(/^\d km$/)
    const far = await scale.textContent()
    const asked = tiles.asked.length
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await expect.poll(() => scale.textContent()).not.toBe(far)
    await page.getByRole('button', { name: 'Show all' }).click()
    await expect.poll(() => scale.textContent()).toBe(far)
    expect(tiles.asked.length).toBe(asked)
    tiles.isUp = true
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator('.leaflet-tile-loaded').first().waitFor()
    await notice.waitFor({ state: 'detached' })
  })
})

describe('tiles chosen on the page Settings', () => {
  let tiles: TileServer
  let night: TileServer
  let site: Site
  beforeAll(async () => {
    tiles = await openTileServer(RED)
    night = await openTileServer([20, 30, 90])
    site = await openSite({ ADMIN_PASSWORD })
  })
  afterAll(async () => {
    await site.close()
    await tiles.close()
    await night.close()
  })

  test('have a preview before they are saved, and are then on the map; the page says who learns what', async () => {
    const { page, goto, violations, complaints } = await openSignedIn(site, '/settings', { colorScheme: 'light' })
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Background of the map' }) })
    await card.getByLabel('Tiles', { exact: true }).selectOption('From an address')
    await card.getByText('asks this host for tiles').waitFor()
    await card.getByLabel('Address of the tiles').fill(`${tiles.origin}/{z}/{x}/{y}.png`)
    await card.getByLabel('Address for dark pages').fill(`${night.origin}/{z}/{x}/{y}.png`)
    await card.getByLabel('Attribution').fill('© Red tiles')
    await card.getByRole('button', { name: 'Preview' }).click()
    await page.frameLocator('iframe[title=Preview]').getByRole('img', { name: 'Tiles' }).waitFor()
    await expect.poll(() => tiles.asked.length).toBeGreaterThan(3)
    for (const { referer } of tiles.asked) expect(referer).toBe(`${site.base}/`)
    expect(await violations()).toEqual([])
    const loaded = page.waitForEvent('load')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await loaded
    await expect.poll(() => card.getByLabel('Address of the tiles').inputValue()).toContain(tiles.origin)
    await goto('/map?node=!a0cb0001')
    await page.getByText('© Red tiles').waitFor()
    await expect.poll(() => page.locator('.leaflet-tile-loaded').first().getAttribute('src')).toContain(tiles.origin)
    // Each user may prefer the other ones, or none.
    await page.getByRole('button', { name: 'Layers' }).click()
    await page.getByLabel('Background').selectOption('dark')
    await expect.poll(() => page.locator('.leaflet-tile-loaded').first().getAttribute('src')).toContain(night.origin)
    await page.getByLabel('Background').selectOption('none')
    await expect.poll(() => page.locator('.leaflet-tile').count()).toBe(0)
    const own = [tiles.origin, night.origin]
    expect(complaints.filter((complaint) => !own.some((origin) => complaint.startsWith(origin)))).toEqual([])
  })

  test('an address that is not https is refused with the reason', async () => {
    const { page } = await openSignedIn(site, '/settings')
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Background of the map' }) })
    await card.getByLabel('Tiles', { exact: true }).selectOption('From an address')
    await card.getByLabel('Address of the tiles').fill('http://tiles.example.org/{z}/{x}/{y}.png')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText(/Expected an https URL/).waitFor()
    await card.getByLabel('Tiles', { exact: true }).selectOption('None')
    const loaded = page.waitForEvent('load')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await loaded
    await card.getByText('ask no other host').waitFor()
  })
})

describe('a local map file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mesh-map-'))
  const path = join(directory, 'map.pmtiles')
  const images = [0, 1, 2].flatMap((z) =>
    Array.from({ length: 4 ** z }, (_, index) => ({ z, x: index % 2 ** z, y: Math.floor(index / 2 ** z) })),
  )
  let site: Site
  beforeAll(async () => {
    const bytes = solidPng(256, RED)
    const attribution = '<a href="https://example.org">&copy; Map makers</a>'
    writeFileSync(
      path,
      writePmtiles(
        images.map((at) => ({ ...at, bytes })),
        'png',
        attribution,
      ),
    )
    site = await openSite({ ADMIN_PASSWORD, MAP_PMTILES: path })
  })
  afterAll(async () => {
    await site.close()
    rmSync(directory, { recursive: true })
  })

  test('has its images shown with their attribution, from this service alone', async () => {
    const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0001')
    await page.locator('.leaflet-tile-loaded').first().waitFor()
    await page.getByText('© Map makers', { exact: true }).waitFor()
    await expect.poll(() => tileColours(page)).toContainEqual([...RED, 255])
    expect(complaints).toEqual([])
  })

  test('has vector tiles drawn', async () => {
    writeFileSync(path, writePmtiles([...Array(11).keys()].map(townTile), 'mvt', ''))
    const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0001', { colorScheme: 'light' })
    await page.locator('canvas.leaflet-tile').first().waitFor()
    // Water in the colours of the library's light map.
    await expect.poll(() => tileColours(page)).toContainEqual([128, 222, 234, 255])
    expect(complaints).toEqual([])
  })

  test('that is missing is reported on the page', async () => {
    rmSync(path)
    const { page } = await openSignedIn(site, '/map')
    await page.getByText('The map background could not be loaded.').waitFor()
    await page.locator('.graticule-label').first().waitFor()
  })
})

/** The tile of this zoom that contains the demo's town, all water. */
function townTile(z: number) {
  const radians = (49.8917 * Math.PI) / 180
  const x = Math.floor(((10.8871 + 180) / 360) * 2 ** z)
  const y = Math.floor(((1 - Math.asinh(Math.tan(radians)) / Math.PI) / 2) * 2 ** z)
  return { z, x, y, bytes: waterTile() }
}

/** A vector tile (github.com/mapbox/vector-tile-spec, 2.1) that is all water, in the layout of Protomaps. */
function waterTile(): Uint8Array {
  const text = (value: string) => [value.length, ...Buffer.from(value)]
  // Move to 0,0; three lines; close. Numbers are zigzag.
  const geometry = [9, 0, 0, 26, ...varint(8192), 0, 0, ...varint(8192), ...varint(8191), 0, 15]
  const feature = [0x18, 3, 0x22, geometry.length, ...geometry]
  const layer = [0x0a, ...text('water'), 0x12, feature.length, ...feature, 0x28, ...varint(4096), 0x78, 2]
  return Uint8Array.from([0x1a, layer.length, ...layer])
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}
