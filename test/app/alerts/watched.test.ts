import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Client } from '../../support/app.ts'
import { createTestAlerts, DAY, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { FAR, heard, packet, text, user } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts
let id = 0

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const list = (...nodes: number[]) => ({ kind: 'list', nodes })
const hear = (...nodes: number[]) =>
  alerts.ingest.store(nodes.map((from) => heard(packet(text('hi'), { from, id: ++id }), { at: alerts.app.clock.now })))
const watched = async (client: Client = alerts.admin, query = '') =>
  Object(await (await client.send('GET', `/api/alerts/watched${query}`)).json())
const silent = (name: string, nodes: object, more: object = {}, client?: Client) =>
  alerts.rule({ kind: 'node_silent', name, nodes, afterMinutes: 60, ...more }, client)

test('each watched node has its state, those that fire first, and the rules that watch it', async () => {
  expect(await watched()).toMatchObject({ nodes: [], total: 0 })
  await hear(FAR, FAR + 1, FAR + 2, FAR + 3)
  const until = alerts.app.clock.now + DAY
  const rule = await silent('Silent', list(FAR, FAR + 1, FAR + 2, FAR + 9), {
    silencedNodes: [{ node: FAR + 2, until }],
  })
  await alerts.rule({ kind: 'key', name: 'Keys', nodes: list(FAR) })
  await alerts.rule({ kind: 'node_new', name: 'New' })
  await alerts.rule({ kind: 'key', name: 'Off', nodes: { kind: 'all' }, enabled: false })
  const start = alerts.app.clock.now
  await alerts.pass(50 * MINUTE)
  await hear(FAR)
  await alerts.pass(30 * MINUTE)
  const { nodes, total, totals } = await watched()
  expect(total).toBe(4)
  expect(totals).toStrictEqual({ firing: 1, unknown: 0, pending: 0, muted: 1, unheard: 1, well: 1 })
  const rules = [{ id: rule, name: 'Silent' }]
  expect(nodes).toMatchObject([
    {
      nodeNum: FAR + 1,
      nodeId: '!a0cb0003',
      name: '!a0cb0003',
      state: 'firing',
      silentSince: start,
      lastHeard: start,
      alerts: [{ ruleId: rule, what: expect.stringContaining('was not heard for'), startedAt: start }],
      rules,
    },
    // It is as silent, but nobody is to be told.
    { nodeNum: FAR + 2, state: 'muted', mutedUntil: until, silentSince: null, lastHeard: start },
    { nodeNum: FAR + 9, state: 'unheard', lastHeard: null, alerts: [], rules },
    {
      nodeNum: FAR,
      state: 'well',
      alerts: [],
      rules: [{ name: 'Silent' }, { name: 'Keys' }],
      totalRules: 2,
      mutedUntil: null,
    },
  ])
  // While nothing listens, nobody knows whether it is still silent.
  alerts.links.splice(0, 1, { name: 'radio-1', state: 'waiting', since: alerts.app.clock.now })
  await alerts.pass(2 * MINUTE)
  expect((await watched()).totals).toMatchObject({ firing: 0, unknown: 1 })
})

test('a condition that has not lasted long enough is pending', async () => {
  await hear(FAR)
  await alerts.rule({
    kind: 'metric',
    name: 'Battery',
    nodes: { kind: 'all' },
    metric: 'deviceMetrics.batteryLevel',
    is: 'below',
    limit: 20,
    forMinutes: 60,
  })
  const { sqlite } = alerts.app.store
  sqlite.exec("insert or ignore into metrics (name) values ('deviceMetrics.batteryLevel')")
  sqlite.exec(`insert into telemetry (node_id, metric, t, v, channel)
    select n.id, m.id, ${alerts.app.clock.now}, 10, 0 from nodes n, metrics m where m.name = 'deviceMetrics.batteryLevel'`)
  await alerts.pass(2 * MINUTE)
  expect((await watched()).nodes).toMatchObject([{ nodeNum: FAR, state: 'pending', alerts: [{ ruleId: 1 }] }])
})

test('long lists come in pages, in the order of their names', async () => {
  const nums = Array.from({ length: 50 }, (_, n) => FAR + n)
  await alerts.ingest.store(
    nums.map((from, n) =>
      heard(packet(user({ id: 'x', longName: `Node ${n}` }), { from, id: ++id }), { at: alerts.app.clock.now }),
    ),
  )
  await silent('All', { kind: 'all' })
  const first = await watched()
  expect([first.nodes.length, first.total]).toStrictEqual([40, 50])
  const rest = await watched(alerts.admin, '?offset=40')
  const names = [...first.nodes, ...rest.nodes].map(({ name }: { name: string }) => name)
  expect(names).toStrictEqual(nums.map((_, n) => `Node ${n}`))
  expect((await alerts.admin.send('GET', '/api/alerts/watched?limit=201')).status).toBe(400)
})

test('users see the nodes of their own rules, as far as they may see nodes, and not those that are hidden', async () => {
  const READS = { nodes: { read: true, write: false } }
  const anna = await alerts.app.user('anna', READS)
  await hear(FAR, FAR + 1)
  await silent('Mine', list(FAR))
  await silent('Hers', list(FAR, FAR + 1, FAR + 2), {}, anna)
  await alerts.pass(2 * HOUR)
  const seen = async () => (await watched(anna)).nodes.map(({ nodeNum }: { nodeNum: number }) => nodeNum)
  expect((await watched()).total).toBe(1)
  expect(await seen()).toStrictEqual([FAR, FAR + 1, FAR + 2])
  const admin = await alerts.app.admin()
  expect((await admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })).status).toBe(200)
  expect(await seen()).toStrictEqual([FAR + 1, FAR + 2])
  await admin.send('PUT', `/api/users/${anna.id}/permissions`, {
    permissions: { nodes: { read: false, write: false } },
  })
  expect(await watched(anna)).toMatchObject({ nodes: [], total: 0 })
})

test('a preview names the nodes that it looked at, without hidden ones', async () => {
  const anna = await alerts.app.user('anna', { nodes: { read: true, write: false } })
  await hear(FAR, FAR + 1, FAR + 2)
  const looked = async (rule: object) =>
    Object(await (await anna.send('POST', '/api/alerts/rules/preview', rule)).json()).looked
  const rule = { kind: 'node_silent', name: 'x', nodes: { kind: 'all' }, afterMinutes: 60 }
  const named = [FAR, FAR + 1, FAR + 2].map((nodeNum) => ({
    nodeNum,
    nodeId: `!${nodeNum.toString(16)}`,
    name: `!${nodeNum.toString(16)}`,
  }))
  expect(await looked(rule)).toStrictEqual({ total: 3, nodes: named })
  expect(await looked({ ...rule, nodes: list(FAR + 1) })).toStrictEqual({ total: 1, nodes: named.slice(1, 2) })
  expect(await looked({ kind: 'node_new', name: 'x' })).toBeNull()
  await alerts.admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })
  expect(await looked(rule)).toStrictEqual({ total: 2, nodes: named.slice(1) })
})

test('a preview names the first nodes by name, of more than it names', async () => {
  const nums = Array.from({ length: 23 }, (_, n) => FAR + ((n * 7) % 23))
  await hear(...nums)
  const rule = { kind: 'node_silent', name: 'x', nodes: { kind: 'all' }, afterMinutes: 60 }
  const { looked } = Object(await (await alerts.admin.send('POST', '/api/alerts/rules/preview', rule)).json())
  expect(looked.total).toBe(23)
  const names = nums.toSorted((a, b) => a - b).map((nodeNum) => `!${nodeNum.toString(16)}`)
  const { compare } = new Intl.Collator('en', { numeric: true })
  expect(looked.nodes.map(({ name }: { name: string }) => name)).toStrictEqual(names.toSorted(compare).slice(0, 20))
})

test('the metrics count firing alerts of more rules than one query looks at, without those that are over', async () => {
  await hear(FAR, FAR + 1)
  for (let n = 0; n < 7; n++) await silent(`Silent ${n}`, list(FAR, FAR + 1))
  const firing = async () =>
    /^mesh_alerts_firing (\d+)$/m.exec(await (await alerts.admin.send('GET', '/api/metrics')).text())?.[1]
  expect(await firing()).toBe('0')
  await alerts.pass(80 * MINUTE)
  expect(await firing()).toBe('14')
  await hear(FAR)
  await alerts.pass(10 * MINUTE)
  expect(await firing()).toBe('7')
})
