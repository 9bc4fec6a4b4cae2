import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { follow } from '../support/web/follow.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

/** Something that opens on a page, such as a dialog. */
type State = {
  readonly name: string
  /** The source that draws it. */
  readonly of: string
  readonly path: string
  readonly onPhone?: boolean
  /** Resolves once it is visible. */
  open(page: Page): Promise<unknown>
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()
const dialogOf = (page: Page) => page.getByRole('dialog').waitFor()
/** Presses buttons, and waits for the dialog that they open. */
const pressed =
  (...names: readonly (string | RegExp)[]) =>
  async (page: Page) => {
    for (const name of names) await press(page, name)
    await dialogOf(page)
  }
const typedInto = (label: string) => async (page: Page) => {
  await page.getByRole('combobox', { name: label }).fill('hill')
  await page.getByRole('listbox').getByRole('option').first().waitFor()
}

const RULE_KINDS = ['node_silent', 'metric', 'node_new', 'area', 'message', 'key', 'link', 'backup', 'sign_in']

const STATES: readonly State[] = [
  {
    name: 'finder',
    of: 'parts/shell/finder.tsx',
    path: '/settings',
    open: async (page) => {
      await page.keyboard.press('Control+k')
      await typedInto('What to find')(page)
    },
  },
  { name: 'more pages', of: 'parts/shell/shell.tsx', path: '/', onPhone: true, open: (page) => press(page, 'More') },
  {
    name: 'filters',
    of: 'parts/list/filters-button.tsx',
    path: '/nodes',
    open: async (page) => {
      await press(page, 'Filters')
      await page.getByLabel('Role', { exact: true }).waitFor()
    },
  },
  { name: 'columns', of: 'pages/nodes/columns.tsx', path: '/nodes?hops=0', open: pressed('Columns') },
  { name: 'saving a view', of: 'pages/nodes/views.tsx', path: '/nodes?role=ROUTER', open: pressed('Save view') },
  { name: 'watching a node', of: 'pages/nodes/watch.tsx', path: '/nodes/!a0cb0102', open: pressed('Watch this node') },
  {
    name: 'forgetting a node',
    of: 'pages/nodes/node.tsx',
    path: '/nodes/!a0cb0102',
    open: pressed('Forget this node'),
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
    name: 'recipient',
    of: 'pages/messages/conversations.tsx',
    path: '/messages',
    open: async (page) => {
      await pressed('Write to a node…')(page)
      await typedInto('Recipient')(page)
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
    name: 'layers on a phone',
    of: 'pages/map/map.tsx',
    path: '/map',
    onPhone: true,
    open: (page) => press(page, 'Layers'),
  },
  {
    name: 'list of the map on a phone',
    of: 'pages/map/panel.tsx',
    path: '/map',
    onPhone: true,
    open: (page) => press(page, 'List and filters'),
  },
  {
    name: 'deleting a backup',
    of: 'pages/backups/backups.tsx',
    path: '/backups',
    open: async (page) => {
      if ((await page.locator('tbody tr').count()) === 0) await press(page, 'Back up now')
      await pressed(/^Delete \d/)(page)
    },
  },
  { name: 'resetting a password', of: 'pages/users/access.tsx', path: '/users/2', open: pressed('Reset password') },
  {
    name: 'the new password',
    of: 'pages/users/access.tsx',
    path: '/users/2',
    open: async (page) => {
      await pressed('Reset password')(page)
      await page.getByRole('dialog').getByRole('button', { name: 'Reset password' }).click()
      await page.getByRole('dialog').locator('code').waitFor()
    },
  },
  { name: 'ending sessions', of: 'pages/users/credentials.tsx', path: '/users/1', open: pressed('End all sessions') },
  { name: 'a new token', of: 'pages/account/tokens.tsx', path: '/account', open: pressed('New token') },
  { name: 'an app for codes', of: 'pages/account/factors.tsx', path: '/account', open: pressed('Set up an app') },
  ...RULE_KINDS.map((kind): State => {
    return {
      name: `a rule about ${kind}`,
      of: 'pages/alerts/rule-form.tsx',
      path: '/alerts',
      open: async (page) => {
        await pressed('Low batteries')(page)
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
      await pressed('Low batteries')(page)
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
      await pressed('Low batteries', 'When would it have fired?')(page)
      await page.getByText(/^In the last 7 days it would/).waitFor()
    },
  },
  {
    name: 'a destination',
    of: 'pages/alerts/destinations.tsx',
    path: '/alerts',
    open: pressed('Add a destination'),
  },
  {
    name: 'the secret of a destination',
    of: 'pages/alerts/destinations.tsx',
    path: '/alerts',
    open: async (page) => {
      await pressed('Add a destination')(page)
      await page.getByLabel('Tell me by').selectOption('webhook')
      await page.getByLabel('Url').fill('https://alerts.example.org/hook')
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByText('It is shown only now').first().waitFor()
    },
  },
  {
    name: 'deleting a destination',
    of: 'pages/alerts/alerts.tsx',
    path: '/alerts',
    open: pressed('Delete'),
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

/** Sources whose dialogs need a radio, a provider or a lost factor: the tests that open them check them too. */
const ELSEWHERE = {
  'parts/dialog.tsx': 'the dialogs themselves',
  'parts/proof.tsx': 'people/lost-factor.test.ts',
  'parts/recovery-codes.tsx': 'people/second-factor.test.ts',
  'parts/shell/revived-decision.tsx': 'administration.test.ts',
  'pages/account/link.tsx': 'people/provider.test.ts',
  'pages/device-config/review.tsx': 'configuration.test.ts',
  'pages/device-config/section.tsx': 'configuration.test.ts',
  'pages/map/pile.tsx': 'mesh/map-layers.test.ts',
  'pages/nodes/routes.tsx': 'pages.test.ts',
  'pages/users/invitation.tsx': 'people/provider.test.ts',
} as const

let site: Site
let desk: Visitor
let phone: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
  desk = await site.visit()
  await desk.goto('/')
  await desk.signIn('admin', ADMIN_PASSWORD)
  await desk.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  phone = await site.visit({ ...PHONE, storageState: await desk.page.context().storageState() })
  await phone.goto('/')
  const headers = { origin: site.base }
  const data = { username: 'anna', password: 'a bench under the oak' }
  const made = await desk.page.request.post(`${site.base}/api/users`, { headers, data })
  expect(made.status()).toBe(201)
})
afterAll(() => site.close())

test.each(STATES)('axe-core finds nothing, light and dark: $name', async ({ path, onPhone, open }) => {
  const { page, violations } = onPhone === true ? phone : desk
  await follow(page, path)
  await page.locator('.card, tbody tr, .log li, .leaflet-container, .empty').first().waitFor()
  await open(page)
  expect(await violations()).toEqual([])
})

test.each(['/', '/map', '/users', '/settings'])('a failure of the service is told on %s of a phone', async (path) => {
  const { page, goto, violations } = phone
  const isData = (url: URL) => /^\/api\/(?!auth\/|events$|info$)/.test(url.pathname)
  const refuse = (route: Route) =>
    route.fulfill({ status: 500, json: { error: { code: 'internal', message: 'Broken', requestId: 'req-1' } } })
  await page.route(isData, refuse)
  await goto(path)
  await page.getByText('Something went wrong in the service').first().waitFor()
  expect([await violations(), await overflowOf(page)]).toEqual([[], 0])
  await page.unroute(isData, refuse)
})

test('every source that opens something is in these lists', () => {
  const root = join(import.meta.dirname, '../../src/web')
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.tsx'))
  const opens = /<Dialog|askFirst\(|<details|role="listbox"|aria-expanded|popover/
  const known = new Set([...STATES.map(({ of }) => of), ...Object.keys(ELSEWHERE)])
  const found = sources.filter((path) => opens.test(readFileSync(join(root, path), 'utf8')))
  expect(found.filter((path) => !known.has(path))).toEqual([])
})
