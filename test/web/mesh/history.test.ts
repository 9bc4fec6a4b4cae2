import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { metrics, nodes, telemetry, telemetryDaily, telemetryHourly } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const METRIC = 'deviceMetrics.batteryLevel'
const VOLTAGE = 'deviceMetrics.voltage'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

let site: Site
let page: Page
let visitor: Visitor
/** The time at which the measurements were written. */
let now: number
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
  const store = openDatabase(join(site.data, 'mesh.db'))
  const { db } = store
  now = Date.now()
  await db.insert(nodes).values({ nodeNum: 0x1000, longName: 'Measured', firstHeard: now - DAY_MS, lastHeard: now })
  await db.insert(metrics).values({ name: METRIC }).onConflictDoNothing()
  const nodeId = (await db.select().from(nodes).where(eq(nodes.nodeNum, 0x1000)).get())?.id ?? 0
  const metric = (await db.select().from(metrics).where(eq(metrics.name, METRIC)).get())?.id ?? 0
  const row = { nodeId, metric }
  const sum = (t: number) => ({ ...row, t, n: 4, min: 40, max: 80, sum: 240, last: 60 })
  // Every quarter of an hour of a day, with a gap of four hours in which one measurement stands alone.
  const minutes = Array.from({ length: 92 }, (_, index) => 10 + index * 15)
  const heard = minutes.filter((ago) => ago < 300 || ago > 540 || ago === 430)
  await db.insert(telemetry).values(heard.map((ago) => ({ ...row, t: now - ago * MINUTE_MS, v: 50 + (ago % 7) })))
  // An hour without a measurement has no values; those before the last day are deleted.
  const isHeard = (hour: number) =>
    heard.some((ago) => now - ago * MINUTE_MS - hour < HOUR_MS && now - ago * MINUTE_MS >= hour)
  const hours = Array.from({ length: 20 * 24 }, (_, index) => now - (now % HOUR_MS) - (index + 2) * HOUR_MS).filter(
    (hour) => hour + HOUR_MS <= now - DAY_MS || isHeard(hour),
  )
  await db.insert(telemetryHourly).values(hours.map(sum))
  const days = Array.from({ length: 200 }, (_, index) => now - (now % DAY_MS) - (index + 1) * DAY_MS)
  await db.insert(telemetryDaily).values(days.filter((_, index) => index < 60 || index > 100).map(sum))
  store.close()
  visitor = await site.visit({ acceptDownloads: true, colorScheme: 'light', timezoneId: 'Asia/Dubai' })
  page = visitor.page
  await visitor.goto('/nodes/!00001000')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await page.locator('.chart canvas').waitFor()
})
afterAll(() => site.close())

/** The number of pieces of the line: runs of columns with a point in its colour, and not the band's. */
async function pieces(): Promise<number> {
  return Number(
    await page.evaluate(`(() => {
      const { width, height, ...canvas } = document.querySelector('.chart canvas')
      const { data } = document.querySelector('.chart canvas').getContext('2d').getImageData(0, 0, width, height)
      const isLine = (at) => data[at + 3] > 200 && Math.abs(data[at] - 10) + Math.abs(data[at + 1] - 100) + Math.abs(data[at + 2] - 104) < 60
      const columns = Array.from({ length: width }, (_, x) => Array.from({ length: height }, (_, y) => isLine((y * width + x) * 4)).includes(true))
      return columns.filter((is, x) => is && !columns[x - 1]).length
    })()`),
  )
}

test('the line has gaps without measurements, and a single measurement is a dot', async () => {
  await expect.poll(pieces).toBe(3)
  await page.getByRole('img', { name: /^Battery level: from 50 % to 56 %, last / }).waitFor()
  await page.getByText('Times in Asia/Dubai.').waitFor()
})

test('keys move along the points and read them out in local time', async () => {
  await page.getByRole('group', { name: 'Press the arrow keys, Home and End to read the points.' }).focus()
  const told = page.locator('.chart-keys [role=status]')
  const time = async () => Date.parse(`${(await told.textContent())?.split(': ')[0]} GMT+0400`)
  await page.keyboard.press('End')
  await expect.poll(() => told.textContent()).toMatch(/^\d+ \w+ \d{4}, \d\d:\d\d:\d\d: 5\d %$/)
  const last = await time()
  expect(last).toBe(Math.floor((now - 10 * MINUTE_MS) / 1000) * 1000)
  await page.keyboard.press('ArrowLeft')
  await expect.poll(async () => last - (await time())).toBe(15 * MINUTE_MS)
  await page.keyboard.press('Home')
  await expect.poll(async () => last - (await time())).toBe(91 * 15 * MINUTE_MS)
})

test('over longer ranges a band shows minimum to maximum, and its table can be exported', async () => {
  await page.getByLabel('Time', { exact: true }).selectOption('Last 30 days')
  await page.getByText('The line shows the average, the band the range from minimum to maximum.').waitFor()
  await page.getByRole('img', { name: /from 40 % to 80 %/ }).waitFor()
  await page.getByRole('group', { name: 'Arrow keys' }).focus()
  await page.keyboard.press('Home')
  await expect
    .poll(() => page.locator('.chart-keys [role=status]').textContent())
    .toMatch(/: 60 % on average, from 40 % to 80 %$/)
  await page.getByLabel('Time', { exact: true }).selectOption('Last year')
  await expect.poll(pieces).toBe(2)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export CSV' }).click(),
  ])
  expect(download.suggestedFilename()).toBe(`1000-${METRIC}.csv`)
  const [head, first = '', ...rows] = readFileSync(await download.path(), 'utf8')
    .trim()
    .split('\r\n')
  expect(head).toBe(`time,min ${METRIC} (%),max ${METRIC} (%),average ${METRIC} (%)`)
  expect(first).toMatch(/^\d{4}-\d\d-\d\dT00:00:00\.000Z,40,80,60$/)
  expect(rows.length + 1).toBe(159)
})

test('a board is made by keyboard alone, saved as table and picture, shown on a wall, and shared', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const other = { nodeNum: 0x1001, longName: '=Other', firstHeard: now - DAY_MS, lastHeard: now }
  await store.db.insert(nodes).values(other)
  await store.db.insert(metrics).values({ name: VOLTAGE }).onConflictDoNothing()
  const metric = (await store.db.select().from(metrics).where(eq(metrics.name, VOLTAGE)).get())?.id ?? 0
  const nodeId = (await store.db.select().from(nodes).where(eq(nodes.nodeNum, 0x1001)).get())?.id ?? 0
  await store.db
    .insert(telemetry)
    .values([1, 2, 3].map((n) => ({ nodeId, metric, t: now - n * HOUR_MS, v: 3 + n / 10 })))
  store.close()
  await page.emulateMedia({ colorScheme: 'dark' })
  await visitor.goto('/boards')
  await page.getByText('No boards yet').waitFor()
  await page.getByRole('button', { name: 'New board' }).press('Enter')
  await page.getByRole('dialog').getByLabel('Name').fill('Solar site')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Solar site', level: 1 }).waitFor()
  await page.getByRole('button', { name: 'Add a chart' }).press('Enter')
  const dialog = page.getByRole('dialog')
  for (const name of ['Measured', '=Other']) {
    await dialog.getByLabel('Add a node').fill(name)
    await dialog.getByRole('option', { name }).waitFor()
    await page.keyboard.press('Enter')
    await dialog.getByRole('button', { name: `Remove ${name}` }).waitFor()
  }
  await dialog.getByLabel('Add a measurement').selectOption('Voltage')
  await dialog.getByLabel('Title').fill('Power')
  await page.keyboard.press('Enter')
  const chart = page.getByRole('img', { name: /^Measured · Battery level: 5\d %; .*=Other · Voltage: 3\.1 V$/ })
  await chart.waitFor()
  await page.getByRole('group', { name: 'Press the arrow keys' }).press('End')
  await expect
    .poll(() => page.locator('.chart-keys [role=status]').textContent())
    .toMatch(/: Measured · Battery level 5/)

  const saved = async (kind: string) => {
    const button = page.getByRole('button', { name: `Export ${kind}: Power` })
    const [download] = await Promise.all([page.waitForEvent('download'), button.press('Enter')])
    expect(download.suggestedFilename()).toBe(`Power.${kind.toLowerCase()}`)
    return readFileSync(await download.path())
  }
  const [head] = (await saved('CSV')).toString().split('\r\n')
  // The name of a node is never a formula.
  expect(head).toContain(`,Measured: ${METRIC} (%),`)
  expect(head).toContain(`,'=Other: ${VOLTAGE} (V)`)
  const picture = await saved('PNG')
  expect(picture.subarray(1, 4).toString()).toBe('PNG')
  expect(picture.readUInt32BE(16)).toBeGreaterThan(1200)
  const corner = await page.evaluate(`(async () => {
    const bytes = Uint8Array.from(atob('${picture.toString('base64')}'), (one) => one.charCodeAt(0))
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
    context.drawImage(bitmap, 0, 0)
    return [...context.getImageData(2, 2, 1, 1).data]
  })()`)
  expect(corner, 'light, whatever the page is').toEqual([255, 255, 255, 255])

  await page.getByRole('button', { name: 'Show on a wall' }).press('Enter')
  await page.locator('.wall .board .chart canvas').waitFor()
  await expect.poll(() => new URL(page.url()).searchParams.get('wall')).toBe('1')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Change the board' }).press('Enter')
  await page.getByRole('button', { name: 'Name and sharing' }).press('Enter')
  await dialog.getByLabel('Name').fill('Hut')
  await dialog.getByLabel('Who sees it').selectOption('Everybody with an account')
  await dialog.getByRole('button', { name: 'Save' }).press('Enter')
  await page.getByRole('heading', { name: 'Hut', level: 1 }).waitFor()
  expect(await visitor.violations()).toEqual([])
  const phone = await site.visit({ ...PHONE, storageState: await page.context().storageState() })
  await phone.goto('/boards/1')
  await phone.page.getByRole('img', { name: /=Other · Voltage/ }).waitFor()
  expect(await overflowOf(phone.page)).toBe(0)
  expect(await phone.violations()).toEqual([])
  await phone.page.getByRole('button', { name: 'Change the board' }).tap()
  await phone.page.getByRole('button', { name: 'Name and sharing' }).tap()
  await phone.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).tap()
  await phone.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).tap()
  await phone.page.getByText('No boards yet').waitFor()
  expect(visitor.complaints).toEqual([])
})
