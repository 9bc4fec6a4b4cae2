import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sweepForgotten } from '../../../src/app/mesh/nodes/deletion/forgotten.ts'
import { expireOutbox } from '../../../src/app/mesh/ingest/outbox.ts'
import { promisedCutoffs } from '../../../src/app/retention/plan.ts'
import { deleteExpired } from '../../../src/app/upkeep/retention.ts'
import { rollUp } from '../../../src/app/mesh/telemetry/roll-up.ts'
import { FIRST_SHARE, nextShare, partOf } from '../../../src/app/base/pacing/slice-share.ts'
import { forgetSurplusNodes } from '../../../src/app/mesh/nodes/deletion/surplus.ts'
import { deleteOldTraffic } from '../../../src/app/upkeep/traffic-retention.ts'
import { inSlices } from '../../../src/app/base/pacing/slices.ts'
import { readSettings } from '../../../src/app/settings/settings.ts'
import { createPace } from '../../../src/node/upkeep/pace.ts'
import { START } from '../../support/app.ts'
import { createTestMesh, type TestMesh } from '../../support/mesh/mesh.ts'

const DAY = 86_400_000
const NODES = 40

describe('rows in slices', () => {
  /** That many rows, of which each slice takes up to its limit; returns the limits. */
  const rowsOf = (howMany: number) => {
    const limits: number[] = []
    let left = howMany
    const takeSlice = (limit: number) => {
      limits.push(limit)
      const taken = Math.min(left, limit)
      left -= taken
      return Array.from({ length: taken })
    }
    return { takeSlice, limits }
  }

  it.each([
    [0, undefined, [10], 0],
    [7, undefined, [10], 0],
    [20, undefined, [10, 10, 10], 2],
    [25, undefined, [10, 10, 10], 2],
    [25, 15, [10, 5], 1],
    [25, 10, [10], 0],
    [3, 15, [10], 0],
    [3, 0, [], 0],
    [3, -4, [], 0],
  ])('%i of them, at most %s: slices of %j, with %i pauses', async (howMany, atMost, expected, pauses) => {
    const { takeSlice, limits } = rowsOf(howMany)
    let paused = 0
    const pause = () => Promise.resolve(++paused > 0)
    const done = await inSlices(takeSlice, { full: 10, atMost, pause })
    expect([done, limits, paused]).toStrictEqual([
      { rows: Math.min(howMany, Math.max(0, atMost ?? howMany)), goesOn: true },
      expected,
      pauses,
    ])
  })

  it('end when a pause says so, and are as large as their share', async () => {
    const { takeSlice, limits } = rowsOf(100)
    const shares = [0.1, 0.5, 1]
    const pause = () => Promise.resolve(limits.length < 3)
    const done = await inSlices(takeSlice, { full: 10, pause, share: () => shares[limits.length] ?? 1 })
    expect([done, limits]).toStrictEqual([{ rows: 16, goesOn: false }, [1, 5, 10]])
  })
})

describe('the size of the next slice', () => {
  /** Durations in milliseconds of slices on storage that takes `fullMs` for a full one. */
  const durations = (fullMs: number) => {
    const all: number[] = []
    for (let share = FIRST_SHARE, n = 0; n < 20; n++) {
      all.push(fullMs * share)
      share = nextShare(share, fullMs * share)
    }
    return all
  }

  it('grows step by step to a full one where that takes a few milliseconds', () => {
    expect(
      durations(8)
        .slice(0, 5)
        .map((ms) => ms / 8),
    ).toStrictEqual([0.1, 0.2, 0.4, 0.8, 1])
    expect(nextShare(0.5, 0)).toBe(1)
  })

  it.each([100, 400, 1400])('blocks the writer for at most 8 ms where a full one takes %i ms', (fullMs) => {
    const [first = 0, ...later] = durations(fullMs)
    expect(first).toBe(fullMs / 10)
    for (const ms of later) expect(ms).toBeLessThanOrEqual(10)
    expect(later.at(-1)).toBeCloseTo(8, 6)
  })

  it('shrinks at once after a long one, and never reaches zero', () => {
    expect(nextShare(1, 80)).toBeCloseTo(0.1, 9)
    expect(nextShare(0.005, 60_000)).toBe(0.005)
    expect([partOf(1000, 0.25), partOf(50, 0.01), partOf(100, 1)]).toStrictEqual([250, 1, 100])
  })

  it('is derived from the time between two pauses', async () => {
    let now = 0
    const { pause, share } = createPace(
      () => now < 90,
      () => now,
    )
    now += 16
    expect([await pause(), share()]).toStrictEqual([true, FIRST_SHARE / 2])
    now += 80
    expect([await pause(), share()]).toMatchObject([false, expect.closeTo(FIRST_SHARE / 20, 9)])
  })
})

it('what a slice waits for, such as the disk, makes the next one no smaller than its work does', async () => {
  const { pause, share } = createPace(() => true)
  await pause()
  const before = share()
  // The disk takes so long; nothing is computed meanwhile.
  await new Promise((written) => setTimeout(written, 400))
  await pause()
  // Counted as work, 400 ms would leave a fiftieth.
  expect(share()).toBeGreaterThan(before / 10)
})

describe('a slice', () => {
  let mesh: TestMesh

  beforeEach(async () => {
    mesh = await createTestMesh()
    mesh.app.store.sqlite.exec(`
      insert into sources (kind, name, created_at) values ('tcp', 'r', 1);
      insert into metrics (name) values ('a.a'), ('a.b'), ('a.c');
      with recursive i(n) as (select 1 union all select n + 1 from i where n < ${NODES})
        insert into nodes (node_num, first_heard) select n, 1 from i;
      insert into telemetry select n.id, m.id, ${START - 100 * DAY} + d.value * 600000, 1, 0
        from nodes n, metrics m, json_each('[${Array.from({ length: 60 }, (_, n) => n).join()}]') d;
      insert into telemetry_dirty select distinct node_id, metric, t - t % 3600000 from telemetry;
      insert into positions select node_id, t, 1, 2, null, null, 0 from telemetry where metric = 1;
      insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit, via_mqtt,
        pki_encrypted, replayed, payload) select 1, t, t, node_id, 1, 0, 3, 0, 0, 0, '{}' from telemetry;
      insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        select t, node_id, 1, 0, 'm', t - ${400 * DAY}, 'in' from telemetry where metric = 1;`)
  })
  afterEach(() => mesh.app.close())

  it('starts with the packet log: the charts of a large mesh may use up the rest of a run', async () => {
    const settings = await readSettings(mesh.app.store)
    mesh.app.store.sqlite.exec(
      `insert into telemetry_hourly select node_id, metric, t - ${500 * DAY}, 1, 1, 1, 1, 1, 0 from telemetry`,
    )
    const deleted = await deleteOldTraffic(mesh.app.store, promisedCutoffs(settings, START), {
      pause: async () => false,
    })
    expect(deleted).toMatchObject({ hours: 0, packets: 1000, traceroutes: 0 })
  })

  /** Changed rows in all tables between two pauses. */
  const watch = () => {
    const total = mesh.app.store.sqlite.prepare<[], number>('select total_changes()').pluck()
    let before = total.get() ?? 0
    const changes: number[] = []
    return {
      changes,
      pause: async () => {
        const now = total.get() ?? 0
        changes.push(now - before)
        before = now
        return true
      },
    }
  }

  it.each([1, 0.25, 0.05])('of retention changes at most 1000 rows × %d', async (share) => {
    const settings = await readSettings(mesh.app.store)
    const { changes, pause } = watch()
    const cutoffs = promisedCutoffs(settings, START)
    const deleted = await deleteExpired(mesh.app.store, cutoffs, pause, () => share)
    expect(deleted).toStrictEqual({ telemetry: NODES * 180, positions: NODES * 60, messages: NODES * 60 })
    const traffic = await deleteOldTraffic(mesh.app.store, cutoffs, { pause, share: () => share })
    expect(traffic.packets).toBe(NODES * 180)
    // A message also changes a row of the state of its table, of the count of its sender, and of the text index, which
    // has its own row per transaction.
    expect(Math.max(...changes)).toBeLessThanOrEqual(3000 * share)
    expect(Math.max(...changes)).toBeGreaterThanOrEqual(1000 * share)
  })

  it('of nodes beyond the limit takes those heard on the fewest days, oldest first', async () => {
    const { sqlite } = mesh.app.store
    sqlite.exec(`update nodes set last_heard = ${START} - node_num * 3600000, days_heard = iif(node_num > 30, 1, 2);
      update nodes set is_favorite = 1 where node_num = 40; update nodes set notes = 'x' where node_num = 39;
      update nodes set is_local = 1 where node_num = 38; update nodes set is_ignored = 1 where node_num = 37;
      insert into neighbors values (36, 1, 1, 1, 0, 0)`)
    const nums = () => sqlite.prepare('select node_num from nodes order by 1').pluck().all()
    const { changes, pause } = watch()
    expect(await forgetSurplusNodes(mesh.app.store, pause, { now: START, most: 32, share: () => 0.1 })).toBe(4)
    expect(await sweepForgotten(mesh.app.store, pause, () => 0.1)).toBe(4 * (180 + 30 + 60))
    expect(nums()).toStrictEqual([...Array.from({ length: 32 }, (_, n) => n + 1), 37, 38, 39, 40])
    for (const table of ['telemetry', 'positions', 'telemetry_dirty']) {
      const left = sqlite.prepare(`select count(*) from ${table} where node_id not in (select id from nodes)`).pluck()
      expect([table, left.get()]).toStrictEqual([table, 0])
    }
    expect(mesh.count('neighbors')).toBe(0)
    expect(Math.max(...changes)).toBeLessThanOrEqual(500)
    expect(await forgetSurplusNodes(mesh.app.store, async () => true, { now: START, most: 0 })).toBe(32)
    expect(nums()).toStrictEqual([37, 38, 39, 40])
  })

  it('of packets that were not delivered in time has 2000 rows', async () => {
    mesh.app.store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 4500)
      insert into collector_outbox (source, received_at, replayed, data) select 'r', iif(n > 4400, 9, 1), 0, 'x' from i`)
    const { changes, pause } = watch()
    expect(await expireOutbox(mesh.app.store, 5, pause)).toBe(4400)
    expect(changes).toStrictEqual([expect.any(Number), 2000, 2000])
    expect(mesh.count('collector_outbox')).toBe(100)
  })

  it.each([1, 0.1])('of roll-ups takes at most 250 hours × %d', async (share) => {
    const { changes, pause } = watch()
    expect(await rollUp(mesh.app.store, pause, () => share)).toBe(mesh.count('telemetry_hourly'))
    expect(mesh.count('telemetry_hourly')).toBe(NODES * 3 * 10)
    // Each hour: its row, at most one row of its day, the two counts, and its mark, which is deleted.
    expect(Math.max(...changes)).toBeLessThanOrEqual(1250 * share)
    expect(changes.length).toBeGreaterThanOrEqual((NODES * 3 * 10) / (250 * share))
  })
})
