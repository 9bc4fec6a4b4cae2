import type { Backups } from '../../../src/app/system/backup/backup.ts'
import type { LinkInfo, Radio } from '../../../src/app/mesh/radios/radio.ts'
import { beforeEach, expect, it } from 'vitest'
import { readTrafficHours } from '../../support/mesh/traffic-hours.ts'
import { createTestApp, START } from '../../support/app.ts'
import {
  createTestMesh,
  heard,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  seconds,
  telemetry,
  text,
} from '../../support/mesh/mesh.ts'
import type { TestMesh } from '../../support/mesh/mesh.ts'
import { processorTime } from '../../support/processor-time.ts'

const HOUR = 3_600_000

const LINK: LinkInfo = {
  name: '192.0.2.7:4403',
  kind: 'tcp',
  state: 'waiting',
  since: START,
  lastFrameAt: START - 5,
  reconnects: 2,
  reason: 'the radio refuses connections',
  radio: null,
  queue: null,
  txEnabled: null,
  notice: null,
}

let mesh: TestMesh
beforeEach(async () => {
  mesh = await createTestMesh()
})

async function dashboard(): Promise<Record<string, unknown>> {
  const answer = await (await mesh.app.admin()).send('GET', '/api/dashboard')
  expect(answer.status).toBe(200)
  return Object(await answer.json())
}

it('is empty before anything is heard', async () => {
  const { hours, storage, ...rest } = await dashboard()
  expect(rest).toStrictEqual({
    counts: { nodes: 0, activeNodes: 0, messages: 0, packets: 0 },
    activeSeconds: 7200,
    dayBefore: { messages: 0, packets: null },
    channelUtilization: null,
    airUtilTx: null,
    measuredAt: null,
    link: null,
    links: [],
    lastBackup: null,
  })
  const empty = Array.from({ length: 24 }, (_, n) => ({ t: START - (23 - n) * HOUR, messages: 0, packets: 0 }))
  expect(hours).toStrictEqual(empty)
  expect(Object(storage).databaseBytes).toBeGreaterThan(10_000)
})

it('counts by clock hours from their first millisecond, and nothing older than the first hour shown', async () => {
  const begin = START - 23 * HOUR
  const say = (at: number) => mesh.ingest.store([heard(packet(text('hello')), { at })])
  const beat = (at: number) =>
    mesh.ingest.store([heard(packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } })), { at })])
  await say(begin - 1)
  await say(begin)
  await beat(begin + HOUR - 1)
  await say(begin + HOUR)
  for (let n = 0; n < 5; n++) await beat(START - 2 * HOUR + n)
  await say(START + 10)
  mesh.app.clock.advance(HOUR / 2)
  const { hours, counts } = await dashboard()
  const busy = Array.isArray(hours) ? hours.filter(({ packets }) => packets > 0) : []
  expect(busy).toStrictEqual([
    { t: begin, messages: 1, packets: 2 },
    { t: begin + HOUR, messages: 1, packets: 1 },
    { t: START - 2 * HOUR, messages: 0, packets: 5 },
    { t: START, messages: 1, packets: 1 },
  ])
  expect(counts).toMatchObject({ messages: 3, packets: 9 })
})

it('tells how much was heard a day earlier in the same hours, as far as the log goes back', async () => {
  const begin = START - 47 * HOUR
  const say = (at: number) => mesh.ingest.store([heard(packet(text('hello')), { at })])
  await say(begin + 5)
  await say(begin + HOUR)
  // In the hour that corresponds to the current one, which is not over.
  await say(START - 24 * HOUR + 5)
  await say(START - 23 * HOUR)
  // The log may have begun within the first hour.
  expect(await dashboard()).toMatchObject({
    counts: { messages: 1, packets: 1 },
    dayBefore: { messages: 2, packets: null },
  })
  const again = await createTestMesh()
  const sayAgain = (at: number) => again.ingest.store([heard(packet(text('hello')), { at })])
  for (const at of [begin - 1, begin, begin + HOUR]) await sayAgain(at)
  const answer = await (await again.app.admin()).send('GET', '/api/dashboard')
  expect(await answer.json()).toMatchObject({ dayBefore: { messages: 2, packets: 2 } })
  const elsewhere = { channels: { read: [1], write: [] }, direct: { read: true, write: false } }
  const narrow = await again.app.user('narrow', undefined, elsewhere)
  const seen = await narrow.send('GET', '/api/dashboard')
  expect(await seen.json()).toMatchObject({ dayBefore: { messages: 0 } })
})

it('counts nodes as configured, and shows the measurements of our own radio', async () => {
  const far = (num: number, lastHeard: number) =>
    heard(nodeInfo({ num, lastHeard: seconds(lastHeard), deviceMetrics: { channelUtilization: 99 } }))
  const deviceMetrics = { channelUtilization: 12.5, airUtilTx: 0.25 }
  await mesh.ingest.store([
    heard(myInfo),
    heard(nodeInfo({ num: LOCAL, lastHeard: seconds(START), deviceMetrics })),
    far(7, START - 60_000),
    far(8, START - 61_000),
    heard(nodeInfo({ num: 9 })),
  ])
  const air = { channelUtilization: 12.5, airUtilTx: 0.25, measuredAt: START }
  expect(await dashboard()).toMatchObject({ ...air, counts: { nodes: 4, activeNodes: 3 }, activeSeconds: 7200 })
  await (await mesh.app.admin()).send('PUT', '/api/settings', { nodeActiveSeconds: 60 })
  expect(await dashboard()).toMatchObject({ counts: { nodes: 4, activeNodes: 2 }, activeSeconds: 60 })
})

it('shows links and the newest backup to users who may see the dashboard', async () => {
  const backup = { name: '2026-01-15_030000', createdAt: START - 9 * HOUR, kind: 'scheduled', sizeBytes: 4096 }
  const more = { appVersion: '1', schema: '0004', tables: 3, rows: 9 }
  const backups: Backups = Object({
    list: async () => [
      { ...backup, ...more },
      { ...backup, ...more, createdAt: 1 },
    ],
  })
  const radio: Radio = Object({ links: () => [LINK, { ...LINK, name: 'second' }] })
  const app = await createTestApp({ ports: { backups, radio } })
  const reader = await app.user('reader')
  const answer = await reader.send('GET', '/api/dashboard')
  const { name, kind, state, since, lastFrameAt, reason } = LINK
  const link = { name, kind, state, since, lastFrameAt, reason }
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { link, links: [link, { ...link, name: 'second' }], lastBackup: backup },
  ])
  const other = await app.user('other', { dashboard: { read: false, write: false } })
  expect((await other.send('GET', '/api/dashboard')).status).toBe(403)
  expect((await app.request('/api/dashboard')).status).toBe(401)
})

it('works on a runtime without radios and backups', async () => {
  const app = await createTestApp({ ports: { radio: null, backups: null } })
  const answer = await (await app.admin()).send('GET', '/api/dashboard')
  expect([answer.status, await answer.json()]).toMatchObject([200, { link: null, links: [], lastBackup: null }])
})

it('counts a long packet log without scanning it', async () => {
  const { sqlite } = mesh.app.store
  // A packet each second, with ids starting where a cleared ring would have left them.
  sqlite.exec(`with recursive i(n) as (select 0 union all select n + 1 from i where n < 200000)
    insert into packets (id, source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit, via_mqtt,
      pki_encrypted, replayed, payload)
    select 1000000 + n, 1, ${START} - 200000000 + n * 1000, n, 1, 2, 0, 3, 0, 0, 0, '{}' from i`)
  const hours = await readTrafficHours(mesh.app.store, START)
  expect(hours.map(({ packets }) => packets)).toStrictEqual([...Array(23).fill(3600), 1])
  sqlite.exec('update packets set replayed = 1 where id % 100 = 1')
  const live = await readTrafficHours(mesh.app.store, START)
  expect(live.map(({ packets }) => packets)).toStrictEqual([...Array(23).fill(3564), 1])
  const scan = sqlite.prepare('select t / 3600000, count(*) from packets group by 1')
  const reading = await quickest(async () => scan.all())
  expect(await quickest(() => readTrafficHours(mesh.app.store, START))).toBeLessThan(reading / 2)
})

/** Milliseconds of processor time of the fastest of ten runs: other load on the machine only makes runs slower. */
async function quickest(run: () => Promise<unknown>): Promise<number> {
  const took: number[] = []
  for (let n = 0; n < 10; n++) {
    const began = processorTime()
    await run()
    took.push(processorTime() - began)
  }
  return Math.min(...took)
}
