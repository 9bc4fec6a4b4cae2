import { afterAll, beforeAll, expect, test } from 'vitest'
import { telemetry, text } from '../../support/mesh/mesh.ts'
import {
  FIRST_OF_MANY,
  isLive,
  openRadioSite,
  type RadioSite,
  SITE_PASSWORD,
  storeManyNodes,
} from '../../support/radio/site.ts'

const NODES = 300
const CLICKS = 60
/** Many more than a large mesh brings. */
const PACKETS_PER_SECOND = 20

let mesh: RadioSite
let isQuiet = false
let heard = 0
const traffic = setInterval(() => {
  if (isQuiet || mesh === undefined) return
  const from = FIRST_OF_MANY + ((heard * 7919) % NODES)
  heard += 1
  mesh.hear(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: heard % 100 } } }), { from })
}, 1000 / PACKETS_PER_SECOND)

beforeAll(async () => {
  mesh = await openRadioSite()
  await storeManyNodes(mesh.site, NODES, Date.now() - 3_600_000)
})
afterAll(async () => {
  clearInterval(traffic)
  await mesh.close()
})

test(`while packets arrive, ${CLICKS} of ${CLICKS} clicks hit the intended node`, { timeout: 300_000 }, async () => {
  const { page, goto } = mesh.admin
  await goto('/nodes')
  await isLive(mesh.admin)
  await page.getByText(/^3\d\d nodes$/).waitFor()
  const hits: boolean[] = []
  for (let click = 0; click < CLICKS; click++) {
    const before = heard
    await page.mouse.move(300, 40)
    const link = page.locator('tbody .row-link').nth(1 + (click % 9))
    const [name, box] = [await link.textContent(), await link.boundingBox()]
    if (box === null) throw new Error('a row without a place')
    await page.mouse.move(box.x + 20, box.y + box.height / 2, { steps: 10 })
    // At least as long as a hand takes: the mesh has changed meanwhile.
    await expect.poll(() => heard - before).toBeGreaterThan(10)
    await page.mouse.down()
    await page.mouse.up()
    await page.locator('h1', { hasText: /^Crowd/ }).waitFor()
    hits.push((await page.locator('h1').textContent()) === name)
    await page.goBack()
    await page.getByText(/^3\d\d nodes$/).waitFor()
  }
  expect(hits.filter(Boolean)).toHaveLength(CLICKS)
})

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const TAPS = 20
const MOMENTS = 40
/** What the mesh brings while a hand or a finger moves: 0.6 s. */
const REACTION = PACKETS_PER_SECOND * 0.6

async function passReaction(): Promise<void> {
  const before = heard
  await expect.poll(() => heard - before, { interval: 20 }).toBeGreaterThanOrEqual(REACTION)
}

test(`on a phone, ${TAPS} of ${TAPS} first taps hit the intended node`, { timeout: 300_000 }, async () => {
  const phone = await mesh.site.visit(PHONE)
  await phone.goto('/')
  await phone.signIn('admin', SITE_PASSWORD)
  await isLive(phone)
  const { page } = phone
  const hits: boolean[] = []
  for (let tap = 0; tap < TAPS; tap++) {
    // A page opened anew, so that nothing was touched in it.
    await page.goto(`${mesh.site.base}/nodes`)
    const link = page.locator('tbody .row-link').nth(tap % 4)
    await link.waitFor()
    await isLive(phone)
    const [name, box] = [await link.textContent(), await link.boundingBox()]
    if (box === null) throw new Error('a row without a place')
    await passReaction()
    await page.touchscreen.tap(box.x + 20, box.y + box.height / 2)
    await page.waitForURL(/\/nodes\/!/)
    await page.locator('h1', { hasText: /^Crowd/ }).waitFor()
    hits.push((await page.locator('h1').textContent()) === name)
  }
  expect(hits.filter(Boolean)).toHaveLength(TAPS)
  await page.goto(`${mesh.site.base}/nodes`)
  const rows = page.locator('tbody .row-link')
  await isLive(phone)
  const order = await rows.allTextContents()
  await page.getByRole('button', { name: /newer$|^Order has changed$/ }).tap()
  await expect.poll(() => rows.allTextContents()).not.toEqual(order)
  await page.context().close()
})

const LISTS = [
  ['/nodes', 'tbody .row-link', 9],
  ['/packets', 'tbody .text-button', 9],
  // All that the card has room for.
  ['/', '.rows.tight a', 5],
] as const

test('at most one of ten untouched moments moves a row', { timeout: 120_000 }, async () => {
  const desk = await mesh.site.visit()
  await desk.goto('/')
  await desk.signIn('admin', SITE_PASSWORD)
  await isLive(desk)
  const storageState = await desk.page.context().storageState()
  await desk.page.context().close()
  const watch = async ([path, selector, count]: (typeof LISTS)[number]) => {
    const visitor = await mesh.site.visit({ storageState })
    const { page } = visitor
    await page.goto(`${mesh.site.base}${path}`)
    await isLive(visitor)
    const rows = page
      .locator('.steady', { has: page.locator(selector) })
      .first()
      .locator(selector)
    await rows.nth(count - 1).waitFor()
    const place = async () => (await rows.allTextContents()).slice(0, count)
    const first = await place()
    const moments: boolean[] = []
    for (let moment = 0; moment < MOMENTS; moment++) {
      const before = await place()
      await passReaction()
      moments.push((await place()).join() === before.join())
    }
    const moved = moments.filter((isSame) => !isSame).length
    expect([path, moved <= MOMENTS / 10]).toEqual([path, true])
    // It does follow the mesh.
    expect(await place()).not.toEqual(first)
    await page.context().close()
  }
  await Promise.all(LISTS.map(watch))
})

test.each([
  ['/nodes', 'tbody .row-link'],
  ['/packets', 'tbody .text-button'],
  ['/map', 'tbody .link-button'],
  ['/', '.rows a'],
])('%s keeps its order under the mouse, and a button updates it', async (path, selector) => {
  const { page, goto } = mesh.admin
  await goto(path)
  await isLive(mesh.admin)
  const list = page.locator('.steady', { has: page.locator(selector) }).first()
  const rows = list.locator(selector)
  await rows.nth(3).hover()
  await page.mouse.move(0, 0)
  await rows.nth(3).hover()
  const order = await rows.allTextContents()
  await list.getByRole('button', { name: /newer$|^Order has changed$/ }).waitFor()
  expect(await rows.allTextContents()).toEqual(order)
  await list.getByRole('button', { name: /newer$|^Order has changed$/ }).click()
  await expect.poll(() => rows.allTextContents()).not.toEqual(order)
})

test('a focused or selected list waits as well, and continues by itself when it is left', async () => {
  const { page, goto } = mesh.admin
  await goto('/nodes')
  await isLive(mesh.admin)
  const rows = page.locator('tbody .row-link')
  await page.mouse.move(0, 0)
  await rows.nth(2).focus()
  const order = await rows.allTextContents()
  const button = page.getByRole('button', { name: /newer$|^Order has changed$/ })
  await button.waitFor()
  expect(await rows.allTextContents()).toEqual(order)
  await page.getByRole('heading', { level: 1 }).focus()
  await button.waitFor({ state: 'detached' })
  await expect.poll(() => rows.allTextContents()).not.toEqual(order)
  await page.evaluate("getSelection().selectAllChildren(document.querySelector('tbody .row-link'))")
  const selected = await rows.allTextContents()
  await button.waitFor()
  expect(await rows.allTextContents()).toEqual(selected)
})

test('a new text does not scroll the log under the mouse', async () => {
  const { page, goto } = mesh.admin
  isQuiet = true
  await goto('/messages')
  await isLive(mesh.admin)
  const log = page.getByRole('region', { name: 'Messages, newest last' })
  for (let count = 0; count < 30; count++) mesh.hear(text(`word ${count}`))
  await log.getByText('word 29', { exact: true }).waitFor()
  await log.getByText('word 29', { exact: true }).hover()
  const top = () => log.evaluate((box) => box.scrollTop)
  const before = await top()
  mesh.hear(text('the latest'))
  await page.getByRole('button', { name: '1 new message' }).waitFor()
  expect(await top()).toBe(before)
  await page.mouse.move(0, 0)
  await expect.poll(top).toBeGreaterThan(before)
})
