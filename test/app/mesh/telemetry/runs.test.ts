import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { readMeasured } from '../../../../src/app/alerts/past/history.ts'
import { readWorld } from '../../../../src/app/alerts/world/read-world.ts'
import { metric as metricKind } from '../../../../src/app/alerts/kinds/metric.ts'
import { WHOLE_VIEW, type View } from '../../../../src/app/accounts/access/visible.ts'
import { wholeSlices } from '../../../../src/app/base/pacing/slice-share.ts'
import { battery } from '../../../../src/app/mesh/findings/rules/battery.ts'
import { busy } from '../../../../src/app/mesh/findings/rules/busy.ts'
import { type Measurements } from '../../../../src/app/mesh/ingest/rows/runs.ts'
import { writeTelemetry } from '../../../../src/app/mesh/ingest/rows/history.ts'
import { sweepForgotten } from '../../../../src/app/mesh/nodes/deletion/forgotten.ts'
import { moveHistory } from '../../../../src/app/mesh/nodes/identity/move-history.ts'
import { oldestUnsummarised, rollUp } from '../../../../src/app/mesh/telemetry/roll-up.ts'
import { listMetrics, readSeries } from '../../../../src/app/mesh/telemetry/telemetry.ts'
import { sweepCharts } from '../../../../src/app/upkeep/charts.ts'
import { preparePacked, trimPacked } from '../../../../src/app/upkeep/packed-quotas.ts'
import { enforceRowQuotas } from '../../../../src/app/upkeep/row-quotas.ts'
import { createSeededRandom } from '../../../../src/node/radio/demo/seeded-random.ts'
import type { SqliteStore } from '../../../../src/node/database.ts'
import { FIRST_DIRECT } from '../../../../src/shared/mesh/channels.ts'
import { MAX_RUN_BYTES } from '../../../../src/db/runs.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.UTC(2026, 0, 15)
const NODES = [11, 12, 14] as const
const BATTERY = 'deviceMetrics.batteryLevel'
const USE = 'deviceMetrics.channelUtilization'
const VOLTAGE = 'deviceMetrics.voltage'
const NAMES = [BATTERY, USE, VOLTAGE]

const allOfIt = async () => true
const NONE = { read: false, write: false }
const sees = (read: number[], direct = false): View => ({
  channels: { read, write: [] },
  direct: { read: direct, write: false },
  hidden: new Set(),
})
const VIEWS: readonly View[] = [WHOLE_VIEW, sees([0]), sees([0, 1], true), sees([]), { ...WHOLE_VIEW, direct: NONE }]

function open(packs: boolean): SqliteStore {
  const store = { ...openMemoryStore(), packs }
  const add = store.sqlite.prepare('insert into nodes (node_num, first_heard, last_heard) values (?, ?, ?)')
  for (const num of NODES) add.run(num, START, START)
  return store
}

let plain: SqliteStore
let packed: SqliteStore

beforeEach(() => {
  plain = open(false)
  packed = open(true)
})
afterEach(() => {
  plain.close()
  packed.close()
})

async function write(rows: readonly Measurements[]): Promise<void> {
  for (const store of [plain, packed]) {
    const [first, ...others] = writeTelemetry(store, rows, new Set())
    if (first !== undefined) await store.atomic([first, ...others])
  }
}

const both = async (work: (store: SqliteStore) => Promise<unknown>) => {
  await work(plain)
  await work(packed)
}

/** Sums may differ in their last bits, by the order of their terms. */
const rounded = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_key, each) =>
    typeof each === 'number' && !Number.isInteger(each) ? Number(each.toPrecision(11)) : each,
  )

const reader = (store: SqliteStore, view: View) => Object({ store, viewer: { view } })

/** What each reader of measurements answers. */
async function answers(store: SqliteStore, now: number): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  const ids = new Map(NODES.map((num) => [num, idOf(store, num)]))
  for (const [index, view] of VIEWS.entries()) {
    const as = reader(store, view)
    all[`all metrics ${index}`] = index === 0 ? null : await listMetrics(as, null)
    for (const nodeNum of NODES.filter((num) => ids.get(num) !== undefined)) {
      all[`metrics ${index} ${nodeNum}`] = await listMetrics(as, nodeNum)
      for (const metric of NAMES) {
        for (const [ago, until] of [
          [DAY, 0],
          [1.7 * DAY, 6.5 * HOUR],
          [9.3 * DAY, 2.2 * DAY],
          [70 * DAY, 0],
        ] as const) {
          const range = { from: now - ago, to: now - until, points: 500 }
          all[`${index} ${nodeNum} ${metric} ${ago}`] = await readSeries(as, { nodeNum, metric, ...range })
        }
        all[`past ${index} ${nodeNum} ${metric}`] = await readMeasured(as, ids.get(nodeNum) ?? 0, metric, now - 3 * DAY)
      }
    }
  }
  const needs = { store, radio: null, now, startedAt: START }
  const world = await readWorld(needs, [{ nodes: true, metric: BATTERY }], allOfIt)
  all['latest'] = [...(world?.world.latest.get(BATTERY) ?? [])]
  const rule = Object({ kind: 'metric', metric: BATTERY })
  for (const [index, view] of VIEWS.entries()) {
    const watching = Object({ rule, owner: { view } })
    const seen = world === null ? null : await metricKind.state?.seenBy?.(store, watching, world.world)
    all[`latest ${index}`] = [...(seen?.latest.get(BATTERY) ?? [])].toSorted(([a], [b]) => a - b)
  }
  const looking = { store, now, links: [], heard: NODES, pause: allOfIt }
  for (const one of [battery, busy]) {
    all[one.name] = await one.look(looking)
    all[`${one.name} since`] = await one.past?.oldest(looking)
  }
  return all
}

function idOf(store: SqliteStore, nodeNum: number): number | undefined {
  const id = store.sqlite.prepare('select id from nodes where node_num = ?').pluck().get(nodeNum)
  return id === undefined ? undefined : Number(id)
}

async function expectSame(now: number): Promise<void> {
  expect(rounded(await answers(packed, now))).toEqual(rounded(await answers(plain, now)))
}

test.each([1, 3])('both forms answer the same, whatever happens to them: %i', async (seed) => {
  const random = createSeededRandom(seed)
  const pick = <T>(of: readonly [T, ...T[]]): T => of[Math.floor(random() * of.length)] ?? of[0]
  const channels = [0, 0, 0, 1, -1, null, FIRST_DIRECT + 12] as const
  let now = START + 3 * HOUR + 17 * MINUTE
  const sent: Measurements[] = []
  for (let step = 0; step < 60; step++) {
    now += pick([5 * MINUTE, HOUR, 7 * HOUR])
    const rows = Array.from({ length: 6 }, (): Measurements => {
      const late = pick([0, 0, 0, HOUR, 30 * HOUR])
      const values = Object.fromEntries(
        NAMES.filter(() => random() < 0.6).map((name) => [name, valueOf(name, now, random())]),
      )
      return {
        nodeNum: pick(NODES),
        t: now - late - Math.floor(random() * 40) * MINUTE,
        values,
        channel: pick(channels),
      }
    })
    const repeated = sent[Math.floor(random() * 5 * sent.length)]
    await write(repeated === undefined ? rows : [repeated, ...rows])
    sent.push(...rows)
    const before = random() < 0.2 ? undefined : now - (now % HOUR)
    let slices = Math.floor(random() * 3)
    const pause = random() < 0.3 ? async () => slices-- > 0 : allOfIt
    if (random() < 0.6) await both((store) => rollUp(store, pause, () => 0.05, before))
    const cutoff = now - (now % DAY) - 4 * DAY
    // A packed day is summarised whole, with moved hours whose measurements are deleted; a plain one is not.
    if (random() < 0.1 && seed !== 3) {
      await both((store) => rollUp(store, allOfIt, wholeSlices, before))
      await both((store) =>
        sweepCharts(store, { table: 'telemetry', cutoff, restMs: 0 }, { pause: allOfIt, share: wholeSlices }),
      )
    }
    if (step % 30 === 29) {
      await both((store) => rollUp(store, allOfIt, wholeSlices, before))
      await expectSame(now)
    }
  }
  // A node continues as another one, from the middle of an hour, and back.
  await both((store) => moveHistory(store, { from: 11, to: 12, before: Number.MAX_SAFE_INTEGER }, allOfIt, () => 0.01))
  await both((store) => rollUp(store, allOfIt, wholeSlices))
  await expectSame(now)
  await both((store) => moveHistory(store, { from: 12, to: 14, before: now - 25.4 * HOUR }, allOfIt, () => 0.01))
  await both((store) => rollUp(store, allOfIt, wholeSlices))
  const range = { nodeNum: 14, metric: VOLTAGE, from: now - 2 * DAY, to: now, points: 500 }
  expect(await readSeries(reader(packed, WHOLE_VIEW), range)).toEqual(
    await readSeries(reader(plain, WHOLE_VIEW), range),
  )
  await both((store) =>
    sweepCharts(
      store,
      { table: 'telemetry_hourly', cutoff: now - (now % DAY) - DAY, restMs: 0 },
      { pause: allOfIt, share: () => 0.01 },
    ),
  )
  packed.sqlite.exec('delete from nodes where node_num = 14')
  await sweepForgotten(packed, allOfIt)
  const left = ['telemetry_runs', 'telemetry_hourly_runs', 'telemetry_daily_runs'].map((table) =>
    packed.sqlite.prepare(`select count(*) from ${table} where node_id not in (select id from nodes)`).pluck().get(),
  )
  expect(left).toEqual([0, 0, 0])
  expect(packed.sqlite.prepare('select count(*) from telemetry').pluck().get()).toBe(0)
})

function valueOf(name: string, now: number, part: number): number {
  if (name === BATTERY) return Math.max(1, Math.round(90 - ((now - START) / DAY) * 4 + part * 3))
  return name === USE ? 20 + part * 20 : Math.fround(3 + part)
}

describe('a packed hour', () => {
  const rows = () => packed.sqlite.prepare('select node_id, t, body from telemetry_runs').all()
  const at = (t: number, values: Record<string, number>, channel: number | null = 0) => ({
    nodeNum: 11,
    t,
    values,
    channel,
  })
  const changes = () => Number(packed.sqlite.prepare('select total_changes()').pluck().get())
  const put = async (...all: Measurements[]) => {
    const [first, ...others] = writeTelemetry(packed, all, new Set())
    if (first !== undefined) await packed.atomic([first, ...others])
  }

  it('is one written row for each packet, and none for a repeated one', async () => {
    await put(at(START, { [BATTERY]: 50, [VOLTAGE]: 3.7 }))
    const before = changes()
    await put(at(START + 5 * MINUTE, { [BATTERY]: 49, [VOLTAGE]: 3.6, [USE]: 5 }))
    // One more for the name of a metric, and its last id.
    expect(changes() - before).toBe(2)
    const stored = rows()
    const repeated = changes()
    await put(at(START + 5 * MINUTE, { [BATTERY]: 7, [VOLTAGE]: 3.6 }, null))
    expect(changes() - repeated).toBe(0)
    expect([rows(), stored.length]).toEqual([stored, 1])
  })

  it('takes no more than it should', async () => {
    const many = (offset: number) => Array.from({ length: 3000 }, (_, n) => at(START + offset + n, { [VOLTAGE]: n }))
    await put(...many(0))
    await put(...many(10_000))
    const full = Number(packed.sqlite.prepare('select octet_length(body) from telemetry_runs').pluck().get())
    expect(full).toBeGreaterThan(MAX_RUN_BYTES)
    // Much in an hour may not hold up the database.
    for (let part = 0; part < 100; part++)
      await put(
        ...Array.from({ length: 20 }, (_, n) => ({ ...at(START + part * 100 + n, { [VOLTAGE]: n }), nodeNum: 12 })),
      )
    const sizes = packed.sqlite.prepare('select octet_length(body) from telemetry_runs order by 1').pluck().all()
    expect(Number(sizes[0])).toBeLessThan(17_000)
    await put(...many(20_000))
    expect(packed.sqlite.prepare('select max(octet_length(body)) from telemetry_runs').pluck().get()).toBe(full)
  })

  it('keeps its summary when only a late measurement is left of it', async () => {
    await put(at(START, { [VOLTAGE]: 2 }), at(START + MINUTE, { [VOLTAGE]: 4 }))
    const roll = () => rollUp(packed, allOfIt, wholeSlices, START + 2 * DAY)
    await roll()
    packed.sqlite.exec('delete from telemetry_runs')
    await put(at(START + 2 * MINUTE, { [VOLTAGE]: 9 }))
    await roll()
    const range = { nodeNum: 11, metric: VOLTAGE, from: START, to: START + 3 * DAY, points: 100 }
    expect(await readSeries(reader(packed, WHOLE_VIEW), range)).toMatchObject({ series: [[START, 2, 4, 3]] })
  })

  it('is late once its hour is summarised, and only then noted', async () => {
    const noted = () => packed.sqlite.prepare('select count(*) from telemetry_dirty').pluck().get()
    await put(at(START, { [VOLTAGE]: 2 }))
    expect([noted(), await oldestUnsummarised(packed, START + DAY)]).toEqual([0, START])
    await rollUp(packed, allOfIt, wholeSlices, START + HOUR)
    expect(await oldestUnsummarised(packed, START + DAY)).toBe(null)
    await put(at(START + HOUR, { [VOLTAGE]: 3 }))
    expect(noted()).toBe(0)
    await put(at(START + MINUTE, { [VOLTAGE]: 4 }))
    expect([noted(), await oldestUnsummarised(packed, START + DAY)]).toEqual([1, START])
    expect(await rollUp(packed, allOfIt, wholeSlices, START + HOUR)).toBe(1)
    expect(noted()).toBe(0)
  })

  it.each([12, 14])('is summarised if it begins while another isolate summarises its hour: node %i', async (late) => {
    for (let turns = 0; turns < 24; turns++) {
      const store = open(true)
      const add = async (...nums: number[]) => {
        const rows = nums.map((nodeNum) => ({ ...at(START + MINUTE, { [VOLTAGE]: 3 }), nodeNum }))
        const [first, ...others] = writeTelemetry(store, rows, new Set())
        if (first !== undefined) await store.atomic([first, ...others])
      }
      await add(...NODES.filter((num) => num !== late))
      let slices = 0
      // In one of the turns it comes between a look for nodes and what is written after it.
      const adds = async () => {
        for (let turn = 0; turn < turns; turn++) await Promise.resolve()
        await add(late)
      }
      const added: Promise<void>[] = []
      const pause = async () => {
        if (slices++ === 0) added.push(adds())
        return true
      }
      await rollUp(store, pause, () => 1 / 60, START + HOUR)
      await Promise.all(added)
      await rollUp(store, allOfIt, wholeSlices, START + 2 * DAY)
      const nodes = ['telemetry_hourly_runs', 'telemetry_daily_runs'].map((table) =>
        store.sqlite.prepare(`select count(*) from ${table}`).pluck().get(),
      )
      expect({ turns, nodes }).toEqual({ turns, nodes: [3, 3] })
      store.close()
    }
  })

  it('costs a look only at a node that has some, when there are too many rows', async () => {
    await put(...[11, 14].map((nodeNum) => ({ ...at(START, { [VOLTAGE]: 3 }), nodeNum })))
    await rollUp(packed, allOfIt, wholeSlices, START + DAY)
    const prepared = preparePacked(packed.db, 'telemetry')
    const looked: unknown[] = []
    const fullest = {
      all: (values: Record<string, unknown>) => {
        looked.push(values['owner'])
        return prepared.fullest.all(values)
      },
    }
    const watched = Object({ ...prepared, fullest })
    const owners = NODES.map((num) => ({ owner: idOf(packed, num) ?? 0, n: 1000, bucket: 0 }))
    const trim = (pause: () => Promise<boolean>) =>
      trimPacked({ store: packed, pause }, watched, { keep: 0, excess: 3000 }, owners)
    let pauses = 0
    expect(await trim(async () => pauses++ < 1)).toEqual({ removed: 1, over: [] })
    expect(looked).toEqual([idOf(packed, 11)])
    const { over } = await trim(allOfIt)
    expect(looked).toEqual([idOf(packed, 11), idOf(packed, 14)])
    expect(over.map(({ n }) => n)).toEqual([1000, 1000, 999])
  })

  it('is not deleted before it is summarised, and the oldest of equal ones first', async () => {
    for (let hour = 0; hour < 30; hour++)
      await put(...[0, 1, 2].map((n) => at(START + hour * HOUR + n * MINUTE, { [VOLTAGE]: hour < 28 ? 3 : 3.25 })))
    await rollUp(packed, allOfIt, wholeSlices, START + 28 * HOUR)
    const id = idOf(packed, 11) ?? 0
    for (const [table, left] of [
      ['telemetry', [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]],
      ['telemetry_hourly', [24]],
    ] as const) {
      const prepared = preparePacked(packed.db, table)
      const counted = await prepared.fullest.all({ owner: id })
      const excess = table === 'telemetry' ? 20 * (counted[0]?.n ?? 0) : 1000
      await trimPacked({ store: packed, pause: allOfIt }, prepared, { keep: 0, excess }, [
        { owner: id, n: 1000, bucket: 0 },
      ])
      const hours = packed.sqlite.prepare(`select (t - ${START}) / ${HOUR} from ${table}_runs order by t`).pluck().all()
      expect(hours).toEqual(left)
    }
  })

  it('is in one chart with plain rows of another form of the service', async () => {
    const rolled = () => rollUp(packed, allOfIt, wholeSlices, START + 2 * DAY)
    const before = { ...packed, packs: false }
    const [first, ...others] = writeTelemetry(
      before,
      [at(START, { [VOLTAGE]: 1 }), at(START + HOUR / 2, { [VOLTAGE]: 2 })],
      new Set(),
    )
    if (first !== undefined) await before.atomic([first, ...others])
    await put(at(START + MINUTE, { [VOLTAGE]: 6 }), at(START + HOUR, { [VOLTAGE]: 5 }))
    const chart = async (store: SqliteStore, span: number) =>
      (
        await readSeries(reader(store, WHOLE_VIEW), {
          nodeNum: 11,
          metric: VOLTAGE,
          from: START,
          to: START + span,
          points: 100,
        })
      ).series
    for (let time = 0; time < 2; time++) {
      expect(await chart(before, DAY)).toEqual([
        [START, 1],
        [START + MINUTE, 6],
        [START + HOUR / 2, 2],
        [START + HOUR, 5],
      ])
      await rolled()
      expect(await chart(before, 3 * DAY)).toEqual([
        [START, 1, 6, 3],
        [START + HOUR, 5, 5, 5],
      ])
      expect(await chart(packed, 90 * DAY)).toEqual([[START, 1, 6, 3.5]])
    }
  })

  it('is counted if it is late, and again when it is old', async () => {
    const counted = () =>
      packed.sqlite
        .prepare("select n from row_counts where table_name = 'telemetry_runs' and owner = ?")
        .pluck()
        .get(idOf(packed, 12))
    await put(at(START, { [VOLTAGE]: 3 }))
    await rollUp(packed, allOfIt, wholeSlices, START + 3 * DAY)
    const some = (hour: number) =>
      Array.from({ length: 40 }, (_, n) => ({
        ...at(START + hour * HOUR + n * MINUTE, { [VOLTAGE]: 3 }),
        nodeNum: 12,
      }))
    await put(...some(1), ...some(40))
    await rollUp(packed, allOfIt, wholeSlices, START + 3 * DAY)
    const both = Number(counted())
    expect(both).toBeGreaterThan(20)
    await sweepCharts(
      packed,
      { table: 'telemetry', cutoff: START + DAY, restMs: 0 },
      { pause: allOfIt, share: wholeSlices },
    )
    expect(counted()).toBe(Math.floor(both / 2))
  })

  it('counts as rows of its size, and the fullest go first', async () => {
    for (let hour = 0; hour < 48; hour++)
      await put(at(START + hour * HOUR, { [VOLTAGE]: 3, [BATTERY]: 4 }), {
        ...at(START + hour * HOUR, { [VOLTAGE]: 3 }),
        nodeNum: 12,
      })
    await put(...Array.from({ length: 2000 }, (_, n) => at(START + 5 * HOUR + n, { [VOLTAGE]: n })))
    await rollUp(packed, allOfIt, wholeSlices, START + 3 * DAY)
    const counted = () =>
      packed.sqlite
        .prepare("select n from row_counts where table_name = 'telemetry_runs' order by owner")
        .pluck()
        .all()
        .map(Number)
    const [most = 0, other = 0] = counted()
    expect(most).toBeGreaterThan(900)
    expect(other).toBeGreaterThan(20)
    await enforceRowQuotas(packed, allOfIt, { now: START, most: { telemetry: most } })
    expect(counted()[0]).toBeLessThan(most - 800)
    expect(rows()).toHaveLength(95)
  })
})
