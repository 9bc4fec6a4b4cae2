import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeRestoredAccess } from '../../src/app/system/restore/restored-access.ts'
import { audit, SYSTEM } from '../../src/app/audit/audit.ts'
import { nodes, ownRadioDecisions, suspicions } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { oidcEnv, startProvider, type TestProvider } from '../support/oidc/provider.ts'
import { freePort } from '../support/servers/free-port.ts'
import { ALERT_KINDS } from '../../src/app/alerts/kinds/kinds.ts'
import { smallControls } from '../support/web/controls.ts'
import { DIALOGS, LAST_DIALOGS } from '../support/web/dialogs.ts'
import { follow } from '../support/web/follow.ts'
import { openBrowser, openSite, overflowOf, type Site, type SiteBrowser, type Visitor } from '../support/web/site.ts'
import { press, pressed, type State, typedInto } from '../support/web/states.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PASSWORD = 'a bench under the oak'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

/** What opens besides the dialogs, and what dialogs show besides. */
const STATES: readonly (State & { readonly onlyOnPhone?: boolean })[] = [
  {
    name: 'more pages',
    of: 'shell/shell.tsx',
    path: '/',
    onlyOnPhone: true,
    open: (page) => press(page, 'More'),
  },
  {
    name: 'filters',
    of: 'parts/list/filters-button.tsx',
    path: '/nodes',
    open: async (page) => {
      await press(page, 'Filters')
      await page.getByLabel('Role', { exact: true }).waitFor()
    },
  },
  {
    name: 'toast',
    of: 'parts/notice.tsx',
    path: '/nodes/!a0cb0102',
    open: async (page) => {
      await page.getByLabel('Notes').fill(`Key at the museum ${Math.random()}`)
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.locator('.toast').waitFor()
    },
  },
  {
    name: 'sender to search for',
    of: 'parts/form/node-picker.tsx',
    path: '/messages',
    open: async (page) => {
      await press(page, 'Filters')
      await typedInto('Sender')(page)
    },
  },
  {
    name: 'reactions',
    of: 'pages/messages/item.tsx',
    path: '/messages',
    open: (page) => page.locator('.message').getByRole('button', { name: 'React' }).last().click(),
  },
  {
    name: 'details of a message',
    of: 'pages/messages/item.tsx',
    path: '/messages',
    open: (page) => page.locator('.message').getByRole('button', { name: 'Details' }).last().click(),
  },
  {
    name: 'packet',
    of: 'parts/list/log-table.tsx',
    path: '/packets',
    open: (page) => page.locator('.expander').first().click(),
  },
  {
    name: 'entry of the audit log',
    of: 'parts/list/log-table.tsx',
    path: '/audit',
    open: async (page) => {
      await page.locator('.expander').first().click()
      await page.locator('.detail').waitFor()
    },
  },
  {
    name: 'legend',
    of: 'pages/map/legend.tsx',
    path: '/map',
    open: (page) => page.getByText('Legend').click(),
  },
  {
    name: 'layers',
    of: 'pages/map/map.tsx',
    path: '/map',
    open: (page) => press(page, 'Layers'),
  },
  {
    name: 'list of the map on a phone',
    of: 'pages/map/panel.tsx',
    path: '/map',
    onlyOnPhone: true,
    open: (page) => press(page, 'List and filters'),
  },
  ...ALERT_KINDS.map((kind): State => {
    return {
      name: `a rule about ${kind}`,
      of: 'pages/alerts/rule-form.tsx',
      path: '/alerts',
      open: async (page) => {
        await pressed('New rule')(page)
        await page.getByLabel('Tell me about').selectOption(kind)
        if (kind !== 'area') return
        await page.getByLabel('When it', { exact: true }).selectOption('enters')
        await page.locator('.area-map canvas').first().waitFor({ state: 'attached' })
      },
    }
  }),
  {
    name: 'an area with corners',
    of: 'pages/alerts/rule-form.tsx',
    path: '/alerts',
    open: async (page) => {
      await pressed('New rule')(page)
      await page.getByLabel('Tell me about').selectOption('area')
      await page.getByLabel('When it', { exact: true }).selectOption('enters')
      await page.getByLabel('Area', { exact: true }).selectOption('polygon')
      const map = page.locator('.area-map .map')
      await map.locator('canvas').first().waitFor({ state: 'attached' })
      await map.scrollIntoViewIfNeeded()
      await map.click({ position: { x: 60, y: 60 } })
      await map.getByTitle('Corner 1').waitFor()
    },
  },
  {
    name: 'when a rule would have fired',
    of: 'pages/alerts/rule-form.tsx',
    path: '/alerts',
    open: async (page) => {
      await pressed('New rule', 'When would it have fired?')(page)
      await page.getByText(/^In the last 7 days it would/).waitFor()
    },
  },
  {
    name: 'what others watch',
    of: 'pages/alerts/everybody.tsx',
    path: '/alerts',
    open: (page) => press(page, 'Show what others watch'),
  },
  {
    name: 'nodes of a rule in automation',
    of: 'parts/form/node-picker.tsx',
    path: '/automation/new?kind=schedule',
    open: typedInto('To'),
  },
  {
    name: 'limits of automation',
    of: 'pages/automation/try.tsx',
    path: '/automation',
    open: (page) => page.getByText('Limits that protect the mesh').click(),
  },
]

/** Four nodes in one place, one of which announced another key. */
const OWN_NODES = [1, 2, 3, 4].map((index) => ({
  nodeNum: 0x30000000 + index,
  longName: `Crowd ${index}`,
  firstHeard: Date.now(),
  lastHeard: Date.now(),
  latitude: 46,
  longitude: 8,
  ...(index === 1 && { keyMismatch: true, publicKey: 'A'.repeat(43), refusedPublicKey: 'B'.repeat(43) }),
}))

const DISPUTED = {
  nodeNum: 0x30000009,
  longName: 'Disputed',
  firstHeard: Date.now(),
  lastHeard: Date.now(),
  spoofSuspected: true,
  refusedLongName: 'Somebody else',
}

/** Why it is disputed: without a reason the mark would end within minutes. */
const DOUBT = {
  nodeNum: DISPUTED.nodeNum,
  sourceId: 1,
  gateway: 0x30000001,
  reason: 'name',
  claim: 'name',
  count: 1,
  firstAt: Date.now(),
  lastAt: Date.now(),
} as const

const LOST = {
  token: null,
  permissions: null,
  scope: null,
  publicAccess: null,
  hiddenNode: null,
  what: null,
  undone: null,
  password: null,
  at: null,
}
const RESTORED = [
  { ...LOST, backup: '2026-01-15_120000', action: 'user_deleted', userId: 2, username: 'anna', by: 'karl' },
] as const

let provider: TestProvider
let site: Site
let browser: SiteBrowser
let desk: Visitor
let phone: Visitor
/** The page that a visitor is on, while it is as it was when it was loaded. */
const places = new Map<Visitor, string>()

beforeAll(async () => {
  provider = await startProvider()
  const port = await freePort()
  // Passkeys belong to a host name, not to an address.
  const base = `http://localhost:${port}`
  const env = oidcEnv(provider, { OIDC_REDIRECT_URI: `${base}/api/auth/oidc/callback` })
  site = await openSite({ ...env, ADMIN_PASSWORD, PORT: String(port) }, async ({ db }) => {
    await db.insert(nodes).values([...OWN_NODES, DISPUTED])
    await db.insert(suspicions).values(DOUBT)
    await db.insert(ownRadioDecisions).values({ nodeNum: DISPUTED.nodeNum, isOwn: false, decidedAt: Date.now() })
  })
  browser = await openBrowser(base)
  desk = await browser.visit()
  await desk.goto('/account')
  await desk.signIn('admin', ADMIN_PASSWORD)
  await desk.page.getByRole('button', { name: 'Link with your organisation' }).click()
  await desk.page.getByText('Account linked').waitFor()
  // The provider is another host.
  desk.complaints.length = 0
  phone = await browser.visit({ ...PHONE, storageState: await desk.page.context().storageState() })
  for (const { page, goto } of [desk, phone]) {
    await page.context().addInitScript(NOTE_OPENER)
    await goto('/')
  }
  const { request } = desk.page
  const post = async (path: string, data: object, by = request) => {
    const made = await by.post(`${base}/api/${path}`, { headers: { origin: base }, data })
    expect([path, made.status()]).toEqual([path, 201])
  }
  await post('users', { username: 'anna', password: PASSWORD })
  await post('users/prepared', { username: 'guest' })
  const action = { kind: 'text', text: 'Net tonight' }
  await post('automation', { kind: 'schedule', name: 'Net', cron: '0 8 * * *', action })
  const rule = { kind: 'node_silent', nodes: { kind: 'list', nodes: [0x30000001] }, afterMinutes: 60, destinations: [] }
  await post('alerts/rules', { ...rule, name: 'Silent' })
  const anna = await browser.visit()
  await anna.goto('/')
  await anna.signIn('anna', PASSWORD)
  await anna.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  await post('alerts/rules', { ...rule, name: 'Of anna' }, anna.page.request)
  await anna.page.context().close()
})
afterAll(async () => {
  await browser.close()
  await site.close()
  await provider.close()
})

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
  const refuse = (route: Route) =>
    route.fulfill({ status: 500, json: { error: { code: 'internal', message: 'Broken', requestId: 'req-1' } } })
  await page.route(isData, refuse)
  places.delete(phone)
  await goto(path)
  await page.getByText('Something went wrong in the service').first().waitFor()
  expect([await violations(), await overflowOf(page)]).toEqual([[], 0])
  await page.unroute(isData, refuse)
})

describe.each(LAST_DIALOGS)('dialog: $name', (dialog) => {
  beforeAll(async () => {
    const store = openDatabase(join(site.data, 'mesh.db'))
    await store.atomic(storeRestoredAccess(store, RESTORED, 1))
    const context = { store, ip: null, requestId: null, viewer: null, now: () => 1_768_478_400_000 }
    await store.atomic([audit(context, 'audit_damaged', { damage: 'entry 7 is changed' }, { actor: SYSTEM })])
    // As if everybody had signed in a quarter of an hour earlier.
    store.sqlite.prepare('update sessions set authenticated_at = authenticated_at - 900000').run()
    store.close()
  })
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
  'pages/nodes/routes.tsx': 'pages.test.ts',
} as const

/** The sources of the pages and their parts, by their paths. */
function sources(): Map<string, string> {
  const root = join(import.meta.dirname, '../../src/web')
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

test('every dialog is in the list of dialogs', () => {
  const found = [...sources()].flatMap(([path, text]) => {
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
