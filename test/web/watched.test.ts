import { join } from 'node:path'
import { isNotNull } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { alerts, nodes } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const PASSWORD = 'a password for watched nodes'
const HOUR = 3_600_000
/** Nobody has heard this one. */
const NEWCOMER = 0xa0cb9999
let site: Site
let visitor: Visitor

beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD: PASSWORD })
  visitor = await site.visit()
  await visitor.page.goto(site.base)
  await visitor.signIn('admin', PASSWORD)
  await visitor.page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
})
afterAll(() => site.close())

const send = async (path: string, body: object) =>
  Object(
    await (
      await visitor.page.request.post(`${site.base}/api/alerts/${path}`, { data: body, headers: { origin: site.base } })
    ).json(),
  )
const card = (name: string) =>
  visitor.page.locator('.card', { has: visitor.page.getByRole('heading', { name, exact: true }) })

test('the page begins with the state of each watched node, those that fire first', async () => {
  const { page } = visitor
  const { db, close } = openDatabase(join(site.data, 'mesh.db'))
  const heard = await db.select({ num: nodes.nodeNum }).from(nodes).where(isNotNull(nodes.lastHeard)).limit(3)
  const [RIDGE = 0, MUTED = 0, WELL = 0] = heard.map(({ num }) => num)
  const until = Date.now() + 24 * HOUR
  const { rule } = await send('rules', {
    kind: 'node_silent',
    name: 'Ridges',
    nodes: { kind: 'list', nodes: [RIDGE, MUTED, WELL, NEWCOMER] },
    afterMinutes: 43_200,
    silencedNodes: [{ node: MUTED, until }],
  })
  await send('rules', { kind: 'key', name: 'Keys', nodes: { kind: 'list', nodes: [RIDGE] } })
  const at = Date.now() - 3 * HOUR
  const times = { startedAt: at, firedAt: at, notifiedAt: at }
  const about = { kind: 'node_silent', subject: `node:${RIDGE}`, nodeNum: RIDGE }
  const of = { ruleId: rule.id, ownerId: 1, ruleName: 'Ridges' }
  const what = 'It was not heard for 3 h'
  await db.insert(alerts).values({ ...of, ...times, ...about, state: 'firing', key: 'x', what, step: 'x' })
  close()
  await visitor.goto('/alerts')
  const rows = card('Watched nodes').getByRole('listitem')
  await rows.first().waitFor()
  const texts = await rows.allTextContents()
  expect(texts).toHaveLength(4)
  expect(texts[0]).toMatch(/silent since .*heard .* · Rules: Ridges, Keys$/)
  expect(texts[1]).toMatch(/muted until .*Rule: Ridges$/)
  expect(texts[2]).toMatch(/^!a0cb9999 not yet heard/)
  expect(texts[3]).toMatch(/ well.*heard .* · Rule: Ridges$/)
  expect(await card('Watched nodes').locator('.card-head .tag').allTextContents()).toStrictEqual([
    'firing: 1',
    'muted: 1',
    'not yet heard: 1',
    'well: 1',
  ])
  // What fires, and what is watched, stand above everything else.
  const headings = await page.getByRole('heading', { level: 2 }).allTextContents()
  expect(headings.slice(0, 3)).toStrictEqual(['Firing now', 'Watched nodes', 'Rules'])
  expect(await visitor.violations()).toStrictEqual([])
})

test('a rule that tells nobody says so, and one click changes that', async () => {
  const { page } = visitor
  const row = page.locator('li', { hasText: 'Tell me when the key of' })
  await row.getByText('Nobody is told:').waitFor()
  await row.getByRole('button', { name: 'add a destination' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Tell me by').selectOption('ntfy')
  await dialog.getByLabel('Name').fill('My phone')
  await dialog.getByLabel('Topic').fill('ridge')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await row.getByText('Nobody is told').waitFor({ state: 'detached' })
  // The other rule can be sent to it at once.
  const other = page.locator('li', { hasText: 'was not heard for 30 d' })
  await other.getByRole('button', { name: 'send to My phone' }).click()
  await other.getByText('Nobody is told').waitFor({ state: 'detached' })
  const { rules } = Object(await (await page.request.get(`${site.base}/api/alerts/rules`)).json())
  expect(rules.map(({ rule }: { rule: { destinations: number[] } }) => rule.destinations)).toStrictEqual([[1], [1]])
})

test('of many watched nodes at most forty are shown at once', async () => {
  const { page } = visitor
  const { db, close } = openDatabase(join(site.data, 'mesh.db'))
  const at = Date.now()
  await db.insert(nodes).values(
    Array.from({ length: 90 }, (_, n) => ({
      nodeNum: 0x10000000 + n,
      longName: `Watched ${n}`,
      firstHeard: at,
      lastHeard: at,
      updatedAt: at,
    })),
  )
  close()
  await send('rules', { kind: 'node_silent', name: 'All', nodes: { kind: 'all' }, afterMinutes: 43_200 })
  await visitor.goto('/alerts')
  const watched = card('Watched nodes')
  await expect.poll(() => watched.getByRole('listitem').count()).toBe(40)
  const before = await watched.getByRole('listitem').allTextContents()
  await watched.getByText(/^1–40 of \d+$/).waitFor()
  await watched.getByRole('button', { name: 'Next' }).click()
  await watched.getByText(/^41–80 of \d+$/).waitFor()
  expect(await watched.getByRole('listitem').count()).toBe(40)
  expect(await watched.getByRole('listitem').allTextContents()).not.toStrictEqual(before)
  await page.setViewportSize({ width: 390, height: 844 })
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  expect(await visitor.violations()).toStrictEqual([])
})

test('who may not see what a kind of rule watches is not offered it', async () => {
  const { request } = visitor.page
  const headers = { origin: site.base }
  const credentials = { username: 'mia', password: 'a bench under the oak' }
  const { user } = Object(await (await request.post(`${site.base}/api/users`, { headers, data: credentials })).json())
  const none = { read: false, write: false }
  const permissions = { dashboard: none, nodes: none, info: none, messages: { read: true, write: false } }
  await request.put(`${site.base}/api/users/${user.id}/permissions`, { headers, data: { permissions } })
  const mia = await site.visit()
  const { page } = mia
  await mia.goto('/alerts')
  await mia.signIn(credentials.username, credentials.password)
  const presets = page.locator('.card', { hasText: 'Start with one of these' }).locator('.stack .button')
  await presets.first().waitFor()
  expect(await presets.allTextContents()).toStrictEqual(['Direct messages'])
  await page.getByRole('button', { name: 'New rule' }).click()
  const kinds = page.getByRole('dialog').locator('select').first().locator('option')
  await expect.poll(() => kinds.count()).toBe(2)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.context().close()
})
