import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodes } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PASSWORD = 'a bench under the oak'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const NONE = { read: false, write: false }
const READ = { read: true, write: false }
const NOBODY = { dashboard: NONE, nodes: NONE, messages: NONE, settings: NONE, configuration: NONE, info: NONE }
const PUBLIC = { messages: NONE, info: NONE }
const [RIDGE, HIDDEN] = [0x40000001, 0x40000005]
const [ROUTER, REPEATER, CLIENT] = [2, 4, 0]

const node = (nodeNum: number, longName: string, role: number, silentFor: number, more: object = {}) => {
  const now = Date.now()
  return { nodeNum, longName, role, firstHeard: now - 60 * DAY, lastHeard: now - silentFor, ...more }
}

let site: Site
let admin: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD }, ({ db }) =>
    db
      .insert(nodes)
      .values([
        node(RIDGE, 'Ridge Repeater', REPEATER, 5 * HOUR + 60_000),
        node(RIDGE + 1, 'Dismantled Router', ROUTER, 40 * DAY),
        node(RIDGE + 2, 'Ignored Router', ROUTER, 6 * HOUR, { isIgnored: true }),
        node(RIDGE + 3, 'Sleeping Client', CLIENT, 8 * HOUR),
        node(HIDDEN, 'Hidden Repeater', REPEATER, 9 * HOUR),
      ]),
  )
  admin = await site.visit()
  await admin.goto('/')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await needs(admin.page).first().waitFor()
  const hiding = { headers: { origin: site.base }, data: { hidden: true } }
  expect((await admin.page.request.put(`${site.base}/api/nodes/${HIDDEN}`, hiding)).ok()).toBe(true)
})
afterAll(() => site.close())

const needs = (page: Page) => page.getByRole('list', { name: 'What needs you' }).getByRole('listitem')
const silentSince = / has fallen silent\. since .+ \(\d h\)Open the node$/

async function createUser(username: string, permissions: object): Promise<Visitor> {
  const data = { username, password: PASSWORD, permissions: { ...NOBODY, automation: NONE, ...permissions } }
  const made = await admin.page.request.post(`${site.base}/api/users`, { headers: { origin: site.base }, data })
  expect(made.status()).toBe(201)
  const visitor = await site.visit()
  await visitor.goto('/')
  await visitor.signIn(username, PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  return visitor
}

type FakeAlert = { id: number; kind: string; what: string; nodeNum: number; acknowledgedAt: number | null }

/** Answers as a service with these firing alerts: a real one looks at its rules every minute, and would end them. */
async function fire({ page }: Visitor, all: FakeAlert[]): Promise<void> {
  const startedAt = Date.now() - 2 * HOUR - 60_000
  await page.route(/\/api\/alerts(?:\?|\/\d)/, async (route) => {
    const [, id] = /alerts\/(\d+)\/acknowledge$/.exec(route.request().url()) ?? []
    for (const alert of all) if (String(alert.id) === id) alert.acknowledgedAt = Date.now()
    const alerts = all.map((alert) => ({
      ...alert,
      ruleId: 1,
      ruleName: 'My rule',
      state: 'firing',
      fact: null,
      nodeId: `!${alert.nodeNum.toString(16)}`,
      startedAt,
      inhibited: false,
    }))
    const firing = all.filter(({ acknowledgedAt }) => acknowledgedAt === null).length
    await route.fulfill({ json: { alerts, nextBefore: null, firing, alert: alerts[0] } })
  })
}

const EMPTY = { id: 1, kind: 'metric', what: 'Ridge Repeater: battery is 7 %, below 20 %', nodeNum: RIDGE }
const SILENT = { id: 2, kind: 'node_silent', what: 'Hidden Repeater was not heard for 2 h', nodeNum: HIDDEN }

test('routers and repeaters that fell silent are named with the way to each, before what the service needs', async () => {
  const { page } = admin
  await expect
    .poll(() => needs(page).allTextContents())
    .toEqual([
      expect.stringMatching(/^Ridge Repeater/),
      expect.stringMatching(/^Hidden Repeater/),
      'There is no recent backup, and no schedule makes any. Open backups',
    ])
  expect(await needs(page).first().textContent()).toMatch(silentSince)
  expect(await admin.violations()).toEqual([])
  await page.getByRole('link', { name: /^Open the node: Ridge Repeater/ }).click()
  await page.getByRole('heading', { name: 'Ridge Repeater', level: 1 }).waitFor()
})

test('each sees only what they may see: nodes that are not hidden, nothing of the service, nothing without nodes', async () => {
  const guest = await createUser('guest', { dashboard: READ, nodes: READ })
  await expect.poll(() => needs(guest.page).allTextContents()).toEqual([expect.stringMatching(/^Ridge Repeater/)])
  const blind = await createUser('blind', { dashboard: READ })
  await blind.page.getByText('Nothing is watched yet.').waitFor()
  expect(await blind.page.getByText('Repeater').count()).toBe(0)
  expect(await needs(blind.page).count()).toBe(0)
  const shown = { enabled: true, permissions: { ...PUBLIC, dashboard: READ, nodes: READ }, channels: [0] }
  const headers = { origin: site.base }
  const published = await admin.page.request.put(`${site.base}/api/public-access`, { headers, data: shown })
  expect([published.status(), await published.text()]).toEqual([200, expect.anything()])
  // Its settings are read every few seconds.
  await expect.poll(async () => (await fetch(`${site.base}/api/nodes`)).status, { timeout: 20_000 }).toBe(200)
  const anonymous = await site.visit()
  await anonymous.goto('/nodes')
  await anonymous.page.getByRole('link', { name: 'Dashboard', exact: true }).click()
  await anonymous.page.getByText('Nodes active').waitFor()
  await expect.poll(() => needs(anonymous.page).allTextContents()).toEqual([])
  expect(await anonymous.page.getByText(/Hidden Repeater|backup|rule/).count()).toBe(0)
  for (const { page } of [guest, blind, anonymous]) await page.context().close()
})

test('a firing alert comes first, once for its node, until its owner has acknowledged it', async () => {
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
  for (const options of [{}, phone]) {
    const visitor = await site.visit({ ...options, storageState: await admin.page.context().storageState() })
    const { page } = visitor
    await fire(visitor, [
      { ...SILENT, acknowledgedAt: null },
      { ...EMPTY, acknowledgedAt: null },
    ])
    await visitor.goto('/')
    await expect
      .poll(() => needs(page).allTextContents())
      .toEqual([
        expect.stringMatching(
          /^Hidden Repeater was not heard for 2 h since .+ \(2 h\) · My ruleAcknowledgeOpen the node$/,
        ),
        expect.stringMatching(/^Ridge Repeater: battery is 7 %, below 20 % since .+AcknowledgeOpen the node$/),
        expect.stringMatching(/^Ridge Repeater has fallen silent/),
        expect.stringMatching(/^There is no recent backup/),
      ])
    await page.getByRole('heading', { name: 'What needs you (4)', level: 2 }).waitFor()
    expect(await visitor.violations()).toEqual([])
    expect(await overflowOf(page)).toBe(0)
    // Its parts scroll, never the document.
    expect(await page.evaluate('document.documentElement.scrollHeight - innerHeight')).toBe(0)
    await page.getByRole('button', { name: /^Acknowledge: Hidden Repeater/ }).click()
    await page.getByRole('button', { name: /^Acknowledge: Ridge Repeater/ }).click()
    // The alert about the silent node stands for it, also when it is acknowledged.
    await expect
      .poll(() => needs(page).allTextContents())
      .toEqual([expect.stringMatching(/^Ridge Repeater has fallen/), expect.stringMatching(/^There is no recent/)])
    await page.context().close()
  }
})

test.each([
  { width: 1920, height: 1080, letters: 30 },
  { width: 390, height: 844, letters: 16 },
])('a wall of $width px names who fell silent and what fires, and draws lines', async ({ letters, ...viewport }) => {
  const wall = await site.visit({ viewport, storageState: await admin.page.context().storageState() })
  const { page } = wall
  await fire(wall, [{ ...EMPTY, acknowledgedAt: null }])
  await page.clock.install()
  await wall.goto('/?wall=1')
  const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Fell silent' }) })
  await expect.poll(() => card.getByText('Ridge Repeater', { exact: true }).isVisible()).toBe(true)
  await page.getByText(EMPTY.what).waitFor()
  const firing = page.getByText('1 alert is firing')
  await firing.waitFor()
  const size = Number.parseFloat(String(await page.evaluate('getComputedStyle(document.body).fontSize')))
  expect(size).toBeGreaterThanOrEqual(letters)
  expect(await page.getByRole('button', { name: 'Acknowledge' }).count()).toBe(0)
  expect(await wall.violations()).toEqual([])
  expect(await overflowOf(page)).toBe(0)
  await page.clock.runFor(20_000)
  await page.getByRole('heading', { name: 'Map', level: 1 }).waitFor()
  await expect.poll(() => new URL(page.url()).search).toBe('?wall=1&links=1')
  await firing.waitFor()
  expect(await overflowOf(page)).toBe(0)
  await page.context().close()
})

test('all is calm only if something is watched and checked, and then says what was looked at', async () => {
  const { page } = admin
  const headers = { origin: site.base }
  expect((await page.request.post(`${site.base}/api/system/backup`, { headers, data: {} })).ok()).toBe(true)
  const store = openDatabase(join(site.data, 'mesh.db'))
  store.sqlite.exec('update nodes set last_heard = null, last_heard_by_radio = null where node_num < 0x50000000')
  store.close()
  let watching: object = { rules: 0, nodes: 0, evaluatedAt: Date.now(), isLate: false }
  await page.route(/\/api\/alerts\/rules/, (route) =>
    route.fulfill({ json: { rules: [], unreadable: [], maxRules: 100, watching } }),
  )
  const says = async (text: string | RegExp) => {
    await admin.goto('/')
    await page.getByText(text).waitFor()
  }
  await says('Nothing is watched yet.')
  await page.getByRole('link', { name: 'Write a rule' }).waitFor()
  watching = { ...watching, rules: 3, nodes: 41, evaluatedAt: null }
  await says('The alert rules have not been checked yet.')
  watching = { ...watching, evaluatedAt: Date.now() - HOUR, isLate: true }
  await says('The alert rules are not being checked.')
  expect(await page.getByText('Nothing needs you').count()).toBe(0)
  watching = { ...watching, evaluatedAt: Date.now() - 20_000, isLate: false }
  await says(/^Nothing needs you\./)
  await page
    .getByText(/^3 rules watch 41 nodes; last check .+ · \d routers and repeaters are heard · 1 radio or broker/)
    .waitFor()
  expect(await admin.violations()).toEqual([])
})

test('without a radio nothing is called calm', async () => {
  const deaf = await openSite({ ADMIN_PASSWORD, DEMO: 'false' })
  const visitor = await deaf.visit()
  await visitor.goto('/')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  const headers = { origin: deaf.base }
  await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  expect((await visitor.page.request.post(`${deaf.base}/api/system/backup`, { headers, data: {} })).ok()).toBe(true)
  await visitor.goto('/')
  await visitor.page.getByText('Nothing is heard: no radio is connected.').waitFor()
  expect(await visitor.page.getByText('Nothing needs you').count()).toBe(0)
  await deaf.close()
})
