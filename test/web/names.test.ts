import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  alertDestinations,
  alertRules,
  apiTokens,
  auditLog,
  automations,
  channels,
  nodes,
  sources,
  users,
} from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
/** Drawn unchanged, it would make the text after it read from right to left. */
const TURNED = 'Club\u202egnp\u2066x'
/** Written from right to left, but its last character belongs to both directions. */
const HEBREW = 'תחנה 5 !'
/** A node whose name has 200 letters and no space. */
const ENDLESS = 0x20000002
const PAGES = [
  '/',
  '/users',
  '/users/2',
  '/account',
  '/automation',
  '/alerts',
  '/messages',
  '/packets',
  '/audit',
  '/map',
  '/nodes',
  '/nodes/!20000001',
]

let site: Site
let visitor: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' })
  visitor = await site.visit()
  await visitor.goto('/')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  const { db, close } = openDatabase(join(site.data, 'mesh.db'))
  const at = Date.now()
  const times = { createdAt: at, updatedAt: at }
  const owned = { uid: 'one', ownerId: 1, name: TURNED, enabled: true, ...times }
  await db
    .insert(users)
    .values({ username: TURNED, displayName: TURNED, email: TURNED, authProvider: 'local', createdAt: at })
  await db
    .insert(apiTokens)
    .values({ userId: 1, name: TURNED, prefix: 'mm_1', tokenHash: 'x', scopes: ['nodes:read'], createdAt: at })
  const rule = { kind: 'schedule', name: TURNED }
  await db.insert(automations).values({
    name: TURNED,
    kind: 'schedule',
    enabled: false,
    rule: JSON.stringify(rule),
    revision: 1,
    anchorAt: at,
    ...times,
  })
  const watched = {
    kind: 'node_new',
    name: TURNED,
    enabled: true,
    destinations: [],
    repeatHours: null,
    tellResolved: true,
    silencedUntil: null,
    silencedNodes: [],
  }
  await db
    .insert(alertRules)
    .values({ ...owned, kind: 'node_new', rule: JSON.stringify(watched), revision: 1, anchorAt: at })
  await db.insert(alertDestinations).values({ ...owned, kind: 'webhook', settings: '{}', confirmedAt: at })
  await db.insert(sources).values({ kind: 'mqtt', name: TURNED, createdAt: at })
  await db.insert(channels).values({ sourceId: 1, index: 0, name: TURNED, role: 'PRIMARY' })
  await db.insert(nodes).values({ nodeNum: ENDLESS, longName: 'W'.repeat(200), firstHeard: at, lastHeard: at })
  await db.insert(nodes).values({
    nodeNum: 0x20000001,
    longName: TURNED,
    shortName: '\u202ex',
    latitude: 47,
    longitude: 8,
    firstHeard: at,
    lastHeard: at,
  })
  await db.insert(nodes).values({ nodeNum: 0x20000003, longName: HEBREW, firstHeard: at, lastHeard: at })
  await db.insert(auditLog).values({
    timestamp: at,
    userId: 2,
    username: TURNED,
    action: 'token_created',
    resource: 'tokens',
    details: JSON.stringify({ name: TURNED }),
  })
  close()
})
afterAll(() => site.close())

test.each(PAGES)('no name reverses the text of %s', async (path) => {
  const { page, goto } = visitor
  await goto(path)
  await page.locator('.progress p').waitFor({ state: 'detached' })
  const shown =
    path === '/' || path === '/packets' || path === '/messages' ? page.locator('h1') : page.getByText(/Clubgnp/)
  await shown.first().waitFor({ state: 'attached' })
  const found = await page.evaluate(`[...document.querySelectorAll('body, body *')]
    .flatMap((each) => [each.getAttribute('title'), each.getAttribute('aria-label'), ...[...each.childNodes].map(({ nodeType, data }) => nodeType === 3 ? data : '')])
    .filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(text ?? ''))`)
  expect(found).toEqual([])
})

test('a dialog and a message about a name keep their direction too', async () => {
  const { page, goto } = visitor
  await goto('/alerts')
  const row = page.locator('li', { hasText: 'A new node' })
  await row.getByRole('button', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  expect(await dialog.textContent()).toContain('Delete “Clubgnpx”?')
})

test.each(['Watch this node', 'Forget this node'])('an endless name does not widen the dialog: %s', async (name) => {
  const { page, goto } = visitor
  const before = page.viewportSize() ?? { width: 1360, height: 860 }
  await page.setViewportSize({ width: 360, height: 640 })
  await goto('/nodes/!20000002')
  await page.getByRole('button', { name }).click()
  await page.getByRole('dialog').getByText('WWW').waitFor()
  expect(await overflowOf(page)).toBe(0)
  expect(await page.getByRole('dialog').evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0)
  await page.keyboard.press('Escape')
  await page.setViewportSize(before)
})

test('a name of the other direction stands alone in lists and in sentences', async () => {
  const { page, goto } = visitor
  const isolated = `[...document.querySelectorAll('bdi')].filter((each) => each.textContent === '${HEBREW}').map((each) => each.parentElement.textContent)`
  await goto('/nodes')
  await page.locator('.row-link', { hasText: HEBREW }).waitFor()
  expect(await page.evaluate(isolated)).toContain(HEBREW)
  await goto('/nodes/!20000003')
  await page.getByRole('button', { name: 'Forget this node' }).click()
  await page.getByRole('dialog').waitFor()
  expect(await page.evaluate(isolated)).toContainEqual(expect.stringMatching(/^Forget .+\?/))
  await page.keyboard.press('Escape')
})
