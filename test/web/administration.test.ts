import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { audit, SYSTEM } from '../../src/app/audit/audit.ts'
import { users } from '../../src/db/schema.ts'
import { storeRestoredAccess } from '../../src/app/system/restore/restored-access.ts'
import { openDatabase } from '../../src/node/database.ts'
import { openSite, overflowOf, type Site } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PASSWORD = 'a bench under the oak'
let site: Site
let page: Page

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
  const admin = await site.visit({ acceptDownloads: true })
  page = admin.page
  await admin.goto('/users/new')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await page.getByRole('heading', { name: 'New user', level: 1 }).waitFor()
  for (const username of ['anna', 'karl']) {
    const made = await page.request.post(`${site.base}/api/users`, {
      data: { username, password: PASSWORD },
      headers: { origin: site.base },
    })
    expect(made.status()).toBe(201)
  }
})
afterAll(() => site.close())

/** Signed in as `username`, at `path`. */
async function visitAs(username: string, path: string, password = PASSWORD) {
  const visitor = await site.visit()
  await visitor.goto(path)
  await visitor.signIn(username, password)
  return visitor
}

async function openUser(name: string): Promise<void> {
  await page.goto(`${site.base}/users?q=${name}`)
  await page.getByText('1 user', { exact: true }).waitFor()
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
}

/** Presses a button and the one with the same name in the confirmation dialog. */
async function confirm(name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

test('a user who is deactivated is sent to the sign-in page with the reason, and returns after reactivation', async () => {
  const anna = await visitAs('anna', '/nodes')
  await anna.page.getByText('Town Hall Gateway').waitFor()
  await openUser('anna')
  await confirm('Deactivate')
  await anna.page.getByText('Your session has ended').waitFor()
  await expect.poll(() => new URL(anna.page.url()).search).toBe('?returnTo=%2Fnodes')
  await anna.signIn('anna', PASSWORD)
  await anna.page.getByRole('alert').filter({ hasText: 'Username or password is wrong' }).waitFor()
  await confirm('Reactivate')
  await page.getByRole('button', { name: 'Deactivate' }).waitFor()
  await anna.signIn('anna', PASSWORD)
  await anna.page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
})

test('a session that is ended elsewhere ends on the page, and signing in leads back there', async () => {
  const here = await visitAs('karl', '/nodes?show=active')
  await here.page.getByText('Town Hall Gateway').waitFor()
  const there = await visitAs('karl', '/account')
  await there.page.getByRole('button', { name: 'End all others' }).click()
  await there.page.getByText('All other sessions ended').waitFor()
  await here.page.getByText('Your session has ended').waitFor()
  await here.signIn('karl', PASSWORD)
  await here.page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
  await expect.poll(() => new URL(here.page.url()).search).toBe('?show=active')
})

test('an administrator promoted on the page sees what administrators see; ticking write also ticks read', async () => {
  await openUser('karl')
  await page.getByLabel('Settings: write').check()
  await expect.poll(() => page.getByLabel('Settings: read').isChecked()).toBe(true)
  await page.getByText('Custom permissions').waitFor()
  await page.getByLabel('Settings: read').uncheck()
  await expect.poll(() => page.getByLabel('Settings: write').isChecked()).toBe(false)
  await page.getByRole('radio', { name: 'Everything' }).check({ force: true })
  await expect.poll(() => page.locator('.grid input:checked').count()).toBe(14)
  await page.getByRole('button', { name: 'Save' }).last().click()
  await page.getByText('Permissions saved').waitFor()
  const karl = await visitAs('karl', '/')
  const audit = karl.page.getByRole('link', { name: 'Audit log' })
  await karl.page.getByRole('link', { name: 'Settings' }).first().waitFor()
  await expect.poll(() => audit.count()).toBe(0)
  await confirm('Make administrator')
  await page.getByText('Administrators have every permission.').waitFor()
  await karl.page.reload()
  await audit.first().waitFor()
  await confirm('Remove administrator role')
  await karl.page.reload()
  await karl.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  await expect.poll(() => audit.count()).toBe(0)
})

test('the scope of a user is chosen channel by channel, kept, and given with a new user', async () => {
  await openUser('karl')
  await page.getByRole('radio', { name: 'Chosen channels' }).check({ force: true })
  const read = (name: string) => page.getByLabel(`${name}: read`, { exact: true })
  const write = (name: string) => page.getByLabel(`${name}: write`, { exact: true })
  await read('Rescue').uncheck()
  await expect.poll(() => write('Rescue').isChecked()).toBe(false)
  await read('Direct messages').uncheck()
  await page.getByRole('button', { name: 'Save' }).last().click()
  await page.getByText('Permissions saved').waitFor()
  await page.reload()
  await read('Rescue').waitFor()
  const chosen = () =>
    Promise.all([read('Rescue'), read('Direct messages'), write('Primary channel')].map((box) => box.isChecked()))
  await expect.poll(chosen).toEqual([false, false, true])
  await page.setViewportSize({ width: 390, height: 800 })
  await expect.poll(() => overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })
  await page.goto(`${site.base}/users/new`)
  await page.getByLabel('Username').fill('guest')
  await page.getByRole('radio', { name: 'Chosen channels' }).check({ force: true })
  await write('Primary channel').uncheck()
  await page.reload()
  await expect.poll(() => write('Primary channel').isChecked()).toBe(false)
  await page.getByRole('button', { name: 'Create user' }).click()
  await page.getByRole('link', { name: 'Open the user' }).click()
  await read('Primary channel').waitFor()
  await expect
    .poll(async () => [await read('Primary channel').isChecked(), await write('Primary channel').isChecked()])
    .toEqual([true, false])
})

test('the sessions and tokens of a user are shown and can be ended, and grants name who gave them', async () => {
  const anna = await visitAs('anna', '/account')
  await anna.page.getByRole('heading', { name: 'Your account', level: 1 }).waitFor()
  const made = await anna.page.request.post(`${site.base}/api/tokens`, {
    data: { name: 'weather mast', scopes: ['nodes:read'] },
    headers: { origin: site.base },
  })
  expect(made.status()).toBe(201)
  await openUser('anna')
  await page.getByText('weather mast').waitFor()
  await page
    .getByText(/^Set .* by admin$/)
    .first()
    .waitFor()
  await page.setViewportSize({ width: 390, height: 800 })
  expect(await overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })
  const ends = page.getByRole('button', { name: /^End the session of/ })
  const open = await ends.count()
  await ends.first().click()
  await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click()
  await expect.poll(() => ends.count()).toBe(open - 1)
  if (open > 1) await confirm('End all sessions')
  await page.getByText('Not signed in anywhere.').waitFor()
  await anna.page.reload()
  await anna.page.getByLabel('Username').waitFor()
  await confirm('Revoke all tokens')
  await page.getByText('No tokens yet.').waitFor()
})

test('all users can be reached if one answer cannot hold them', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const createdAt = Date.UTC(2026, 0, 1)
  const many = Array.from({ length: 650 }, (_, index) => ({
    username: `crowd-${String(index).padStart(4, '0')}`,
    authProvider: 'local' as const,
    createdAt,
  }))
  for (let at = 0; at < many.length; at += 50) await store.db.insert(users).values(many.slice(at, at + 50))
  store.close()
  await page.goto(`${site.base}/users?q=crowd`)
  await page.getByText('100 of 650 users').waitFor()
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.getByText('600 of 650 users').waitFor()
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.getByText('650 users', { exact: true }).waitFor()
  await expect.poll(() => page.getByRole('row').count()).toBe(651)
  await page.getByRole('link', { name: 'crowd-0649' }).waitFor()
  await expect.poll(() => page.getByRole('button', { name: 'Show more' }).count()).toBe(0)
})

test('notes being written survive a granted permission and the end of the session', async () => {
  const { id } = Object(Object(await (await page.request.get(`${site.base}/api/users?q=karl`)).json()).users[0])
  const grant = (permissions: object) =>
    page.request.put(`${site.base}/api/users/${id}/permissions`, {
      data: { permissions },
      headers: { origin: site.base },
    })
  await grant({ nodes: { read: true, write: true }, settings: { read: false, write: false } })
  const karl = await visitAs('karl', '/nodes')
  await karl.page.getByRole('link', { name: 'Castle Hill Relay' }).click()
  const box = karl.page.getByLabel('Notes')
  await box.fill('On the north tower, key at the museum')
  await grant({ settings: { read: true, write: false } })
  await karl.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
  await karl.page.getByRole('link', { name: 'Settings' }).waitFor()
  await expect.poll(() => box.inputValue()).toBe('On the north tower, key at the museum')
  await karl.page.context().clearCookies()
  await karl.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
  await karl.page.getByText('Your session has ended').waitFor()
  await karl.signIn('karl', PASSWORD)
  await box.waitFor()
  await expect.poll(() => box.inputValue()).toBe('On the north tower, key at the museum')
  await karl.page.getByRole('button', { name: 'Save' }).click()
  await karl.page.getByText('Saved').waitFor()
  await karl.page.reload()
  await box.waitFor()
  await expect.poll(() => box.inputValue()).toBe('On the north tower, key at the museum')
  await expect.poll(() => karl.page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
})

test('every setting of the API can be changed, and the audit log has the previous value', async () => {
  await page.goto(`${site.base}/settings`)
  await page.getByLabel('Messages').waitFor()
  const readSettings = async () =>
    z.record(z.string(), z.unknown()).parse(await (await page.request.get(`${site.base}/api/settings`)).json())
  const before = await readSettings()
  const fields = page.locator('main input[type=number]')
  for (const field of await fields.all()) await field.fill(String(Number(await field.inputValue()) + 1))
  await page.getByLabel('Name of the mesh').fill('Hill and Valley')
  const ground = page.locator('.card', { hasText: 'Background of the map' })
  await ground.getByLabel('Tiles', { exact: true }).selectOption('From an address')
  await ground.getByLabel('Address of the tiles').fill(`${site.base}/{z}/{x}/{y}.png`)
  await ground.getByLabel('Attribution').fill('The mapping club')
  // A page may load its images once it is reloaded.
  await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Save', exact: true }).click()])
  await page.getByRole('navigation').getByText('Hill and Valley').waitFor()
  expect(await page.title()).toBe('Settings · Hill and Valley')
  await expect.poll(() => ground.getByLabel('Address of the tiles').inputValue()).toBe(`${site.base}/{z}/{x}/{y}.png`)
  const after = await readSettings()
  const shown = (value: unknown): string => {
    if (value === null) return '–'
    if (typeof value === 'string') return value
    if (typeof value !== 'object') return JSON.stringify(value)
    return Object.entries(value)
      .map(([name, one]) => `${name}: ${shown(one)}`)
      .join('; ')
  }
  await page.goto(`${site.base}/audit?action=settings_updated`)
  const entries = page.locator('.expander')
  await expect.poll(() => entries.count()).toBe(1)
  await entries.click()
  const rows = page.locator('.changes tbody tr')
  const changes = async () =>
    Promise.all((await rows.all()).map(async (row) => (await row.locator('th, td').allTextContents()).join(' ')))
  const wanted = Object.keys(before).map((name) => `${name} ${shown(before[name])} ${shown(after[name])}`)
  await expect.poll(async () => (await changes()).toSorted()).toEqual(wanted.toSorted())
  for (const name of Object.keys(before)) expect([name, after[name]]).not.toEqual([name, before[name]])
  // As it was, for the tests after this one.
  const headers = { origin: site.base }
  expect((await page.request.put(`${site.base}/api/settings`, { headers, data: before })).status()).toBe(200)
})

test('a setting says what will really be kept, and why; late deletion and a large database are told as well', async () => {
  const day = 86_400_000
  // As it would be on a full disk, in place of what upkeep has found out.
  const openFull = async () => {
    const now = Date.now()
    const store = openDatabase(join(site.data, 'mesh.db'))
    store.sqlite.exec(`begin;
      delete from retention_plans;
      insert into retention_plans values ('telemetry', 1, 3450000, 10000000000, ${now});
      insert or replace into sweeps values ('positions', '1', ${now}, ${now - 93 * day});
      delete from sweeps where name = 'telemetry';
      commit`)
    store.close()
    await page.goto(`${site.base}/settings`)
  }
  const hintOf = async (label: string) => {
    const id = await page.getByLabel(label, { exact: true }).getAttribute('aria-describedby')
    return page.locator(`[id="${id}"]`)
  }
  const kept = 'days · Really kept: 17.9 days. The disk has room for 68,750,000 rows.'
  // A run of the upkeep that goes on meanwhile stores its own plan afterwards.
  const isTold = async () => {
    await openFull()
    return page
      .getByText('Really kept')
      .waitFor({ timeout: 10_000 })
      .then(
        () => true,
        () => false,
      )
  }
  await expect.poll(isTold).toBe(true)
  expect(await (await hintOf('Single measurements')).textContent()).toBe(kept)
  expect(await (await hintOf('Tracks of nodes')).textContent()).toBe('days · Deletion is 3 d behind.')
  expect(await (await hintOf('Packet log')).textContent()).toBe('days')
  // As soon as less is set than fits, nothing is shorter than set.
  await page.getByLabel('Single measurements').fill('17')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect.poll(async () => (await hintOf('Single measurements')).textContent()).toBe('days')
  const headers = { origin: site.base }
  const data = { telemetryRetentionDays: 30 }
  expect((await page.request.put(`${site.base}/api/settings`, { headers, data })).status()).toBe(200)
})

test('the audit log is exported with the current filters', async () => {
  await page.goto(`${site.base}/audit`)
  await page.getByLabel('Action').selectOption('user_created')
  await expect.poll(() => page.locator('.audit tbody tr').count()).toBe(3)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export CSV' }).click(),
  ])
  const lines = readFileSync(await download.path(), 'utf8')
    .trim()
    .split(/\r?\n/)
  expect(lines).toHaveLength(4)
  expect(lines.filter((line) => line.includes('user_created'))).toHaveLength(3)
})

test('the audit page shows whether the log is intact, up to where, and where it is broken', async () => {
  await page.goto(`${site.base}/audit`)
  const whole = page.locator('.notice', { hasText: 'The log is intact' })
  await whole.waitFor()
  expect(await whole.textContent()).toMatch(
    /none of \d+ entries was changed or removed\.Checked up to .+, hash [0-9a-f]{64}\./,
  )
  expect(await overflowOf(page)).toBe(0)
  const store = openDatabase(join(site.data, 'mesh.db'))
  const trigger = "select sql from sqlite_schema where name = 'audit_log_no_update'"
  const sql = store.sqlite.prepare<[], string>(trigger).pluck().get() ?? ''
  const rename = (name: string) =>
    store.sqlite.exec(
      `drop trigger audit_log_no_update; update audit_log set username = '${name}' where id = 2; ${sql}`,
    )
  const name = store.sqlite.prepare<[], string>('select username from audit_log where id = 2').pluck().get() ?? ''
  rename('nobody')
  await page.reload()
  await page.getByText('The log is broken: entry 2 was changed.').waitFor()
  rename(name)
  store.close()
})

test('opening an entry does not widen the table on a phone', async () => {
  const phone = await site.visit({ viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true })
  await phone.goto('/audit?action=settings_updated')
  await phone.signIn('admin', ADMIN_PASSWORD)
  await phone.page.locator('.expander').first().tap()
  await phone.page.locator('.detail').waitFor()
  const boxes = phone.page.locator('.audit, .audit > thead th:nth-child(-n + 3)')
  const excess = async () => {
    const widths = await boxes.evaluateAll((all) => all.map((box) => Number(Object(box).getBoundingClientRect().width)))
    const [table = 0, ...columns] = widths
    return Math.abs(columns.reduce((sum, width) => sum + width, 0) - table)
  }
  await expect.poll(excess).toBeLessThan(2)
})

test('a backup is downloaded completely, distinguished from a damaged one, and deleted after a confirmation', async () => {
  await page.goto(`${site.base}/backups`)
  await page.getByRole('button', { name: 'Back up now' }).click()
  const row = page.locator('tbody tr')
  await row.waitFor()
  const name = (await row.locator('.mono').textContent()) ?? ''
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: `Download ${name}` }).click(),
  ])
  expect(download.suggestedFilename()).toBe(`${name}.tar.gz`)
  expect(gunzipSync(readFileSync(await download.path())).toString('latin1')).toContain(`${name}/manifest.json`)

  await page.getByRole('button', { name: `Verify ${name}` }).click()
  await row.getByText('Signed by this service: nobody without its secret can have changed it.').waitFor()
  writeFileSync(join(site.data, 'system-backups', name, 'users.json'), '{}')
  await page.getByRole('button', { name: `Verify ${name}` }).click()
  await row.getByText('Damaged. Use another backup.').waitFor()
  await page.getByRole('button', { name: `Delete ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await expect.poll(() => row.count()).toBe(1)
  await page.getByRole('button', { name: `Delete ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No backups yet.').waitFor()
})

test('administrators see access that a restore brought back, and can revoke selected items', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const anna = Number(store.sqlite.prepare("select id from users where username = 'anna'").pluck().get())
  const nothing = {
    token: null,
    permissions: null,
    scope: null,
    publicAccess: null,
    hiddenNode: null,
    what: null,
    undone: null,
    password: null,
  }
  const lost = { ...nothing, userId: anna, username: 'anna', at: 1_768_478_400_000, by: 'karl' }
  await store.atomic(
    storeRestoredAccess(
      store,
      [
        { ...lost, backup: '2026-01-15_120000', action: 'user_deleted' },
        { ...lost, backup: '2026-01-15_120000', action: 'permissions_updated' },
      ],
      1,
    ),
  )
  store.close()
  const ordinary = await visitAs('karl', '/nodes')
  const visitor = await site.visit({ viewport: { width: 390, height: 800 } })
  await visitor.goto('/users')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  const notice = visitor.page.getByRole('region', { name: 'The restore of 2026-01-15_120000 undid changes' })
  await notice.getByLabel(/anna was deactivated and is active again, done by karl/).check()
  expect(await visitor.violations()).toEqual([])
  expect(await overflowOf(visitor.page)).toBe(0)
  await notice.getByRole('button', { name: 'Reapply selected' }).click()
  await visitor.page.getByText('Reapplied').waitFor()
  expect(await notice.getByRole('checkbox').count()).toBe(1)
  await notice.getByRole('button', { name: 'Leave everything as restored' }).click()
  await visitor.page.getByRole('dialog').getByRole('button', { name: 'Leave everything as restored' }).click()
  await notice.waitFor({ state: 'detached' })
  expect(await ordinary.page.getByRole('region', { name: /The restore of/ }).count()).toBe(0)
  const user = await visitor.page.request.get(`${site.base}/api/users/${anna}`)
  expect(Object(await user.json()).user.isActive).toBe(false)
})

test('administrators are told what to do about a damaged audit log, until one of them has dealt with it', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const context = { store, ip: null, requestId: null, viewer: null, now: () => 1_768_478_400_000 }
  await store.atomic([audit(context, 'audit_damaged', { damage: 'entry 7 is changed' }, { actor: SYSTEM })])
  store.close()
  const ordinary = await visitAs('karl', '/nodes')
  const visitor = await site.visit({ viewport: { width: 390, height: 800 } })
  await visitor.goto('/nodes')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  const notice = visitor.page.getByRole('region', { name: 'The audit log is damaged' })
  await notice.getByText('entry 7 is changed').waitFor()
  expect(await notice.getByText('Copy the database file as it is').count()).toBe(1)
  expect(await visitor.violations()).toEqual([])
  expect(await overflowOf(visitor.page)).toBe(0)
  await notice.getByRole('link', { name: 'Audit log' }).click()
  await visitor.page.getByRole('heading', { name: 'Audit log', level: 1 }).waitFor()
  await notice.getByRole('button', { name: 'Dealt with it' }).click()
  await visitor.page.getByRole('dialog').getByRole('button', { name: 'Dealt with it' }).click()
  await notice.waitFor({ state: 'detached' })
  const found = await visitor.page.request.get(`${site.base}/api/audit?action=audit_damage_confirmed`)
  expect(Object(await found.json()).entries).toMatchObject([{ username: 'admin' }])
  expect(await ordinary.page.getByText('The audit log is damaged').count()).toBe(0)
})

test('second factors can be removed only from a user who has one', async () => {
  await openUser('karl')
  expect(await page.getByRole('button', { name: 'Reset password' }).count()).toBe(1)
  expect(await page.getByRole('button', { name: 'Remove second factors' }).count()).toBe(0)
  const store = openDatabase(join(site.data, 'mesh.db'))
  const karl = Number(store.sqlite.prepare("select id from users where username = 'karl'").pluck().get())
  store.sqlite
    .prepare("insert into totp_factors (user_id, seed, last_step, created_at) values (?, 'sealed', 1, 1)")
    .run(karl)
  await openUser('karl')
  expect(await page.getByRole('button', { name: 'Remove second factors' }).count()).toBe(1)
  // Its seed is invented, so that karl could never sign in with it.
  store.sqlite.prepare('delete from totp_factors where user_id = ?').run(karl)
  store.close()
})

test('a browser that rejects cookies is told so instead of returning to the sign-in page', async () => {
  const visitor = await site.visit()
  await visitor.page.route('**/api/auth/login', async (route) => {
    const answer = await route.fetch()
    await visitor.page.context().clearCookies()
    const { 'set-cookie': _, ...headers } = answer.headers()
    await route.fulfill({ response: answer, headers })
  })
  await visitor.goto('/login')
  await visitor.signIn('karl', PASSWORD)
  await visitor.page.getByRole('alert').filter({ hasText: 'Allow cookies for this site.' }).waitFor()
  expect(await visitor.violations()).toEqual([])
})

test('a closed dialog returns the focus, to the heading if its opener has disappeared', async () => {
  const focused = () => page.evaluate('document.activeElement.tagName + ":" + document.activeElement.textContent')
  await page.goto(`${site.base}/account`)
  await page.getByRole('button', { name: 'New token' }).click()
  await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('name')
  await page.keyboard.press('Escape')
  await expect.poll(focused).toBe('BUTTON:New token')
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('collector')
  await page.getByLabel('Nodes and map: read').check()
  await page.getByRole('dialog').getByRole('button', { name: 'New token' }).click()
  await page.getByRole('heading', { name: 'Copy the token now' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Revoke the token collector' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('Token revoked').waitFor()
  await expect.poll(focused).toBe('H1:Your account')
})

test('the focus moves to where work continues: the button that failed or succeeded, or a new heading', async () => {
  const focused = () => page.evaluate('document.activeElement.textContent')
  await page.goto(`${site.base}/users/new`)
  await page.getByLabel('Username').fill('anna')
  await page.getByRole('button', { name: 'Create user' }).press('Enter')
  await page.getByRole('alert').filter({ hasText: 'This username is taken.' }).waitFor()
  await expect.poll(focused).toBe('Create user')
  await page.getByLabel('Username').fill('keys')
  await page.getByRole('button', { name: 'Create user' }).press('Enter')
  await page.getByRole('heading', { name: 'keys can sign in now', level: 1 }).waitFor()
  await expect.poll(focused).toBe('keys can sign in now')
  await page.goto(`${site.base}/settings`)
  await page.getByRole('button', { name: 'Save' }).first().press('Enter')
  await page.getByText('Settings saved').waitFor()
  await expect.poll(focused).not.toContain('Skip to content')
})
