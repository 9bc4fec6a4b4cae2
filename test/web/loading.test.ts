import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { follow } from '../support/web/follow.ts'
import { pagesWith } from '../support/web/pages.ts'
import { openSite, type Site } from '../support/web/site.ts'

const PASSWORD = 'three radios on one hill'
const MIN_LENGTH = 17
const NODE = '!a0cb0001'

/** The heading of each page while its data loads, and the one it has before the service has said who is signed in. */
const HEADINGS: Readonly<Record<string, readonly [loading: string, starting: string]>> = {
  '/': ['Dashboard', 'Dashboard'],
  '/map': ['Map', 'Map'],
  '/nodes': ['Nodes', 'Nodes'],
  [`/nodes/${NODE}`]: [NODE, 'Nodes'],
  '/messages': ['Messages', 'Messages'],
  '/alerts': ['Alerts', 'Alerts'],
  '/findings': ['Findings', 'Findings'],
  '/topology': ['Topology', 'Topology'],
  '/boards': ['Boards', 'Boards'],
  '/traceroutes': ['Traceroutes', 'Traceroutes'],
  '/neighbors': ['Neighbours', 'Neighbours'],
  '/packets': ['Packets', 'Packets'],
  '/automation': ['Automation', 'Automation'],
  '/configuration': ['Radio configuration', 'Configuration'],
  '/users': ['Users', 'Users'],
  '/users/1': ['User', 'Users'],
  '/audit': ['Audit log', 'Audit log'],
  '/backups': ['Backups', 'Backups'],
  '/system': ['System', 'System'],
  '/settings': ['Settings', 'Settings'],
  '/account': ['Your account', 'Your account'],
  '/users/new': ['New user', 'Users'],
  '/public-access': ['Public access', 'Public access'],
  '/configuration/connections': ['Connections', 'Configuration'],
  '/backups/copies': ['Copies elsewhere', 'Backups'],
  '/automation/new': ['New rule', 'Automation'],
  '/nowhere': ['Page not found', 'Mesh Monitoring'],
}
const PAGES = [
  ...pagesWith(NODE),
  '/users/new',
  '/public-access',
  '/configuration/connections',
  '/backups/copies',
  '/automation/new',
  '/nowhere',
]

/** What a screen reader says about a field, beyond its name. */
async function described(page: Page, label: string): Promise<string> {
  const id = await page.getByLabel(label, { exact: true }).getAttribute('aria-describedby')
  return (await page.locator(`[id="${id}"]`).textContent()) ?? ''
}

let site: Site
let storageState: Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>
let saidAtSetUp = ''
beforeAll(async () => {
  site = await openSite({ PASSWORD_MIN_LENGTH: String(MIN_LENGTH) })
  const { page, goto, signIn } = await site.visit()
  await goto('/')
  await signIn('admin', site.temporaryPassword ?? '')
  await page.getByRole('heading', { name: 'Choose your own password', level: 1 }).waitFor()
  saidAtSetUp = await described(page, 'New password')
  await page.getByLabel('New password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Repeat the new password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Change password' }).click()
  await page.getByText('Nodes active').waitFor()
  storageState = await page.context().storageState()
})
afterAll(() => site.close())

test('the minimum of a new password is said before it is typed', async () => {
  const minimum = `${MIN_LENGTH} characters`
  expect(saidAtSetUp).toContain(minimum)
  const { page, goto } = await site.visit({ storageState })
  // The service makes all other passwords itself, so no other page has a field for a new one.
  const asking: string[] = []
  await goto('/')
  for (const path of PAGES) {
    if (path === '/nowhere') await goto(path)
    else await follow(page, path)
    await page.locator('.card, tbody tr, .log li, .leaflet-container, .empty').first().waitFor()
    await page.locator('.progress p').waitFor({ state: 'detached' })
    if ((await page.locator('[autocomplete=new-password]').count()) > 0) asking.push(path)
  }
  expect(asking).toEqual(['/account'])
  await follow(page, '/account')
  expect(await described(page, 'New password')).toContain(minimum)
  await page.context().close()
})

test.each([
  ['while its data loads', 0, /\/api\/(?!auth\/status)/],
  ['before it is known who is signed in', 1, /\/api\//],
])('each page has its heading %s', async (_name, which, held) => {
  const { page } = await site.visit({ storageState, serviceWorkers: 'block' })
  for (const path of PAGES) {
    const gate = Promise.withResolvers<void>()
    await page.route(held, async (route) => {
      await gate.promise
      await route.continue().catch(() => {})
    })
    await page.goto(site.base + path)
    const heading = HEADINGS[path]?.[which] ?? 'none'
    await expect.poll(async () => [path, await page.locator('h1').allTextContents()]).toEqual([path, [heading]])
    gate.resolve()
    await page.unroute(held)
    await page.locator('h1:not(.boot *)').waitFor()
    expect([path, await page.locator('h1').count()]).toEqual([path, 1])
  }
  await page.context().close()
})
