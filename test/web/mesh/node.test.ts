import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { surveyPackets } from '../../../src/app/mesh/survey/survey.ts'
import { lookForFindings } from '../../../src/app/mesh/findings/look.ts'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { NeighborInfoSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import type { SqliteStore } from '../../../src/node/database.ts'
import { item } from '../../support/mesh/delivery.ts'
import {
  heard,
  LOCAL,
  myInfo,
  nodeStatus,
  packet,
  position,
  seconds,
  telemetry,
  text,
  user,
} from '../../support/mesh/mesh.ts'
import { openSite, overflowOf, type Site, type Visitor } from '../../support/web/site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PASSWORD = 'a bench beside the chapel'
const READ = { read: true, write: false }
const NONE = { read: false, write: false }
const [HILL, VALLEY, LAKE, SILENT, ISLAND] = [0xa0cc0001, 0xa0cc0002, 0xa0cc0003, 0xa0cc0004, 0xa0cc0005]
const PHONE = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }
const MINUTE_MS = 60_000
const hex = (nodeNum: number) => `!${nodeNum.toString(16)}`

let site: Site
let admin: Visitor
beforeAll(async () => {
  site = await openSite({ ADMIN_PASSWORD, DEMO: 'false' }, fill)
  admin = await site.visit()
  await admin.goto('/nodes')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await admin.page.getByRole('link', { name: 'Hill Relay' }).waitFor()
  for (const [username, permissions] of Object.entries({
    watcher: { nodes: READ, info: NONE, messages: NONE },
    listener: { nodes: READ, info: READ, messages: NONE },
  })) {
    const data = { username, password: PASSWORD, permissions }
    const made = await admin.page.request.post(`${site.base}/api/users`, { data, headers: { origin: site.base } })
    expect([username, made.status()]).toEqual([username, 201])
  }
})
afterAll(() => site.close())

/** A relay on a hill, a valley that it hears and that hears it, a lake that only hears it, and a node long silent. */
async function fill(store: SqliteStore): Promise<void> {
  const ingest = createIngest(store)
  const at = Date.now() - MINUTE_MS
  const named = (longName: string, from: number) =>
    packet(user({ id: 'x', longName, shortName: longName.slice(0, 2) }), { from })
  const placed = (latitudeI: number, from: number) =>
    packet(position({ latitudeI, longitudeI: 105_000_000, time: seconds(at) }), { from })
  const hears = (from: number, found: readonly (readonly [number, number])[]) => {
    const neighbors = found.map(([nodeId, snr]) => ({ nodeId, snr }))
    const info = create(NeighborInfoSchema, { nodeId: from, neighbors })
    return packet({ portnum: PortNum.NEIGHBORINFO_APP, payload: toBinary(NeighborInfoSchema, info) }, { from })
  }
  const charge = { case: 'deviceMetrics', value: { batteryLevel: 101, channelUtilization: 12 } } as const
  const told = [
    myInfo,
    named('Hill Relay', HILL),
    placed(505_000_000, HILL),
    named('Valley House', VALLEY),
    placed(505_200_000, VALLEY),
    named('Lake Hut', LAKE),
    hears(HILL, [[VALLEY, 5.5]]),
    hears(VALLEY, [
      [HILL, -9.25],
      [LAKE, 1],
    ]),
    hears(LAKE, [[HILL, -17]]),
    packet(telemetry({ variant: charge }), { from: HILL }),
    packet(text('The mast is up'), { from: HILL }),
    packet(text('Only for you'), { from: HILL, to: LOCAL }),
  ]
  await ingest.store(told.map((each) => heard(each, { at })))
  const buoy = { longName: 'Sunk Buoy', shortName: 'Su' }
  for (const [hours, role] of [
    [31, 0],
    [30, 8],
  ] as const)
    await ingest.store([heard(packet(user({ ...buoy, role }), { from: SILENT }), { at: at - hours * 60 * MINUTE_MS })])
  await lookForFindings(store, Date.now(), async () => true)
  await surveyPackets(store, async () => true)
  // Only the hut hears it.
  store.sqlite
    .prepare(
      'insert into route_links (from_node_num, to_node_num, channel, start_num, end_num, snr, t) values (?, ?, 0, ?, ?, -12, ?)',
    )
    .run(ISLAND, LAKE, ISLAND, LAKE, at)
}

const card = ({ page }: Visitor, name: string) =>
  page.locator('section.card').filter({ has: page.getByRole('heading', { name, level: 2, exact: true }) })

/** The headings of the cards, in the order in which they are read. */
async function cardsOf({ page, goto }: Visitor, nodeNum: number): Promise<string[]> {
  await goto(`/nodes/${hex(nodeNum)}`)
  await page.getByRole('heading', { name: 'Identity', level: 2 }).waitFor()
  return page.locator('main h2').allTextContents()
}

async function visitAs(username: string): Promise<Visitor> {
  const visitor = await site.visit()
  await visitor.goto('/login')
  await visitor.signIn(username, PASSWORD)
  await visitor.page.getByRole('button', { name: 'Sign out' }).first().waitFor()
  return visitor
}

test('the page of a node says first whether it is alive, where, how it is, and who hears whom', async () => {
  expect(await cardsOf(admin, HILL)).toEqual([
    'State',
    'Map',
    'History',
    'Neighbours',
    'Traceroutes',
    'Ask this node',
    'Messages',
    'Latest packets',
    'When it was heard',
    'What happened to it',
    'Device',
    'Position',
    'Identity',
    'Notes',
    'Manage this node',
  ])
  const state = card(admin, 'State')
  await state.getByText('active', { exact: true }).waitFor()
  await state.getByText('by radio, heard directly').waitFor()
  await state.getByText('power', { exact: true }).waitFor()
  const rows = card(admin, 'Neighbours').locator('tbody tr')
  await expect
    .poll(async () =>
      (await rows.allInnerTexts()).map((row) => row.replaceAll(/\d+ (?:s|min)|now|\s+/g, ' ').split(/\s+/)),
    )
    .toEqual([
      ['Valley', 'House', '5.5', 'dB', '−9.25', 'dB', ''],
      ['Lake', 'Hut', '–', '−17', 'dB', ''],
    ])
  const messages = card(admin, 'Messages')
  await messages.getByText('Only for you').waitFor()
  await messages.getByText('The mast is up').waitFor()
  await messages.getByText(/Hill Relay · direct · /).waitFor()
  await admin.page.locator('.node-place .map-name').first().waitFor({ state: 'attached' })
  expect(await admin.violations()).toEqual([])
  expect(await cardsOf(admin, SILENT)).not.toContain('Map')
  await card(admin, 'State').getByText('silent', { exact: true }).waitFor()
  expect(admin.complaints).toEqual([])
})

test('the small map shows the node with its neighbours, opens one of them, and leaves the view of the map alone', async () => {
  const { page } = admin
  await cardsOf(admin, HILL)
  await page.evaluate("localStorage.removeItem('map-view')")
  const map = page.locator('.node-place .map')
  await expect.poll(() => map.locator('.map-name').allTextContents()).toEqual(['Hill Relay', 'Va'])
  await expect.poll(() => map.locator('.hop-label').count()).toBeGreaterThan(0)
  expect(await page.evaluate("localStorage.getItem('map-view')")).toBe(null)
  // A wheel above it moves the page.
  await map.hover()
  const scale = await map.locator('.leaflet-control-scale-line').textContent()
  await page.mouse.wheel(0, 600)
  await expect.poll(() => page.evaluate("document.querySelector('.scroller').scrollTop")).toBeGreaterThan(100)
  expect(await map.locator('.leaflet-control-scale-line').textContent()).toBe(scale)
})

test('what a user may not read is not on the page, and not asked for', async () => {
  const watcher = await visitAs('watcher')
  const asked: string[] = []
  watcher.page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  expect(await cardsOf(watcher, HILL)).toEqual(['State', 'Map', 'Device', 'Position', 'Identity'])
  expect(asked.filter((path) => /^\/api\/(?:neighbors|messages|packets|telemetry|traceroutes)/.test(path))).toEqual([])
  expect(await watcher.page.getByRole('button', { name: 'Forget this node' }).count()).toBe(0)
  await watcher.page.context().close()
  const listener = await visitAs('listener')
  expect(await cardsOf(listener, HILL)).not.toContain('Messages')
  await expect.poll(() => listener.page.locator('.pair-table tbody tr').count()).toBe(2)
  expect(await listener.page.locator('main').innerText()).not.toContain('The mast is up')
  await listener.page.context().close()
})

test('a silent node says why it may be, and everybody what happened to a node', async () => {
  await cardsOf(admin, SILENT)
  const why = card(admin, 'Why is it silent?')
  const [first] = await why.getByRole('listitem').allInnerTexts()
  expect(first).toMatch(/^Role changed from Client to Client hidden on .*\s+possible$/)
  const story = card(admin, 'What happened to it').getByRole('listitem')
  await expect
    .poll(async () => (await story.allInnerTexts()).map((each) => each.split('\n')[0]))
    .toEqual(['Silent since then', 'Role: Client → Client hidden', 'First heard'])
  expect(await admin.violations()).toEqual([])
  expect(await cardsOf(admin, HILL)).not.toContain('Why is it silent?')
})

test('findings are told in sentences that lead to the nodes, and one can be muted', async () => {
  const { page, goto } = admin
  await goto('/findings')
  const rows = page.getByRole('listitem').filter({ hasText: 'found' })
  await expect
    .poll(() => rows.allInnerTexts())
    .toEqual([
      expect.stringMatching(
        /^Valley House hears Lake Hut with 1 dB, but Lake Hut does not hear Valley House\..*\npossible · found/,
      ),
    ])
  expect(await admin.violations()).toEqual([])
  await page.getByRole('button', { name: 'Mute' }).click()
  await page.getByRole('heading', { name: '1 muted finding', level: 2 }).waitFor()
  await page.getByText('Nothing found').waitFor()
  await page.getByRole('button', { name: 'Tell again' }).click()
  await page.getByRole('heading', { name: '1 finding', level: 2 }).waitFor()
  await page.setViewportSize(PHONE.viewport)
  expect(await overflowOf(page)).toBe(0)
  await page.setViewportSize({ width: 1360, height: 860 })
  await page.getByRole('button', { name: 'Tell me about this' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'When would it have fired?' }).click()
  await dialog.getByText('In the last 30 days it would have fired 1 time, in 1 message.').waitFor()
  await dialog.getByText('Only the present state is stored, not the history.').waitFor()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { rules } = Object(await (await page.request.get(new URL('/api/alerts/rules', page.url()).href)).json())
  expect(rules).toMatchObject([{ rule: { kind: 'finding', findings: ['one_way'], nodes: { kind: 'list' } } }])
  await page.getByRole('link', { name: 'Show on the map' }).click()
  const marked = page.locator('.map-marked')
  await marked.getByText(/^\d nodes? (?:is|are) marked\./).waitFor()
  expect(await admin.violations()).toEqual([])
  await marked.getByRole('button', { name: 'Show all nodes' }).click()
  await marked.waitFor({ state: 'detached' })
  await goto('/')
  const onDashboard = page.locator('.card').filter({ has: page.getByRole('heading', { name: 'Findings' }) })
  await onDashboard.getByText('hears').waitFor()
  await onDashboard.getByRole('link', { name: 'All findings (1)' }).click()
  await rows.getByRole('link', { name: 'Lake Hut' }).first().click()
  await page.getByRole('heading', { name: 'Lake Hut', level: 1 }).waitFor()
})

test('the graph of who hears whom names those on whom others depend; pointer and keyboard choose a node', async () => {
  const { page, goto, violations, complaints } = admin
  await goto('/topology')
  await page.getByText('Without Lake Hut, one node is lost.').waitFor()
  // The arrangement comes from a thread of its own, which the content policy must allow.
  await page.getByText('Arranging the nodes').waitFor({ state: 'detached' })
  await page.getByText('6 nodes, 8 links').waitFor()
  expect(await violations()).toEqual([])
  const graph = page.getByRole('application', { name: 'Graph of who hears whom' })
  await graph.focus()
  await page.keyboard.press('ArrowUp')
  await expect.poll(() => new URL(page.url()).searchParams.get('node')).toMatch(/^![0-9a-f]{8}$/)
  await page.keyboard.press('Escape')
  await expect.poll(() => new URL(page.url()).searchParams.get('node')).toBe(null)
  await page.getByRole('region', { name: 'Nodes' }).getByRole('button', { name: 'Lake Hut' }).click()
  const links = page.getByRole('region', { name: 'Lake Hut' })
  await links.getByText('Without Lake Hut, one node is lost.').waitFor()
  const row = links.getByRole('listitem').filter({ hasText: 'Valley House' })
  expect((await row.innerText()).replaceAll(/\s+/g, ' ')).toMatch(
    /^Valley House hears this node 1 dB .* ago · neighbour info is heard by this node not known$/,
  )
  // What is drawn in the middle of the box is chosen by a press: all of the graph is in sight.
  await links.getByRole('button', { name: 'All nodes' }).click()
  const box = await graph.boundingBox()
  if (box === null) throw new Error('the graph has no box')
  let pressed: string | null = null
  for (let at = 0; at < 400 && pressed === null; at += 1) {
    const [column, line] = [at % 20, Math.floor(at / 20)]
    await page.mouse.click(box.x + ((column + 0.5) * box.width) / 20, box.y + ((line + 0.5) * box.height) / 20)
    pressed = new URL(page.url()).searchParams.get('node')
  }
  expect(pressed).toMatch(/^![0-9a-f]{8}$/)
  await page.setViewportSize(PHONE.viewport)
  expect(await overflowOf(page)).toBe(0)
  expect(await violations()).toEqual([])
  await page.setViewportSize({ width: 1360, height: 860 })
  expect(complaints).toEqual([])
})

test('a node is forgotten far away from where one writes to it, and only after a question', async () => {
  const { page } = admin
  await cardsOf(admin, LAKE)
  const head = page.locator('.page-head')
  await head.getByRole('link', { name: /^(?:Write a message|Messages)$/ }).waitFor()
  expect(await head.getByRole('button', { name: 'Forget this node' }).count()).toBe(0)
  await card(admin, 'Manage this node').getByRole('button', { name: 'Forget this node' }).click()
  await page.getByRole('dialog').getByText('Forget Lake Hut?').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('heading', { name: 'Lake Hut', level: 1 }).waitFor()
})

test('on a phone the page of a node is no wider than the screen, and does not jump while it loads', async () => {
  const storageState = await admin.page.context().storageState()
  const visitor = await site.visit({ ...PHONE, storageState })
  await visitor.page.addInitScript(`
    window.shift = 0
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) shift += value
    }).observe({ type: 'layout-shift', buffered: true })`)
  await cardsOf(visitor, HILL)
  await visitor.page.locator('.chart canvas').waitFor({ state: 'attached' })
  expect(await overflowOf(visitor.page)).toBe(0)
  expect(Number(await visitor.page.evaluate('shift'))).toBeLessThanOrEqual(0.05)
  expect(await visitor.violations()).toEqual([])
  await visitor.page.context().close()
})

test('a chart says that a battery is external power, and that one value is all there is', async () => {
  const { page } = admin
  await cardsOf(admin, HILL)
  // A battery that is never used is not the first thing to show.
  await page.getByRole('img', { name: 'Channel use: one value, 12 %' }).waitFor()
  await page.locator('.chart-word', { hasText: 'one value' }).waitFor()
  await page.getByLabel('Measurement').selectOption('Battery level')
  await page.getByRole('img', { name: 'Battery level: one value, External power' }).waitFor()
  await expect.poll(() => page.locator('.u-legend').innerText()).toMatch(/Battery level:?\s*power/)
  await page.getByRole('group', { name: /^Press the arrow keys/ }).focus()
  await page.keyboard.press('End')
  await expect.poll(() => page.locator('.chart-keys [role=status]').textContent()).toMatch(/: External power$/)
})

test('a column of the list in which nobody has a value is not shown, and appears with the first value', async () => {
  const { page, goto } = admin
  await goto('/nodes')
  await page.getByRole('link', { name: 'Hill Relay' }).waitFor()
  await page.getByRole('button', { name: 'Views and columns' }).click()
  await page.getByRole('button', { name: 'Columns', exact: true }).click()
  for (const name of ['Status', 'Voltage']) await page.getByRole('checkbox', { name }).check()
  await page.locator('label', { hasText: 'Status (no values)' }).waitFor()
  await page.keyboard.press('Escape')
  const headings = () => page.getByRole('columnheader').allTextContents()
  expect(await headings()).toContain('Battery')
  expect((await headings()).filter((name) => ['Status', 'Voltage', 'Hardware'].includes(name))).toEqual([])
  const headers = { origin: site.base }
  const data = { name: 'collector', scopes: ['ingest'] }
  const { token } = Object(await (await page.request.post(`${site.base}/api/tokens`, { headers, data })).json())
  const told = await fetch(`${site.base}/api/ingest`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ source: 'hill', packets: [item(packet(nodeStatus('back at six'), { from: LAKE }))] }),
  })
  expect(await told.json()).toMatchObject({ accepted: 1 })
  await expect.poll(headings).toContain('Status')
  expect(await headings()).not.toContain('Voltage')
})
