import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { nodes } from '../../src/db/schema.ts'
import { formatNodeId } from '../../src/meshtastic/node-id.ts'
import { LOCAL, position, telemetry, text } from '../support/mesh/mesh.ts'
import { FIRST_OF_MANY, isLive, openRadioSite, type RadioSite } from '../support/radio/site.ts'
import { figure } from './figures.ts'

const NODES = 2000
const CLICKS = 60
const PACKETS_PER_SECOND = 10
/** Packets between aiming and pressing: at least as long as a hand takes. */
const PACKETS_WHILE_AIMING = 5
const PARTNERS = 40

/** The nodes stand in towns: at a low zoom each town is one cluster. */
const TOWNS = 60
const TOWN_COLUMNS = 10
const ROADS = 5
/** Degrees between two houses of a town. At MAP_ZOOM these are 46 pixels from east to west, and more to the north. */
const HOUSE = 0.0005
const HOUSE_ZOOM = 17
const TOWN_ZOOM = 7
const HOUSES = ROADS * ROADS

type Spot = { readonly latitude: number; readonly longitude: number }

const townOf = (index: number) => index % TOWNS
const isSettled = (index: number) => Math.floor(index / TOWNS) < HOUSES
const centreOf = (town: number): Spot => ({
  latitude: 46 + Math.floor(town / TOWN_COLUMNS) * 0.5,
  longitude: 6 + (town % TOWN_COLUMNS) * 0.6,
})

/** Settled nodes stand at the corners of a grid, each at its own; all others roam between the corners. */
function spotOf(index: number, turn = 0): Spot {
  const town = centreOf(townOf(index))
  const house = Math.floor(index / TOWNS) + turn
  const [column, row] = [(house % ROADS) - 2, (Math.floor(house / ROADS) % ROADS) - 2]
  const aside = isSettled(index) ? 0 : HOUSE / 2
  return { latitude: town.latitude + row * HOUSE + aside, longitude: town.longitude + column * HOUSE + aside }
}

const nameOf = (index: number) => `Crowd ${String(index).padStart(4, '0')}`
const numberIn = (said: string) => FIRST_OF_MANY + Number(/Crowd (\d{4})/.exec(said)?.[1])
const placeAt = ({ latitude, longitude }: Spot) =>
  position({ latitudeI: Math.round(latitude * 1e7), longitudeI: Math.round(longitude * 1e7) })

let mesh: RadioSite
let heard = 0
let traffic: ReturnType<typeof setInterval>

/** The next packet of a mesh in which everybody talks: measurements, places, texts to all and to this radio. */
function talk(): void {
  heard += 1
  const index = (heard * 7919) % NODES
  const from = FIRST_OF_MANY + index
  if (heard % 4 === 0) mesh.hear(text(`word ${heard}`), { from })
  else if (heard % 4 === 1)
    mesh.hear(text(`hello ${heard}`), { from: FIRST_OF_MANY + (Math.floor(heard / 4) % PARTNERS), to: LOCAL })
  else if (heard % 4 === 2) mesh.hear(placeAt(spotOf(index, isSettled(index) ? 0 : heard)), { from })
  else mesh.hear(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: heard % 100 } } }), { from })
}

beforeAll(async () => {
  const lastHeard = Date.now() - 3_600_000
  mesh = await openRadioSite(undefined, [], async (store) => {
    const many = Array.from({ length: NODES }, (_, index) => {
      const spot = spotOf(index)
      const nodeNum = FIRST_OF_MANY + index
      return { nodeNum, longName: nameOf(index), firstHeard: lastHeard, lastHeard: lastHeard + index, ...spot }
    })
    for (let at = 0; at < NODES; at += 500) await store.db.insert(nodes).values(many.slice(at, at + 500))
  })
})
afterAll(() => mesh.close())
beforeEach(() => {
  traffic = setInterval(talk, 1000 / PACKETS_PER_SECOND)
})
afterEach(() => clearInterval(traffic))

/** Waits until the mesh has changed as much as it does while a hand aims. */
async function aim(): Promise<void> {
  const before = heard
  await expect.poll(() => heard - before).toBeGreaterThanOrEqual(PACKETS_WHILE_AIMING)
}

/** Returns the text of the element `name` around the target, and clicks on the target once packets have arrived. */
async function clickOn(target: Locator, name = '*'): Promise<string> {
  const { page } = mesh.admin
  const { said, x, y } = await target.evaluate((element, part) => {
    const box = element.getBoundingClientRect()
    const named = element.closest(part)
    return { said: named?.textContent ?? '', x: box.left + Math.min(20, box.width / 2), y: box.top + box.height / 2 }
  }, name)
  await page.mouse.move(x, y, { steps: 10 })
  await aim()
  await page.mouse.down()
  await page.mouse.up()
  return said
}

/** Clicks `CLICKS` times; `click` returns whether it hit its target. */
async function clickAll(where: string, click: (round: number) => Promise<boolean>): Promise<void> {
  const hits: boolean[] = []
  for (let round = 0; round < CLICKS; round++) hits.push(await click(round))
  figure(`clicks that hit at ${NODES} nodes, ${where}`, `${hits.filter(Boolean).length} of ${CLICKS}`)
  expect(hits.filter(Boolean)).toHaveLength(CLICKS)
}

test.each([
  ['the node list', '/nodes', 'tbody .row-link'],
  ['the dashboard', '/', '.rows a[href*="/nodes/"]'],
])('%s: clicks hit the intended node', async (where, path, selector) => {
  const { page, goto } = mesh.admin
  await goto(path)
  await isLive(mesh.admin)
  await page.locator(selector, { hasText: 'Crowd' }).nth(8).waitFor()
  await clickAll(where, async (round) => {
    await page.mouse.move(300, 40)
    const name = await clickOn(page.locator(selector).nth(1 + (round % 8)))
    const title = page.locator('h1', { hasText: /^Crowd|^Far Hill|^Test Radio/ })
    await title.waitFor()
    const isHit = (await title.textContent()) === name
    await page.goBack()
    await page.locator(selector, { hasText: 'Crowd' }).nth(8).waitFor()
    return isHit
  })
})

test('packets: clicks open the intended packet', async () => {
  const { page, goto } = mesh.admin
  await goto('/packets')
  await isLive(mesh.admin)
  const rows = page.locator('tbody tr:not(.detail)')
  await rows.nth(12).waitFor()
  await clickAll('packets', async (round) => {
    await page.mouse.move(300, 40)
    const row = rows.nth(1 + (round % 10))
    const said = await clickOn(row.locator('.expander'), 'tr')
    const found = await page.locator('tr.detail').textContent()
    await page.locator('.expander[aria-expanded=true]').click()
    await page.locator('tr.detail').waitFor({ state: 'detached' })
    return found !== null && found.includes(formatNodeId(numberIn(said)))
  })
})

test('messages: clicks open the intended conversation, and the details of the intended text', async () => {
  const { page, goto } = mesh.admin
  await goto('/messages')
  await isLive(mesh.admin)
  const entries = page.locator('.conversation', { hasText: /Crowd 00/ })
  await entries.nth(12).waitFor()
  await clickAll('conversations', async (round) => {
    await page.mouse.move(700, 40)
    const said = await clickOn(entries.nth(round % 10).locator('.conversation-name'))
    const title = page.locator('.chat-head h2', { hasText: 'Crowd' })
    await title.waitFor()
    const isHit = (await title.textContent()) === said
    await page.getByRole('link', { name: 'Everything' }).click()
    await title.waitFor({ state: 'detached' })
    return isHit
  })
  const log = page.getByRole('region', { name: 'Messages, newest last' })
  const details = log.getByRole('button', { name: 'Details' })
  await clickAll('texts', async (round) => {
    await page.mouse.move(700, 40)
    // While details are open, new texts wait below.
    await log.evaluate((box) => box.scrollTo(0, box.scrollHeight))
    await page.locator('.to-end').waitFor({ state: 'detached' })
    await log.hover({ position: { x: 5, y: 200 } })
    const said = await clickOn(details.nth((await details.count()) - 2 - (round % 4)), '.message')
    const open = log.locator('.message', { has: page.locator('[aria-expanded=true]') })
    const found = (await open.locator('p.pre').first().textContent()) ?? '-'
    await open.getByRole('button', { name: 'Details' }).click()
    await open.waitFor({ state: 'detached' })
    return said.includes(found)
  })
})

type View = { readonly lat: number; readonly lng: number; readonly zoom: number }

const VIEW = z.object({ lat: z.number(), lng: z.number(), zoom: z.number() })

async function readView(): Promise<View> {
  return VIEW.parse(JSON.parse(String(await mesh.admin.page.evaluate("localStorage.getItem('map-view')"))))
}

async function openMap({ latitude, longitude }: Spot, zoom: number): Promise<void> {
  const { page, goto } = mesh.admin
  const view: View = { lat: latitude, lng: longitude, zoom }
  await page.evaluate(`localStorage.setItem('map-view', '${JSON.stringify(view)}')`)
  await goto('/map')
  await isLive(mesh.admin)
  await page.getByText(`${NODES.toLocaleString('en-GB')} nodes on the map`).waitFor()
  await page.locator('.leaflet-container canvas').first().waitFor()
}

/** Where a place is on the screen, by Web Mercator (en.wikipedia.org/wiki/Web_Mercator_projection). */
async function pixelOf(spot: Spot, view: View): Promise<{ readonly x: number; readonly y: number }> {
  const box = await mesh.admin.page.locator('.map').boundingBox()
  if (box === null) throw new Error('the map has no box')
  const size = 256 * 2 ** view.zoom
  const north = (latitude: number) => Math.log(Math.tan(Math.PI / 4 + (latitude * Math.PI) / 360))
  return {
    x: box.x + box.width / 2 + ((spot.longitude - view.lng) / 360) * size,
    y: box.y + box.height / 2 - ((north(spot.latitude) - north(view.lat)) / (2 * Math.PI)) * size,
  }
}

test('map: clicks on pins choose the intended node, even if another one moves there meanwhile', async () => {
  const { page } = mesh.admin
  const town = centreOf(0)
  await openMap(town, HOUSE_ZOOM)
  await clickAll('pins', async (round) => {
    const index = (round % HOUSES) * TOWNS
    const { x, y } = await pixelOf(spotOf(index), await readView())
    await page.mouse.move(x - 60, y - 40)
    await page.mouse.move(x, y, { steps: 10 })
    const intruder = HOUSES * TOWNS
    mesh.hear(placeAt(spotOf(index)), { from: FIRST_OF_MANY + intruder })
    await aim()
    await page.mouse.down()
    await page.mouse.up()
    const title = page.locator('.map-panel h2')
    await title.waitFor()
    const isHit = (await title.textContent()) === nameOf(index)
    mesh.hear(placeAt(spotOf(intruder, round)), { from: FIRST_OF_MANY + intruder })
    await page.getByRole('button', { name: 'Back to the list' }).click()
    await title.waitFor({ state: 'detached' })
    return isHit
  })
})

test('map: clicks on clusters zoom into the intended one', async () => {
  const { page } = mesh.admin
  await clickAll('clusters', async (round) => {
    const town = centreOf(round)
    const near = centreOf(round < TOWNS / 2 ? round + TOWN_COLUMNS : round - TOWN_COLUMNS)
    // The map is centred on the town beside it, so the cluster is not in the middle.
    await openMap(near, TOWN_ZOOM)
    const { x, y } = await pixelOf(town, await readView())
    await page.mouse.move(x - 60, y - 40)
    await page.mouse.move(x, y, { steps: 10 })
    await page.locator('.map.is-over').waitFor()
    await aim()
    await page.mouse.down()
    await page.mouse.up()
    await expect.poll(async () => (await readView()).zoom).toBeGreaterThan(TOWN_ZOOM)
    const { lat, lng } = await readView()
    return Math.hypot(lat - town.latitude, lng - town.longitude) < ROADS * HOUSE
  })
})
