import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, closeVisits, openSignedIn } from '../support/signed-in.ts'
import { openSite, type Site } from '../support/web/site.ts'

const LONG = 'x'.repeat(300)
/** Addresses that were cut off, typed wrongly, or made by another version. */
const ODD = [
  `/nodes?q=${LONG}&heard=1&role=none&way=pigeon&position=maybe&sort=weight&order=sideways`,
  '/nodes/!ffffffff',
  '/nodes/!00000000',
  '/map?node=!zzz&track=1e99&trace=9007199254740991&age=7',
  '/map?track=-1&trace=0&links=1&routes=1&node=!a0cb0001',
  '/map?trace=1.5',
  '/messages?channel=9999999&with=!ffffffff',
  `/messages?channel=1048831&q=${LONG}`,
  '/traceroutes?node=!ffffffff',
  '/traceroutes?node=somebody',
  '/packets?port=99999&from=!00000000',
  '/packets?port=-1&from=me',
  `/neighbors?q=${LONG}&sort=none`,
  `/users?q=${LONG}`,
  `/audit?q=${LONG}&userId=me&action=${LONG}&resource=${LONG}&from=0001-01-01&to=99999-01-01`,
  '/audit?userId=0&from=today&cursor=x',
]

const DRAWN = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))'

let site: Site
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
})
afterAll(() => site.close())
afterEach(closeVisits)

test('a malformed address shows what it can, and causes no refused request', async () => {
  const { page, goto, complaints } = await openSignedIn(site, '/account')
  const refused: string[] = []
  const pending = new Set<unknown>()
  page.on('request', (request) => {
    if (/\/api\/(?!events)/.test(request.url())) pending.add(request)
  })
  page.on('requestfinished', (request) => pending.delete(request))
  page.on('requestfailed', (request) => pending.delete(request))
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`)
  })
  for (const path of ODD) {
    await goto(path)
    // A page sends requests after it is drawn; then all are answered.
    await page.evaluate(DRAWN)
    await expect.poll(() => pending.size).toBe(0)
    await expect.poll(() => page.locator('[role=alert]').count()).toBe(0)
  }
  await goto('/nodes')
  await page.getByText('Castle Hill Relay').waitFor()
  // Two pages are about impossible nodes and answer 404 themselves; no request to the API is refused.
  const none = ['/nodes/!ffffffff', '/nodes/!00000000']
  expect(refused).toEqual(none.map((path) => `404 ${site.base}${path}`))
  expect(complaints).toEqual(none.map(() => expect.stringContaining('404 (Not Found)')))
})

test('a node is found by the start of its !hex id and by its number, and by an id in capital letters', async () => {
  const { page, goto } = await openSignedIn(site, '/nodes')
  await page.getByText('Castle Hill Relay').waitFor()
  for (const text of ['!A0CB0102', '2697658626', 'castle hill']) {
    await page.getByLabel('Search nodes').fill(text)
    await page.getByText(/^1 of \d+ nodes$/).waitFor()
    await page.getByRole('link', { name: 'Castle Hill Relay' }).waitFor()
  }
  await goto('/nodes/!A0CB0102')
  await page.getByRole('heading', { name: 'Castle Hill Relay', level: 1 }).waitFor()
})

test('a traceroute to our own radio is not offered', async () => {
  const { page } = await openSignedIn(site, '/map?node=!a0cb0001')
  const panel = page.getByRole('region', { name: 'Nodes and filters' })
  await panel.getByRole('link', { name: 'Traceroutes' }).click()
  await page.getByRole('heading', { name: 'New traceroute' }).waitFor()
  await page.getByText('Only Town Hall Gateway').waitFor()
  await expect.poll(() => page.getByLabel('Node', { exact: true }).inputValue()).toBe('')
  await expect.poll(() => page.getByRole('button', { name: 'Start a traceroute' }).isDisabled()).toBe(true)
})

test('the id of a node is copied by pressing it', async () => {
  const { page } = await openSignedIn(site, '/nodes/!a0cb0102', { permissions: ['clipboard-write'] })
  await page.getByText('2697658626').waitFor()
  await page.getByRole('button', { name: 'Copy: Node ID' }).click()
  await page.getByText('Node ID copied').waitFor()
  // No page of the service may read the clipboard, but its user can paste.
  await page.getByRole('main').getByRole('link', { name: 'Nodes', exact: true }).click()
  const search = page.getByLabel('Search nodes')
  await search.focus()
  await page.keyboard.press('Control+V')
  await expect.poll(() => search.inputValue()).toBe('!a0cb0102')
})

test('the way back from a node leads to the list as it was left', async () => {
  const { page } = await openSignedIn(site, '/nodes?sort=name&order=down')
  await page.getByLabel('Search nodes').fill('hill')
  await page.getByText(/^1 of \d+ nodes$/).waitFor()
  await page.getByRole('link', { name: 'Castle Hill Relay' }).click()
  await page.getByRole('heading', { name: 'Castle Hill Relay', level: 1 }).waitFor()
  await page.getByRole('main').getByRole('link', { name: 'Nodes', exact: true }).click()
  await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
  await expect.poll(() => new URL(page.url()).search).toBe('?sort=name&order=down&q=hill')
  await expect.poll(() => page.getByLabel('Search nodes').inputValue()).toBe('hill')
})
