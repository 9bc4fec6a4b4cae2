import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { text } from '../support/mesh/mesh.ts'
import { FIRST_OF_MANY, openRadioSite, type RadioSite, storeManyNodes } from '../support/radio/site.ts'
import { follow } from '../support/web/follow.ts'
import { pagesWith } from '../support/web/pages.ts'

const PHONE = { isMobile: true, hasTouch: true }
const SIZES = [
  ['on a phone', { ...PHONE, viewport: { width: 390, height: 780 } }],
  ['on a phone that lies', { ...PHONE, viewport: { width: 740, height: 360 } }],
  ['on a large phone that lies', { ...PHONE, viewport: { width: 915, height: 412 } }],
  ['at a desk', { viewport: { width: 1360, height: 860 } }],
] as const

/**
 * What of the page the toast covers, or covers it: the visible part of each element that is pressed or read, clipped by
 * what scrolls, against the toast's rectangle, with the page at its beginning, in its middle and at its end.
 */
const COVERED = `(() => {
  const toast = document.querySelector('.toast')
  const top = document.querySelector('dialog') ?? document.querySelector('#app')
  const scroller = top.querySelector('.dialog-body, .scroller')
  const visiblePart = (element) => {
    let { left, right, top, bottom } = element.getBoundingClientRect()
    for (let each = element.parentElement; each !== null; each = each.parentElement) {
      const { overflowX, overflowY, display } = getComputedStyle(each)
      if (display === 'contents' || (overflowX === 'visible' && overflowY === 'visible')) continue
      const box = each.getBoundingClientRect()
      left = Math.max(left, box.left)
      right = Math.min(right, box.right)
      top = Math.max(top, box.top)
      bottom = Math.min(bottom, box.bottom)
    }
    return { left, right, top, bottom }
  }
  const isSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !element.closest('.sr-only, .skip, .toaster')
  const isReadOrPressed = (element) =>
    element.matches('a, button, input, select, textarea, label, summary, canvas, img, [tabindex="0"]') ||
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '')
  const found = new Set()
  const look = () => {
    const own = toast.getBoundingClientRect()
    if (own.height === 0 || own.top < 0 || own.bottom > innerHeight || own.left < 0 || own.right > innerWidth) found.add('the toast is out of sight')
    if (!toast.contains(document.elementFromPoint((own.left + own.right) / 2, (own.top + own.bottom) / 2))) found.add('the toast is covered')
    for (const element of top.querySelectorAll('*')) {
      if (!isReadOrPressed(element) || !isSeen(element)) continue
      const part = visiblePart(element)
      const across = Math.min(part.right, own.right) - Math.max(part.left, own.left)
      const down = Math.min(part.bottom, own.bottom) - Math.max(part.top, own.top)
      if (across > 0.5 && down > 0.5) found.add(element.outerHTML.slice(0, 80))
    }
  }
  for (const part of [0, 0.5, 1]) {
    scroller.scrollTo(0, part * (scroller.scrollHeight - scroller.clientHeight))
    look()
  }
  return [...found]
})()`

let mesh: RadioSite
beforeAll(async () => {
  mesh = await openRadioSite()
  await storeManyNodes(mesh.site, 60, Date.now() - 600_000)
  for (let index = 0; index < 30; index++)
    mesh.hear(text(`Is anybody on hill ${index}?`), { from: FIRST_OF_MANY + index })
  await mesh.admin.goto('/packets')
  await mesh.admin.page.locator('tbody tr').nth(29).waitFor()
  // The bar of a lost radio stands above the toast on every page.
  mesh.device.refuse(true)
  mesh.device.kick()
})
afterAll(() => mesh.close())

/** Shows the toast that the connection is back, which any page may show at any time. */
async function showToast(page: Page): Promise<void> {
  await page.context().setOffline(true)
  await page
    .getByText(/offline/i)
    .first()
    .waitFor()
  await page.context().setOffline(false)
  await page.locator('.toast').waitFor()
}

test.each(SIZES)('a toast covers nothing, on any page, %s', async (_name, options) => {
  const { page, goto } = await mesh.site.visit({
    ...options,
    storageState: await mesh.admin.page.context().storageState(),
  })
  await goto('/')
  const covered: unknown[] = []
  const look = async (name: string) => {
    await showToast(page)
    const found = await page.evaluate(COVERED)
    if (String(found) !== '') covered.push([name, found])
  }
  const open = async (path: string) => {
    await follow(page, path)
    await page.locator('.trouble').first().waitFor()
    await page.locator('.progress p').waitFor({ state: 'detached' })
  }
  for (const path of pagesWith('!10000001')) {
    await open(path)
    await look(path)
  }
  await open('/messages')
  await page.locator('.log li').first().waitFor()
  await look('a conversation')
  await open('/nodes?hops=0')
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByRole('button', { name: 'Columns', exact: true }).click()
  await page.getByRole('dialog').waitFor()
  await look('a window')
  if (options.viewport.width < 768) {
    await open('/')
    await page.getByRole('button', { name: 'More' }).click()
    await page.locator('.sheet').waitFor()
    await look('the list of more pages')
  }
  expect(covered).toEqual([])
  await page.context().close()
})
