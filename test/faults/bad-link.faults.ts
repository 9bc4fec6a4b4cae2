import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { telemetry, text } from '../support/mesh/mesh.ts'
import type { RadioSite } from '../support/radio/site.ts'
import { THIRD_GENERATION } from '../support/web/pages.ts'
import { FIRST, openLargeSite } from './many-nodes.ts'
import { figure } from './figures.ts'
import { countBytes, kilobytes, largest } from '../support/web/page-bytes.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const PACKETS_PER_SECOND = 2
/** Of scripts, styles and data together, on the first visit of a browser. */
const MAX_BYTES = 450_000

/** Each page, and what shows that its content is there. */
const PAGES = [
  ['/', '.rows.tight a'],
  ['/nodes', 'tbody .row-link'],
  ['/map', '.leaflet-container canvas'],
  ['/messages', '.log li'],
  ['/packets', 'tbody tr'],
  ['/nodes/!10000001', '.card .facts'],
  ['/alerts', '.card'],
  ['/traceroutes', 'tbody tr, .empty, .card'],
] as const

describe.each([300, 2000])('%i nodes', (count) => {
  let mesh: RadioSite
  let packets: ReturnType<typeof setInterval>
  beforeAll(async () => {
    mesh = await openLargeSite(count)
    let heard = 0
    packets = setInterval(() => {
      const from = FIRST + ((heard * 7919) % count)
      const variant = { case: 'deviceMetrics', value: { batteryLevel: heard % 100 } } as const
      mesh.hear(heard % 20 === 0 ? text(`Is anybody on hill ${heard}?`) : telemetry({ variant }), { from })
      heard++
    }, 1000 / PACKETS_PER_SECOND)
  }, 300_000)
  afterAll(() => {
    clearInterval(packets)
    return mesh.close()
  })

  test('a phone on 3G opens each page, and once more', async () => {
    const storageState = await mesh.admin.page.context().storageState()
    const wrong: unknown[] = []
    for (const [path, content] of PAGES) {
      const { page } = await mesh.site.visit({ ...PHONE, storageState, serviceWorkers: 'block' })
      const cdp = await page.context().newCDPSession(page)
      const { take } = await countBytes(cdp)
      await cdp.send('Network.emulateNetworkConditions', THIRD_GENERATION)
      const open = async () => {
        const began = performance.now()
        const passed = () => `${((performance.now() - began) / 1000).toFixed(1)} s`
        // The page that was open stays in sight until the first bytes have come.
        await page.goto(mesh.site.base + path, { waitUntil: 'commit' })
        await page.locator('h1:not(.boot *)').waitFor()
        const heading = passed()
        await page.locator(content).first().waitFor({ state: 'attached' })
        const rows = passed()
        const age = page.getByText('what this browser knew at')
        const isKept = await age.isVisible()
        await page.locator('.progress p').waitFor({ state: 'detached' })
        const { total, by } = take()
        return { heading, rows, isKept, all: passed(), total, by }
      }
      const first = await open()
      figure(
        `${count} nodes, ${path} on 3G: heading, content, all after`,
        `${first.heading}, ${first.rows}, ${first.all}; ${kilobytes(first.total)} (${largest(first.by)})`,
      )
      if (first.total > MAX_BYTES) wrong.push([path, 'received', first.total])
      const again = await open()
      figure(
        `${count} nodes, ${path} again: heading, content${again.isKept ? ' of last time with its age' : ''}, all after`,
        `${again.heading}, ${again.rows}, ${again.all}; ${kilobytes(again.total)} (${largest(again.by)})`,
      )
      if (!again.isKept) wrong.push([path, 'shows nothing of the last time'])
      await page.context().close()
    }
    expect(wrong).toEqual([])
  })
})
