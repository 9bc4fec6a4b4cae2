import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PaxcountSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { rollUp } from '../../../../src/app/mesh/telemetry/roll-up.ts'
import { promisedCutoffs } from '../../../../src/app/retention/plan.ts'
import { deleteOldTraffic } from '../../../../src/app/upkeep/traffic-retention.ts'
import { sweepForgotten } from '../../../../src/app/mesh/nodes/deletion/forgotten.ts'
import { readSettings } from '../../../../src/app/settings/settings.ts'
import { type Client, START } from '../../../support/app.ts'
import {
  createTestMesh,
  FAR,
  packet,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
} from '../../../support/mesh/mesh.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000
const VOLTAGE = 'deviceMetrics.voltage'

let mesh: TestMesh
let admin: Client

beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
})
afterEach(() => mesh.app.close())

/** Voltages, each with its age in milliseconds. */
async function measure(...voltages: readonly (readonly [age: number, voltage: number])[]): Promise<void> {
  const packets = voltages.map(([age, voltage]) =>
    packet(telemetry({ time: seconds(START - age), variant: { case: 'deviceMetrics', value: { voltage } } })),
  )
  await store(mesh.ingest, packets)
}

const rollAll = () => rollUp(mesh.app.store, async () => true)

async function chart(query: string): Promise<Record<string, unknown>> {
  const answer = await admin.send('GET', `/api/telemetry?nodeId=${FAR}&metric=${VOLTAGE}${query}`)
  return Object(await answer.json())
}

function rows(table: string): unknown[] {
  const { sqlite } = mesh.app.store
  return sqlite.prepare(`select t, n, min, max, sum, last from ${table} order by node_id, metric, t`).all()
}

it('zeros of statistics, and a battery that is not there, are values from the packet to the chart', async () => {
  const time = seconds(START)
  const stats = { numPacketsTx: 3, numPacketsRxBad: 0 }
  await store(mesh.ingest, [
    packet(telemetry({ time, variant: { case: 'localStats', value: stats } })),
    packet(telemetry({ time, variant: { case: 'hostMetrics', value: { load1: 12, load5: 0 } } })),
    packet(telemetry({ time, variant: { case: 'deviceMetrics', value: { voltage: -0.001 } } })),
  ])
  await rollAll()
  for (const [metric, value] of [
    ['localStats.numPacketsTx', 3],
    ['localStats.numPacketsRxBad', 0],
    ['localStats.numRxDupe', 0],
    ['hostMetrics.load1', 12],
    ['hostMetrics.load5', 0],
    ['hostMetrics.diskfree1Bytes', 0],
    ['deviceMetrics.voltage', 0],
  ] as const) {
    const path = `/api/telemetry?nodeId=${FAR}&metric=${metric}`
    const raw = Object(await (await admin.send('GET', `${path}&from=${START - HOUR}&to=${START + HOUR}`)).json())
    expect([metric, raw.series]).toStrictEqual([metric, [[START, value]]])
    const days = Object(await (await admin.send('GET', `${path}&from=${START - 30 * DAY}&to=${START + HOUR}`)).json())
    expect([metric, days.series.at(-1).slice(1)]).toStrictEqual([metric, [value, value, value]])
  }
  expect(await mesh.node()).toMatchObject({ deviceMetrics: { voltage: 0 } })
})

it('a paxcounter has charts of the people that it counted', async () => {
  const count = { wifi: 7, ble: 0, uptime: 60 }
  const payload = toBinary(PaxcountSchema, create(PaxcountSchema, count))
  await store(mesh.ingest, [packet({ portnum: PortNum.PAXCOUNTER_APP, payload })])
  for (const [metric, value] of [
    ['paxcounter.wifi', 7],
    ['paxcounter.ble', 0],
  ] as const) {
    const path = `/api/telemetry?nodeId=${FAR}&metric=${metric}&from=${START - HOUR}&to=${START + HOUR}`
    expect(await (await admin.send('GET', path)).json()).toMatchObject({ series: [[START, value]] })
  }
})

describe('a chart', () => {
  const range = (from: number, to: number) => chart(`&from=${START - from}&to=${START - to}`)

  it('is read from the summaries where the measurements are deleted', async () => {
    await measure([40 * DAY, 4], [40 * DAY - HOUR, 6])
    await rollAll()
    mesh.app.store.sqlite.exec('delete from telemetry')
    const hours = { resolution: 'hour', series: [expect.arrayContaining([4]), expect.arrayContaining([6])] }
    expect(await range(41 * DAY, 39.5 * DAY)).toMatchObject(hours)
    mesh.app.store.sqlite.exec('delete from telemetry_hourly')
    const days = await range(41 * DAY, 39.5 * DAY)
    expect(days).toMatchObject({ resolution: 'day' })
    expect(days['series']).not.toHaveLength(0)
  })

  it('of a quiet time is empty, even beside measurements of the same hour and day', async () => {
    await measure([5 * HOUR, 4], [40 * MINUTE, 6])
    await rollAll()
    expect(await range(4.5 * HOUR, HOUR)).toMatchObject({ resolution: 'raw', series: [] })
    expect(await range(30 * MINUTE, 0)).toMatchObject({ resolution: 'raw', series: [] })
  })

  it('is whole where only a part of its measurements is deleted', async () => {
    await measure([31 * DAY, 4], [30 * DAY, 6])
    await rollAll()
    mesh.app.store.sqlite.exec(`delete from telemetry where t < ${START - 30.5 * DAY}`)
    expect(await range(31 * DAY, 30 * DAY)).toMatchObject({
      resolution: 'hour',
      series: [expect.arrayContaining([4]), expect.arrayContaining([6])],
    })
  })

  it('over a long time contains measurements that are not summarised yet', async () => {
    await measure([90 * DAY, 4], [2 * HOUR, 2])
    await rollAll()
    await measure([HOUR, 8], [MINUTE, 5])
    const { resolution, series } = await range(100 * DAY, 0)
    expect([resolution, series]).toStrictEqual([
      'day',
      [
        [START - 90 * DAY - (START % DAY), 4, 4, 4],
        [START - (START % DAY), 2, 8, 5],
      ],
    ])
  })
})

describe('roll-ups', () => {
  it('summarise hours and days', async () => {
    await measure([3 * HOUR, 1], [3 * HOUR - MINUTE, 5], [3 * HOUR - 2 * MINUTE, 3], [HOUR, 8], [13 * HOUR, 7])
    expect(await rollAll()).toBe(3)
    expect(rows('telemetry_hourly')).toStrictEqual([
      { t: START - 13 * HOUR, n: 1, min: 7, max: 7, sum: 7, last: 7 },
      { t: START - 3 * HOUR, n: 3, min: 1, max: 5, sum: 9, last: 3 },
      { t: START - HOUR, n: 1, min: 8, max: 8, sum: 8, last: 8 },
    ])
    expect(rows('telemetry_daily')).toStrictEqual([
      { t: START - 36 * HOUR, n: 1, min: 7, max: 7, sum: 7, last: 7 },
      { t: START - 12 * HOUR, n: 4, min: 1, max: 8, sum: 17, last: 8 },
    ])
    expect(await rollAll()).toBe(0)
  })

  it('include late data, and nothing twice', async () => {
    await measure([HOUR, 2])
    await rollAll()
    await measure([HOUR, 2], [HOUR - MINUTE, 4])
    expect(await rollAll()).toBe(1)
    expect(rows('telemetry_hourly')).toStrictEqual([{ t: START - HOUR, n: 2, min: 2, max: 4, sum: 6, last: 4 }])
    expect(rows('telemetry_daily')).toMatchObject([{ n: 2, sum: 6 }])
  })

  it('keep an hour whose measurements are deleted', async () => {
    await measure([HOUR, 2], [HOUR - MINUTE, 4])
    await rollAll()
    mesh.app.store.sqlite.exec('delete from telemetry')
    await measure([HOUR - 2 * MINUTE, 9])
    await rollAll()
    expect(rows('telemetry_hourly')).toMatchObject([{ n: 2, min: 2, max: 4 }])
  })

  it('stop between two slices, and continue from there', async () => {
    await measure(...Array.from({ length: 400 }, (_, index) => [index * HOUR, index % 100] as const))
    expect(await rollUp(mesh.app.store, async () => false)).toBe(250)
    expect([mesh.count('telemetry_hourly'), mesh.count('telemetry_dirty')]).toStrictEqual([250, 150])
    expect(await rollAll()).toBe(150)
    expect([mesh.count('telemetry_hourly'), mesh.count('telemetry_dirty')]).toStrictEqual([400, 0])
    const { n } = Object(mesh.app.store.sqlite.prepare('select sum(n) n from telemetry_daily').get())
    expect(n).toBe(400)
  })
})

describe('GET /api/telemetry', () => {
  it('returns the measurements of a day', async () => {
    await measure([2 * DAY, 9], [HOUR, 3.5], [MINUTE, 0])
    expect(await chart('')).toStrictEqual({
      metric: VOLTAGE,
      unit: 'V',
      resolution: 'raw',
      series: [
        [START - HOUR, 3.5],
        [START - MINUTE, 0],
      ],
    })
  })

  it.each([
    [2 * DAY, 'raw'],
    [2 * DAY + 1, 'hour'],
    [60 * DAY, 'hour'],
    [60 * DAY + 1, 'day'],
  ])('reads a range of %d ms by %s', async (range, resolution) => {
    await measure([HOUR, 1], [HOUR - MINUTE, 2])
    await rollAll()
    const { series, ...rest } = await chart(`&from=${START - range}&to=${START}`)
    expect(rest).toMatchObject({ resolution })
    const start = { raw: START - HOUR, hour: START - HOUR, day: START - 12 * HOUR }
    expect(series).toStrictEqual(
      resolution === 'raw'
        ? [
            [START - HOUR, 1],
            [START - HOUR + MINUTE, 2],
          ]
        : [[resolution === 'hour' ? start.hour : start.day, 1, 2, 1.5]],
    )
  })

  it('shows what is not rolled up yet instead of the earlier roll-up', async () => {
    await measure([DAY, 1], [HOUR, 1])
    await rollAll()
    await measure([HOUR - MINUTE, 3], [0, 7])
    expect((await chart(`&from=${START - 7 * DAY}`))['series']).toStrictEqual([
      [START - DAY, 1, 1, 1],
      [START - HOUR, 1, 3, 2],
      [START, 7, 7, 7],
    ])
  })

  it('includes the hour in which the range begins', async () => {
    await measure([7 * DAY - 30 * MINUTE, 4])
    await rollAll()
    const { series } = await chart(`&from=${START - 7 * DAY + 20 * MINUTE}&to=${START}`)
    expect(series).toStrictEqual([[START - 7 * DAY, 4, 4, 4]])
  })

  it('merges excess points over the whole range', async () => {
    await measure(...Array.from({ length: 1000 }, (_, index) => [index * MINUTE, index / 16] as const))
    const { series } = await chart(`&from=${START - 999 * MINUTE}&to=${START}&points=10`)
    const points = Array.isArray(series) ? series : []
    expect(points).toHaveLength(10)
    expect([points[0], points[9]]).toStrictEqual([
      [START - 999 * MINUTE, 900 / 16, 999 / 16, 949.5 / 16],
      [START - 99 * MINUTE, 0, 99 / 16, 49.5 / 16],
    ])
  })

  it('lists the existing metrics', async () => {
    await measure([HOUR, 1])
    const environment = { temperature: 3, relativeHumidity: 40 }
    await store(mesh.ingest, [
      packet(telemetry({ variant: { case: 'environmentMetrics', value: environment } }), { from: 9 }),
    ])
    const list = async (query: string) => Object(await (await admin.send('GET', `/api/telemetry${query}`)).json())
    expect(await list('?nodeId=!00000009')).toStrictEqual({
      metrics: [
        { metric: 'environmentMetrics.relativeHumidity', unit: '%' },
        { metric: 'environmentMetrics.temperature', unit: '°C' },
      ],
    })
    expect((await list('')).metrics).toHaveLength(3)
    expect(await list('?nodeId=9&metric=deviceMetrics.voltage')).toMatchObject({ series: [] })
    expect(await list('?nodeId=9&metric=deviceMetrics.volltage')).toMatchObject({
      status: 400,
      detail: 'metric: no such metric; did you mean deviceMetrics.voltage?',
      issues: [{ path: 'metric' }],
    })
    expect(await list('?nodeId=9&metric=of.nobody')).toMatchObject({ status: 400, code: 'invalid_request' })
    for (const metric of ['environmentMetrics.oneWireTemperature3', 'hostMetrics.load15', 'paxcounter.ble']) {
      expect(await list(`?nodeId=9&metric=${metric}`), metric).toMatchObject({ metric, series: [] })
    }
    // Only repeated values are numbered, from the second on.
    for (const metric of ['deviceMetrics.voltage2', 'environmentMetrics.oneWireTemperature1', 'hostMetrics.load2']) {
      const named = metric.replace(/[12]$/, '')
      const detail = expect.stringMatching(`^metric: no such metric; did you mean .*${named}`)
      expect(await list(`?nodeId=9&metric=${metric}`), metric).toMatchObject({ status: 400, detail })
    }
    const since = await list('?nodeId=9&metric=deviceMetrics.voltage&from=2026-01-01T00:00:00Z&to=2026-01-01')
    expect(since).toMatchObject({ metric: 'deviceMetrics.voltage', series: [] })
  })

  it.each([
    ['?metric=deviceMetrics.voltage', 400],
    ['?nodeId=0', 400],
    ['?nodeId=9&metric=a%20b', 400],
    ['?nodeId=9&from=2026-02-30', 400],
    ['?nodeId=9&from=2026-01-01T00:00', 400],
    ['?nodeId=9&from=yesterday', 400],
    ['?nodeId=9&from=1969-12-31', 400],
    ['?nodeId=9&from=2026-01-01T00:00:00%2B02:00&to=2026-01-01T00:00:00.5Z', 404],
    ['?nodeId=9&metric=a.b&points=9', 400],
    ['?nodeId=9&metric=a.b&points=5001', 400],
    ['?nodeId=9&metric=a.b&from=2&to=1', 400],
    ['?nodeId=9&metric=a.b', 404],
    ['?nodeId=9', 404],
  ])('%s is answered with %d', async (query, status) => {
    expect((await admin.send('GET', `/api/telemetry${query}`)).status).toBe(status)
  })

  it('deletes the measurements of a node with it', async () => {
    await measure([HOUR, 1])
    await rollAll()
    await measure([MINUTE, 1])
    await admin.send('DELETE', `/api/nodes/${FAR}`)
    await sweepForgotten(mesh.app.store, async () => true)
    const tables = ['telemetry', 'telemetry_hourly', 'telemetry_daily', 'telemetry_dirty']
    expect(tables.map((table) => mesh.count(table))).toStrictEqual([0, 0, 0, 0])
  })
})

describe('retention', () => {
  it('deletes hours, logged packets and traceroutes, and keeps days', async () => {
    await measure([399 * DAY, 1], [402 * DAY, 2], [HOUR, 3])
    await rollAll()
    for (const age of [8, 6]) await store(mesh.ingest, [packet(text('hi'))], { at: START - age * DAY })
    mesh.app.store.sqlite.exec(`update packets set t = ${START - 8 * DAY} where port = 67;
      insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, state)
      values (1, 1, 2, ${START - 366 * DAY}, 'unknown'), (2, 1, 2, ${START - 364 * DAY}, 'unknown')`)
    const settings = await readSettings(mesh.app.store)
    const deleted = await deleteOldTraffic(mesh.app.store, promisedCutoffs(settings, START), {
      pause: async () => true,
    })
    expect(deleted).toStrictEqual({ hours: 1, packets: 4, traceroutes: 1, channels: 0 })
    expect(rows('telemetry_hourly')).toMatchObject([{ max: 1 }, { max: 3 }])
    expect(rows('telemetry_daily')).toHaveLength(3)
    expect(mesh.app.store.sqlite.prepare('select t from packets').pluck().all()).toStrictEqual([START - 6 * DAY])
  })
})
