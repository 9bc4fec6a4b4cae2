import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { alertDeliveries, alertDeliveryItems, alertDestinations, alerts } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const PASSWORD = 'a password for quiet hours'
const HOUR = 3_600_000
let site: Site
let visitor: Visitor

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD: PASSWORD })
  visitor = await site.visit({ timezoneId: 'Europe/Berlin', locale: 'en-GB' })
  await visitor.page.goto(site.base)
  await visitor.signIn('admin', PASSWORD)
  await visitor.page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
})
afterAll(() => site.close())

const kept = async () =>
  Object(await (await visitor.page.request.get(`${site.base}/api/alerts/quiet-hours`)).json()).quietHours
/** The time of day in Berlin. */
const clock = (t: number) =>
  new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'short' }).format(t)

test('quiet hours are chosen in the time zone of the browser, and say that they apply', async () => {
  const { page } = visitor
  await visitor.goto('/account')
  const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Quiet hours' }) })
  await card.getByRole('switch', { name: 'Keep quiet hours' }).check()
  const from = clock(Date.now() - HOUR)
  const to = clock(Date.now() + 2 * HOUR)
  await card.getByLabel('From').fill(from)
  await card.getByLabel('Until').fill(from)
  await card.getByText('Two different times').waitFor()
  await card.getByLabel('Until').fill(to)
  expect(await card.getByLabel('Time zone').inputValue()).toBe('Europe/Berlin')
  expect(await visitor.violations()).toStrictEqual([])
  await card.getByRole('button', { name: 'Save' }).click()
  await card.getByText(/^They apply now, until .*\d\d:\d\d/).waitFor()
  expect(await kept()).toStrictEqual({ from, to, timeZone: 'Europe/Berlin', days: [1, 2, 3, 4, 5, 6, 7] })
  for (const day of ['Sat', 'Sun']) await card.getByLabel(day).uncheck()
  await card.getByRole('button', { name: 'Save' }).click()
  await expect.poll(async () => (await kept()).days).toStrictEqual([1, 2, 3, 4, 5])
  await page.setViewportSize({ width: 390, height: 844 })
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  await page.setViewportSize({ width: 1360, height: 860 })
})

test('the page of alerts says until when a message is held', async () => {
  const { page } = visitor
  const { db, close } = openDatabase(join(site.data, 'mesh.db'))
  const at = Date.now()
  const owned = { ownerId: 1, createdAt: at }
  const times = { startedAt: at, firedAt: at, notifiedAt: at }
  await db.insert(alertDestinations).values({
    ...owned,
    uid: 'hook',
    name: 'Hook',
    kind: 'webhook',
    enabled: true,
    settings: '{"url":"https://hook.example.org/x"}',
    confirmedAt: at,
    updatedAt: at,
  })
  await db.insert(alerts).values({
    ...times,
    ruleId: 1,
    ownerId: 1,
    ruleName: 'Valley',
    kind: 'area',
    state: 'firing',
    subject: 'node:1',
    key: 'x',
    what: 'It left the area',
    step: 'x',
  })
  const heldUntil = at + 2 * HOUR
  await db.insert(alertDeliveries).values({
    ...owned,
    uid: 'held',
    destinationId: 1,
    notification: 'quiet',
    state: 'waiting',
    dueAt: heldUntil,
    heldUntil,
  })
  await db.insert(alertDeliveryItems).values({ deliveryId: 1, alertId: 1 })
  close()
  await visitor.goto('/alerts')
  await page
    .locator('li', { hasText: 'It left the area' })
    .getByText(/held until .*\d\d:\d\d/)
    .waitFor()
})

test('what is switched off is gone at once', async () => {
  const { page } = visitor
  await visitor.goto('/account')
  await page.getByRole('switch', { name: 'Keep quiet hours' }).uncheck()
  await expect.poll(kept).toBeNull()
  expect(await page.getByLabel('From').count()).toBe(0)
})
