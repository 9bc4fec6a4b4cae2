import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { position, telemetry, text, user } from '../support/mesh/mesh.ts'
import { isLive, type RadioSite } from '../support/radio/site.ts'
import { pagesWith, THIRD_GENERATION } from '../support/web/pages.ts'
import { FIRST, openLargeSite } from './many-nodes.ts'
import { figure } from './figures.ts'
import { countBytes, kilobytes, largest } from '../support/web/page-bytes.ts'

const NODES = 2000
const PACKETS_PER_SECOND = 2
const SECONDS = 60
/** Received by one open page in a minute. */
const MAX_PER_MINUTE = 50_000
/** The same for the packet log, which also gets the packets themselves and the names of their senders. */
const MAX_PACKETS_PER_MINUTE = 250_000
/** Received by one page in its first seconds, without its scripts and styles, which a browser has cached. */
const MAX_AT_FIRST = 300_000
const FIRST_MS = 4000
const PAGES = pagesWith('!10000001')

let mesh: RadioSite
beforeAll(async () => {
  mesh = await openLargeSite(NODES)
}, 300_000)
afterAll(() => mesh.close())

async function openPage(path: string) {
  const storageState = await mesh.admin.page.context().storageState()
  const visitor = await mesh.site.visit({ storageState, serviceWorkers: 'block' })
  const counted = await countBytes(await visitor.page.context().newCDPSession(visitor.page))
  await visitor.goto(path)
  await isLive(visitor)
  return { ...visitor, counted }
}

test(`with ${NODES} nodes each page loads what it shows`, async () => {
  const most: unknown[] = []
  for (const path of PAGES) {
    const { page, counted } = await openPage(path)
    await wait(FIRST_MS)
    const { by } = counted.take()
    const data = [...by].filter(([url]) => url.startsWith('/api/')).reduce((sum, [, bytes]) => sum + bytes, 0)
    const elements = Number(await page.evaluate('document.querySelectorAll("*").length'))
    figure(`${path} at first`, `${kilobytes(data)} of data, ${elements} elements (${largest(by)})`)
    if (data > MAX_AT_FIRST || elements > 2500) most.push([path, data, elements])
    await page.context().close()
  }
  expect(most).toEqual([])
})

test(`an open page draws at most ${MAX_PER_MINUTE / 1000} kB a minute at ${PACKETS_PER_SECOND} packets a second`, async () => {
  const paths = ['/messages', '/nodes', '/', '/packets']
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
  const packetLog = most.pop()
  expect(Math.max(...most)).toBeLessThanOrEqual(MAX_PER_MINUTE)
  expect(packetLog).toBeLessThanOrEqual(MAX_PACKETS_PER_MINUTE)
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
