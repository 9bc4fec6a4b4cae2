import { afterEach, beforeEach, expect, test } from 'vitest'
import { AREA, createTestAlerts, MINUTE, type TestAlerts } from '../../support/alerts.ts'
import { FAR, heard, packet, position, seconds, user } from '../../support/mesh/mesh.ts'

// No test here waits for the run that comes every minute.

let alerts: TestAlerts
let id = 9000

beforeEach(async () => {
  alerts = await createTestAlerts()
})
afterEach(() => alerts.app.close())

const KEYS = { kind: 'key', name: 'Keys', nodes: { kind: 'all' } }

const hear = (data: ReturnType<typeof user>, from: number, more: object = {}) =>
  alerts.ingest.store([
    heard(packet(data, { from, id: ++id, rxTime: seconds(alerts.app.clock.now), ...more }), {
      at: alerts.app.clock.now,
    }),
  ])
function at(latitude: number, from = FAR, more: object = {}) {
  alerts.app.clock.advance(MINUTE)
  const time = seconds(alerts.app.clock.now)
  return hear(position({ latitudeI: Math.round(latitude * 1e7), longitudeI: 100_000_000, time }), from, more)
}
const keyOf = (byte: number) => Uint8Array.from({ length: 32 }, (_, index) => (index * 37 + byte) % 256)
const announce = (from: number, byte: number) => {
  alerts.app.clock.advance(MINUTE)
  return hear(user({ id: `!${from.toString(16)}`, longName: `Node ${from}`, publicKey: keyOf(byte) }), from)
}
const states = async (client = alerts.admin) =>
  (await alerts.alerts(client)).map(({ state, nodeNum }) => [state, nodeNum])

test('a node that passes through an area between two runs is reported when its packets arrive', async () => {
  await alerts.rule({ ...AREA, destinations: [await alerts.webhook()] })
  await at(51)
  expect(await states()).toStrictEqual([])
  await at(50)
  expect(await states()).toStrictEqual([['firing', FAR]])
  await at(50.001)
  await at(51)
  expect(await states()).toStrictEqual([['resolved', FAR]])
  await alerts.look()
  expect(alerts.bodies().map(({ type }) => type)).toStrictEqual(['alert.fired', 'alert.resolved'])
})

test('a position on a channel that the owner cannot see has no effect for that owner', async () => {
  const ann = await alerts.app.user('ann')
  const direct = { read: false, write: false }
  const scope = { channels: { read: [3], write: [] }, direct }
  await alerts.admin.send('PUT', `/api/users/${ann.id}/permissions`, { permissions: {}, scope })
  await alerts.rule(AREA, ann)
  await alerts.rule(AREA)
  await at(51)
  await at(50)
  expect(await states(ann)).toStrictEqual([])
  expect(await states()).toStrictEqual([['firing', FAR]])
})

test('a changed key and a key that two nodes share are reported when the packet that announces them arrives', async () => {
  await alerts.rule(KEYS)
  await announce(FAR, 1)
  await announce(7001, 2)
  expect(await states()).toStrictEqual([])
  await announce(FAR, 3)
  expect(await states()).toStrictEqual([['firing', FAR]])
  await announce(7002, 2)
  await announce(7001, 2)
  await alerts.look()
  expect((await alerts.alerts()).map(({ what }) => what)).toEqual(
    expect.arrayContaining([expect.stringMatching(/7002: another node has the same public key/)]),
  )
})

test('the next run fires an alert that could not be stored together with its position', async () => {
  await alerts.rule(AREA)
  await at(51)
  const { sqlite } = alerts.app.store
  sqlite.exec("create temp trigger full before insert on alerts begin select raise(abort, 'disk is full'); end")
  await at(50)
  sqlite.exec('drop trigger full')
  expect(await states()).toStrictEqual([])
  await alerts.look()
  expect(await states()).toStrictEqual([['firing', FAR]])
})
