import { afterEach, beforeEach, expect, it } from 'vitest'
import { rollUp } from '../../../../src/app/mesh/telemetry/roll-up.ts'
import { directChannel, MIXED_WITH_DIRECT, UNKNOWN_CHANNEL } from '../../../../src/shared/mesh/channels.ts'
import { START } from '../../../support/app.ts'
import {
  createTestMesh,
  FAR,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
} from '../../../support/mesh/mesh.ts'

const MINUTE = 60_000
const FOR_US = directChannel(LOCAL)

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
  await store(mesh.ingest, [myInfo])
})
afterEach(() => mesh.app.close())

const rows = (sql: string) => mesh.app.store.sqlite.prepare(sql).raw().all()
const latest = (nodeNum = FAR) =>
  rows(`select position_channel, metrics_channel from nodes where node_num = ${nodeNum}`).flat()

const place = (channel: number, at: number, more = {}) =>
  packet(position({ latitudeI: 10_000_000, longitudeI: at, time: seconds(START + at) }), { channel, ...more })

const metrics = (channel: number, at: number, value: object, more = {}) =>
  packet(telemetry({ time: seconds(START + at), variant: { case: 'deviceMetrics', value } }), { channel, ...more })

it('positions and measurements remember the channel on which they were heard', async () => {
  await store(mesh.ingest, [place(2, 0), metrics(1, 0, { batteryLevel: 50 })], { at: START + MINUTE })
  expect(latest()).toEqual([2, 1])
  expect(rows('select channel from positions')).toEqual([[2]])
  expect(rows('select channel from telemetry')).toEqual([[1]])
})

it('what our own radio reports of itself has no channel, and what it remembers an unknown one', async () => {
  const own = { from: LOCAL, rxSnr: 0, rxRssi: undefined }
  const fix = { latitudeI: 1, longitudeI: 2, time: seconds(START) }
  await store(mesh.ingest, [
    metrics(0, 0, { batteryLevel: 50 }, own),
    nodeInfo({ num: LOCAL, position: fix }),
    nodeInfo({ num: FAR, channel: 1, position: fix, deviceMetrics: { batteryLevel: 9 }, lastHeard: seconds(START) }),
  ])
  expect(latest(LOCAL)).toEqual([null, null])
  expect(latest()).toEqual([UNKNOWN_CHANNEL, UNKNOWN_CHANNEL])
  expect(rows('select channel from positions order by node_id')).toEqual([[null], [UNKNOWN_CHANNEL]])
})

it.each([
  ['encrypted for one node', { to: LOCAL, pkiEncrypted: true }],
  ['sent to one node', { to: LOCAL }],
])('what is %s is on the channel of direct messages', async (_, more) => {
  await store(mesh.ingest, [place(0, 0, more), metrics(0, 0, { batteryLevel: 50 }, more)])
  expect(latest()).toEqual([FOR_US, FOR_US])
  expect(rows('select channel from positions union all select channel from telemetry')).toEqual([[FOR_US], [FOR_US]])
})

it('our own radio answers another node in confidence, and itself without a channel', async () => {
  const told = (to: number, batteryLevel: number) =>
    metrics(0, batteryLevel, { batteryLevel }, { from: LOCAL, to, rxSnr: 0, rxRssi: undefined })
  await store(mesh.ingest, [told(FAR, 50)])
  expect(latest(LOCAL)[1]).toBe(directChannel(FAR))
  await store(mesh.ingest, [told(LOCAL, 51)])
  expect(latest(LOCAL)[1]).toBe(null)
})

it('a summary that contains something sent to one node is apart from other summaries', async () => {
  await store(mesh.ingest, [metrics(0, 0, { batteryLevel: 50 }), metrics(1, 1000, { batteryLevel: 51 })])
  await store(mesh.ingest, [metrics(0, 0, { voltage: 4 }), metrics(0, 1000, { voltage: 3 }, { to: LOCAL })])
  await rollUp(mesh.app.store, async () => true)
  const channels = (table: string) => rows(`select channel from ${table} order by metric`).flat()
  expect(channels('telemetry_hourly')).toEqual([UNKNOWN_CHANNEL, MIXED_WITH_DIRECT])
  expect(channels('telemetry_daily')).toEqual([UNKNOWN_CHANNEL, MIXED_WITH_DIRECT])
  expect(latest()[1]).toBe(MIXED_WITH_DIRECT)
})

it('a newer position brings its own channel, an older one does not', async () => {
  await store(mesh.ingest, [place(2, MINUTE)], { at: START + MINUTE })
  await store(mesh.ingest, [place(0, 0)], { at: START + 2 * MINUTE })
  expect(latest()[0]).toBe(2)
  await store(mesh.ingest, [place(0, 3 * MINUTE)], { at: START + 3 * MINUTE })
  expect(latest()[0]).toBe(0)
  expect(rows('select channel from positions order by t')).toEqual([[0], [2], [0]])
})

it('metrics of several channels have an unknown one until one report replaces them all', async () => {
  await store(mesh.ingest, [metrics(2, 0, { batteryLevel: 50, voltage: 4 })])
  await store(mesh.ingest, [metrics(0, MINUTE, { batteryLevel: 49 })], { at: START + MINUTE })
  expect(latest()[1]).toBe(UNKNOWN_CHANNEL)
  await store(mesh.ingest, [metrics(0, 2 * MINUTE, { batteryLevel: 48, voltage: 3.9 })], { at: START + 2 * MINUTE })
  expect(latest()[1]).toBe(0)
})

it('an hour or a day has a channel if all its measurements came on it', async () => {
  await store(mesh.ingest, [metrics(2, 0, { batteryLevel: 50, voltage: 4 }), metrics(2, 1000, { batteryLevel: 49 })])
  await rollUp(mesh.app.store, async () => true)
  const hour = 'select m.name, h.channel from telemetry_hourly h join metrics m on m.id = h.metric order by m.name'
  const battery = 'deviceMetrics.batteryLevel'
  expect(rows(hour)).toEqual([
    [battery, 2],
    ['deviceMetrics.voltage', 2],
  ])
  await store(mesh.ingest, [metrics(0, 2000, { batteryLevel: 48 })])
  await rollUp(mesh.app.store, async () => true)
  expect(rows(hour)).toEqual([
    [battery, UNKNOWN_CHANNEL],
    ['deviceMetrics.voltage', 2],
  ])
  expect(rows(hour.replace('hourly', 'daily'))).toEqual(rows(hour))
})
