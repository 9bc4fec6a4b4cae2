import { create, toBinary } from '@bufbuild/protobuf'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NeighborInfoSchema, RouteDiscoverySchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { LOCAL, telemetry, text } from '../../support/mesh/mesh.ts'
import {
  FIRST_OF_MANY,
  isLive,
  openRadioSite,
  type RadioSite,
  SITE_PASSWORD,
  storeManyNodes,
} from '../../support/radio/site.ts'

const NODES = 300
const TAPS = 60
/** Taps at the same time, each on a phone of its own. */
const PHONES = 4
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
/** Many more than a large mesh brings. */
const PACKETS_PER_SECOND = 20
/** What the mesh brings while a finger moves: 0.6 s. */
const REACTION = PACKETS_PER_SECOND * 0.6

/** Lists, and a row in each. */
const LISTS = [
  ['/nodes', '.steady tbody tr:not(.gap)'],
  ['/packets', '.steady tbody tr'],
  ['/', '.steady .rows li'],
  ['/messages', '.log li'],
  ['/neighbors', '.steady tbody tr:not(.gap)'],
  ['/traceroutes', '.steady .trace'],
] as const

let mesh: RadioSite
let heard = 0

function tell(): void {
  heard += 1
  const index = (heard * 7919) % NODES
  const [from, neighbor] = [FIRST_OF_MANY + index, FIRST_OF_MANY + ((index + 1) % NODES)]
  if (heard % 4 === 0) mesh.hear(text(`text ${heard}`), { from })
  else if (heard % 4 === 1) {
    const neighbors = [{ nodeId: neighbor, snr: heard % 12 }]
    const payload = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, { nodeId: from, neighbors }))
    mesh.hear({ portnum: PortNum.NEIGHBORINFO_APP, payload }, { from })
  } else if (heard % 4 === 2) {
    const route = { route: [neighbor], snrTowards: [20, 24] }
    const payload = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, route))
    mesh.hear({ portnum: PortNum.TRACEROUTE_APP, payload, requestId: heard }, { from, to: LOCAL + 7 })
  } else mesh.hear(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: heard % 100 } } }), { from })
}

let traffic: ReturnType<typeof setInterval> | undefined
beforeAll(async () => {
  mesh = await openRadioSite()
  await storeManyNodes(mesh.site, NODES, Date.now() - 3_600_000)
  traffic = setInterval(tell, 1000 / PACKETS_PER_SECOND)
})
afterAll(async () => {
  clearInterval(traffic)
  await mesh.close()
})

async function pass(packets: number): Promise<void> {
  const before = heard
  await expect.poll(() => heard - before, { interval: 20 }).toBeGreaterThanOrEqual(packets)
}

/** Nothing happens at a tap but that its row is noted. */
const NOTE_TAPS = `window.tapped = []
addEventListener('click', (event) => {
  event.preventDefault()
  event.stopImmediatePropagation()
  window.tapped.push(event.target.closest('tr, li')?.dataset.aim ?? 'another')
}, true)`

type Tap = { readonly path: string; readonly row: number; readonly wait: number }

/** Taps on the row that is somewhere on a page that was just opened, and returns what the tap hit. */
async function tap(page: Page, { path, row, wait }: Tap): Promise<string> {
  const selector = LISTS.find(([each]) => each === path)?.[1] ?? ''
  const answers = new Set<Promise<unknown>>()
  page.on('request', (request) => {
    // A request that another page's opening cuts short has no answer to wait for.
    if (!request.url().endsWith('/api/events')) answers.add(request.response().catch(() => null))
  })
  await page.goto(mesh.site.base + path)
  const rows = page.locator(selector)
  await rows.nth(row).waitFor({ state: 'attached' })
  await isLive({ page })
  // What the page shows until its answers are here is from the last visit.
  await Promise.all(answers)
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  page.removeAllListeners('request')
  await pass(wait)
  const seen = await page.evaluate(`(() => {
    const rows = [...document.querySelectorAll(${JSON.stringify(selector)})]
    // The list of the dashboard begins below the screen.
    if (rows[0].getBoundingClientRect().top > innerHeight / 2) rows[0].scrollIntoView({ block: 'center', behavior: 'instant' })
    const placeOf = (each) => { const { left, top, height } = each.getBoundingClientRect(); return { x: left + 40, y: top + Math.min(height / 2, 30) } }
    const seen = rows.filter((each) => { const { x, y } = placeOf(each); return each.contains(document.elementFromPoint(x, y)) })
    const aimed = seen[${row} % seen.length]
    aimed.dataset.aim = 'aimed'
    return placeOf(aimed)
  })()`)
  const { x, y } = Object(seen)
  await pass(REACTION)
  await page.touchscreen.tap(x, y)
  await expect.poll(() => page.evaluate('tapped.length')).toBe(1)
  return String(await page.evaluate('tapped[0]'))
}

test(`on a phone, ${TAPS} of ${TAPS} first taps hit the row they aim at`, { timeout: 300_000 }, async () => {
  const entrance = await mesh.site.visit(PHONE)
  await entrance.goto('/')
  await entrance.signIn('admin', SITE_PASSWORD)
  await isLive(entrance)
  await pass(100)
  const storageState = await entrance.page.context().storageState()
  const taps = Array.from({ length: TAPS }, (_, index): Tap => {
    const [path] = LISTS[index % LISTS.length] ?? LISTS[0]
    return { path, row: (index * 7) % 5, wait: (index * 13) % 20 }
  })
  const hits: [string, string][] = []
  const walk = async () => {
    const { page } = await mesh.site.visit({ ...PHONE, storageState })
    await page.addInitScript(NOTE_TAPS)
    for (let next = taps.shift(); next !== undefined; next = taps.shift()) hits.push([next.path, await tap(page, next)])
    await page.context().close()
  }
  await Promise.all(Array.from({ length: PHONES }, walk))
  expect(hits.filter(([, hit]) => hit !== 'aimed')).toEqual([])
  expect(hits).toHaveLength(TAPS)
})
