import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { neighbors, nodes, packets, sources, waypoints } from '../../../src/db/schema.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { demoNode } from '../../support/mesh/topology.ts'
import { position } from '../../support/mesh/mesh.ts'
import { isLive, openRadioSite, type RadioSite } from '../../support/radio/site.ts'
import { closeVisits, openSignedIn } from '../../support/signed-in.ts'
import { openDemoMap } from '../../support/web/demo-map.ts'
import { overflowOf, type Site } from '../../support/web/site.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

afterEach(closeVisits)

async function write(site: Site, change: (store: SqliteStore) => Promise<unknown>): Promise<void> {
  const store = openDatabase(join(site.data, 'mesh.db'))
  await change(store)
  store.close()
}

/** How many pixels of a canvas of the map are fully covered, and how many at all. */
async function inkOf(page: Page, pane: 'dots' | 'ground'): Promise<{ full: number; any: number }> {
  const found: unknown = await page.evaluate(`(() => {
    const canvas = document.querySelector('.leaflet-${pane}-pane canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    let [full, any] = [0, 0]
    for (let at = 3; at < data.length; at += 4) {
      if (data[at] > 0) any++
      if (data[at] === 255) full++
    }
    return { full, any }
  })()`)
  const { full, any } = Object(found)
  return { full: Number(full), any: Number(any) }
}

/** The colour of the nodes' canvas at the node of this short name, or pixels to the right of it; null: no such name. */
function inkAt(page: Page, shortName: string, right = 0): Promise<unknown> {
  return page.evaluate(`(() => {
    const name = [...document.querySelectorAll('.map-name')].find((each) => each.textContent === '${shortName}')
    if (name === undefined) return null
    const canvas = document.querySelector('.leaflet-dots-pane canvas')
    const [at, box] = [name.getBoundingClientRect(), canvas.getBoundingClientRect()]
    const sharpness = canvas.width / box.width
    const [x, y] = [at.x + ${right} - box.x, at.y - box.y].map((place) => Math.round(place * sharpness))
    const [red, green, blue] = canvas.getContext('2d').getImageData(x, y, 1, 1).data
    return 'rgb(' + [red, green, blue].join(', ') + ')'
  })()`)
}

/** The place of the map's box where "Show all" puts a mesh whose nodes are all in one place. */
async function middleOf(page: Page): Promise<{ x: number; y: number }> {
  const box = await page.locator('.map').boundingBox()
  if (box === null) throw new Error('the map has no box')
  return { x: box.x + (36 + box.width - 56) / 2, y: box.y + (84 + box.height - 36) / 2 }
}

describe('the demo mesh', () => {
  let site: Site
  beforeAll(async () => {
    site = await openDemoMap()
  })
  afterAll(() => site.close())

  test('each layer has its own switch, which keeps its state after a reload', async () => {
    const { page, complaints, violations } = await openSignedIn(site, '/map')
    await page.getByText('25 nodes on the map').waitFor()
    await page.locator('.waypoint').first().waitFor()
    await page.getByRole('button', { name: 'Layers' }).click()
    const layer = (name: string) => page.getByRole('checkbox', { name, exact: true })
    expect(await violations()).toEqual([])
    await layer('Waypoints').uncheck()
    await expect.poll(() => page.locator('.waypoint').count()).toBe(0)
    await layer('Short names').uncheck()
    await expect.poll(() => page.locator('.map-name').count()).toBe(0)
    await expect.poll(async () => (await inkOf(page, 'dots')).any).toBeGreaterThan(0)
    await layer('Nodes').uncheck()
    await expect.poll(async () => (await inkOf(page, 'dots')).any).toBe(0)
    await layer('Precision of positions').uncheck()
    await expect.poll(async () => (await inkOf(page, 'ground')).any).toBe(0)
    await layer('Neighbours').check()
    await expect.poll(async () => (await inkOf(page, 'ground')).any).toBeGreaterThan(0)
    await page.keyboard.press('Escape')
    await layer('Nodes').waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('25 nodes on the map').waitFor()
    await page.getByRole('button', { name: 'Layers' }).click()
    expect(await Promise.all(['Nodes', 'Neighbours', 'Traceroutes'].map((name) => layer(name).isChecked()))).toEqual([
      false,
      true,
      false,
    ])
    await expect.poll(async () => (await inkOf(page, 'ground')).any).toBeGreaterThan(0)
    expect((await inkOf(page, 'dots')).any).toBe(0)
    expect(complaints).toEqual([])
  })

  test.each([
    ['light', {}],
    ['dark', { colorScheme: 'dark' }],
    ['high contrast', { forcedColors: 'active' }],
    ['on a phone', PHONE],
  ] as const)('nodes have the colours of the legend, and the own radio its own shape: %s', async (_, options) => {
    const { page, goto, complaints } = await openSignedIn(site, '/map', options)
    await page.getByText('25 nodes on the map').waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Show all' }).click()
    const colourOf = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`)
    const active = await colourOf('.legend summary i.age-0')
    const surface = await page.evaluate(`(() => {
      const probe = document.body.appendChild(document.createElement('i'))
      probe.style.cssText = 'forced-color-adjust: none; background: var(--surface)'
      const { backgroundColor } = getComputedStyle(probe)
      probe.remove()
      return backgroundColor
    })()`)
    await expect.poll(() => inkAt(page, 'SCHL')).toBe(active)
    expect(active).not.toBe(surface)
    // Alone, so that there is room for its name on a phone.
    await goto('/map?q=town+hall')
    await expect.poll(() => inkAt(page, 'HALL')).toBe(surface)
    // Beside its core it has the colour of its age, like every other node.
    await expect.poll(() => inkAt(page, 'HALL', 6)).toBe(active)
    expect(complaints).toEqual([])
  })

  test.each([
    ['light', {}],
    ['dark', { colorScheme: 'dark' }],
    ['high contrast', { forcedColors: 'active' }],
    ['on a phone', PHONE],
  ] as const)('the colour of the nodes says what the user chooses, as in the legend: %s', async (_, options) => {
    const { page, goto, complaints } = await openSignedIn(site, '/map', options)
    const chooser = page.getByLabel('Colour of the nodes')
    const shades = () => page.locator('.legend summary i').evaluateAll((all) => all.map(({ className }) => className))
    const shownAs = (index: number) =>
      page.evaluate(`getComputedStyle(document.querySelectorAll('.legend summary i')[${index}]).backgroundColor`)
    await expect.poll(shades).toEqual(['age-0', 'age-1', 'age-2'])
    await chooser.selectOption('Battery')
    await expect.poll(shades).toEqual(['shade-0', 'shade-1', 'shade-2', 'shade-3', 'age-2'])
    await page.getByRole('button', { name: 'Show all' }).click()
    // On external power, more than half full, and less.
    const colours = await Promise.all([0, 1, 2].map(shownAs))
    expect(new Set(colours).size).toBe(3)
    await expect.poll(() => Promise.all(['AL44', 'RV3', 'WTWR'].map((name) => inkAt(page, name)))).toEqual(colours)
    await chooser.selectOption('Hops')
    const direct = await shownAs(0)
    await expect.poll(() => inkAt(page, 'CSTL')).toBe(direct)
    // It is kept: in the address for others, and in this browser for the next time.
    expect(new URL(page.url()).searchParams.get('colour')).toBe('hops')
    await goto('/map')
    await expect.poll(() => chooser.inputValue()).toBe('hops')
    await goto('/map?colour=role')
    await expect.poll(() => chooser.inputValue()).toBe('role')
    await page.getByText('Legend').click()
    await page.getByText('relay: routers, repeaters and base stations').waitFor()
    expect(await overflowOf(page)).toBe(0)
    expect(complaints).toEqual([])
  })

  test('lines are limited by their signal and by their age', async () => {
    const { page, goto } = await openSignedIn(site, '/map?node=!a0cb0001')
    const shown = () => page.locator('.map-panel .neighbor-list .hop').allTextContents()
    await expect.poll(shown).toContain('−4.75 dB')
    // Numbers that no node of the demo reports.
    await write(site, ({ db }) =>
      db.insert(neighbors).values([
        { nodeNum: demoNode(9), neighborNum: demoNode(0), snr: -14.25, t: Date.now() },
        { nodeNum: demoNode(8), neighborNum: demoNode(0), snr: 11.25, t: Date.now() - 7_200_000 },
        // Older than a day: not shown unless asked for.
        { nodeNum: demoNode(7), neighborNum: demoNode(0), snr: 12.75, t: Date.now() - 25 * 3_600_000 },
      ]),
    )
    await page.reload()
    await expect.poll(shown).toEqual(expect.arrayContaining(['−4.75 dB', '−14.25 dB', '11.25 dB']))
    await page.getByRole('button', { name: 'Layers' }).click()
    expect(await shown()).not.toContain('12.75 dB')
    const range = page.getByLabel('Lines heard')
    await range.selectOption('Last 7 days')
    await expect.poll(shown).toContain('12.75 dB')
    await page.getByLabel('Lines with').selectOption('SNR of −7 dB or better')
    await expect.poll(shown).not.toContain('−14.25 dB')
    expect(await shown()).toEqual(expect.arrayContaining(['−4.75 dB', '11.25 dB']))
    await range.selectOption('Last hour')
    await expect.poll(shown).not.toContain('11.25 dB')
    // The pages that follow show the same time.
    expect(new URL(page.url()).searchParams.get('range')).toBe('1h')
    const routes = page.getByRole('link', { name: 'Traceroutes' }).last()
    expect(await routes.getAttribute('href')).toMatch(/[?&]range=1h/)
    await page.reload()
    await expect.poll(shown).toContain('−4.75 dB')
    expect(await shown()).not.toContain('11.25 dB')
    expect(await shown()).not.toContain('−14.25 dB')
    // It is the usual one from now on, and so is what an earlier version kept.
    await goto('/map?node=!a0cb0001')
    await expect.poll(shown).toContain('−4.75 dB')
    expect(await shown()).not.toContain('11.25 dB')
    await page.evaluate(`{
      const key = Object.keys(localStorage).find((name) => name.includes('map-lines'))
      localStorage.setItem(key, '{"hours":"168","signal":"","least":"1"}')
    }`)
    await page.reload()
    await expect.poll(shown).toContain('12.75 dB')
    await goto('/map?node=!a0cb0001&from=1000&to=2000')
    await page.getByText('0 places').waitFor()
    await expect.poll(shown).toEqual([])
  })

  test('lines say what was heard directly, how often at least, and what came through a broker', async () => {
    const { page, complaints } = await openSignedIn(site, '/map?node=!a0cb0304')
    await write(site, async ({ db }) => {
      await db.insert(sources).values({ id: 91, kind: 'mqtt', name: 'far broker', createdAt: 0 })
      const packet = (from: number, packetId: number, more: object = {}) => ({
        sourceId: 91,
        t: Date.now(),
        packetId,
        fromNodeNum: demoNode(from),
        toNodeNum: 0xffffffff,
        gateway: demoNode(3),
        channel: 0,
        rxSnr: -12.75,
        hopsAway: 0,
        hopLimit: 3,
        viaMqtt: false,
        pkiEncrypted: false,
        replayed: false,
        payload: '{"kind":"text"}',
        ...more,
      })
      await db.insert(packets).values([
        packet(20, 1, { rxSnr: -11.25 }),
        packet(20, 2),
        packet(18, 3, { rxSnr: 6.13 }),
        packet(23, 4, { viaMqtt: true, hopsAway: 2 }),
        // Older than a day.
        packet(14, 5, { t: Date.now() - 25 * 3_600_000, rxSnr: 9.25 }),
      ])
    })
    const labels = async () => (await page.locator('.hop-label').allTextContents()).map((text) => text.split(' · ')[0])
    await page.getByRole('button', { name: 'Layers' }).click()
    const broker = page.getByLabel('Lines through a broker (MQTT)')
    expect(await broker.count()).toBe(0)
    await page.getByLabel('Packets heard directly').check()
    // One line for each pair, with the latest signal.
    await expect.poll(labels).toEqual(expect.arrayContaining(['−12.75 dB', '6.13 dB', 'MQTT']))
    expect(await labels()).not.toContain('−11.25 dB')
    expect(await labels()).not.toContain('9.25 dB')
    await page.getByText('Legend').click()
    await page.locator('.legend li').filter({ hasText: 'Lines through a broker (MQTT)' }).waitFor()
    expect(await page.evaluate(`getComputedStyle(document.querySelector('.legend .broker')).borderTopStyle`)).toBe(
      'dashed',
    )
    await page.getByLabel('Lines of at least').selectOption('2 packets')
    await expect.poll(labels).not.toContain('6.13 dB')
    expect(await labels()).toContain('−12.75 dB')
    await page.getByLabel('Lines of at least').selectOption('1 packet')
    await expect.poll(labels).toContain('MQTT')
    await broker.uncheck()
    await expect.poll(labels).not.toContain('MQTT')
    expect(await labels()).toContain('6.13 dB')
    await page.reload()
    await expect.poll(labels).toContain('6.13 dB')
    expect(await labels()).not.toContain('MQTT')
    expect(complaints).toEqual([])
  })

  test('the page of a node leads to its route on the map, which shows all of it and dims the others', async () => {
    const { page, goto, complaints } = await openSignedIn(site, '/map')
    await page.getByText('25 nodes on the map').waitFor()
    await page.locator('.map-name').first().waitFor({ state: 'attached' })
    // Far away from all of it.
    await page.evaluate(`(() => {
      const key = 'map-view'
      localStorage.setItem(key, JSON.stringify({ lat: -20, lng: 130, zoom: 9 }))
    })()`)
    await goto('/nodes/!a0cb1112')
    await page.getByRole('link', { name: 'Show the route on the map' }).first().click()
    await page.getByRole('heading', { name: 'Traceroute', level: 2 }).waitFor()
    await expect.poll(() => page.locator('.hop-label').count()).toBe(2)
    const box = await page.locator('.map').boundingBox()
    const inside = async () => {
      const boxes = await Promise.all((await page.locator('.hop-label').all()).map((label) => label.boundingBox()))
      return boxes.every(
        (each) =>
          each !== null &&
          box !== null &&
          each.x > box.x &&
          each.y > box.y &&
          each.x + each.width < box.x + box.width &&
          each.y + each.height < box.y + box.height,
      )
    }
    await expect.poll(inside).toBe(true)
    await expect.poll(() => page.locator('.map-name.dimmed').count()).toBeGreaterThan(0)
    const bright = await inkOf(page, 'dots')
    // The view stays, and all nodes are as bright as each other again.
    await page.getByRole('button', { name: 'Hide the route' }).click()
    await expect.poll(() => page.locator('.map-name.dimmed').count()).toBe(0)
    await expect.poll(async () => (await inkOf(page, 'dots')).full).toBeGreaterThan(bright.full)
    expect(complaints).toEqual([])
  })

  test('on a phone the layers fit, and their targets are large enough', async () => {
    const { page, violations } = await openSignedIn(site, '/map', { ...PHONE, colorScheme: 'dark' })
    await page.getByRole('button', { name: 'Layers' }).tap()
    await page.getByRole('checkbox', { name: 'Nodes', exact: true }).waitFor()
    expect(await violations()).toEqual([])
    expect(await overflowOf(page)).toBe(0)
    const heights = await page
      .locator('.map-layers label.check')
      .evaluateAll((all) => all.map(({ clientHeight }) => clientHeight))
    expect(Math.min(...heights)).toBeGreaterThanOrEqual(44)
  })
})

describe('many nodes in one place', () => {
  const MANY = 150
  const AT = { latitude: 47.5, longitude: 8.5 }
  let mesh: RadioSite
  const crowded = (index: number, more: object = {}) => ({
    nodeNum: 0x20000000 + index,
    longName: `Crowd ${index}`,
    firstHeard: Date.now(),
    lastHeard: Date.now() - index * 1000,
    ...AT,
    ...more,
  })
  beforeAll(async () => {
    mesh = await openRadioSite()
    await write(mesh.site, ({ db }) =>
      db.insert(nodes).values(Array.from({ length: MANY }, (_, index) => crowded(index))),
    )
  })
  afterAll(() => mesh.close())

  test('a press on a cluster zooms in, and among nodes in one place the user chooses by name', async () => {
    const { page, goto, violations } = mesh.admin
    await goto('/map')
    await isLive(mesh.admin)
    await page.getByText(`${MANY} nodes on the map`).waitFor()
    const scale = page.locator('.leaflet-control-scale-line')
    await page.getByRole('button', { name: 'Show all' }).click()
    const { x, y } = await middleOf(page)
    const tips = async () => {
      await page.mouse.move(x + 60, y + 60)
      await page.mouse.move(x, y)
      return page.locator('.map-tip').allTextContents()
    }
    await expect.poll(tips).toStrictEqual([`${MANY} nodes here`])
    const far = await scale.textContent()
    await page.mouse.click(x, y)
    await expect.poll(() => scale.textContent()).not.toBe(far)
    // Now nothing is grouped: the nodes are in the middle, over each other.
    const box = await page.locator('.map').boundingBox()
    if (box === null) throw new Error('the map has no box')
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
    const pile = page.getByRole('dialog', { name: `${MANY} nodes here` })
    await pile.waitFor()
    expect(await violations()).toEqual([])
    await pile.getByRole('button', { name: 'Crowd 77' }).click()
    await page.getByRole('heading', { name: 'Crowd 77', level: 2 }).waitFor()
    await pile.waitFor({ state: 'detached' })
  })

  test.each([
    ['at a desk', {}],
    ['on a phone', PHONE],
  ] as const)('nodes with the same rounded position lie apart, each within its precision: %s', async (_, options) => {
    const names = ['RA', 'RB', 'RC', 'RD']
    const rounded = names.map((shortName, index) =>
      crowded(700 + index, {
        shortName,
        longName: `Round ${shortName}`,
        latitude: 45,
        longitude: 6,
        precisionBits: 13,
      }),
    )
    await write(mesh.site, ({ db }) => db.insert(nodes).values(rounded).onConflictDoNothing())
    const { page } = await openSignedIn(mesh.site, '/map?q=round&center=45,6&zoom=12', options)
    await page.getByText(/^4 of \d+ nodes on the map$/).waitFor({ state: 'attached' })
    const places = async () => {
      const all = await page
        .locator('.map-name')
        .filter({ hasText: /^R[A-D]$/ })
        .all()
      return (await Promise.all(all.map((name) => name.boundingBox()))).flatMap((box) => box ?? [])
    }
    await expect.poll(async () => (await places()).length).toBe(4)
    // Measured at once: what loads above the map moves it and the names together.
    const farthest = async () => {
      const [all, box] = await Promise.all([places(), page.locator('.map').boundingBox()])
      const [x, y] = box === null ? [NaN, NaN] : [box.x + box.width / 2, box.y + box.height / 2]
      return Math.max(...all.map((place) => Math.hypot(place.x - x, place.y - y)))
    }
    // 13 bits are 2.9 km to each side, at 27 metres a pixel.
    await expect.poll(farthest).toBeLessThan(108)
    const found = await places()
    const apart = found.flatMap((a, index) => found.slice(index + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)))
    expect(Math.min(...apart)).toBeGreaterThan(24)
  })

  test('of two nodes nearer than a target is wide the user chooses by name', async () => {
    // 10 pixels from each other at this zoom level.
    const twins = [0, 0.000858].map((east, index) =>
      crowded(800 + index, { longName: `Twin ${index}`, latitude: 44, longitude: 5 + east }),
    )
    await write(mesh.site, ({ db }) => db.insert(nodes).values(twins))
    const { page } = await openSignedIn(mesh.site, '/map?q=twin&center=44,5&zoom=14')
    await page.getByText(/^2 of \d+ nodes on the map$/).waitFor()
    const box = await page.locator('.map').boundingBox()
    if (box === null) throw new Error('the map has no box')
    await page.mouse.click(box.x + box.width / 2 + 10, box.y + box.height / 2)
    const pile = page.getByRole('dialog', { name: '2 nodes here' })
    await pile.getByRole('button', { name: 'Twin 0' }).click()
    await page.getByRole('heading', { name: 'Twin 0', level: 2 }).waitFor()
  })

  test('a node that moves stays under the mouse, and no waypoint hides it', async () => {
    const { page, goto } = mesh.admin
    const own = { latitude: 46, longitude: 7 }
    await write(mesh.site, async ({ db }) => {
      await db.insert(nodes).values(crowded(500, { longName: 'Aim here', ...own }))
      await db.insert(waypoints).values({
        id: 9,
        fromNodeNum: 0x20000000,
        t: Date.now(),
        name: 'Over it',
        icon: '📍',
        description: '',
        ...own,
        expiresAt: null,
      })
    })
    await goto('/map?q=aim&center=46,7&zoom=12')
    await isLive(mesh.admin)
    await page.getByRole('button', { name: 'Over it' }).waitFor()
    const box = await page.locator('.map').boundingBox()
    if (box === null) throw new Error('the map has no box')
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    // The waypoint may be drawn before the node.
    const tips = async () => {
      await page.mouse.move(x + 60, y + 60)
      await page.mouse.move(x, y, { steps: 4 })
      return page.locator('.map-tip').allTextContents()
    }
    await expect.poll(tips).toStrictEqual([expect.stringContaining('Aim here')])
    mesh.hear(position({ latitudeI: 46_010_0000, longitudeI: 7_010_0000 }), { from: 0x20000000 + 500 })
    // A hand is never quite still. The list beside the map has the news before it presses.
    const row = page.getByRole('row', { name: /Aim here/ })
    let moves = 0
    const look = async () => {
      await page.mouse.move(x + (moves++ % 2), y)
      return row.textContent()
    }
    await expect.poll(look).toMatch(/now|\d s/)
    await page.mouse.click(x, y)
    await page.getByRole('heading', { name: 'Aim here', level: 2 }).waitFor()
    await page.getByText('46.01000, 7.01000').waitFor()
  })
})
