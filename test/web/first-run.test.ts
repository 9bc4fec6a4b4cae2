import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { follow } from '../support/web/follow.ts'
import { openSite, type Site } from '../support/web/site.ts'

const PASSWORD = 'three radios on one hill'
let site: Site
beforeAll(async () => {
  // A radio that is configured; nothing answers at the discard port.
  site = await openSite({ DEMO: 'false', MESHTASTIC_TCP: '127.0.0.1:9' })
})
afterAll(() => site.close())

/** Goes to the dashboard, and waits until it has drawn everything that the list depends on. */
async function told(page: Page, go: () => Promise<void>): Promise<void> {
  const answers = ['/api/info', '/api/users?', '/api/system/backup/settings'].map((path) =>
    page.waitForResponse((response) => response.url().includes(path)).then((response) => response.finished()),
  )
  await Promise.all([go(), ...answers])
  await page.getByText('Nodes active').waitFor()
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
}

test('the first run says what to do next, until everything is done', async () => {
  const { page, goto, signIn, violations } = await site.visit()
  await goto('/')
  await signIn('admin', site.temporaryPassword ?? '')
  await page.getByLabel('New password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Repeat the new password').fill(PASSWORD)
  // A new account has no API tokens.
  expect(await page.getByText('API tokens').count()).toBe(0)
  await page.getByRole('button', { name: 'Change password' }).click()

  const list = page.locator('.checklist > li')
  const steps = () => list.evaluateAll((items) => items.map(({ className }) => className))
  await list.first().waitFor()
  await expect
    .poll(() => list.allTextContents())
    .toEqual([
      expect.stringMatching(/^Replace the temporary password \(done\)/),
      expect.stringMatching(/^Connect a radio \(done\)/),
      expect.stringMatching(/^Switch on daily backups \(to do\)/),
      expect.stringMatching(/^Create accounts for other people \(to do\)/),
      expect.stringMatching(/^Optional: sign in through your organisation \(to do\).*OIDC_REDIRECT_URI/),
    ])
  expect(await violations()).toEqual([])

  await page.getByRole('link', { name: 'Switch on daily backups' }).click()
  await page.getByLabel('Make a backup every day').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Schedule saved').waitFor()
  await page.getByRole('link', { name: 'Dashboard' }).first().click()
  await expect.poll(steps).toEqual(['done', 'done', 'done', '', ''])

  await page.getByRole('link', { name: 'Create accounts for other people' }).click()
  await page.getByLabel('Username').fill('anna')
  await page.getByRole('button', { name: 'Create user' }).click()
  await page.getByRole('heading', { name: 'anna can sign in now' }).waitFor()
  await told(page, () => page.getByRole('link', { name: 'Dashboard' }).first().click())
  await expect.poll(() => page.getByRole('heading', { name: 'Next steps' }).count()).toBe(0)
})

test('the list can be hidden', async () => {
  const { page, goto, signIn } = await site.visit()
  await goto('/backups')
  await signIn('admin', PASSWORD)
  await page.getByLabel('Make a backup every day').uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Schedule saved').waitFor()
  await goto('/')
  await page.getByRole('button', { name: 'Hide this list' }).click()
  await told(page, () => goto('/'))
  await expect.poll(() => page.getByRole('heading', { name: 'Next steps' }).count()).toBe(0)
})

test('why a radio is not connected is said in the language of the reader', async () => {
  const { page, goto } = await site.visit({ locale: 'de-DE' })
  await goto('/configuration/connections')
  await page.getByLabel('Benutzername').fill('admin')
  await page.getByLabel('Passwort', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Anmelden' }).click()
  await page.getByText('das Funkgerät lehnt Verbindungen ab').waitFor()
})

/** Each page that shows the mesh, and the source that draws it while there is nothing. */
const EMPTY_PAGES = [
  ['/', 'dashboard/just-heard.tsx'],
  ['/map', 'map/map.tsx'],
  ['/nodes', 'nodes/nodes.tsx'],
  ['/messages', 'messages/log.tsx'],
  ['/alerts', 'alerts/alerts.tsx'],
  ['/findings', 'findings/findings.tsx'],
  ['/topology', 'topology/graph/graph.tsx'],
  ['/traceroutes', 'topology/traceroutes.tsx'],
  ['/neighbors', 'topology/neighbors.tsx'],
  ['/packets', 'topology/packets.tsx'],
  ['/automation', 'automation/automation.tsx'],
  ['/configuration', 'device-config/device-config.tsx'],
] as const
/** Sources whose empty pages have nothing to do with a radio. */
const NOT_ABOUT_RADIOS = {
  'connections/connections.tsx': 'where a radio is connected',
  'device-config/remote/remote.tsx': 'a node that is not administered yet',
  'automation/editor.tsx': 'a rule that was deleted',
  'boards/board.tsx': 'a board without charts',
  'boards/boards.tsx': 'boards, which are made by hand',
  'backups/backups.tsx': 'a runtime without backups',
  'backups/copies/copies.tsx': 'a runtime without backups',
  'map/frame/node-frame.tsx': 'a node that is shown to nobody',
  'nodes/node.tsx': 'a node that was forgotten',
} as const

test('without a radio each empty page says how to connect one', async () => {
  const bare = await openSite({ DEMO: 'false', ADMIN_PASSWORD: PASSWORD })
  try {
    const { page, goto, signIn, violations } = await bare.visit()
    await goto('/')
    await signIn('admin', PASSWORD)
    await page.getByText('Nodes active').waitFor()
    for (const [path] of EMPTY_PAGES) {
      await follow(page, path)
      await page
        .locator('main')
        .getByText(
          /^No radio is connected\. Connect a radio To try the service without a radio, set DEMO=true and restart it\./,
        )
        .waitFor()
      expect([path, ...(await violations())]).toEqual([path])
    }
  } finally {
    await bare.close()
  }
})

test('every source of an empty page is among these', () => {
  const root = join(import.meta.dirname, '../../src/web/pages')
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.tsx'))
  const found = sources.filter((path) => /<Empty|<ConnectHelp/.test(readFileSync(join(root, path), 'utf8')))
  const known = [...EMPTY_PAGES.map(([, of]) => of), ...Object.keys(NOT_ABOUT_RADIOS)]
  expect(found.toSorted()).toEqual(known.toSorted())
})
