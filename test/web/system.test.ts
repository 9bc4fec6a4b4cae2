import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import { auditLog, serviceState, settings, sweeps } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { canMount, mountSmallDisk, type SmallDisk } from '../support/backup/small-disk.ts'
import { freePort } from '../support/servers/free-port.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const MB = 1_000_000
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

const problems = (page: Page) => page.getByRole('list', { name: 'What needs attention' }).getByRole('listitem')
const card = (page: Page, title: string) =>
  page.locator('.card').filter({ has: page.getByRole('heading', { name: title, level: 2, exact: true }) })

async function open(site: Site, options = {}): Promise<Visitor> {
  const visitor = await site.visit(options)
  await visitor.goto('/system')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await card(visitor.page, 'Service').waitFor()
  return visitor
}

describe('a service that is well', () => {
  let site: Site
  beforeAll(async () => {
    site = await openSite({ ADMIN_PASSWORD })
  })
  afterAll(() => site.close())

  test('only says that no backup is made, and stops saying so once there is one', async () => {
    const { page } = await open(site)
    await expect
      .poll(() => problems(page).allTextContents())
      .toEqual(['There is no recent backup, and no schedule makes any.Open backups'])
    await card(page, 'Links').getByText('demo Radio connected').waitFor()
    await card(page, 'Instances').getByText('has the radios and the schedules').waitFor()
    await card(page, 'Storage')
      .getByText(/ free$/)
      .waitFor()
    await card(page, 'Storage').getByText('known after a day of measuring').waitFor()
    await card(page, 'Service').getByText('nobody is asked').waitFor()
    await problems(page).getByRole('link', { name: 'Open backups' }).click()
    await page.getByRole('button', { name: 'Back up now' }).click()
    await page.getByText(/^Backup \S+ made$/).waitFor()
    await page.getByRole('link', { name: 'System', exact: true }).click()
    await page.getByText('Nothing needs attention').waitFor()
    await card(page, 'Backups')
      .getByText(/^1 backup, /)
      .waitFor()
  })
})

/** Everything that a database can contain about trouble, as of now. */
function trouble(now: number) {
  const samples = Array.from({ length: 56 }, (_, index) => {
    const room = 30 * MB + (55 - index) * MB
    return [now - (55 - index) * 3 * HOUR - 60_000, 100 * MB - room, room, 67 * MB]
  })
  const schedule = { enabled: true, maxBackups: 7, keepWeekly: 0, keepMonthly: 0, backupTime: '03:00', since: 1 }
  const run = { at: now, ok: false, error: 'no space left on the disk', succeededAt: now - DAY, failures: 20 }
  return async ({ db }: ReturnType<typeof openDatabase>) => {
    await db.insert(serviceState).values({ name: 'storage', value: JSON.stringify(samples), updatedAt: now })
    await db.insert(settings).values([
      { key: 'backup.settings', value: JSON.stringify(schedule), updatedAt: 1 },
      { key: 'backup.lastRun', value: JSON.stringify(run), updatedAt: 1 },
    ])
    const cutoff = now - 33 * DAY
    await db.insert(sweeps).values({ name: 'telemetry', cutoff, doneBefore: cutoff })
    const failed = { action: 'login_failed', resource: 'auth', details: '{}', timestamp: now - HOUR }
    await db.insert(auditLog).values(Array.from({ length: 7 }, () => failed))
  }
}

describe.skipIf(!canMount)('a service in trouble', () => {
  let disk: SmallDisk
  let site: Site
  beforeAll(async () => {
    disk = mountSmallDisk(64)
    const store = openDatabase(join(disk.dir, 'mesh.db'))
    await trouble(Date.now())(store)
    store.close()
    site = await openSite({
      ADMIN_PASSWORD,
      DEMO: 'false',
      MESHTASTIC_TCP: `127.0.0.1:${await freePort()}`,
      DATA_DIR: disk.dir,
      UPDATE_CHECK_URL: `http://127.0.0.1:${await freePort()}/latest`,
    })
  })
  afterAll(async () => {
    await site.close()
    disk.remove()
  })

  test('says so, errors first, with where to do something about it; it fits a phone and passes axe-core', async () => {
    const visitor = await open(site, PHONE)
    const { page } = visitor
    await expect
      .poll(() => problems(page).allTextContents())
      .toEqual([
        expect.stringMatching(/^The last scheduled backup failed\./),
        expect.stringMatching(/^127\.0\.0\.1:\d+ is not connected\.$/),
        expect.stringMatching(/^The room for new data ends soon\./),
        expect.stringMatching(/^Single measurements: old data is deleted more than a day later/),
      ])
    await card(page, 'Storage')
      .getByText(/^\d days$/)
      .waitFor()
    await card(page, 'Storage')
      .getByRole('img', { name: /^Room in the last week: 85\.0 MB → 30\.0 MB$/ })
      .waitFor()
    await card(page, 'Retention').getByText('deleted 3 d late').waitFor()
    await card(page, 'Backups').getByText('failed: no space left on the disk').waitFor()
    await card(page, 'Links')
      .getByText(/refuse/)
      .waitFor()
    await expect.poll(() => card(page, 'Service').locator('dd').last().textContent()).toBe('7')
    await expect.poll(() => overflowOf(page)).toBe(0)
    expect(await visitor.violations()).toEqual([])
    // A full disk, and back.
    disk.fill()
    await expect
      .poll(async () => {
        await page.reload()
        await card(page, 'Service').waitFor()
        return problems(page).first().textContent()
      })
      .toMatch(/^The disk is full: packets are not stored\./)
    expect(await visitor.violations()).toEqual([])
    disk.clear()
    await expect
      .poll(async () => {
        await page.reload()
        await card(page, 'Service').waitFor()
        return problems(page).first().textContent()
      })
      .toMatch(/^The last scheduled backup failed\./)
  })
})
