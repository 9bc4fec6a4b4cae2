import { afterAll, beforeAll, expect, test } from 'vitest'
import { telemetry, text } from '../../support/mesh/mesh.ts'
import { FIRST_OF_MANY, openRadioSite, type RadioSite, storeManyNodes } from '../../support/radio/site.ts'
import { pagesWith, THIRD_GENERATION } from '../../support/web/pages.ts'

const NODES = 2000
const MAX_SHIFT = 0.1
/** Pages that load at the same time, each over a link of its own. */
const AT_ONCE = 6
const DESK = { viewport: { width: 1360, height: 860 } }
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const PAGES = pagesWith('!10000001')

/** Cumulative layout shift (web.dev/articles/cls): the worst window of shifts less than a second apart, five at most. */
const WATCH = `
  window.shifts = []
  new PerformanceObserver((list) => {
    for (const { value, startTime, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) shifts.push({ value, startTime, from: sources.map(({ node }) => node?.outerHTML?.slice(0, 60) ?? '').join(' | ') })
  }).observe({ type: 'layout-shift', buffered: true })
  window.worstShift = () => {
    let [worst, sum, begin, last] = [0, 0, 0, -Infinity]
    for (const { value, startTime } of shifts) {
      if (startTime - last > 1000 || startTime - begin > 5000) [sum, begin] = [0, startTime]
      sum += value
      last = startTime
      worst = Math.max(worst, sum)
    }
    return worst
  }`

let mesh: RadioSite
beforeAll(async () => {
  mesh = await openRadioSite()
  await storeManyNodes(mesh.site, NODES, Date.now() - 600_000)
  for (let index = 0; index < 8; index++)
    mesh.hear(text(`Is anybody on hill ${index}?`), { from: FIRST_OF_MANY + index })
  for (let index = 0; index < NODES; index++) {
    const variant = { case: 'deviceMetrics', value: { batteryLevel: index % 100 } } as const
    mesh.hear(telemetry({ variant }), { from: FIRST_OF_MANY + index })
  }
})
afterAll(() => mesh.close())

test.each([
  ['at a desk', DESK],
  ['on a phone', PHONE],
])('no page jumps while it loads on a slow connection, %s', { timeout: 400_000 }, async (_name, options) => {
  const storageState = await mesh.admin.page.context().storageState()
  const jumps: unknown[] = []
  const waiting = [...PAGES]
  const open = async () => {
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const shifts = await watchLoading(path, { ...options, storageState })
      if (shifts.worst > MAX_SHIFT) jumps.push([path, shifts])
    }
  }
  // They wait for the link most of the time.
  await Promise.all(Array.from({ length: AT_ONCE }, open))
  expect(jumps).toEqual([])
})

async function watchLoading(path: string, options: Parameters<RadioSite['site']['visit']>[0]) {
  const { page, goto } = await mesh.site.visit({ ...options, serviceWorkers: 'block' })
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Network.emulateNetworkConditions', THIRD_GENERATION)
  await page.addInitScript(WATCH)
  await goto(path)
  const content = page.locator('.card, tbody tr, .log li, .leaflet-container, .empty, .sections')
  await content.filter({ visible: true }).first().waitFor()
  await page.locator('.progress p').waitFor({ state: 'detached' })
  await page.locator('.live-live').first().waitFor({ state: 'attached' })
  const worst = Number(await page.evaluate('worstShift()'))
  const all = await page.evaluate('shifts')
  await page.context().close()
  return { worst, all }
}
