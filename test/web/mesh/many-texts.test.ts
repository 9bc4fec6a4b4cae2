import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { text } from '../../support/mesh/mesh.ts'
import { FIRST_OF_MANY, isLive, openRadioSite, type RadioSite } from '../../support/radio/site.ts'

const DESK = { viewport: { width: 1360, height: 860 } }
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const FIRST = 80
const TEXTS = 150
/** After any number of texts, a page has at most this many times the rows, elements and listeners of its first screen. */
const MOST = 3
/** The head of the page may grow a little, when it offers to print what is no longer loaded. */
const MOST_PX = 8

let mesh: RadioSite
/** Texts are numbered. */
let told = 0
beforeAll(async () => {
  mesh = await openRadioSite()
  tell(FIRST)
  await mesh.admin.goto('/messages')
  await said(mesh.admin.page, FIRST - 1).waitFor()
})
afterAll(() => mesh.close())

/** Texts of eight senders, each with three in a row. */
function tell(count: number): void {
  for (const end = told + count; told < end; told++) {
    mesh.hear(text(`text ${told} of the day`), { from: FIRST_OF_MANY + (Math.floor(told / 3) % 8) })
  }
}

const said = (page: Page, n: number) => page.locator('.message p').getByText(`text ${n} of the day`, { exact: true })

const LOOK = `(() => {
  const box = document.querySelector('.log')
  const { top, bottom, height } = box.getBoundingClientRect()
  const isSeen = (place) => place.bottom > top && place.top < bottom
  const rows = [...box.querySelectorAll('li')].filter((row) => isSeen(row.getBoundingClientRect()))
  const wordsOf = (row) => row.querySelector('p')
  const seen = rows.map(wordsOf).map((words) => ({ n: Number(words.textContent.match(/text (\\d+) of/)[1]), top: words.getBoundingClientRect().top - top }))
  return { seen, height, above: box.scrollTop, below: box.scrollHeight - box.clientHeight - box.scrollTop }
})()`
const looked = z.object({
  seen: z.array(z.object({ n: z.number(), top: z.number() })),
  height: z.number(),
  above: z.number(),
  below: z.number(),
})

/** The texts in sight, and where each is below the edge of the log. */
const look = async (page: Page) => looked.parse(await page.evaluate(LOOK))
const inSight = async (page: Page) => (await look(page)).seen.map(({ n }) => n)

/** Scrolls through the log until a text is in sight, and returns all that were. Nothing moves but by the scrolling. */
async function scrollTo(page: Page, wanted: number, direction: -1 | 1): Promise<Set<number>> {
  const passed = new Set<number>()
  for (let view = await look(page); ;) {
    for (const { n } of view.seen) passed.add(n)
    if (passed.has(wanted)) return passed
    const by = direction * Math.floor(Math.min(view.height * 0.8, direction < 0 ? view.above : view.below))
    await page.locator('.log').evaluate((box, by) => box.scrollBy(0, by), by)
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    const next = await look(page)
    const stays = view.seen.filter(({ n }) => next.seen.some((other) => other.n === n))
    const moved = stays.map(({ n, top }) =>
      Math.round(top - by - (next.seen.find((other) => other.n === n)?.top ?? NaN)),
    )
    expect([wanted, stays.length > 0, moved.filter((px) => Math.abs(px) > MOST_PX)]).toEqual([wanted, true, []])
    view = next
  }
}

const counted = z.object({ metrics: z.array(z.object({ name: z.string(), value: z.number() })) })

async function weigh(page: Page): Promise<ReadonlyMap<string, number>> {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable')
  await cdp.send('HeapProfiler.collectGarbage')
  const { metrics } = counted.parse(await cdp.send('Performance.getMetrics'))
  await cdp.detach()
  const rows = await page.locator('.log li').count()
  const elements = await page.locator('*').count()
  const listeners = metrics.find(({ name }) => name === 'JSEventListeners')?.value ?? NaN
  return new Map(Object.entries({ rows, elements, listeners }))
}

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

describe.each([
  ['at a desk', DESK],
  ['on a phone', PHONE],
])('%s', (_name, options) => {
  test(
    `${TEXTS} texts leave an open page as light as it was, and all are reached by scrolling`,
    { timeout: 300_000 },
    async () => {
      const { site, admin } = mesh
      const visitor = await site.visit({ ...options, storageState: await admin.page.context().storageState() })
      const { page } = visitor
      await visitor.goto('/messages?channel=0')
      await isLive(visitor)
      await said(page, told - 1).waitFor()
      const first = await weigh(page)
      const tooMuch = async () => {
        const now = await weigh(page)
        return [...now].filter(([what, count]) => !(count <= MOST * (first.get(what) ?? NaN)))
      }

      // Somebody who follows the newest.
      tell(TEXTS)
      // Fingers may be about to touch, so the latest are shown on request.
      if (options === PHONE) await page.getByRole('button', { name: `${TEXTS} new messages` }).tap()
      await expect.poll(() => inSight(page)).toContain(told - 1)
      await expect.poll(tooMuch, { interval: 200 }).toEqual([])

      // Somebody who reads the history, up to the first text.
      const last = told - 1
      expect([...(await scrollTo(page, 0, -1))].toSorted((a, b) => a - b)).toEqual(numbers(0, told))
      await expect.poll(tooMuch, { interval: 200 }).toEqual([])

      const before = await look(page)
      tell(TEXTS)
      await page.getByRole('button', { name: `${TEXTS} new messages` }).waitFor()
      expect((await look(page)).seen).toEqual(before.seen)
      await expect.poll(tooMuch, { interval: 200 }).toEqual([])
      expect(await scrollTo(page, last, 1)).toContain(100)
      expect([...(await scrollTo(page, told - 1, 1))].filter((n) => n > last)).toHaveLength(TEXTS)
      await expect.poll(tooMuch, { interval: 200 }).toEqual([])
      await page.getByRole('button', { name: 'Go to the latest' }).waitFor({ state: 'detached' })
      expect(visitor.complaints).toEqual([])
      await page.context().close()
    },
  )
})
