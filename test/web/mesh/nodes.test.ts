import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eq } from 'drizzle-orm'
import { metrics, nodes, telemetry } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { DAY_MS, HOUR_MS } from '../../../src/shared/time.ts'
import { item } from '../../support/mesh/delivery.ts'
import { nodeStatus, packet, user } from '../../support/mesh/mesh.ts'
import type { FromRadioVariant } from '../../support/radio/device.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const METRIC = 'deviceMetrics.batteryLevel'
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }

let site: Site
let visitor: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD })
  const store = openDatabase(join(site.data, 'mesh.db'))
  const now = Date.now()
  const firstHeard = now - 90 * DAY_MS
  await store.db.insert(nodes).values([
    {
      nodeNum: 0x20000001,
      longName: 'Quiet repeater',
      firstHeard,
      lastHeard: now - 5 * HOUR_MS,
      firmwareVersion: '2.6.11.60ec05e',
    },
    {
      nodeNum: 0x20000002,
      longName: 'Gone for weeks',
      firstHeard,
      lastHeard: now - 30 * DAY_MS,
      firmwareVersion: '2.6.11.0000000',
    },
    { nodeNum: 0x20000003, longName: '=1+1', firstHeard, lastHeard: now - 4 * HOUR_MS, batteryLevel: 3 },
  ])
  store.close()
  visitor = await site.visit()
  await visitor.goto('/')
  await visitor.signIn('admin', ADMIN_PASSWORD)
  await visitor.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
})
afterAll(() => site.close())

const names = () => visitor.page.locator('tbody .row-link').allTextContents()

async function addFilter(name: string): Promise<void> {
  await visitor.page.getByRole('button', { name: 'Filter', exact: true }).click()
  await visitor.page.getByRole('group', { name: 'Filter by' }).getByRole('button', { name, exact: true }).click()
}

test('a status appears while the page of its node is open, and an altered name is marked', async () => {
  const { page, goto } = visitor
  const headers = { origin: site.base }
  const data = { name: 'collector', scopes: ['ingest'] }
  const made = await page.request.post(`${site.base}/api/tokens`, { headers, data })
  const hear = async (...packets: FromRadioVariant[]) => {
    const answer = await fetch(`${site.base}/api/ingest`, {
      method: 'POST',
      headers: { authorization: `Bearer ${Object(await made.json()).token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ source: 'hill', packets: packets.map(item) }),
    })
    expect(await answer.json()).toMatchObject({ accepted: packets.length, rejected: [] })
  }
  const [one, other] = [0x20000011, 0x20000012]
  const named = (longName: string) => user({ longName, shortName: 'TWN' })
  await hear(packet(named('Twin'), { from: one }), packet(named('Tw\u200bin\u202e'), { from: other }))
  await goto(`/nodes/!${other.toString(16)}`)
  await page.getByRole('heading', { name: `Twin (!${other.toString(16)})`, level: 1 }).waitFor()
  await page.getByText('Another node may have the same name').waitFor()
  await expect.poll(() => page.getByText('Status', { exact: true }).count()).toBe(0)
  await hear(packet(nodeStatus('back \u202eat six'), { from: other }))
  await page.locator('dd', { hasText: 'back at six' }).waitFor()
  await hear(packet(nodeStatus('on the hill until six 🏔️'), { from: other }))
  await page.locator('dd', { hasText: 'on the hill until six 🏔️' }).waitFor()
  expect(await visitor.violations()).toEqual([])
  await goto('/nodes?q=twin')
  await expect.poll(names).toEqual(['Twin', 'Twin'])
  const marked = page.locator('tbody tr', { hasText: `!${other.toString(16)}` })
  await marked.getByText('Hidden characters were removed').waitFor({ state: 'attached' })
  await expect.poll(() => page.getByText('Hidden characters were removed').count()).toBe(1)
  await goto('/nodes?q=until six')
  await marked.waitFor()
  await expect.poll(names).toEqual(['Twin'])
  expect(visitor.complaints).toEqual([])
})

test('each figure of the dashboard leads to the list that it counts', async () => {
  const { page, goto } = visitor
  for (const name of ['Nodes active', 'Heard directly', 'Fell silent', 'Low battery']) {
    await goto('/')
    const figure = page.getByRole('link', { name: new RegExp(`^${name}`) })
    const value = figure.locator('.figure-value', { hasText: /^\d+$/ })
    const counted = Number(await value.textContent())
    await figure.click()
    await page.getByRole('heading', { name: 'Nodes', level: 1 }).waitFor()
    await expect.poll(async () => [name, (await names()).length]).toEqual([name, counted])
  }
})

test('the filters find nodes that fell silent lately, and nodes with a low battery even if they are silent', async () => {
  const { page, goto } = visitor
  await goto('/nodes?silent=inactive&heard=604800')
  await expect.poll(async () => (await names()).toSorted()).toEqual(['=1+1', 'Quiet repeater'])
  await expect.poll(() => page.getByLabel('Not heard for', { exact: true }).inputValue()).toBe('inactive')
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByLabel('View').selectOption('Low battery')
  await expect.poll(names).toContain('=1+1')
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect.poll(async () => (await names()).length).toBeGreaterThan(5)
})

test('nodes are found by the release of their firmware, whichever build', async () => {
  const { page, goto } = visitor
  await goto('/nodes')
  await addFilter('Firmware')
  await page.getByLabel('Firmware', { exact: true }).selectOption('2.6.11')
  await expect.poll(async () => (await names()).toSorted()).toEqual(['Gone for weeks', 'Quiet repeater'])
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByRole('button', { name: 'Columns', exact: true }).click()
  await page.getByRole('checkbox', { name: 'Firmware' }).check()
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('columnheader').allTextContents()).toContain('Firmware')
  await goto('/nodes/!20000001')
  await page.getByText('2.6.11.60ec05e').waitFor()
})

test('a view is saved under a name, chosen again after a reload, and deleted', async () => {
  const { page, goto } = visitor
  await goto('/nodes?role=ROUTER&sort=name&order=up')
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByRole('button', { name: 'Save view' }).click()
  expect(await visitor.violations()).toEqual([])
  await page.getByLabel('Name', { exact: true }).fill('Our routers')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect.poll(() => page.getByLabel('View').locator('option:checked').textContent()).toBe('Our routers')
  await goto('/nodes?hops=0')
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByLabel('View').selectOption('Our routers')
  await expect.poll(() => page.url()).toContain('role=ROUTER')
  await page.getByRole('button', { name: 'Delete view' }).click()
  await expect.poll(() => page.getByLabel('View').locator('option').allTextContents()).not.toContain('Our routers')
})

test('chosen columns are shown, stay after a reload, and can sort the list', async () => {
  const { page, goto } = visitor
  await goto('/nodes?hops=0')
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByRole('button', { name: 'Columns', exact: true }).click()
  await page.getByRole('checkbox', { name: 'Node ID' }).check()
  await page.getByRole('checkbox', { name: 'Role' }).uncheck()
  expect(await visitor.violations()).toEqual([])
  await page.getByRole('button', { name: 'Close' }).click()
  await goto('/nodes?hops=0')
  const headings = () => page.locator('thead th').allTextContents()
  await expect.poll(headings).toContain('Node ID')
  expect(await headings()).not.toContain('Role')
  await page.locator('thead').getByRole('button', { name: 'Node ID' }).click()
  await page.locator('th[aria-sort="ascending"]').getByText('Node ID').waitFor()
  const ids = await page.locator('tbody .mono').allTextContents()
  expect(ids.length).toBeGreaterThan(1)
  expect(ids).toEqual(ids.toSorted())
})

test('the file has every filtered node, and no cell that a spreadsheet would execute', async () => {
  const { page, goto } = visitor
  await goto('/nodes?silent=inactive')
  await page.getByText(/^3 of \d+ nodes$/).waitFor()
  await page.getByRole('button', { name: 'Views and columns' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export CSV' }).click(),
  ])
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n')
  expect(lines[0]).toMatch(/^nodeId,nodeNum,longName,shortName,/)
  expect(lines[0]).toContain('altitude (m)')
  expect(lines.slice(1).map((line) => line.split(',')[2])).toEqual(["'=1+1", 'Quiet repeater', 'Gone for weeks'])
})

test('each filter is a chip that is added, changed and removed by keyboard, and kept in the address', async () => {
  const { page, goto } = visitor
  await goto('/nodes')
  const query = () => Object.fromEntries(new URL(page.url()).searchParams)
  const focused = () =>
    page.evaluate('document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent')
  await page.getByRole('button', { name: 'Filter', exact: true }).press('Enter')
  await page.getByRole('group', { name: 'Filter by' }).getByRole('button', { name: 'Battery below' }).press('Enter')
  await expect.poll(query).toEqual({ battery: '20' })
  await expect.poll(names).toContain('=1+1')
  // The next key changes what was added.
  await expect.poll(focused).toBe('Battery below')
  await page.keyboard.press('ArrowUp')
  await expect.poll(query).toEqual({ battery: '10' })
  await addFilter('Heard by')
  await expect.poll(query).toEqual({ battery: '10', way: 'radio' })
  expect(await page.locator('.filter-chip').count()).toBe(2)
  expect(await visitor.violations()).toEqual([])
  // What is active is not offered again; Escape goes back.
  await page.getByRole('button', { name: 'Filter', exact: true }).press('Enter')
  const offered = page.getByRole('group', { name: 'Filter by' }).getByRole('button')
  expect(await offered.allTextContents()).not.toContain('Battery below')
  await offered.first().press('Escape')
  await expect.poll(focused).toBe('Filter')
  await page.getByRole('button', { name: 'Remove Battery below' }).press('Enter')
  await expect.poll(query).toEqual({ way: 'radio' })
  await expect.poll(focused).toBe('Filter')
  await page.reload()
  await expect.poll(() => page.getByLabel('Heard by', { exact: true }).inputValue()).toBe('radio')
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect.poll(query).toEqual({})
})

test('nodes are picked by mouse or keyboard and compared side by side, at an address that others can open', async () => {
  const { page, goto } = visitor
  await goto('/nodes?sort=name&order=up&q=!a0cb0')
  await page.getByRole('button', { name: 'Compare', exact: true }).click()
  await page.getByText('Choose two to 6 nodes in the list.').waitFor()
  await page.getByRole('checkbox', { name: 'Compare Baker Street 12' }).click()
  expect(await visitor.violations()).toEqual([])
  const row = () => page.evaluate("Number(document.activeElement.closest('tr')?.getAttribute('aria-rowindex'))")
  await page.getByRole('region', { name: 'Nodes' }).focus()
  await page.keyboard.press('Home')
  await expect.poll(row).toBe(2)
  await page.keyboard.press('Space')
  await page.getByText('2 of at most 6 nodes chosen').waitFor()
  const free = page.getByRole('checkbox', { checked: false })
  for (let count = 3; count <= 6; count++) {
    await free.first().click()
    await page.getByText(`${count} of at most 6 nodes chosen`).waitFor()
  }
  expect(await free.first().isDisabled()).toBe(true)
  await page.getByRole('link', { name: 'Compare 6 nodes' }).click()
  await page.getByRole('heading', { name: 'Compare nodes', level: 1 }).waitFor()
  const region = page.getByRole('region', { name: 'Compare nodes' })
  await expect.poll(() => region.getByRole('columnheader').count()).toBe(6)
  await region.getByRole('columnheader', { name: 'Baker Street 12' }).waitFor()
  await expect.poll(() => region.getByRole('rowheader').allTextContents()).toContain('Battery')
  await region.getByRole('button', { name: 'Remove Baker Street 12' }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get('ids')?.split(',').length).toBe(5)
  expect(await visitor.violations()).toEqual([])
  expect(visitor.complaints).toEqual([])
})

test('a comparison has one line for each node, and says what it has of unknown ones', async () => {
  const { page, goto } = visitor
  const store = openDatabase(join(site.data, 'mesh.db'))
  await store.db.insert(metrics).values({ name: METRIC }).onConflictDoNothing()
  const metric = (await store.db.select().from(metrics).where(eq(metrics.name, METRIC)).get())?.id ?? 0
  const rows = await store.db.select().from(nodes)
  const idOf = (name: string) => rows.find(({ longName }) => longName === name)?.id ?? 0
  const at = Date.now() - HOUR_MS
  const measured = [
    ['Quiet repeater', 60],
    ['=1+1', 101],
  ] as const
  await store.db.insert(telemetry).values(measured.map(([name, v]) => ({ nodeId: idOf(name), metric, t: at, v })))
  store.close()
  await goto('/nodes/compare?ids=!20000001,!20000003,!2000000f,nonsense')
  const chart = page.getByRole('img', {
    name: 'Quiet repeater: 60 %; =1+1: External power; !2000000f: –',
  })
  await chart.waitFor()
  await chart.locator('.chart-word').nth(1).waitFor()
  await page.getByLabel('Time', { exact: true }).selectOption('Last 7 days')
  await page.getByRole('radio', { name: 'SNR' }).check({ force: true })
  await page.getByText('from the packet log').waitFor()
  await expect
    .poll(() => Object.fromEntries(new URL(page.url()).searchParams))
    .toMatchObject({ metric: 'snr', range: '7d' })
  const visited = await site.visit({ ...PHONE, storageState: await page.context().storageState() })
  await visited.goto('/nodes/compare?ids=!20000001,!20000003,!a0cb0001')
  await visited.page.getByRole('columnheader', { name: 'Town Hall Gateway' }).waitFor()
  expect(await overflowOf(visited.page)).toBe(0)
  await visited.page.context().close()
})
