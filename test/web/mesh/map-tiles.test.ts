import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
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

/** The colours that a canvas of the map has in more than 200 pixels, the most frequent first. */
async function coloursOf(page: Page, pane: 'world' | 'towns'): Promise<readonly string[]> {
  const found = await page.evaluate(`(() => {
    const canvas = document.querySelector('.leaflet-${pane}-pane canvas')
    if (canvas === null) return []
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    const counts = new Map()
    for (let at = 0; at < data.length; at += 4) {
      const colour = data.slice(at, at + 4).join(' ')
      counts.set(colour, (counts.get(colour) ?? 0) + 1)
    }
    return [...counts].filter(([, n]) => n > 200).sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
  })()`)
  return z.array(z.string()).parse(found)
}

/** Texts of nodes under which a town is written. */
async function coveredNames(page: Page): Promise<readonly string[]> {
  const found = await page.evaluate(`(() => {
    const canvas = document.querySelector('.leaflet-towns-pane canvas')
    const edge = canvas.getBoundingClientRect()
    const sharpness = canvas.width / edge.width
    return [...document.querySelectorAll('.map-name > bdi')].filter((name) => {
      const { x, y, width, height } = name.getBoundingClientRect()
      const box = [x - edge.x, y - edge.y, width, height].map((length) => Math.round(length * sharpness))
      return canvas.getContext('2d').getImageData(...box).data.some((value, at) => at % 4 === 3 && value > 0)
    }).map((name) => name.textContent)
  })()`)
  return z.array(z.string()).parse(found)
}

describe('a new installation', () => {
  let site: Site
  beforeAll(async () => {
    site = await openSite({ ADMIN_PASSWORD }, undefined, true)
  })
  afterAll(() => site.close())

  test('has at most 3 MB of its own map, in pieces of which none is only sea', () => {
    const folders = readdirSync(join(site.files, 'assets')).filter((name) => name.startsWith('world-'))
    expect(folders).toHaveLength(1)
    const folder = join(site.files, 'assets', folders[0] ?? '')
    const pieces = readdirSync(folder)
    expect(pieces).toEqual(
      expect.arrayContaining(['0-0-0.bin', '2-2-1.bin', '3-4-2.bin', '5-16-10.bin', '6-33-22.bin']),
    )
    // In the middle of the Pacific.
    expect(pieces).not.toContain('5-3-19.bin')
    const sizes = pieces.map((name) => statSync(join(folder, name)).size)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(3_000_000)
    expect(Math.max(...sizes)).toBeLessThan(60_000)
    const content = pieces.map((name) => inflateRawSync(readFileSync(join(folder, name))).toString())
    for (const town of ['Nürnberg', 'Reykjavík', 'Valparaíso', 'Gräfenberg']) {
      expect([town, content.some((text) => text.includes(town))]).toEqual([town, true])
    }
  })

  test.each([
    ['light', { colorScheme: 'light' }, '251 252 251 255', 'rgb(225, 234, 238)'],
    ['dark', { colorScheme: 'dark' }, '30 40 44 255', 'rgb(16, 24, 27)'],
    ['high contrast', { colorScheme: 'light', contrast: 'more' }, '255 255 255 255', 'rgb(214, 228, 234)'],
  ] as const)('has coasts, borders and towns in %s, from this service alone', async (_name, look, land, sea) => {
    const { page, complaints, violations } = await openSignedIn(site, '/map?center=50.4,2.7&zoom=6', look)
    const asked = new Set<string>()
    page.on('request', (request) => asked.add(new URL(request.url()).origin))
    await page.getByText('Natural Earth; towns: GeoNames (CC BY 4.0)').waitFor()
    await expect.poll(() => coloursOf(page, 'world')).toContain(land)
    // Where nothing is drawn, there is water. Coasts and borders have colours of their own.
    expect((await coloursOf(page, 'world'))[0]).toBe(land)
    expect(await coloursOf(page, 'world')).toContain('0 0 0 0')
    expect((await coloursOf(page, 'world')).length).toBeGreaterThanOrEqual(3)
    expect(
      await page.locator('.map').evaluate("getComputedStyle(document.querySelector('.map')).backgroundColor"),
    ).toBe(sea)
    await expect.poll(async () => (await coloursOf(page, 'towns')).length).toBeGreaterThan(2)
    expect(await violations()).toEqual([])
    expect([...asked].filter((origin) => origin !== new URL(site.base).origin)).toEqual([])
    expect(complaints).toEqual([])
  })

  test('writes no town over the name of a node, and nothing but the grid if somebody wants no background', async () => {
    const { page } = await openSignedIn(site, '/map')
    await page.getByText('25 nodes on the map').waitFor()
    await expect.poll(async () => (await coloursOf(page, 'towns')).length).toBeGreaterThan(1)
    await page.locator('.map-name > bdi').first().waitFor()
    expect(await coveredNames(page)).toEqual([])
    for (const button of ['Zoom out', 'Zoom out', 'Zoom out']) {
      await page.getByRole('button', { name: button }).click()
      expect(await coveredNames(page)).toEqual([])
    }
    await page.getByRole('button', { name: 'Layers' }).click()
    await page.getByLabel('Background').selectOption('none')
    await expect.poll(() => coloursOf(page, 'world')).toEqual(['0 0 0 0'])
    await expect.poll(() => coloursOf(page, 'towns')).toEqual(['0 0 0 0'])
    await page.locator('.graticule-label').first().waitFor()
    expect(await page.getByText('Natural Earth').count()).toBe(0)
  })

  test('asks an administrator once what the map shows, and others never', async () => {
    const admin = await openSignedIn(site, '/map')
    const question = admin.page.getByRole('region', { name: 'What should the map show?' })
    await question.waitFor()
    await question.getByText(/asks tile\.openstreetmap\.org/).waitFor()
    expect(await admin.violations()).toEqual([])
    const made = await admin.page.request.post(`${site.base}/api/users`, {
      data: { username: 'anna', password: 'a bench under the oak', email: 'anna@example.org' },
      headers: { origin: site.base },
    })
    expect(made.status()).toBe(201)
    const anna = await site.visit()
    await anna.goto('/map')
    await anna.signIn('anna', 'a bench under the oak')
    await anna.page.getByText('25 nodes on the map').waitFor()
    await anna.page.getByText('Natural Earth').waitFor()
    expect(await anna.page.getByRole('region', { name: 'What should the map show?' }).count()).toBe(0)
    await anna.page.context().close()
    // OpenStreetMap: the page is loaded anew under a policy with that host, and the setting says the same.
    const loaded = admin.page.waitForEvent('load')
    await admin.page.route('https://tile.openstreetmap.org/**', (route) => route.fulfill({ body: solidPng(256, RED) }))
    await question.getByRole('button', { name: 'OpenStreetMap tiles' }).click()
    await loaded
    await admin.page.getByText('© OpenStreetMap contributors').waitFor()
    await admin.page.locator('.leaflet-tile-loaded').first().waitFor()
    expect(await question.count()).toBe(0)
    const choose = (mapTiles: object) =>
      admin.page.request.put(`${site.base}/api/settings`, { data: { mapTiles }, headers: { origin: site.base } })
    await choose({ kind: 'configured' })
    await admin.goto('/map')
    await question.getByRole('button', { name: 'As it is' }).click()
    await question.waitFor({ state: 'detached' })
    await admin.goto('/map')
    await admin.page.getByText('Natural Earth').waitFor()
    await admin.page.getByText('25 nodes on the map').waitFor()
    expect(await question.count()).toBe(0)
    await choose({ kind: 'configured' })
  })

  test('downloads a region: its size before, progress, what stopped it, and away with it', async () => {
    const { page, goto, violations } = await openSignedIn(site, '/nodes')
    const area = { bounds: [10.7, 49.78, 11.05, 50], maxZoom: 14 }
    const none = {
      state: 'none',
      source: 'planet.example.org',
      bounds: null,
      maxZoom: 0,
      bytes: 0,
      t: null,
      attribution: null,
      wanted: null,
      fetchedBytes: 0,
      totalBytes: 0,
      problem: null,
      suggestion: area,
    }
    const inUse = { ...area, bytes: 84_000_000, t: Date.UTC(2026, 10, 1), attribution: '© Region makers' }
    let state: object = none
    const asked: unknown[] = []
    await page.route('**/api/map/region/preview', async (route) => {
      const { maxZoom } = z.object({ maxZoom: z.number() }).parse(route.request().postDataJSON())
      await route.fulfill({ json: { bytes: maxZoom > 14 ? 9e9 : 84e6, tiles: 5000, free: 5e9 } })
    })
    await page.route(/\/api\/map\/region(?:\?.*)?$/, async (route) => {
      const request = route.request()
      if (request.method() === 'GET') return route.fulfill({ json: state })
      asked.push([request.method(), new URL(request.url()).search, request.postDataJSON()])
      if (request.method() === 'DELETE') {
        state = request.url().includes('what=map') ? none : { ...none, state: 'ready', ...inUse }
        return route.fulfill({ status: 204 })
      }
      state = { ...none, state: 'loading', wanted: area, fetchedBytes: 21e6, totalBytes: 84e6 }
      await route.fulfill({ status: 202, json: {} })
    })
    await goto('/map')
    await page.getByRole('button', { name: 'A detailed map of your region' }).click()
    const dialog = page.getByRole('dialog', { name: 'Detailed map of a region' })
    await dialog.getByText('About 84.0 MB').waitFor()
    await dialog.getByText('from planet.example.org').waitFor()
    await dialog.locator('.leaflet-container').waitFor()
    expect(await violations()).toEqual([])
    await dialog.getByRole('slider', { name: 'Detail' }).fill('15')
    await dialog.getByText('too large for this disk').waitFor()
    expect(await dialog.getByRole('button', { name: 'Download', exact: true }).isDisabled()).toBe(true)
    await dialog.getByRole('slider', { name: 'Detail' }).fill('14')
    await dialog.getByText('About 84.0 MB').waitFor()
    await dialog.getByRole('button', { name: 'Download', exact: true }).click()
    await dialog.getByText('21.0 MB of 84.0 MB').waitFor()
    expect(asked).toEqual([['POST', '', area]])
    state = { ...none, state: 'failed', wanted: area, fetchedBytes: 40e6, totalBytes: 84e6, problem: 'No route.' }
    await dialog.getByText('The download stopped. No route.').waitFor()
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await dialog.getByRole('button', { name: 'Cancel the download' }).click()
    await dialog.getByText('© Region makers').waitFor()
    // The map has it from now on, and asks nothing any more.
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByText(/^© Region makers · /).waitFor()
    expect(await page.getByRole('region', { name: 'What should the map show?' }).count()).toBe(0)
    await goto('/settings')
    await page.getByRole('button', { name: 'Detailed map of a region' }).click()
    await dialog.getByRole('button', { name: 'Remove…' }).click()
    await dialog.getByText('only coasts, borders and towns here').waitFor()
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await dialog.getByText('Map in use').waitFor({ state: 'detached' })
    expect(asked.slice(1)).toEqual([
      ['POST', '', area],
      ['DELETE', '?what=download', null],
      ['DELETE', '?what=map', null],
    ])
  })
})

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
    await page.getByText(/^© Map makers · /).waitFor()
    await expect.poll(() => tileColours(page)).toContainEqual([...RED, 255])
    expect(complaints).toEqual([])
  })

  test('has vector tiles drawn', async () => {
    writeFileSync(path, writePmtiles([...Array(11).keys()].map(townTile), 'mvt', ''))
    const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0001', { colorScheme: 'light' })
    await page.locator('canvas.leaflet-tile').first().waitFor()
    // Water in the colours of the library's light map.
    await expect.poll(() => tileColours(page)).toContainEqual([195, 217, 227, 255])
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
