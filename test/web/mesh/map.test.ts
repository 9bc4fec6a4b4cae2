import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { nodes } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openDemoMap } from '../../support/web/demo-map.ts'
import { follow } from '../../support/web/follow.ts'
import { overflowOf, type Site } from '../../support/web/site.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

afterEach(closeVisits)

let site: Site
beforeAll(async () => {
  site = await openDemoMap()
})
afterAll(() => site.close())

test('the list beside the map has every node, and choosing one there describes it in words', async () => {
  const { page, complaints } = await openSignedIn(site, '/map')
  await page.getByText('25 nodes on the map').waitFor()
  await page.getByRole('button', { name: 'Town Hall Gateway' }).click()
  await expect.poll(() => page.url()).toBe(`${site.base}/map?node=%21a0cb0001`)
  await page.getByRole('heading', { name: 'Town Hall Gateway', level: 2 }).waitFor()
  const panel = page.getByRole('region', { name: 'Nodes and filters' })
  await panel.getByText('−4.75 dB').waitFor()
  await expect.poll(() => panel.getByRole('heading', { level: 3 }).allTextContents()).toEqual(['Hears', 'Heard by'])
  // Beside the lines themselves, each with an arrow and its number.
  // Both directions are equally long, so one of them says it.
  await expect
    .poll(() => page.locator('.hop-label').allTextContents())
    .toEqual(expect.arrayContaining(['−4.75 dB', '3 dB · 4.2 km']))
  await expect.poll(() => panel.locator('.neighbor-list .away').allTextContents()).toContain('4.2 km')
  await expect.poll(() => page.locator('.map-name.chosen').textContent()).toBe('Town Hall Gateway')
  await page.getByRole('button', { name: 'Back to the list' }).click()
  await page.getByText('25 nodes on the map').waitFor()
  expect(complaints).toEqual([])
})

/** Whether all of these are inside the map's box. */
async function areInSight(page: Page, selector: string): Promise<boolean> {
  const found: unknown = await page.evaluate(`(() => {
    const box = document.querySelector('.map').getBoundingClientRect()
    const all = [...document.querySelectorAll('${selector}')].map((element) => element.getBoundingClientRect())
    return all.length > 0 && all.every(({ left, top, right, bottom }) =>
      left >= box.left && top >= box.top && right <= box.right && bottom <= box.bottom)
  })()`)
  return found === true
}

const FAR_AWAY = `localStorage.setItem('map-view', JSON.stringify({ lat: -20, lng: 130, zoom: 4 }))`

test.each([
  ['at a desk', {}],
  ['on a phone', PHONE],
] as const)(
  'showing a node on the map shows it with all that it hears, and how far away that is: %s',
  async (_, options) => {
    const { page, complaints } = await openSignedIn(site, '/nodes/!a0cb0001', options)
    await page.evaluate(FAR_AWAY)
    await page.getByRole('link', { name: 'Show on the map' }).click()
    await page.getByRole('heading', { name: 'Town Hall Gateway', level: 2 }).waitFor()
    await expect.poll(() => page.locator('.hop-label').count()).toBeGreaterThan(3)
    await expect.poll(() => areInSight(page, '.hop-label:not(.crowded), .map-name.chosen > bdi')).toBe(true)
    await expect.poll(() => page.locator('.hop-label').allTextContents()).toContain('3 dB · 4.2 km')
    // Near enough to tell them apart: not the whole country.
    await expect.poll(() => page.locator('.leaflet-control-scale-line').textContent()).toMatch(/^([1-5] k|[1-9]00 )m$/)
    expect(complaints).toEqual([])
  },
)

test('a track is drawn above the nodes, with times, and choosing its node brings all of it into sight', async () => {
  const { page, goto, complaints } = await openSignedIn(site, '/map')
  await page.evaluate(FAR_AWAY)
  await goto('/map')
  await page.getByRole('button', { name: 'Anna on the bike' }).click()
  await page.getByText(/^[4-9]\d places$/).waitFor()
  await expect.poll(() => page.locator('.track-time').count()).toBeGreaterThan(3)
  expect(await areInSight(page, '.map-name.chosen > bdi, .track-time time')).toBe(true)
  const times = await page.locator('.track-time').allTextContents()
  for (const time of times) expect(time).toMatch(/^\d{2}:\d{2}( [AP]M)?$/)
  await expect.poll(() => page.evaluate(WRITTEN_OVER)).toEqual([])
  const zIndex = async (pane: string) =>
    Number(await page.evaluate(`getComputedStyle(document.querySelector('.leaflet-${pane}-pane')).zIndex`))
  expect(await zIndex('trail')).toBeGreaterThan(await zIndex('dots'))
  await page.getByRole('button', { name: 'Layers' }).click()
  await page.getByLabel('Tracks').uncheck()
  await expect.poll(() => page.locator('.track-time').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('a node pressed on the map keeps the view if it is already well shown', async () => {
  const { page } = await openSignedIn(site, '/map')
  const scale = page.locator('.leaflet-control-scale-line')
  await page.getByRole('button', { name: 'Show all' }).click()
  const name = page.locator('.map-name').filter({ hasText: /^HARB$/ })
  await name.waitFor({ state: 'attached' })
  const before = await scale.textContent()
  const at = await name.boundingBox()
  if (at === null) throw new Error('the node has no place')
  await page.mouse.click(at.x, at.y)
  await page.getByRole('heading', { name: 'Harbour', level: 2, exact: false }).waitFor()
  expect(await scale.textContent()).toBe(before)
})

test('leaving the map and coming back causes no error', async () => {
  const { page, complaints } = await openSignedIn(site, '/map')
  for (let n = 0; n < 3; n++) {
    await page.locator('.map-name').first().waitFor({ state: 'attached' })
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  }
  await page.getByText('25 nodes on the map').waitFor()
  expect(complaints).toEqual([])
})

/** Pairs of overlapping texts on the map. */
const WRITTEN_OVER = `(() => {
  const texts = [...document.querySelectorAll('.map-name > bdi, .track-time > time, .hop-label:not(.crowded)')]
  const boxes = texts.map((element) => [element.textContent, element.getBoundingClientRect()])
  return boxes.flatMap(([text, a], index) => boxes.slice(index + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([other]) => text + ' and ' + other))
})()`

test.each(['/map', '/map?node=!a0cb0001&links=1', '/map?trace=1'])(
  'no text of %s overlaps another, and the chosen node has its name',
  async (path) => {
    const { page } = await openSignedIn(site, path, PHONE)
    await expect.poll(() => page.locator('.map-name').count()).toBeGreaterThan(5)
    if (path.includes('node=')) await expect.poll(() => page.locator('.hop-label').count()).toBeGreaterThan(3)
    await expect.poll(() => page.evaluate(WRITTEN_OVER)).toEqual([])
    const chosen = path.includes('node=') ? ['Town Hall Gateway'] : []
    await expect.poll(() => page.locator('.map-name.chosen').allTextContents()).toEqual(chosen)
  },
)

test('a zoomed-out map has fewer names, and they do not overlap either', async () => {
  const { page } = await openSignedIn(site, '/map', PHONE)
  await expect.poll(() => page.locator('.map-name').count()).toBeGreaterThan(5)
  const near = await page.locator('.map-name').count()
  await page.getByRole('button', { name: 'Zoom out' }).tap()
  await page.getByRole('button', { name: 'Zoom out' }).tap()
  await expect.poll(() => page.locator('.map-name').count()).toBeLessThan(near)
  await expect.poll(() => page.evaluate(WRITTEN_OVER)).toEqual([])
})

test('the legend gives the age of each colour', async () => {
  const { page, violations } = await openSignedIn(site, '/map')
  await page.getByText('Legend').click()
  await page.getByText('active: heard in the last 2 h').waitFor()
  expect(await violations()).toEqual([])
})

test('a node can be chosen by keyboard alone', async () => {
  const { page } = await openSignedIn(site, '/map')
  await page.getByRole('searchbox', { name: 'Search nodes' }).fill('mill bridge')
  await page.getByText('1 of 25 nodes on the map').waitFor()
  await page.getByRole('button', { name: 'Mill Bridge' }).press('Enter')
  await page.getByRole('heading', { name: 'Mill Bridge', level: 2 }).waitFor()
})

test('a link to a node shows it with its track, for the chosen time', async () => {
  const { page, goto } = await openSignedIn(site, '/map?node=!a0cb0b0c')
  await page.getByRole('heading', { name: 'Anna on the bike', level: 2 }).waitFor()
  await page.getByText(/^[4-9]\d places$/).waitFor()
  await page.getByLabel('Track').selectOption('Last hour')
  expect(new URL(page.url()).searchParams.get('range')).toBe('1h')
  const routes = page.getByRole('link', { name: 'Traceroutes' }).last()
  expect(await routes.getAttribute('href')).toMatch(/&range=1h$/)
  await goto('/map?node=!a0cb0b0c&from=1000&to=2000')
  await page.getByText('0 places').waitFor()
})

test('a traceroute is drawn hop by hop in both directions, an unknown hop without a number', async () => {
  const { page } = await openSignedIn(site, '/map?trace=1')
  const panel = page.getByRole('region', { name: 'Nodes and filters' })
  await panel.getByText('Back', { exact: true }).waitFor()
  await expect
    .poll(() => panel.locator('.way').allTextContents())
    .toEqual(['TowardsHALL6.25 dB →CSTL−9.5 dB →SRDG−16 dB →HUT', 'BackHUT−14.75 dB →SRDG−3 dB →WTWR4.5 dB →HALL'])
  const labels = page.locator('.hop-label')
  const signals = async () => (await labels.allTextContents()).toSorted()
  await expect.poll(signals).toEqual(['6.25 dB', '−9.5 dB', '−16 dB', '−14.75 dB', '−3 dB', '4.5 dB'].toSorted())
  await expect.poll(() => labels.nth(2).getAttribute('class')).toContain('snr-weak')
  await page.getByRole('button', { name: 'Hide the route' }).click()
  await labels.first().waitFor({ state: 'detached' })
  await page.evaluate("history.pushState(null, '', '/map?trace=2'); dispatchEvent(new PopStateEvent('popstate'))")
  await panel.getByText('−11.25 dB').waitFor()
  await expect.poll(signals).toEqual(['5 dB', '?'])
})

test('waypoints are on the map and in the list until they expire', async () => {
  const { page } = await openSignedIn(site, '/map')
  await page.getByRole('button', { name: 'Meeting point: Thursday 19:00' }).waitFor()
  await expect.poll(() => page.locator('.waypoint').count()).toBe(2)
  await page.getByText('2 waypoints').click()
  await page.getByRole('button', { name: 'Flooded path', exact: false }).last().waitFor()
  await expect.poll(() => page.getByText('Gone by now').count()).toBe(0)
})

test('filters are in the address; ignored and deleted nodes are not shown', async () => {
  const { page } = await openSignedIn(site, '/map?role=ROUTER')
  await page.getByText('4 of 25 nodes on the map').waitFor()
  await page.getByLabel('Role').selectOption('any role')
  const change = (nodeId: string, method: 'put' | 'delete') =>
    page.request[method](`${site.base}/api/nodes/${nodeId}`, {
      data: method === 'put' ? { isIgnored: true } : undefined,
      headers: { origin: site.base },
    })
  expect((await change('!a0cb0304', 'put')).status()).toBe(200)
  await page.reload()
  await page.getByText('24 nodes on the map').waitFor()
  await page.getByRole('searchbox', { name: 'Search nodes' }).fill('mill')
  await page.getByText('1 of 24 nodes on the map').waitFor()
  await expect.poll(() => page.getByRole('button', { name: 'Mill Bridge' }).count()).toBe(0)
})

test('the map returns to its last view', async () => {
  const { page, goto } = await openSignedIn(site, '/map')
  const scale = page.locator('.leaflet-control-scale-line')
  // The world, until the nodes are loaded.
  await expect.poll(() => scale.textContent()).toMatch(/^\d km$/)
  const before = await scale.textContent()
  await page.getByRole('button', { name: 'Zoom in' }).click()
  await expect.poll(() => scale.textContent()).not.toBe(before)
  const near = await scale.textContent()
  await goto('/map')
  await expect.poll(() => scale.textContent()).toBe(near)
  await page.getByRole('button', { name: 'Show all' }).click()
  await expect.poll(() => scale.textContent()).toBe(before)
})

test('traceroutes: states, both directions, and a form for a new one that says how long it takes', async () => {
  const { page, complaints } = await openSignedIn(site, '/traceroutes')
  const list = page.getByRole('list', { name: 'Traceroutes, newest first' })
  await list.getByText('Town Hall Gateway').first().waitFor()
  await expect
    .poll(() => list.locator('.trace-state').allTextContents())
    .toEqual(['on its way', 'replied', 'no reply', 'no route found', 'replied', 'replied'])
  await list.getByText('The mesh found no route to the node. (No response)').waitFor()
  await page.getByRole('button', { name: 'New traceroute' }).click()
  await page.getByText('at most one traceroute every 30 seconds').waitFor()
  await page.getByLabel('Node', { exact: true }).fill('station')
  await page.getByRole('option', { name: 'Station Roof' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Start a traceroute' }).click()
  await page.getByText('Traceroute requested.').waitFor()
  const first = list.locator('.trace').first()
  await first.getByText('Station Roof').waitFor()
  // The demo's radio answers after seconds.
  await first.getByText('replied').waitFor()
  await first.locator('.expander').click()
  await expect.poll(() => first.locator('.way').first().textContent()).toMatch(/^TowardsHALL.+ dB →STAT$/)
  await first.getByRole('link', { name: 'Show traceroute on the map' }).click()
  await page.getByRole('heading', { name: 'Traceroute', level: 2 }).waitFor()
  expect(complaints).toEqual([])
})

test('two thousand nodes are drawn on a canvas without elements, and names appear on zooming in', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const now = Date.now()
  const many = Array.from({ length: 2000 }, (_, index) => ({
    nodeNum: 0x10000000 + index,
    longName: `Crowd ${index}`,
    shortName: `C${index}`,
    firstHeard: now,
    lastHeard: now - index * 60_000,
    latitude: 48 + (index % 50) / 25,
    longitude: 9 + Math.floor(index / 50) / 20,
    precisionBits: index % 3 === 0 ? 14 : 32,
  }))
  for (let at = 0; at < many.length; at += 500) await store.db.insert(nodes).values(many.slice(at, at + 500))
  store.close()
  const { page, complaints } = await openSignedIn(site, '/map')
  await page.getByText('2,024 nodes on the map').waitFor()
  const elements = page.locator('.leaflet-map-pane *:not(.graticule-label, .graticule-label *)')
  await expect.poll(() => elements.count()).toBeLessThan(60)
  await expect.poll(() => page.locator('.map-panel tbody tr:not(.gap)').count()).toBeLessThan(60)
  await page.getByRole('searchbox', { name: 'Search nodes' }).fill('crowd 1234')
  await page.getByRole('button', { name: 'Crowd 1234' }).click()
  await page.getByText('Crowd 1234').first().waitFor()
  await expect.poll(() => page.locator('.map-name.chosen').textContent()).toBe('Crowd 1234')
  await page.getByRole('button', { name: 'Back to the list' }).click()
  await page.getByText('1 of 2,024 nodes on the map').waitFor()
  await expect.poll(() => page.locator('.map-name').allTextContents()).toEqual(['C1234'])
  expect(complaints).toEqual([])
})

test.each([
  ['light and dark', {}],
  ['on a phone', { colorScheme: 'dark', ...PHONE }],
] as const)('axe-core finds nothing, and nothing is too wide: %s', async (_name, options) => {
  const visitor = await openSignedIn(site, '/', options)
  for (const path of [
    '/map',
    '/map?node=!a0cb0001&routes=1',
    '/map?trace=1',
    '/map?links=1',
    '/traceroutes',
    '/neighbors',
  ]) {
    await follow(visitor.page, path)
    await visitor.page.locator('.leaflet-container, .trace, tbody tr').first().waitFor()
    if (path === '/map' && 'isMobile' in options) await visitor.page.getByText('List and filters').tap()
    expect([path, ...(await visitor.violations())]).toEqual([path])
    await expect.poll(() => overflowOf(visitor.page)).toBe(0)
  }
  expect(visitor.complaints).toEqual([])
})
