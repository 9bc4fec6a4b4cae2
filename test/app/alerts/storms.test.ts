import { afterEach, beforeEach, expect, test } from 'vitest'
import { BATTERY, createTestAlerts, DAY, HOUR, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import type { Client } from '../../support/app.ts'
import { FAR, heard, packet, seconds, telemetry, text } from '../../support/mesh/mesh.ts'

let alerts: TestAlerts
let id = 5000

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const YEAR = 365 * DAY
const NODES = Array.from({ length: 300 }, (_, index) => 7000 + index)
const SILENT = { kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 15 }

const hear = (nodes: readonly number[]) =>
  alerts.ingest.store(nodes.map((from) => heard(packet(text('hi'), { from, id: ++id }), { at: alerts.app.clock.now })))
const notification = () => alerts.bodies().map(({ type, data }) => [type, data.title, data.total])

test('after a day without the service every node gets its full time again, and those still silent are reported in one message', async () => {
  await hear(NODES)
  await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()] })
  alerts.app.clock.advance(DAY)
  alerts.startedAt = alerts.app.clock.now
  Object.assign(alerts.links[0] ?? {}, { since: alerts.app.clock.now })
  await alerts.pass(10 * MINUTE)
  await hear(NODES.slice(0, 290))
  await alerts.pass(4 * MINUTE)
  expect(notification()).toStrictEqual([])
  await alerts.pass(2 * MINUTE)
  expect(notification()).toStrictEqual([['alert.fired', 'Silent', 10]])
})

test('low batteries that are measured one after the other are one message', async () => {
  await alerts.rule({ ...BATTERY, forMinutes: 0, destinations: [await alerts.webhook()] })
  for (const from of NODES.slice(0, 30)) {
    alerts.app.clock.advance(1000)
    const at = alerts.app.clock.now
    const low = telemetry({ time: seconds(at), variant: { case: 'deviceMetrics', value: { batteryLevel: 15 } } })
    await alerts.ingest.store([heard(packet(low, { from, id: ++id }), { at })])
  }
  await alerts.pass(3 * MINUTE)
  expect(notification()).toStrictEqual([['alert.fired', 'Battery', 30]])
})

test('of two radios the disconnected one mutes only the nodes that it alone heard', async () => {
  alerts.links.push({ name: 'second', state: 'connected', since: alerts.app.clock.now - DAY })
  await hear([FAR])
  const second = { kind: 'tcp', name: 'second' } as const
  const at = alerts.app.clock.now
  await alerts.ingest.store([{ ...heard(packet(text('hi'), { from: 7000, id: ++id }), { at }), source: second }])
  await alerts.rule({ ...SILENT, destinations: [await alerts.webhook()] })
  Object.assign(alerts.links[1] ?? {}, { state: 'waiting', since: alerts.app.clock.now })
  await alerts.pass(HOUR)
  expect((await alerts.alerts()).map(({ nodeNum }) => nodeNum)).toStrictEqual([FAR])
})

test('a clock that was a year ahead leaves nothing waiting or muted for a year', async () => {
  const destinations = [await alerts.webhook()]
  await hear([FAR])
  await alerts.rule({ kind: 'message', name: 'Words', match: { words: ['help'] }, destinations })
  const say = () =>
    alerts.ingest.store([heard(packet(text('help'), { from: FAR, id: ++id }), { at: alerts.app.clock.now })])
  alerts.app.clock.advance(YEAR)
  // The link came up while the clock was wrong.
  Object.assign(alerts.links[0] ?? {}, { since: alerts.app.clock.now })
  for (let n = 0; n < 8; n++) await say()
  alerts.app.clock.advance(-YEAR)
  await alerts.pass(3 * MINUTE)
  expect(notification()).toStrictEqual([['alert.fired', 'Words', 7]])
  await say()
  await alerts.pass(3 * MINUTE)
  expect(notification().at(-1)).toStrictEqual(['alert.fired', 'Words', 1])

  // Correcting the times of nodes after the clock was corrected is not part of alerts.
  alerts.app.store.sqlite.prepare('update nodes set last_heard = ?').run(alerts.app.clock.now)
  await alerts.rule({ ...SILENT, destinations })
  await alerts.pass(20 * MINUTE)
  expect(notification().at(-1)).toStrictEqual(['alert.fired', 'Silent', 1])
})

test('a restore mutes new nodes, but not if it is dated a year ahead by a wrong clock', async () => {
  await hear([FAR])
  await alerts.rule({ kind: 'node_new', name: 'New', destinations: [await alerts.webhook()] })
  const restored = alerts.app.store.sqlite.prepare(
    "insert into audit_log (timestamp, action, resource, details) values (?, 'system_restored', 'system_backup', '{}')",
  )
  alerts.app.clock.advance(2 * HOUR)
  restored.run(alerts.app.clock.now + YEAR)
  await hear([7001])
  await alerts.pass(2 * MINUTE)
  expect(notification()).toStrictEqual([['alert.fired', 'New', 1]])
  restored.run(alerts.app.clock.now)
  await hear([7002])
  await alerts.pass(2 * MINUTE)
  expect(alerts.sent).toHaveLength(1)
})

/** Ways to take a permission away from a user while a message about it waits. */
const LOSSES: Readonly<Record<string, (ann: Client & { id: number }) => Promise<Response>>> = {
  'the right to see nodes': (ann) =>
    alerts.admin.send('PUT', `/api/users/${ann.id}/permissions`, {
      permissions: { nodes: { read: false, write: false } },
    }),
  'the channel': (ann) =>
    alerts.admin.send('PUT', `/api/users/${ann.id}/permissions`, {
      permissions: {},
      scope: { channels: { read: [3], write: [] }, direct: { read: false, write: false } },
    }),
  'the account': (ann) => alerts.admin.send('DELETE', `/api/users/${ann.id}`),
}

test.each(Object.entries(LOSSES))(
  'a user who loses %s gets neither the waiting messages nor any about pending alerts',
  async (_, lose) => {
    const ann = await alerts.app.user('ann')
    const at = alerts.app.clock.now
    const measured = telemetry({ time: seconds(at), variant: { case: 'deviceMetrics', value: { batteryLevel: 5 } } })
    await alerts.ingest.store([heard(packet(measured, { from: FAR, id: ++id, rxTime: seconds(at) }), { at })])
    const destinations = [await alerts.webhook(ann)]
    await alerts.rule({ ...BATTERY, destinations }, ann)
    await alerts.rule({ ...BATTERY, forMinutes: 0, destinations }, ann)
    alerts.answer = () => ({ status: 503, retryAfterMs: null })
    await alerts.pass(2 * MINUTE)
    const before = alerts.sent.length
    expect(before).toBeGreaterThan(0)
    expect((await lose(ann)).status).toBeLessThan(300)
    alerts.answer = () => ({ status: 200, retryAfterMs: null })
    await alerts.pass(3 * HOUR)
    expect(alerts.sent).toHaveLength(before)
    const left = "select count(*) from alert_deliveries where state = 'waiting'"
    expect(alerts.app.store.sqlite.prepare(left).pluck().get()).toBe(0)
    if (ann.cookie !== null) expect(await (await ann.send('GET', '/api/alerts')).text()).not.toContain('batteryLevel')
  },
)

test('of one owner 5,000 alerts are open, and no more, whatever the rules; when some are over, others follow', async () => {
  await hear(NODES)
  for (let rule = 0; rule < 18; rule++) await alerts.rule({ ...SILENT, name: `Silent ${rule}` })
  const page = async () => Object(await (await alerts.admin.send('GET', '/api/alerts?limit=1')).json())
  expect(await page()).toMatchObject({ firing: 0, full: false })
  alerts.app.clock.advance(16 * MINUTE)
  await alerts.look()
  expect(await page()).toMatchObject({ firing: 5000, full: true })
  await hear(NODES.slice(0, 100))
  await alerts.look()
  // 18 rules, and 200 nodes that are still silent.
  expect(await page()).toMatchObject({ firing: 3600, full: false })
})

test('the alerts of a rule that is switched off end, however many there are', async () => {
  const many = Array.from({ length: 1100 }, (_, index) => 7000 + index)
  await hear(many)
  const id = await alerts.rule(SILENT)
  alerts.app.clock.advance(16 * MINUTE)
  await alerts.look()
  expect(alerts.app.store.sqlite.prepare("select count(*) from alerts where state = 'firing'").pluck().get()).toBe(1100)
  expect((await alerts.admin.send('DELETE', `/api/alerts/rules/${id}`)).status).toBe(204)
  await alerts.look()
  expect(
    alerts.app.store.sqlite.prepare('select state, count(*) from alerts group by state').raw().all(),
  ).toStrictEqual([['resolved', 1100]])
})
