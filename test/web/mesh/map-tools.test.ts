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
  const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0b0c&track=0')
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
  await page.context().setOffline(false)
  await page.getByText('49.95000').waitFor()
  await expect.poll(away).toBe(0)
  const { x, y } = await middleOf(page)
  await page.mouse.move(x + 80, y + 80)
  await page.mouse.down()
  await page.mouse.move(x - 40, y - 40, { steps: 5 })
  await page.mouse.up()
  await expect.poll(() => follow.getAttribute('aria-pressed')).toBe('false')
  expect(await away()).toBeGreaterThan(50)
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
