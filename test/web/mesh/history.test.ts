import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { metrics, nodes, telemetry, telemetryDaily, telemetryHourly } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { openSite, type Site } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const METRIC = 'deviceMetrics.batteryLevel'
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

let site: Site
let page: Page
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
  const visitor = await site.visit({ acceptDownloads: true, colorScheme: 'light', timezoneId: 'Asia/Dubai' })
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
