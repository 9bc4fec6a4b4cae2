import { keepParts } from '../../../src/app/search/parts.ts'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { promisedCutoffs } from '../../../src/app/retention/plan.ts'
import { deleteExpired } from '../../../src/app/upkeep/retention.ts'
import { enforceRowQuotas } from '../../../src/app/upkeep/row-quotas.ts'
import { rollUp } from '../../../src/app/mesh/telemetry/roll-up.ts'
import { deleteOld, warnOfRetention } from '../../../src/app/upkeep/upkeep.ts'
import { readSettings } from '../../../src/app/settings/settings.ts'
import { START } from '../../support/app.ts'
import { createTestMesh, packet, store, telemetry, type TestMesh, text } from '../../support/mesh/mesh.ts'

const DAY = 86_400_000

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
})
afterEach(() => mesh.app.close())

/** 60 nodes with two metrics, positions and messages on each of `days` days. */
async function fill(days: readonly number[]): Promise<void> {
  const value = { voltage: 4, batteryLevel: 50 }
  const nodeNums = Array.from({ length: 60 }, (_, index) => index + 1)
  for (const day of days) {
    const at = START - day * DAY
    const packets = nodeNums.flatMap((from) => [
      packet(telemetry({ variant: { case: 'deviceMetrics', value } }), { from }),
      packet(text('hello'), { from }),
    ])
    await store(mesh.ingest, packets, { at })
    mesh.app.store.sqlite.exec(`insert into positions select id, ${at}, 1, 2, null, null, 0 from nodes`)
  }
}

it('deletes what has expired and keeps the rest', async () => {
  await fill([400, 366, 364, 91, 89, 31, 29, 0])
  const cutoffs = promisedCutoffs(await readSettings(mesh.app.store), START)
  const deleted = await deleteExpired(mesh.app.store, cutoffs, async () => true)
  expect(deleted).toStrictEqual({ telemetry: 6 * 120, positions: 4 * 60, messages: 2 * 60 })
  expect([mesh.count('telemetry'), mesh.count('positions'), mesh.count('messages')]).toStrictEqual([240, 240, 360])
  const left = mesh.app.store.sqlite.prepare('select distinct t from telemetry order by t').pluck().all()
  expect(left).toStrictEqual([START - 29 * DAY, START])
  expect(mesh.count('nodes')).toBe(60)
})

it('works in slices and stops between two of them when asked', async () => {
  await fill([1])
  mesh.app.store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 2500)
    insert into telemetry select 1, 1, ${START - 40 * DAY} + n, 1, 0 from i`)
  const cutoffs = promisedCutoffs(await readSettings(mesh.app.store), START)
  const rows: unknown[] = []
  const pause = async () => {
    rows.push(mesh.count('telemetry'))
    return rows.length < 2
  }
  expect(await deleteExpired(mesh.app.store, cutoffs, pause)).toStrictEqual({
    telemetry: 2000,
    positions: 0,
    messages: 0,
  })
  expect(rows).toStrictEqual([1620, 620])
})

it('deletes messages in many slices without a word to the text index', async () => {
  const { sqlite } = mesh.app.store
  await keepParts(mesh.app.store, START)
  const at = START - 400 * DAY
  sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 3000)
    insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    select n, 7, 4294967295, 0, 'message ' || n || ' of the old days', ${at}, 'in' from i`)
  const cutoffs = promisedCutoffs(await readSettings(mesh.app.store), START)
  let slices = 0
  const pause = async () => ++slices < 1000
  expect(await deleteExpired(mesh.app.store, cutoffs, pause, () => 0.02)).toMatchObject({ messages: 3000 })
  expect(slices).toBeGreaterThan(100)
  // The piece of the one transaction that wrote them.
  expect(sqlite.prepare('select count(distinct segid) from messages_text_idx').pluck().get()).toBe(1)
})

it('messages beyond the limit of their table go without one too', async () => {
  const { sqlite } = mesh.app.store
  await keepParts(mesh.app.store, START)
  sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 2500)
    insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    select n, 7000 + n, 4294967295, 0, 'message ' || n || ' of a stranger', ${START}, 'in' from i`)
  const limits = { now: START, share: () => 0.02, most: { messages: 100 } }
  expect(await enforceRowQuotas(mesh.app.store, async () => true, limits)).toStrictEqual({ messages: 2400 })
  // The piece of the one transaction that wrote them.
  expect(sqlite.prepare('select count(distinct segid) from messages_text_idx').pluck().get()).toBe(1)
})

const settings = () => readSettings(mesh.app.store)
const sweeps = () => mesh.app.store.sqlite.prepare('select name, place, done_before from sweeps order by name').all()

it('continues where it stopped, so that the last node gets its turn however little one run may do', async () => {
  await fill([40, 0])
  const cutoffs = promisedCutoffs(await settings(), START)
  // One slice a run: the charts of the first 50 nodes, then the rest, then nothing is left.
  const once = async () => false
  const half = () => 0.5
  expect(await deleteExpired(mesh.app.store, cutoffs, once, half)).toMatchObject({ telemetry: 100 })
  const place = '{"nodeId":50,"metric":2}'
  expect(sweeps()).toMatchObject([{ name: 'telemetry', place, done_before: cutoffs.telemetry - 1 }])
  // New old rows of the first node do not hold the last ones up.
  mesh.app.store.sqlite.exec(`insert into telemetry select 1, 1, ${START - 50 * DAY}, 1, 0`)
  expect(await deleteExpired(mesh.app.store, cutoffs, once, half)).toMatchObject({ telemetry: 20 })
  await deleteExpired(mesh.app.store, cutoffs, async () => true)
  expect(sweeps()).toContainEqual({ name: 'telemetry', place: null, done_before: cutoffs.telemetry })
})

it('gives each table a part of the run, and leaves one alone that was worked through lately', async () => {
  await fill([40, 0])
  const { sqlite } = mesh.app.store
  sqlite.exec(`insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    values (9, 7, 4294967295, 0, 'old', ${START - 400 * DAY}, 'in')`)
  const cutoffs = promisedCutoffs(await settings(), START)
  const shares = { each: () => async () => false, restMs: 6 * 3_600_000 }
  const run = (at: typeof cutoffs) =>
    deleteExpired(
      mesh.app.store,
      at,
      async () => true,
      () => 0.5,
      shares,
    )
  expect(await run(cutoffs)).toStrictEqual({ telemetry: 100, positions: 0, messages: 1 })
  await run(cutoffs)
  await run(cutoffs)
  const before = sqlite.prepare('select total_changes()').pluck().get()
  const later = (hours: number) => {
    const ms = hours * 3_600_000
    return { ...cutoffs, telemetry: cutoffs.telemetry + ms, positions: cutoffs.positions + ms }
  }
  sqlite.exec(`insert into telemetry select 1, 1, ${START - 50 * DAY}, 1, 0`)
  expect(await run(later(1))).toMatchObject({ telemetry: 0 })
  expect(sqlite.prepare('select total_changes()').pluck().get()).toBe(Number(before) + 2)
  expect(await run(later(6))).toMatchObject({ telemetry: 1 })
})

it('summaries continue where they stopped', async () => {
  await fill([2])
  expect(mesh.count('telemetry_dirty')).toBe(120)
  expect(
    await rollUp(
      mesh.app.store,
      async () => false,
      () => 0.2,
    ),
  ).toBe(50)
  // The first node reports again: the others come first now.
  await store(
    mesh.ingest,
    [packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 3 } } }), { from: 1 })],
    {
      at: START - 2 * DAY + 1,
    },
  )
  expect(
    await rollUp(
      mesh.app.store,
      async () => false,
      () => 0.2,
    ),
  ).toBe(50)
  const left = mesh.app.store.sqlite.prepare('select min(node_id) from telemetry_dirty where node_id > 1').pluck().get()
  expect(left).toBe(51)
  expect(await rollUp(mesh.app.store, async () => true)).toBe(21)
  expect(mesh.count('telemetry_dirty')).toBe(0)
})

it('measurements of hours that are not summarised stay, and the log says when deletion is a day late', async () => {
  await fill([40, 0])
  const warnings: unknown[] = []
  const run = async (now: number) => {
    const warn = (...line: unknown[]) => warnings.push(line)
    const ports = { ...mesh.app.ports, log: { ...mesh.app.ports.log, warn }, now: () => now }
    await deleteOld(ports, async () => true)
    await warnOfRetention(ports)
  }
  await run(START)
  expect(mesh.count('telemetry')).toBe(240)
  await run(START + 2 * DAY)
  const late = (hours: number) => ['Old data is deleted too slowly', { table: 'telemetry', hours }]
  expect(warnings).toStrictEqual([late(240), late(288)])
  await rollUp(mesh.app.store, async () => true)
  await run(START + 2 * DAY)
  expect(mesh.count('telemetry')).toBe(120)
  expect(warnings).toHaveLength(2)
})
