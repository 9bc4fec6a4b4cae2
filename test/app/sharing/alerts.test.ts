import { afterEach, beforeEach, expect, test } from 'vitest'
import { AREA, BATTERY, createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import type { Client } from '../../support/app.ts'
import { FAR, heard, packet, position, seconds, telemetry } from '../../support/mesh/mesh.ts'

const NONE = { read: false, write: false }
const PRIVATE = 2
let alerts: TestAlerts
let guest: Client
beforeEach(async () => {
  alerts = await createTestAlerts()
  const may = { read: true, write: false }
  const scope = { channels: { read: [0], write: [] }, direct: NONE }
  guest = await alerts.app.user('guest', { nodes: may, info: may, messages: may }, scope)
})
afterEach(() => alerts.app.close())

const hear = (data: Parameters<typeof packet>[0], channel: number) => {
  const at = alerts.app.clock.now
  return alerts.ingest.store([heard(packet(data, { channel, rxTime: seconds(at) }), { at })])
}
const measure = async (values: object, channel: number) => {
  const time = seconds(alerts.app.clock.now)
  await hear(telemetry({ time, variant: { case: 'deviceMetrics', value: values } }), channel)
  await alerts.pass(2 * MINUTE)
}
const place = async (latitudeI: number, channel: number) => {
  const time = seconds(alerts.app.clock.now)
  await hear(position({ latitudeI, longitudeI: 100_000_000, time }), channel)
  await alerts.pass(2 * MINUTE)
}

const LOW = { ...BATTERY, forMinutes: 1 }
const RESTART = { kind: 'node_restarted', name: 'Restart', nodes: { kind: 'all' } }
const HOME = { ...AREA, name: 'Home' }

async function watch(rule: object): Promise<void> {
  for (const client of [guest, alerts.admin]) {
    await alerts.rule({ ...rule, destinations: [await alerts.webhook(client)] }, client)
  }
}
const states = async (client: Client) => (await alerts.alerts(client)).map(({ state }) => state)
const foretold = async (client: Client, rule: object) => {
  const answer = await client.send('POST', '/api/alerts/rules/preview', rule)
  return Object(await answer.json()).total
}
/** Everything that is listed, sent and previewed. */
const everythingTold = async () => {
  const preview = await guest.send('POST', '/api/alerts/rules/preview', LOW)
  return JSON.stringify([await alerts.alerts(guest), alerts.bodies(), await preview.json()])
}

test('a measurement rule uses the latest value that the owner may read', async () => {
  await watch(LOW)
  await measure({ batteryLevel: 90 }, 0)
  await measure({ batteryLevel: 13 }, PRIVATE)
  await measure({ batteryLevel: 13 }, PRIVATE)
  expect([await states(guest), await states(alerts.admin)]).toEqual([[], ['firing']])
  expect([await foretold(guest, LOW), await foretold(alerts.admin, LOW)]).toEqual([0, 1])
  expect(alerts.sent).toHaveLength(1)

  await measure({ batteryLevel: 11 }, 0)
  await measure({ batteryLevel: 97 }, PRIVATE)
  expect([await states(guest), await states(alerts.admin)]).toEqual([['firing'], ['resolved']])
  alerts.sent.length = 0
  await measure({ batteryLevel: 98 }, 0)
  expect(await states(guest)).toEqual(['resolved'])
  expect(alerts.sent).toHaveLength(1)
  expect(await everythingTold()).not.toMatch(/ (?:13|97) %/)
})

test('an area rule uses the latest position that the owner may read, and a restart rule the latest uptime', async () => {
  await watch(HOME)
  await watch(RESTART)
  await place(510_000_000, 0)
  await place(500_000_000, PRIVATE)
  expect([await states(guest), await states(alerts.admin)]).toEqual([[], ['firing']])
  expect([await foretold(guest, HOME), await foretold(alerts.admin, HOME)]).toEqual([0, 1])
  await place(500_000_000, 0)
  expect(await states(guest)).toEqual(['firing'])

  await measure({ uptimeSeconds: 7200 }, 0)
  await measure({ uptimeSeconds: 5 }, PRIVATE)
  expect([await foretold(guest, RESTART), await foretold(alerts.admin, RESTART)]).toEqual([0, 1])
  const restarts = async (client: Client) =>
    (await alerts.alerts(client)).filter(({ kind }) => kind === 'node_restarted').length
  expect([await restarts(guest), await restarts(alerts.admin)]).toEqual([0, 1])
  // Longer than the last uptime on the private channel, but shorter than the last one that the guest may read.
  await measure({ uptimeSeconds: 300 }, 0)
  expect([await restarts(guest), await restarts(alerts.admin)]).toEqual([1, 1])
})

test('a hidden node has no alert for users who may not see it, not even one that was open', async () => {
  await watch(LOW)
  await measure({ batteryLevel: 11 }, 0)
  expect([await states(guest), await states(alerts.admin)]).toEqual([['firing'], ['firing']])
  await alerts.admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })
  alerts.sent.length = 0
  await measure({ batteryLevel: 99 }, 0)
  expect([await states(guest), await foretold(guest, LOW)]).toEqual([[], 0])
  expect(alerts.bodies().map(({ type }) => type)).toEqual(['alert.resolved'])
})
