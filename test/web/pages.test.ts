import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodes } from '../../src/db/schema.ts'
import { openDatabase } from '../../src/node/database.ts'
import { follow } from '../support/web/follow.ts'
import { openSite, overflowOf, type Site } from '../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const collator = new Intl.Collator('en', { numeric: true })

function isSorted<T>(all: readonly T[], compare: (a: T, b: T) => number): boolean {
  return all.every((each, index) => index === 0 || compare(all[index - 1] ?? each, each) <= 0)
}

/** Each column in turn: a new sort starts with the most useful end. */
const SORTED_BY = [
  ['Node', 'ascending'],
  ['Node', 'descending'],
  ['Heard', 'descending'],
  ['Hops', 'ascending'],
  ['SNR', 'descending'],
  ['Battery', 'descending'],
  ['Channel use', 'descending'],
  ['Hardware', 'ascending'],
  ['Role', 'ascending'],
] as const

const PAGES = [
  '/',
  '/map',
  '/nodes',
  '/nodes/!a0cb0001',
  '/messages',
  '/findings',
  '/topology',
  '/boards',
  '/traceroutes',
  '/neighbors',
  '/packets',
  '/users',
  '/users/new',
  '/users/1',
  '/users/2',
  '/audit',
  '/backups',
  '/system',
  '/settings',
  '/account',
  '/nowhere',
]

let site: Site
/** An administrator who has signed in. */
let storageState: Awaited<ReturnType<BrowserContext['storageState']>>
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
  const guest = await site.visit()
  await guest.goto('/')
  await guest.signIn('admin', ADMIN_PASSWORD)
  await guest.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  const made = await guest.page.request.post(`${site.base}/api/users`, {
    data: { username: 'anna', password: 'a bench under the oak', email: 'anna@example.org' },
    headers: { origin: site.base },
  })
  expect(made.status()).toBe(201)
  storageState = await guest.page.context().storageState()
  await guest.page.context().close()
})
afterAll(() => site.close())

describe.each([
  ['light and dark', {}],
  ['on a phone', { colorScheme: 'light', viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }],
] as const)('%s', (_name, options) => {
  test('axe-core finds nothing on any page, none is too wide, the console is empty', async () => {
    const visitor = await site.visit(options)
    await visitor.goto('/login')
    expect(await visitor.violations()).toEqual([])
    await visitor.signIn('admin', ADMIN_PASSWORD)
    await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
    for (const path of PAGES) {
      if (path === '/nowhere') await visitor.goto(path)
      else await follow(visitor.page, path)
      // The main rows and cards of the page, if it has any.
      await visitor.page.locator('.card, tbody tr, .log li, .leaflet-container, .empty').first().waitFor()
      expect([path, ...(await visitor.violations())]).toEqual([path])
      await expect.poll(async () => [path, await overflowOf(visitor.page)]).toEqual([path, 0])
    }
    // Of /nowhere, which is 404 to clients that read statuses.
    expect(visitor.complaints).toEqual([
      'Failed to load resource: the server responded with a status of 404 (Not Found)',
    ])
  })
})

test('a phone reaches every page through the bar at its lower edge', async () => {
  const { page, goto } = await site.visit({
    storageState,
    viewport: { width: 390, height: 780 },
    isMobile: true,
    hasTouch: true,
  })
  await goto('/')
  await page.getByRole('button', { name: 'More' }).tap()
  await page.getByRole('link', { name: 'Backups', exact: true }).tap()
  await page.getByRole('heading', { name: 'Backups', level: 1 }).waitFor()
  await expect.poll(() => page.getByRole('button', { name: 'More' }).getAttribute('aria-expanded')).toBe('false')
})

test('the keyboard alone leads past the navigation and through the table', async () => {
  const { page, goto } = await site.visit({ storageState })
  await goto('/nodes')
  await page.getByText('Town Hall Gateway').waitFor()
  await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1')
  await page.keyboard.press('Tab')
  await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('search')
})

test('of two thousand nodes only as many rows are drawn as fit on the screen', async () => {
  const store = openDatabase(join(site.data, 'mesh.db'))
  const firstHeard = Date.UTC(2026, 0, 1)
  const many = Array.from({ length: 2000 }, (_, index) => ({
    nodeNum: 0x10000000 + index,
    longName: `Crowd ${String(index).padStart(4, '0')}`,
    firstHeard,
    lastHeard: firstHeard + index,
  }))
  for (let at = 0; at < many.length; at += 500) await store.db.insert(nodes).values(many.slice(at, at + 500))
  store.close()
  const { page, goto } = await site.visit({ storageState })
  await goto('/nodes?sort=name&order=up')
  await page.getByText(/^2,\d{3} nodes$/).waitFor()
  const rows = page.locator('tbody tr:not(.gap)')
  await expect.poll(() => rows.count()).toBeLessThan(60)
  await page.getByLabel('Search nodes').fill('crowd')
  await page.getByText(/^2,000 of 2,\d{3} nodes$/).waitFor()
  await page.evaluate("document.querySelector('.virtual').scrollTo(0, 1e9)")
  await page.getByRole('link', { name: 'Crowd 1999' }).waitFor()
  await expect.poll(() => rows.count()).toBeLessThan(60)
  await expect.poll(() => rows.last().getAttribute('aria-rowindex')).toBe('2001')
})

test.each([
  ['/packets', 'tbody tr'],
  ['/messages', '.conversation'],
  ['/traceroutes', '.page'],
  ['/alerts', '.card'],
  ['/automation/new?kind=schedule', '.card'],
])('of two thousand nodes %s loads those that it names', async (path, content) => {
  const { page, goto } = await site.visit({ storageState })
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url().slice(site.base.length)))
  await goto(path)
  await page.locator(content).first().waitFor()
  if (path === '/packets') await page.locator('tbody .text-button', { hasText: /^[^!]/ }).first().waitFor()
  await page.locator('.live-live').first().waitFor({ state: 'attached' })
  const lists = asked.filter((url) => /^\/api\/nodes(?:\?|$)/.test(url))
  expect(lists.filter((url) => !url.startsWith('/api/nodes?ids='))).toEqual([])
  await page.context().close()
})

test('two thousand nodes are sorted by keyboard and announced; the address keeps sorting, filters and search', async () => {
  const { page, goto } = await site.visit({ storageState })
  await goto('/nodes')
  await page.getByText(/^2,\d{3} nodes/).waitFor()
  // Packets heard meanwhile would move rows between two reads.
  await page.context().setOffline(true)
  for (const [name, order] of SORTED_BY) {
    const header = page.getByRole('columnheader', { name })
    await header.getByRole('button').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => header.getAttribute('aria-sort')).toBe(order)
    await expect.poll(() => page.locator('[aria-sort]:not([aria-sort=none])').count()).toBe(1)
    await page
      .getByRole('status')
      .filter({ hasText: `Sorted by ${name}, ${order}` })
      .waitFor()
    const down = order === 'descending' ? -1 : 1
    if (name === 'Node') {
      const links = page.locator('tbody .row-link')
      await expect
        .poll(() => links.allTextContents())
        .toSatisfy((drawn: string[]) =>
          isSorted(drawn, (a, b) => down * collator.compare(a.toLowerCase(), b.toLowerCase())),
        )
    }
    if (name === 'SNR') {
      const cells = page.locator('tbody tr:not(.gap) > :nth-child(4)')
      const signals = async () =>
        (await cells.allTextContents()).map((text) => Number.parseFloat(text.replace('−', '-')))
      await expect.poll(signals).toSatisfy((drawn: number[]) => {
        const known = drawn.filter((snr) => !Number.isNaN(snr))
        // Rows without a value come last.
        return known.length > 3 && isSorted(drawn.slice(0, known.length), (a, b) => down * (a - b))
      })
    }
  }
  await page.context().setOffline(false)
  await page.getByLabel('Search nodes').fill('hill')
  for (const [name, choice] of [
    ['Role', 'Router'],
    ['Position', 'known'],
    ['Heard by', 'radio'],
    ['Heard in the last', 'hour'],
  ] as const) {
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    await page.getByRole('group', { name: 'Filter by' }).getByRole('button', { name, exact: true }).click()
    await page.getByLabel(name, { exact: true }).selectOption(choice)
  }
  await page.getByText(/^1 of 2,\d{3} nodes/).waitFor()
  await expect
    .poll(() => Object.fromEntries(new URL(page.url()).searchParams))
    .toEqual({
      sort: 'role',
      order: 'up',
      q: 'hill',
      role: 'ROUTER',
      position: 'known',
      way: 'radio',
      heard: '3600',
    })
  await goto(`/nodes${new URL(page.url()).search}`)
  await page.getByText(/^1 of 2,\d{3} nodes/).waitFor()
  await expect.poll(() => page.getByLabel('Search nodes').inputValue()).toBe('hill')
  await expect.poll(() => page.locator('.filter-chip').count()).toBe(4)
  await page.getByRole('link', { name: 'Castle Hill Relay' }).waitFor()
  await page.getByRole('link', { name: 'Nodes', exact: true }).click()
  await page.getByText(/^2,\d{3} nodes/).waitFor()
  await expect.poll(() => page.getByLabel('Search nodes').inputValue()).toBe('')
})

/** What the page loads at once: the scripts and styles that it names. */
function firstLoad(): string[] {
  const html = readFileSync(join(site.files, 'index.html'), 'utf8')
  return [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, file = '']) => file)
}

const packedSize = (files: readonly string[]) =>
  files.reduce((sum, file) => sum + gzipSync(readFileSync(join(site.files, file)), { level: 9 }).length, 0)

test('the first load is at most 60 KB, and 130 KB with map and charts', async () => {
  const first = firstLoad()
  expect(first.length).toBeGreaterThanOrEqual(2)
  expect(packedSize(['index.html', ...first])).toBeLessThanOrEqual(60_000)
  const { page, goto } = await site.visit({ storageState })
  const loaded = new Set<string>()
  page.on('request', (request) => {
    const file = /\/(assets\/[^/]+\.(?:js|css))$/.exec(request.url())?.[1]
    // What lies under the map comes after it, without which the map stands, too.
    if (file !== undefined && !/^assets\/(?:ground|extras|legend)-/.test(file)) loaded.add(file)
  })
  await goto('/map')
  await page.locator('.leaflet-container').waitFor()
  await page.context().close()
  expect([...loaded]).toEqual(expect.arrayContaining(first))
  const assets = readdirSync(join(site.files, 'assets'))
  // A chart loads them when there is something to draw.
  const ofCharts = assets.filter((file) => /^chart-.+\.(?:js|css)$/.test(file))
  // Its code, which a saved picture shares, its name and its style.
  expect(ofCharts).toHaveLength(3)
  for (const file of ofCharts) loaded.add(`assets/${file}`)
  expect(packedSize(['index.html', ...loaded])).toBeLessThanOrEqual(130_000)
  // The code for a map file is loaded only with one, and that of other pages only when they are opened.
  const ofMapFile = assets.filter((file) => /^(?:archive|raster|vector)-.+js$/.test(file))
  expect(ofMapFile).toHaveLength(3)
  expect(packedSize(ofMapFile.map((file) => `assets/${file}`))).toBeLessThanOrEqual(40_000)
  expect([...loaded].filter((file) => ofMapFile.includes(file.slice('assets/'.length)))).toEqual([])
})

test('the page itself has no inline script or style, and may not run any', async () => {
  const answer = await fetch(site.base)
  expect(await answer.text()).not.toMatch(/<script(?![^>]*src=)|<style|style=|onload=/)
  const policy = answer.headers.get('content-security-policy')
  expect(policy).toContain("default-src 'self'")
  expect(policy).not.toContain('unsafe')
})
