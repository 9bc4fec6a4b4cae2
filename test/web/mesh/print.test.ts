import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { auditLog } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { text } from '../../support/mesh/mesh.ts'
import { FIRST_OF_MANY, openRadioSite, type RadioSite, storeManyNodes } from '../../support/radio/site.ts'

const ROWS = 330
const DESK = { viewport: { width: 1360, height: 860 } }
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

const numbered = (name: string, end = '') =>
  Array.from({ length: ROWS }, (_, index) => `${name} ${String(index).padStart(3, '0')}${end}`)
/** What each list must have on paper; a list of which only the first rows are loaded is printed as a whole on request. */
const LISTS = [
  { path: '/nodes', rows: numbered('Crowd'), isWhole: true },
  { path: '/packets', rows: numbered('Crowd'), isWhole: false },
  { path: '/messages', rows: numbered('Is anybody on hill', '?'), isWhole: false },
  { path: '/audit', rows: numbered('visitor'), isWhole: false },
] as const

let mesh: RadioSite
beforeAll(async () => {
  mesh = await openRadioSite()
  await storeManyNodes(mesh.site, ROWS, Date.now() - 600_000)
  const store = openDatabase(join(mesh.site.data, 'mesh.db'))
  const entries = numbered('visitor').map((username, index) => {
    return { timestamp: Date.now() - index, username, action: 'login_failure', resource: 'session', details: '{}' }
  })
  await store.db.insert(auditLog).values(entries)
  store.close()
  for (const [index, words] of numbered('Is anybody on hill', '?').entries())
    mesh.hear(text(words), { from: FIRST_OF_MANY + index })
  await mesh.admin.goto('/messages')
  await mesh.admin.page
    .getByText(`Is anybody on hill ${ROWS - 1}?`)
    .first()
    .waitFor()
})
afterAll(() => mesh.close())

/** What is cut off instead of printed: parts that scroll on the screen. */
const CUT = `[...document.querySelectorAll('#app *')]
  .filter((each) => each.checkVisibility() && !each.closest('.sr-only, svg'))
  .filter((each) => getComputedStyle(each).overflowY !== 'visible' && each.scrollHeight > each.clientHeight + 1)
  .map((each) => each.className)`

async function pagesOnPaper(page: Page): Promise<number> {
  const paper = (await page.pdf({ format: 'A4' })).toString('latin1')
  return paper.match(/\/Type\s*\/Page\b/g)?.length ?? 0
}

test.each([
  ['at a desk', DESK],
  ['on a phone', PHONE],
])('paper shows all rows of every list, %s', async (_name, options) => {
  const { page, goto } = await mesh.site.visit({
    ...options,
    storageState: await mesh.admin.page.context().storageState(),
  })
  await page.addInitScript('window.prints = 0; window.print = () => { prints++ }')
  for (const { path, rows, isWhole } of LISTS) {
    await goto(path)
    await page.locator('tbody tr, .log li').nth(10).waitFor()
    if (!isWhole) {
      expect(await page.getByText('The list goes on').isVisible()).toBe(false)
      await page.emulateMedia({ media: 'print' })
      await page.getByText('The list goes on').waitFor()
      await page.emulateMedia({ media: null })
      if (options === DESK) await page.keyboard.press('Control+p')
      else await page.getByRole('button', { name: 'Print all' }).tap()
      await expect.poll(() => page.evaluate('prints')).toBe(1)
    }
    await page.emulateMedia({ media: 'print' })
    const missing = async () => {
      const printed = await page.locator('body').innerText()
      return rows.filter((row) => !printed.includes(row)).slice(0, 3)
    }
    await expect.poll(async () => [path, await missing()]).toEqual([path, []])
    expect([path, await page.getByText('The list goes on').count()]).toEqual([path, 0])
    expect([path, await page.evaluate(CUT)]).toEqual([path, []])
    await page.emulateMedia({ media: null })
    // At least 40 rows do not fit on one sheet.
    expect(await pagesOnPaper(page)).toBeGreaterThan(ROWS / 60)
  }
  await page.context().close()
})
