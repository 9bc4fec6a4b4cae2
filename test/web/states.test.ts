import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { smallControls } from '../support/web/controls.ts'
import { DIALOGS, LAST_DIALOGS } from '../support/web/dialogs.ts'
import { type FilledSite, openFilledSite, spoil } from '../support/web/filled-site.ts'
import { follow } from '../support/web/follow.ts'
import { STATES } from '../support/web/opened.ts'
import { overflowOf, type Visitor } from '../support/web/site.ts'
import type { State } from '../support/web/states.ts'

const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

let filled: FilledSite
let desk: Visitor
let phone: Visitor
/** The page that a visitor is on, while it is as it was when it was loaded. */
const places = new Map<Visitor, string>()

beforeAll(async () => {
  filled = await openFilledSite()
  desk = filled.admin
  phone = await filled.browser.visit({ ...PHONE, storageState: await desk.page.context().storageState() })
  for (const { page, goto } of [desk, phone]) {
    await page.context().addInitScript(NOTE_OPENER)
    await goto('/')
  }
})
afterAll(() => filled.close())

/** Notes what a click or a key outside dialogs was meant for. */
const NOTE_OPENER = `
  addEventListener('click', ({ target }) => target.closest('dialog') === null && (window.opener_ = target.closest('button, a, [tabindex]')), true)
  addEventListener('keydown', ({ target }) => target.closest('dialog') === null && (window.opener_ = document.activeElement), true)`

/** Both visitors have one session: the first second factor moves it to another token. */
async function shareSession(visitor: Visitor): Promise<void> {
  const other = visitor === desk ? phone : desk
  const cookies = async ({ page }: Visitor) =>
    (await page.context().cookies()).filter(({ name }) => name.endsWith('mesh_session'))
  const [mine, theirs] = [await cookies(visitor), await cookies(other)]
  const isCurrent = async ({ page }: Visitor) =>
    Object(await (await page.request.get(new URL('/api/auth/status', page.url()).href)).json()).authenticated === true
  if (mine[0]?.value === theirs[0]?.value || (await isCurrent(visitor))) return
  await visitor.page.context().addCookies(theirs)
  await visitor.goto('/')
  places.delete(visitor)
}

async function show(visitor: Visitor, { path, open }: State): Promise<void> {
  const { page } = visitor
  await shareSession(visitor)
  if (places.get(visitor) !== path) {
    await follow(page, path)
    await page.locator('.card, tbody tr, .log li, .leaflet-container, .empty').first().waitFor()
  }
  places.delete(visitor)
  await open(page)
}

/** Accessible in light and dark, not too wide, and on a phone high enough for fingers. */
async function look(visitor: Visitor): Promise<void> {
  const { page, violations } = visitor
  expect(await violations()).toEqual([])
  expect(await overflowOf(page)).toBe(0)
  expect(await page.evaluate(TOO_WIDE)).toEqual([])
  if (visitor === phone) expect(await smallControls(page)).toEqual([])
}

/** Parts of dialogs whose contents are wider than themselves. */
const TOO_WIDE = `[...document.querySelectorAll('dialog, .dialog-body')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.className)`

/** The dialog has the focus; Escape closes it, and gives the focus back. */
async function leave(visitor: Visitor, { path }: State): Promise<void> {
  const { page } = visitor
  await expect.poll(() => page.evaluate("document.activeElement.closest('dialog') !== null")).toBe(true)
  // The first one closes the list of a field.
  if ((await page.getByRole('listbox').count()) > 0) await page.keyboard.press('Escape')
  if ((await page.getByRole('dialog').count()) > 0) await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const isBack = "(window.opener_ ?? document.querySelector('h1')) === document.activeElement"
  await expect.poll(() => page.evaluate(`${isBack} || document.activeElement.outerHTML`)).toBe(true)
  places.set(visitor, path)
}

const at = { 'at a desk': () => desk, 'on a phone': () => phone }
const SIZES = ['at a desk', 'on a phone'] as const

describe.each(DIALOGS)('dialog: $name', (dialog) => {
  test.each(SIZES)('%s', async (size) => {
    const visitor = at[size]()
    await show(visitor, dialog)
    await look(visitor)
    await leave(visitor, dialog)
  })
})

describe.each(STATES)('state: $name', (state) => {
  test.each(SIZES.filter((size) => size === 'on a phone' || state.onlyOnPhone !== true))('%s', async (size) => {
    const visitor = at[size]()
    await show(visitor, state)
    await look(visitor)
  })
})

test.each(['/', '/map', '/users', '/settings'])('a failure of the service is told on %s of a phone', async (path) => {
  const { page, goto, violations } = phone
  const isData = (url: URL) => /^\/api\/(?!auth\/|events$|info$)/.test(url.pathname)
  // Until the press: what the page asks by itself would end the failure before. A page that is just loaded has no press.
  const isPressed = () => page.evaluate('window.isPressed === true').catch(() => false)
  const refuse = async (route: Route) =>
    (await isPressed())
      ? route.fallback()
      : route.fulfill({ status: 500, json: { error: { code: 'internal', message: 'Broken', requestId: 'req-1' } } })
  await page.route(isData, refuse)
  // News of nodes would end the failure of a list that is known from before.
  const silent = (route: Route) => route.fulfill({ contentType: 'text/event-stream', body: ': nothing new\n\n' })
  await page.route('**/api/events?*', silent)
  places.delete(phone)
  await goto(path)
  await page.evaluate("addEventListener('click', () => (window.isPressed = true), { capture: true })")
  const told = page.getByRole('alert').filter({ hasText: 'Something went wrong in the service' })
  await told.first().waitFor()
  await expect.poll(() => told.count()).toBe(1)
  expect([await violations(), await overflowOf(page)]).toEqual([[], 0])
  // One press loads every part of the page.
  await told.getByRole('button').click()
  await expect.poll(() => told.count()).toBe(0)
  await page.unroute(isData, refuse)
  await page.unroute('**/api/events?*', silent)
})

describe.each(LAST_DIALOGS)('dialog: $name', (dialog) => {
  beforeAll(() => spoil(filled.site))
  test.each(SIZES)('%s', async (size) => {
    const visitor = at[size]()
    await show(visitor, dialog)
    await look(visitor)
    await leave(visitor, dialog)
  })
})

test('none of this wrote anything to the console, but the refusal that asks for a proof', () => {
  expect(desk.complaints).toEqual(['Failed to load resource: the server responded with a status of 403 (Forbidden)'])
})

/** Sources whose states need other data: the tests that open them check them too. */
const ELSEWHERE = {
  'pages/device-config/section.tsx': 'configuration.test.ts',
  'pages/map/panel/waypoint-list.tsx': 'map-layers.test.ts',
  'pages/nodes/parts/routes.tsx': 'pages.test.ts',
  'pages/topology/trace-row.tsx': 'links.test.ts',
} as const

/** The sources of the pages and their parts, by their paths. */
function sources(): Map<string, string> {
  const root = join(import.meta.dirname, '../../src/web')
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

test('every dialog is in the list of dialogs', () => {
  const found = [...sources()].flatMap(([path, text]) => {
    // A node that is configured over the mesh answers only in remote.test.ts, which opens these, and connections of one's
    // own are in connections.test.ts alone.
    if (/^pages\/(?:device-config\/(?:remote\/|losses)|connections\/)/.test(path)) return []
    const uses = path === 'parts/dialog.tsx' ? [] : (text.match(/<Dialog\b|<dialog\b|\baskFirst\(/g) ?? [])
    return uses.map(() => path)
  })
  expect(found.length).toBeGreaterThan(20)
  expect([...DIALOGS, ...LAST_DIALOGS].map(({ of }) => of).toSorted()).toEqual(found.toSorted())
})

test('every source that opens something else is in these lists', () => {
  const opens = /<details|role="listbox"|aria-expanded|popover/
  const known = new Set([...[...STATES, ...DIALOGS].map(({ of }) => of), ...Object.keys(ELSEWHERE)])
  const found = [...sources()].flatMap(([path, text]) => (opens.test(text) ? [path] : []))
  expect(found.filter((path) => !known.has(path))).toEqual([])
})
