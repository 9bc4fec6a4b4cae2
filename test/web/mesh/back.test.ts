import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodes } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { telemetry, text } from '../../support/mesh/mesh.ts'
import { isLive, openRadioSite, type RadioSite } from '../../support/radio/site.ts'

const FIRST = 0x10000000
const NODES = 2000
const PACKETS = 700
const DEPTH = 20_000

let mesh: RadioSite
beforeAll(async () => {
  mesh = await openRadioSite()
  const store = openDatabase(join(mesh.site.data, 'mesh.db'))
  const lastHeard = Date.now() - 3_600_000
  const many = Array.from({ length: NODES }, (_, index) => ({
    nodeNum: FIRST + index,
    longName: `Crowd ${String(index).padStart(4, '0')}`,
    firstHeard: lastHeard,
    lastHeard: lastHeard + index,
  }))
  for (let at = 0; at < NODES; at += 500) await store.db.insert(nodes).values(many.slice(at, at + 500))
  store.close()
  for (let index = 0; index < PACKETS; index++) {
    const variant = { case: 'deviceMetrics', value: { batteryLevel: index % 100 } } as const
    mesh.hear(telemetry({ variant }), { from: FIRST + index })
  }
})
afterAll(() => mesh.close())

/** What stands at a place of the screen. */
const textAt = (page: Page, x: number, y: number) =>
  page.evaluate(`document.elementFromPoint(${x}, ${y}).closest('tr').textContent.slice(0, 40)`)

test('back leads to the same place in the list of nodes, and new rows wait', async () => {
  const { page, goto } = mesh.admin
  await goto('/nodes')
  await isLive(mesh.admin)
  await page.getByText(/^2,\d{3} nodes$/).waitFor()
  const box = page.locator('.virtual')
  await box.evaluate((element, top) => element.scrollTo(0, top), DEPTH)
  await expect.poll(() => box.evaluate(({ scrollTop }) => scrollTop)).toBe(DEPTH)
  await page.mouse.move(600, 500)
  // Its age in the same row goes on.
  const nameThere = async () => /Crowd \d{4}/.exec(String(await textAt(page, 600, 500)))?.[0] ?? 'none'
  await expect.poll(nameThere).not.toBe('none')
  const name = await nameThere()
  const link = page.locator('.row-link', { hasText: name })
  await link.click()
  await page.locator('h1', { hasText: /^Crowd/ }).waitFor()
  const from = FIRST + 3
  mesh.hear(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 1 } } }), { from })
  await page.goBack()
  await expect.poll(() => box.evaluate(({ scrollTop }) => scrollTop)).toBe(DEPTH)
  await expect.poll(nameThere).toBe(name)
  await page.getByRole('button', { name: /newer$|^Order has changed$/ }).waitFor()
  expect(await nameThere()).toBe(name)
})

test('back leads to the same place in the packet log, with everything that was loaded', async () => {
  const { page, goto } = mesh.admin
  await goto('/packets')
  await isLive(mesh.admin)
  for (let loaded = 100; loaded < 600; loaded += 100) {
    await expect.poll(() => page.locator('tbody tr').count()).toBeGreaterThanOrEqual(loaded)
    await page.getByRole('button', { name: 'Show more' }).click()
  }
  await expect.poll(() => page.locator('tbody tr').count()).toBeGreaterThanOrEqual(600)
  const scroller = page.locator('.scroller')
  await scroller.evaluate((element, top) => element.scrollTo(0, top), DEPTH)
  const y = () => scroller.evaluate(({ scrollTop }) => scrollTop)
  await expect.poll(y).toBe(DEPTH)
  const row = await textAt(page, 600, 400)
  await page.getByRole('navigation', { name: 'Main' }).first().getByRole('link', { name: 'Neighbours' }).click()
  await page.getByRole('heading', { name: 'Neighbours', level: 1 }).waitFor()
  await page.goBack()
  await expect.poll(y).toBe(DEPTH)
  await expect.poll(() => textAt(page, 600, 400)).toBe(row)
})

test('back gives the focus to the link that was followed, in lists and in messages', async () => {
  const { page, goto } = mesh.admin
  const focused = () => page.evaluate('document.activeElement.textContent')
  await goto('/nodes')
  await isLive(mesh.admin)
  await page.locator('tbody .row-link').nth(4).waitFor()
  const link = page.locator('tbody .row-link').nth(4)
  const name = await link.textContent()
  await link.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: String(name), level: 1 }).waitFor()
  await page.goBack()
  await expect.poll(focused).toBe(name)

  // Three names of the same sender, of which one was followed.
  for (let n = 0; n < 90; n++) mesh.hear(text(`line ${n}`), { from: n % 30 === 0 ? FIRST : FIRST + 1 })
  await goto('/messages?channel=0')
  await isLive(mesh.admin)
  const message = page.locator('.log li', { hasText: 'line 60' })
  await message.getByRole('link').focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Crowd 0000', level: 1 }).waitFor()
  await page.goBack()
  const isBack = 'document.activeElement.closest("li")?.textContent.includes("line 60") === true'
  await expect.poll(() => page.evaluate(isBack)).toBe(true)
})

test('paper shows all rows', async () => {
  const { page, goto } = mesh.admin
  await goto('/nodes')
  await page.getByText(/^2,\d{3} nodes$/).waitFor()
  expect(await page.locator('tbody tr').count()).toBeLessThan(80)
  await page.emulateMedia({ media: 'print' })
  await expect.poll(() => page.locator('tbody tr:not(.gap)').count()).toBeGreaterThanOrEqual(NODES)
  const height = await page.locator('.virtual').evaluate(({ clientHeight }) => clientHeight)
  expect(height).toBeGreaterThan(NODES * 30)
  await page.emulateMedia({ media: 'screen' })
  await expect.poll(() => page.locator('tbody tr').count()).toBeLessThan(80)
})
