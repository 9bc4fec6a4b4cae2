import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { messages } from '../../../src/db/schema.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { openSite, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const WIDTHS = [900, 1360, 1920, 3000]
const PAGES = ['/', '/nodes/!a0cb0001', '/nodes/!a0cb0102', '/settings', '/account', '/users/1']
/** The share of a group of cards that may be empty. */
const MAX_VOID = 0.2

/**
 * The empty share of each group of cards: what no card covers, counting the gaps around a card as its own, and what a
 * card covers below its content.
 */
const VOIDS = `[...document.querySelectorAll('.cards, .pairs, .overview, .figures, .node-top, .node-columns, .node-details')].map((group) => {
  const box = group.getBoundingClientRect()
  const half = parseFloat(getComputedStyle(group).rowGap) / 2
  const filled = [...group.querySelectorAll('.card, .figure')].map((card) => {
    const own = card.getBoundingClientRect()
    const padding = parseFloat(getComputedStyle(card).paddingBottom)
    const end = Math.max(...[...card.querySelectorAll('*')].filter((each) => each.checkVisibility()).map((each) => each.getBoundingClientRect().bottom))
    const left = Math.max(box.left, own.left - half)
    const right = Math.min(box.right, own.right + half)
    const top = Math.max(box.top, own.top - half)
    const bottom = Math.min(box.bottom, end + padding + 2 * half)
    return (right - left) * (bottom - top)
  })
  const all = box.width * box.height
  return Math.round(100 * (1 - filled.reduce((sum, each) => sum + each, 0) / all)) / 100
})`

let site: Site
let visitor: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD }, ({ db }) =>
    db.insert(messages).values(
      Array.from({ length: 6 }, (_, index) => ({
        packetId: 1 + index,
        fromNodeNum: 0xa0cb0102,
        toNodeNum: BROADCAST,
        channel: 0,
        text: `Text ${index}`,
        timestamp: Date.now() - (10 - index) * 60_000,
        direction: 'in' as const,
      })),
    ),
  )
  visitor = await site.visit()
  await visitor.goto('/')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.locator('.fitting li').nth(2).waitFor()
})
afterAll(() => site.close())

test.each(WIDTHS)('cards fill a window of %i px without voids', async (width) => {
  const { page, goto } = visitor
  await page.setViewportSize({ width, height: 1000 })
  const found: [string, number[]][] = []
  for (const path of PAGES) {
    await goto(path)
    await page.locator('.card').first().waitFor()
    await page.locator('.progress p').waitFor({ state: 'detached' })
    found.push([path, z.array(z.number()).parse(await page.evaluate(VOIDS))])
  }
  expect(found.filter(([, voids]) => voids.some((each) => each > MAX_VOID))).toEqual([])
})

test.each([390, 1360])(
  'on the dashboard of %i px what was heard recently comes last and is not the largest',
  async (width) => {
    const { page, goto } = visitor
    await page.setViewportSize({ width, height: 1000 })
    await goto('/')
    await page.locator('.fitting li').nth(2).waitFor()
    const cards = `[...document.querySelectorAll('.page .card')].map((card) => {
    const { width, height, top, left } = card.getBoundingClientRect()
    return { title: card.querySelector('h2').textContent, size: width * height, at: [Math.round(top), Math.round(left)] }
  })`
    const card = z.object({ title: z.string(), size: z.number(), at: z.array(z.number()) })
    const found = z.array(card).parse(await page.evaluate(cards))
    const [last] = found.slice(-1)
    expect(last?.title).toBe('Recently heard')
    expect(found.filter(({ size }) => size > (last?.size ?? 0)).length).toBeGreaterThan(0)
    expect(found.filter(({ at }) => (at[0] ?? 0) > (last?.at[0] ?? 0))).toEqual([])
    expect(found[0]?.title).toMatch(/^What needs you/)
  },
)
