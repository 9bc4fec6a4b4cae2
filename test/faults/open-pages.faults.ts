import { setTimeout as wait } from 'node:timers/promises'
import type { CDPSession } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodes } from '../../src/db/schema.ts'
import { position, telemetry, text, user } from '../support/mesh/mesh.ts'
import { isLive, openRadioSite, type RadioSite } from '../support/radio/site.ts'
import { pagesWith, THIRD_GENERATION } from '../support/web/pages.ts'
import { figure } from './figures.ts'

const FIRST = 0x10000000
const NODES = 2000
const PACKETS_PER_SECOND = 2
const SECONDS = 60
/** Received by one open page in a minute. */
const MOST_A_MINUTE = 50_000
/** Received by one page in its first seconds, without its scripts and styles, which a browser has cached. */
const MOST_AT_FIRST = 300_000
const FIRST_MS = 4000
const PAGES = pagesWith('!10000001')

let mesh: RadioSite
beforeAll(async () => {
  const lastHeard = Date.now() - 600_000
  const all = Array.from({ length: NODES }, (_, index) => ({
    nodeNum: FIRST + index,
    longName: `Crowd ${String(index).padStart(4, '0')}`,
    shortName: String(index).padStart(4, '0'),
    hwModel: [43, 9, 25, 31][index % 4] ?? 43,
    role: index % 10 === 0 ? 2 : 0,
    publicKey: Buffer.from(
      Array.from({ length: 32 }, (__, at) => (index * 31 + at * 17 + ((index * at) % 251)) % 256),
    ).toString('base64'),
    latitude: 47 + ((index * 7919) % NODES) / 1000,
    longitude: 8 + ((index * 104_729) % NODES) / 1000,
    altitude: 300 + (index % 700),
    precisionBits: 16,
    positionTime: lastHeard,
    batteryLevel: index % 100,
    voltage: 3.3 + (index % 90) / 100,
    channelUtilization: (index % 300) / 10,
    airUtilTx: (index % 50) / 10,
    uptimeSeconds: index * 97,
    deviceMetricsTime: lastHeard,
    hopsAway: index % 7,
    channel: 0,
    firstHeard: lastHeard,
    lastHeard: lastHeard + index,
  }))
  mesh = await openRadioSite(undefined, [], async ({ db }) => {
    for (let at = 0; at < NODES; at += 500) await db.insert(nodes).values(all.slice(at, at + 500))
  })
}, 300_000)
afterAll(() => mesh.close())

type Counted = {
  /** Since the last call. */
  take(): { total: number; by: Map<string, number> }
  isFinished(path: string): boolean
}

/** Counts the bytes that a page receives, headers included, as the network of the browser sees them. */
async function countBytes(cdp: CDPSession): Promise<Counted> {
  const urls = new Map<string, string>()
  const received = new Map<string, number>()
  const finished = new Set<string>()
  let taken = new Map<string, number>()
  cdp.on('Network.responseReceived', ({ requestId, response }) => {
    urls.set(requestId, new URL(response.url).pathname)
    received.set(requestId, response.encodedDataLength)
  })
  cdp.on('Network.dataReceived', ({ requestId, encodedDataLength }) => {
    received.set(requestId, (received.get(requestId) ?? 0) + encodedDataLength)
  })
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    received.set(requestId, encodedDataLength)
    finished.add(urls.get(requestId) ?? '')
  })
  await cdp.send('Network.enable')
  return {
    isFinished: (path) => finished.has(path),
    take() {
      const by = new Map<string, number>()
      for (const [id, bytes] of received) {
        const url = urls.get(id) ?? id
        by.set(url, (by.get(url) ?? 0) + bytes - (taken.get(id) ?? 0))
      }
      taken = new Map(received)
      return { total: [...by.values()].reduce((sum, bytes) => sum + bytes, 0), by }
    },
  }
}

async function openPage(path: string) {
  const storageState = await mesh.admin.page.context().storageState()
  const visitor = await mesh.site.visit({ storageState, serviceWorkers: 'block' })
  const counted = await countBytes(await visitor.page.context().newCDPSession(visitor.page))
  await visitor.goto(path)
  await isLive(visitor)
  return { ...visitor, counted }
}

const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`
const largest = (by: Map<string, number>) =>
  [...by]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([url, bytes]) => `${url} ${kilobytes(bytes)}`)
    .join(', ')

test(`with ${NODES} nodes each page loads what it shows`, async () => {
  const most: unknown[] = []
  for (const path of PAGES) {
    const { page, counted } = await openPage(path)
    await wait(FIRST_MS)
    const { by } = counted.take()
    const data = [...by].filter(([url]) => url.startsWith('/api/')).reduce((sum, [, bytes]) => sum + bytes, 0)
    const elements = Number(await page.evaluate('document.querySelectorAll("*").length'))
    figure(`${path} at first`, `${kilobytes(data)} of data, ${elements} elements (${largest(by)})`)
    if (data > MOST_AT_FIRST || elements > 2500) most.push([path, data, elements])
    await page.context().close()
  }
  expect(most).toEqual([])
})

test(`an open page draws at most ${MOST_A_MINUTE / 1000} kB a minute at ${PACKETS_PER_SECOND} packets a second`, async () => {
  const paths = ['/messages', '/nodes', '/']
  const pages = await Promise.all(paths.map(openPage))
  await wait(FIRST_MS)
  for (const { counted } of pages) counted.take()
  for (let count = 0; count < SECONDS * PACKETS_PER_SECOND; count++) {
    const index = (count * 7919) % NODES
    const value = {
      batteryLevel: count % 100,
      voltage: 3.7,
      channelUtilization: 12.3,
      airUtilTx: 1.5,
      uptimeSeconds: count * 60,
    }
    const said = [
      telemetry({ variant: { case: 'deviceMetrics', value } }),
      position({ latitudeI: 470_000_000 + count * 1000, longitudeI: 80_000_000, altitude: 400, precisionBits: 16 }),
      user({
        longName: `Crowd ${String(index).padStart(4, '0')}`,
        shortName: String(index).padStart(4, '0'),
        hwModel: 43,
      }),
      count % 20 === 3
        ? text(`Is anybody on hill ${count}?`)
        : telemetry({ variant: { case: 'deviceMetrics', value } }),
    ][count % 4]
    if (said !== undefined) mesh.hear(said, { from: FIRST + index })
    await wait(1000 / PACKETS_PER_SECOND)
  }
  const most = pages.map(({ counted }, at) => {
    const { total, by } = counted.take()
    figure(`${paths[at]} in a minute`, `${kilobytes(total)} (${largest(by)})`)
    return total
  })
  expect(Math.max(...most)).toBeLessThanOrEqual(MOST_A_MINUTE)
})

test('on a slow connection the last known list is shown before the new one arrives', async () => {
  const { page, goto } = await openPage('/nodes')
  const rows = page.locator('tbody .row-link')
  await rows.first().waitFor()
  // Until the browser has stored it.
  await wait(FIRST_MS)
  const cdp = await page.context().newCDPSession(page)
  const { take, isFinished } = await countBytes(cdp)
  await cdp.send('Network.emulateNetworkConditions', THIRD_GENERATION)
  const began = performance.now()
  await goto('/nodes')
  await rows.first().waitFor()
  const wasLoaded = isFinished('/api/nodes')
  figure('/nodes again on 3G: the last known list after', `${((performance.now() - began) / 1000).toFixed(1)} s`)
  await expect.poll(() => isFinished('/api/nodes'), { timeout: 60_000 }).toBe(true)
  const { total, by } = take()
  figure('/nodes again on 3G: all after', `${((performance.now() - began) / 1000).toFixed(1)} s`)
  figure('/nodes again on 3G: received', `${kilobytes(total)} (${largest(by)})`)
  expect(wasLoaded).toBe(false)
})
