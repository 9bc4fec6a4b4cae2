import { afterEach, beforeEach, expect, test } from 'vitest'
import { AREA, BATTERY, createTestAlerts, MINUTE, type TestAlerts } from '../../../support/alerts.ts'
import type { Client } from '../../../support/app.ts'
import { FAR, heard, LOCAL, myInfo, packet, position, seconds, telemetry, text } from '../../../support/mesh/mesh.ts'

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

/** A channel, or `direct`: to the radio alone. */
type Where = number | 'direct'
const hear = (data: Parameters<typeof packet>[0], where: Where) => {
  const at = alerts.app.clock.now
  const place = where === 'direct' ? { to: LOCAL } : { channel: where }
  return alerts.ingest.store([heard(packet(data, { ...place, rxTime: seconds(at) }), { at })])
}
const measure = async (values: object, channel: Where) => {
  const time = seconds(alerts.app.clock.now)
  await hear(telemetry({ time, variant: { case: 'deviceMetrics', value: values } }), channel)
  await alerts.pass(2 * MINUTE)
}
const place = async (latitudeI: number, channel: Where) => {
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

const UNREADABLE: readonly (readonly [string, Where])[] = [
  ['on a private channel', PRIVATE],
  ['sent to one node', 'direct'],
]

test.each(UNREADABLE)('a measurement rule uses the latest value that the owner may read, none %s', async (_, where) => {
  await watch(LOW)
  await measure({ batteryLevel: 90 }, 0)
  await measure({ batteryLevel: 13 }, where)
  await measure({ batteryLevel: 13 }, where)
  expect([await states(guest), await states(alerts.admin)]).toEqual([[], ['firing']])
  expect([await foretold(guest, LOW), await foretold(alerts.admin, LOW)]).toEqual([0, 1])
  expect(alerts.sent).toHaveLength(1)

  await measure({ batteryLevel: 11 }, 0)
  await measure({ batteryLevel: 97 }, where)
  expect([await states(guest), await states(alerts.admin)]).toEqual([['firing'], ['resolved']])
  alerts.sent.length = 0
  await measure({ batteryLevel: 98 }, 0)
  expect(await states(guest)).toEqual(['resolved'])
  expect(alerts.sent).toHaveLength(1)
  expect(await everythingTold()).not.toMatch(/ (?:13|97) %/)
})

test.each(UNREADABLE)(
  'a rule uses the latest position and uptime that the owner may read, none %s',
  async (_, where) => {
    await watch(HOME)
    await watch(RESTART)
    await place(510_000_000, 0)
    await place(500_000_000, where)
    expect([await states(guest), await states(alerts.admin)]).toEqual([[], ['firing']])
    expect([await foretold(guest, HOME), await foretold(alerts.admin, HOME)]).toEqual([0, 1])
    await place(500_000_000, 0)
    expect(await states(guest)).toEqual(['firing'])

    await measure({ uptimeSeconds: 7200 }, 0)
    await measure({ uptimeSeconds: 5 }, where)
    expect([await foretold(guest, RESTART), await foretold(alerts.admin, RESTART)]).toEqual([0, 1])
    const restarts = async (client: Client) =>
      (await alerts.alerts(client)).filter(({ kind }) => kind === 'node_restarted').length
    expect([await restarts(guest), await restarts(alerts.admin)]).toEqual([0, 1])
    // Longer than the last uptime on the private channel, but shorter than the last one that the guest may read.
    await measure({ uptimeSeconds: 300 }, 0)
    expect([await restarts(guest), await restarts(alerts.admin)]).toEqual([1, 1])
  },
)

const WORDS = { kind: 'message', name: 'Words', match: { mode: 'contains', words: ['meet'] }, channels: 'all' }
const say = (words: string, to: number) => {
  const at = alerts.app.clock.now
  return alerts.ingest.store([heard(packet(text(words), { from: FAR + 1, to, rxTime: seconds(at) }), { at })])
}

test('what is said to a hidden node is in no alert, preview or message of those who may not see it', async () => {
  const may = { read: true, write: false }
  const scope = { channels: 'all' as const, direct: may }
  guest = await alerts.app.user('friend', { nodes: may, info: may, messages: may }, scope)
  await alerts.ingest.store([heard(myInfo), heard(packet(text('hello'), { from: LOCAL, rxRssi: undefined }))])
  await watch({ ...WORDS, destinations: [] })
  await alerts.admin.send('PUT', `/api/nodes/${LOCAL}`, { hidden: true })
  await say('meet only you', LOCAL)
  await alerts.pass(2 * MINUTE)
  expect([await states(guest), await states(alerts.admin)]).toEqual([[], ['resolved']])
  expect([await foretold(guest, WORDS), await foretold(alerts.admin, WORDS)]).toEqual([0, 1])
  expect(alerts.bodies()).toHaveLength(1)

  await alerts.admin.send('PUT', `/api/nodes/${LOCAL}`, { hidden: false })
  await say('meet us both', LOCAL)
  expect(await states(guest)).toEqual(['resolved'])
  // Hidden again before the message is sent: it is not sent, and not listed.
  await alerts.admin.send('PUT', `/api/nodes/${LOCAL}`, { hidden: true })
  await alerts.pass(2 * MINUTE)
  expect(await states(guest)).toEqual([])
  expect(alerts.bodies()).toHaveLength(2)
})

test('a rule for direct messages matches those to our radios, and says when it can see none', async () => {
  await alerts.ingest.store([heard(myInfo), heard(packet(text('hello'), { from: LOCAL, rxRssi: undefined }))])
  const rule = { ...WORDS, channels: [], direct: true }
  await watch(rule)
  await say('meet between others', FAR)
  expect(await states(alerts.admin)).toEqual([])
  await say('meet at the radio', LOCAL)
  expect(await states(alerts.admin)).toEqual(['resolved'])
  expect(await foretold(alerts.admin, rule)).toBe(1)
  // The guest may not read direct messages.
  const sees = async (client: Client) =>
    Object(await (await client.send('GET', '/api/alerts/rules')).json()).rules.map((one: { sees: boolean }) => one.sees)
  expect([await states(guest), await sees(guest), await sees(alerts.admin)]).toEqual([[], [false], [true]])
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
