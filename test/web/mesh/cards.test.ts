import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
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
const VOIDS = `[...document.querySelectorAll('.cards, .node-top, .node-columns, .node-details')].map((group) => {
  const box = group.getBoundingClientRect()
  const half = parseFloat(getComputedStyle(group).rowGap) / 2
  const filled = [...group.querySelectorAll('.card')].map((card) => {
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
  site = await openSite({ ADMIN_PASSWORD })
  visitor = await site.visit()
  await visitor.goto('/')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.locator('.rows.tight li').nth(9).waitFor()
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
