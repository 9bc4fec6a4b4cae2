import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { cellOf } from '../../../src/app/mesh/survey/cells.ts'
import { nodes } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { demoNode } from '../../support/mesh/topology.ts'
import { isLive } from '../../support/radio/site.ts'
import { closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openDemoMap } from '../../support/web/demo-map.ts'
import { overflowOf, type Site } from '../../support/web/site.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

afterEach(closeVisits)

let site: Site
beforeAll(async () => {
  site = await openDemoMap()
})
afterAll(() => site.close())

/** The middle of the map's box, in pixels of the page. */
async function middleOf(page: Page): Promise<{ x: number; y: number }> {
  const box = await page.locator('.map').boundingBox()
  if (box === null) throw new Error('the map has no box')
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
}

test('two presses give distance and bearing, a third the sum; each can be undone, and Escape ends it', async () => {
  const { page, complaints, violations } = await openSignedIn(site, '/map?center=49.8917,10.8871&zoom=10')
  await page.getByText('25 nodes on the map').waitFor()
  await page.getByRole('button', { name: 'Measure' }).click()
  const panel = page.getByRole('region', { name: 'Measure' })
  const result = panel.getByRole('status')
  await expect.poll(() => result.textContent()).toContain('Press two places')
  expect(await violations()).toEqual([])
  const { x, y } = await middleOf(page)
  await page.mouse.click(x - 200, y - 200)
  await expect.poll(() => result.textContent()).toContain('Press the next place')
  await page.mouse.click(x - 200, y - 100)
  // To the south: 100 pixels at this zoom level.
  await expect.poll(() => result.textContent()).toMatch(/^9\.[89] km, bearing 180°$/)
  await page.mouse.click(x - 100, y - 100)
  await expect.poll(() => result.textContent()).toMatch(/^19\.[67] km in all; last part: 9\.[89] km, bearing 90°$/)
  // Nothing was chosen meanwhile.
  expect(new URL(page.url()).searchParams.get('node')).toBe(null)
  await panel.getByRole('button', { name: 'Undo' }).click()
  await expect.poll(() => result.textContent()).toMatch(/^9\.[89] km, bearing 180°$/)
  await page.keyboard.press('Backspace')
  await expect.poll(() => result.textContent()).toContain('Press the next place')
  await page.keyboard.press('Escape')
  await panel.waitFor({ state: 'detached' })
  expect(complaints).toEqual([])
})

test('the coverage is coloured by what one chooses, a press and the keyboard say its numbers, also on a phone', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const at = cellOf({ latitude: 49.8917, longitude: 10.8871, precisionBits: 15 })
  store.sqlite
    .prepare(
      `insert into coverage (node_num, source_id, gateway, channel, bits, x, y, packets, snr, rssi, best_snr, min_hops,
        max_hops, last_at) values (1, 1, 0, 0, ?, ?, ?, 3, '{"4":1,"-9":1}', '{"-101":2}', 4.25, 0, 2, ?)`,
    )
    .run(at?.bits, at?.x, at?.y, Date.now() - 60_000)
  store.sqlite.exec('update survey set version = version + 1')
  store.close()
  const { page, complaints, violations } = await openSignedIn(site, '/map?center=49.8917,10.8871&zoom=13')
  await page.getByText('25 nodes on the map').waitFor()
  await page.getByRole('button', { name: 'Layers' }).click()
  await page.getByLabel('Coverage', { exact: true }).selectOption('Median SNR')
  await page.getByRole('button', { name: 'Layers' }).click()
  const panel = page.getByRole('region', { name: 'Coverage' })
  const said = panel.getByRole('status')
  await expect.poll(() => said.textContent()).toContain('Press a cell')
  await panel.getByRole('button', { name: 'Middle of the map' }).press('Enter')
  const numbers =
    /^SNR: 4\.25 dB at best, median −2\.5 dBRSSI: −101 dBm at best, median −101 dBmHops: 0 to 23 positions, 2 directlyLast heard: 1 min/
  await expect.poll(() => said.textContent()).toMatch(numbers)
  expect(await violations()).toEqual([])
  await page.setViewportSize(PHONE.viewport)
  expect(await overflowOf(page)).toBe(0)
  expect(await violations()).toEqual([])
  await page.setViewportSize({ width: 1360, height: 860 })
  await panel.getByLabel('Coloured by').selectOption('Last heard')
  await expect.poll(() => panel.getByRole('listitem').first().textContent()).toBe('day')
  const { x, y } = await middleOf(page)
  await page.mouse.click(x + 150, y - 250)
  await expect.poll(() => said.textContent()).toContain('No position was received')
  await panel.getByRole('button', { name: 'Close' }).click()
  await panel.waitFor({ state: 'detached' })
  expect(complaints).toEqual([])
})

test('the keyboard alone measures: it moves the map, and adds its middle', async () => {
  const { page } = await openSignedIn(site, '/map?center=49.8917,10.8871&zoom=10')
  await page.getByText('25 nodes on the map').waitFor()
  await page.getByRole('button', { name: 'Measure' }).press('Enter')
  const add = page.getByRole('button', { name: 'Add the middle' })
  await expect.poll(() => add.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true)
  await page.keyboard.press('Enter')
  await page.locator('.map').press('ArrowUp')
  await add.press('Enter')
  await expect.poll(() => page.locator('.map-ruler [role=status]').textContent()).toMatch(/ km, bearing 0°$/)
})

test('on a phone the panel of measuring leaves the map free, with large targets', async () => {
  const { page, violations } = await openSignedIn(site, '/map', { ...PHONE, colorScheme: 'dark' })
  await page.getByRole('button', { name: 'Measure' }).tap()
  const panel = page.getByRole('region', { name: 'Measure' })
  await panel.waitFor()
  expect(await overflowOf(page)).toBe(0)
  expect(await violations()).toEqual([])
  const { x, y } = await middleOf(page)
  // A press near a node measures from the node itself, so the direction is not exactly south.
  await page.touchscreen.tap(x, y - 50)
  await page.touchscreen.tap(x, y + 20)
  await expect.poll(() => panel.getByRole('status').textContent()).toMatch(/m, bearing 1[78]\d°$/)
  const sizes = await panel.getByRole('button').evaluateAll((all) => all.map(({ clientHeight }) => clientHeight))
  expect(Math.min(...sizes)).toBeGreaterThanOrEqual(42)
})

test('the map follows a node that moves, until the user moves the map', async () => {
  const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0b0c&range=1h')
  const follow = page.getByRole('button', { name: 'Follow' })
  await follow.click()
  await expect.poll(() => follow.getAttribute('aria-pressed')).toBe('true')
  const away = async () => {
    const [name, { x, y }] = [await page.locator('.map-name.chosen').boundingBox(), await middleOf(page)]
    return name === null ? null : Math.round(Math.hypot(name.x - x, name.y - y))
  }
  await expect.poll(away).toBe(0)
  const move = async (latitude: number) => {
    const store = openDatabase(join(site.data, 'mesh.db'))
    await store.db
      .update(nodes)
      .set({ latitude })
      .where(eq(nodes.nodeNum, demoNode(11)))
    store.close()
  }
  await isLive({ page })
  await move(49.95)
  // The stream of events begins anew, and what has changed is loaded.
  await page.context().setOffline(true)
  await page.getByText('This device is offline').first().waitFor()
  await page.context().setOffline(false)
  await page.getByText('49.95000').waitFor()
  await expect.poll(away).toBe(0)
  // A link shows the same.
  expect(new URL(page.url()).searchParams.get('follow')).toBe('!a0cb0b0c')
  const { x, y } = await middleOf(page)
  await page.mouse.move(x + 80, y + 80)
  await page.mouse.down()
  await page.mouse.move(x - 40, y - 40, { steps: 5 })
  await page.mouse.up()
  await expect.poll(() => follow.getAttribute('aria-pressed')).toBe('false')
  expect(await away()).toBeGreaterThan(50)
  expect(new URL(page.url()).searchParams.get('follow')).toBe(null)
  // The service worker may just have been loaded; it is tried again.
  const ofOutage = /ERR_INTERNET_DISCONNECTED|when fetching the script/
  expect(complaints.filter((text) => !ofOutage.test(text))).toEqual([])
})

test('at 200 % zoom all controls of the map are in sight, and none covers another', async () => {
  const { page } = await openSignedIn(site, '/map', { viewport: { width: 680, height: 430 }, deviceScaleFactor: 2 })
  await page.locator('.leaflet-control-zoom-out').waitFor()
  const boxOf = async (selector: string) => {
    const box = await page.locator(selector).boundingBox()
    if (box === null) throw new Error(`${selector} is not shown`)
    return box
  }
  const bar = await boxOf('.tabs')
  const controls = ['.legend', '.leaflet-control-scale', '.leaflet-control-zoom', '.page-head .actions']
  const boxes = await Promise.all(controls.map(boxOf))
  for (const box of boxes) expect(box.y + box.height).toBeLessThanOrEqual(bar.y)
  const overlaps = boxes.flatMap((a, index) =>
    boxes
      .slice(index + 1)
      .filter((b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height),
  )
  expect(overlaps).toEqual([])
  expect(await overflowOf(page)).toBe(0)
})

/** How many pixels of a canvas of the map are drawn. */
const inkOf = (page: Page, pane: string): Promise<unknown> =>
  page.evaluate(`(() => {
    const canvas = document.querySelector('.leaflet-${pane}-pane canvas')
    if (canvas === null) return 0
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    return data.filter((value, at) => at % 4 === 3 && value > 0).length
  })()`)

const KML = `<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>
  <Style id="s"><LineStyle><color>ff0000ff</color></LineStyle>
    <IconStyle><Icon><href>https://evil.example/icon.svg</href></Icon></IconStyle></Style>
  <Placemark><name>&lt;img src=x onerror=alert(1)&gt; Ridge</name><styleUrl>#s</styleUrl>
    <description><![CDATA[<b>steep</b> &amp; wet<img src="https://evil.example/x.png" onerror="alert(2)"><script>alert(3)</script>]]></description>
    <Polygon><outerBoundaryIs><LinearRing><coordinates>10.6,49.7 11.2,49.7 11.2,50.1 10.6,50.1 10.6,49.7</coordinates></LinearRing></outerBoundaryIs></Polygon>
  </Placemark></Document></kml>`

test('a file is put on the map, without anything in it that could run or ask, and packets are seen as they are heard', async () => {
  const { page, complaints, violations } = await openSignedIn(site, '/map?center=49.8917,10.8871&zoom=10')
  const foreign: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(site.base)) foreign.push(request.url())
  })
  await page.getByText('25 nodes on the map').waitFor()
  await isLive({ page })
  await page.getByRole('button', { name: 'Layers' }).click()
  await page.getByRole('button', { name: 'Overlays…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Overlays' })
  const give = (name: string, text: string) =>
    dialog
      .locator('input[type=file]')
      .setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) })
  await give('broken.geojson', '{"type":"FeatureCollection","features":[{"type":"Point","coordinates":["8","47"]}]}')
  await dialog.getByText('Shape 1 of this file has coordinates that are no places in the world.').waitFor()
  await give('broken.kml', '<kml><Document>')
  await dialog.getByText('This is no GeoJSON, KML or GPX file, or it is damaged.').waitFor()
  await give('Valley.kml', KML)
  const form = dialog.getByRole('form', { name: 'Valley' })
  await form.waitFor()
  expect(await violations()).toEqual([])
  await form.getByLabel('Name').fill('The valley')
  await form.getByRole('button', { name: 'Save' }).click()
  await dialog.getByRole('form', { name: 'The valley' }).waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => inkOf(page, 'overlays')).toBeGreaterThan(1000)
  const { x, y } = await middleOf(page)
  const shown = page.getByRole('checkbox', { name: 'The valley' })
  await page.getByRole('button', { name: 'Show The valley on the map' }).click()
  await page.keyboard.press('Escape')
  await page.mouse.click(x + 150, y + 150)
  const tip = page.locator('.map-tip')
  await expect.poll(() => tip.textContent()).toMatch(/^<img src=x onerror=alert\(1\)> Ridge: steep & wet$/)
  await page.getByRole('button', { name: 'Layers' }).click()
  await shown.uncheck()
  await expect.poll(() => inkOf(page, 'overlays')).toBe(0)
  const live = page.getByRole('checkbox', { name: 'Packets as they are heard' })
  await live.check()
  await expect.poll(() => inkOf(page, 'live')).toBeGreaterThan(0)
  await live.uncheck()
  await expect.poll(() => inkOf(page, 'live')).toBe(0)
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Valley Village' }).click()
  const antenna = page.getByLabel('Antenna above ground (m)')
  await antenna.fill('10')
  await antenna.press('Enter')
  await page.getByText('sees the ground up to 13 km away').waitFor()
  await expect.poll(() => inkOf(page, 'horizon')).toBeGreaterThan(1000)
  expect(new URL(page.url()).searchParams.get('antenna')).toBe('10')
  // Chromium describes the damage of an XML file in a document with styles of its own, which do not apply.
  const others = complaints.filter((text) => !text.startsWith('Applying inline style violates'))
  expect([foreign, others]).toEqual([[], []])
})
