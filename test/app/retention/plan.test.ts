import { tellFact } from '../../../src/app/alerts/facts.ts'
import { ENGLISH } from '../../../src/app/words/words.ts'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { BOUND_TABLES, boundsOf, boundsWithin, USUAL_LIMIT_BYTES } from '../../../src/app/retention/bounds.ts'
import { nextLimit, promisedCutoffs, rowsPerDay } from '../../../src/app/retention/plan.ts'
import { problemsOf, readRetentionState } from '../../../src/app/retention/state.ts'
import { deleteOld, keepBounds } from '../../../src/app/upkeep/upkeep.ts'
import { readSettings } from '../../../src/app/settings/settings.ts'
import type { Store } from '../../../src/db/store.ts'
import { START } from '../../support/app.ts'
import { createTestMesh, type TestMesh } from '../../support/mesh/mesh.ts'

const DAY = 86_400_000
const HOUR = 3_600_000

describe('the bounds', () => {
  it('follow the size that the database can reach, up to what the service can handle', () => {
    const [card, d1, disk] = [2e9, USUAL_LIMIT_BYTES, 4e12].map((bytes) => boundsOf(bytes))
    expect([card?.telemetry, d1?.telemetry, disk?.telemetry]).toStrictEqual([13_750_000, 68_750_000, 500_000_000])
    expect([card?.packets, d1?.packets, disk?.packets]).toStrictEqual([285_714, 1_428_571, 5_000_000])
    expect([card?.neighbors, disk?.neighbors]).toStrictEqual([20_000, 20_000])
  })

  it('never empty a table, however small the disk is', () => {
    expect(Math.min(...BOUND_TABLES.map((table) => boundsOf(0)[table]))).toBe(5000)
  })

  it('are counted only where the size of the database allows that they are reached', () => {
    const fixed = ['neighbors', 'waypoints']
    expect(Object.keys(boundsWithin(boundsOf(10e9), 10e6))).toStrictEqual(fixed)
    expect(Object.keys(boundsWithin(boundsOf(10e9), 250e6))).toStrictEqual([
      'packets',
      'receptions',
      'positions',
      'telemetry_daily',
      'traceroutes',
      'proven_packets',
      ...fixed,
    ])
    expect(boundsWithin(boundsOf(10e9), 9e9)).toStrictEqual(boundsOf(10e9))
    expect(boundsWithin(boundsOf(10e9), null)).toStrictEqual(boundsOf(10e9))
  })

  it('grow by half of what other tables do not need, and never beyond what is needed', () => {
    const usual = boundsOf(10e9)
    // 0.25 of 0.5 GB, and the half of the rest of 1.5 GB.
    const needs = { packets: 250e6, telemetry_hourly: 0, telemetry: 9e9 }
    const lent = boundsOf(10e9, needs)
    expect(lent.telemetry).toBe((2.2e9 + 125e6 + 750e6) / 32)
    expect([lent.packets, lent.telemetry_hourly]).toStrictEqual([Math.floor(375e6 / 350), Math.floor(750e6 / 70)])
    expect(lent.messages).toBe(usual.messages)
    const little = boundsOf(10e9, { ...needs, telemetry: 2.3e9 })
    expect(little.telemetry).toBe(2.3e9 / 32)
    expect(little.packets).toBe(Math.floor((500e6 - 125e6 * (100 / 875)) / 350))
    const shared = boundsOf(10e9, { telemetry_hourly: 0, telemetry: 3.2e9, messages: 2.2e9 })
    expect([shared.telemetry * 32, shared.messages * 300]).toStrictEqual(
      [2.2e9 + 375e6, 1.2e9 + 375e6].map((n) => expect.closeTo(n, -3)),
    )
  })

  it('sink slowly, and grow at once', () => {
    const before = { limitBytes: 100e9, plannedAt: START }
    expect(nextLimit(undefined, 5e9, START)).toBe(5e9)
    expect(nextLimit(before, 200e9, START)).toBe(200e9)
    expect(nextLimit(before, 50e9, START + HOUR) / 1e9).toBeCloseTo(99.6, 1)
    expect(nextLimit(before, 50e9, START + DAY) / 1e9).toBeCloseTo(90)
    expect(nextLimit(before, 50e9, START + 30 * DAY)).toBe(50e9)
    expect(nextLimit(before, 50e9, START - DAY)).toBe(100e9)
  })
})

describe('the growth of a table', () => {
  const owners = (count: number, rows: number, days: number, isKnown = true) =>
    Array.from({ length: count }, () => ({ rows, spanMs: days * DAY, isKnown }))

  it('is that of nodes known for days', () => {
    expect(rowsPerDay([...owners(10, 300, 30), ...owners(5, 20, 2)])).toBe(150)
    expect(rowsPerDay([...owners(10, 300, 30), ...owners(5000, 20, 1, false)])).toBe(100)
    expect(rowsPerDay([])).toBe(0)
  })

  it('counts a flood in the name of one node as ten nodes', () => {
    expect(rowsPerDay([...owners(10, 300, 30), ...owners(1, 1_000_000, 30)])).toBe(200)
  })

  it('takes less than a day for a day', () => {
    expect(rowsPerDay(owners(1, 50, 0.01))).toBe(50)
  })
})

let mesh: TestMesh
beforeEach(async () => {
  mesh = await createTestMesh()
})
afterEach(() => mesh.app.close())

const exec = (sql: string) => mesh.app.store.sqlite.exec(sql)
const pluck = (sql: string) => Number(mesh.app.store.sqlite.prepare(sql).pluck().get())
const numbers = (count: number) => `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${count})`

/** A database that can reach this size. */
const storeOn = (limitBytes: number, usedBytes = 0): Store => ({
  ...mesh.app.store,
  space: async () => ({ usedBytes, limitBytes }),
})

/** 60 nodes known for 40 days with 96 measurements on each of `days` days, 5760 of them a day in all. */
function addHistory(days: number): void {
  exec("insert into metrics (id, name) values (1, 'a.a')")
  exec(`${numbers(60)} insert into nodes (id, node_num, first_heard, last_heard, days_heard, last_heard_day)
    select n, n, ${START - 40 * DAY}, ${START}, 40, ${Math.floor(START / DAY)} from i`)
  exec(`${numbers(days * 96)} insert into telemetry select nodes.id, 1, ${START} - n * ${DAY / 96}, 1, 0 from i, nodes`)
}

/** Room for 30,000 measurements: 22 % of it, and half of the 37 % of four tables that need nothing. */
const SMALL = Math.ceil((30_000 * 32) / (0.22 + 0.37 / 2))

describe('a table that outgrows the disk', () => {
  const state = (store: Store) => readRetentionState(store, START)
  const telemetry = async (store: Store) => (await state(store)).tables.find(({ table }) => table === 'telemetry')

  it('keeps its latest rows for as long as they fit, and the state says so before and after', async () => {
    addHistory(31)
    const store = storeOn(SMALL)
    expect(await telemetry(store)).toMatchObject({ setDays: 30, keptDays: 30, reason: null, rowsPerDay: null })
    // The first look only knows for how long it has known the nodes: 31 days of rows for 40.
    const run = (hours: number) =>
      deleteOld({ ...mesh.app.ports, store, now: () => START + hours * HOUR }, async () => true)
    expect(await run(0)).toBe(true)
    expect((await telemetry(store))?.keptDays).toBe(6)
    await run(1)
    expect(await telemetry(store)).toStrictEqual({
      table: 'telemetry',
      setting: 'telemetryRetentionDays',
      setDays: 30,
      keptDays: 4.7,
      reason: 'disk',
      rowsPerDay: 5716,
      maxRows: 30_000,
      lagSeconds: 0,
      isLate: false,
    })
    const kept = (START + HOUR - pluck('select min(t) from telemetry')) / DAY
    expect(kept).toBeCloseTo(27_000 / 5716, 1)
    expect(pluck('select max(t) from telemetry')).toBe(START - DAY / 96)
    const left = pluck('select count(*) from telemetry')
    await keepBounds({ ...mesh.app.ports, store }, async () => true)
    expect(pluck('select count(*) from telemetry')).toBe(left)
  })

  it('loses nothing before it is nearly full, although the state tells what will come', async () => {
    addHistory(3)
    const store = storeOn(SMALL)
    exec(`update nodes set first_heard = ${START - 3 * DAY}`)
    await deleteOld({ ...mesh.app.ports, store }, async () => true)
    expect(await telemetry(store)).toMatchObject({ keptDays: 4.6, reason: 'disk' })
    expect(pluck('select count(*) from telemetry')).toBe(3 * 5760)
  })

  it('is not shortened by made-up nodes, nor by a flood in the name of a known one', async () => {
    addHistory(3)
    exec(`update nodes set first_heard = ${START - 3 * DAY}`)
    exec(`${numbers(5000)} insert into nodes (id, node_num, first_heard, last_heard, days_heard, last_heard_day)
      select n + 1000, n + 1000, ${START - DAY}, ${START}, 1, ${Math.floor(START / DAY)} from i`)
    exec(`${numbers(4)} insert into telemetry select nodes.id, 1, ${START} - n, 1, 0 from i, nodes where id > 1000`)
    exec(`${numbers(20_000)} insert into telemetry select 1, 1, ${START} - n * 1000 - 7, 1, 0 from i`)
    const before = pluck('select count(*) from telemetry where node_id > 1')
    const store = storeOn(SMALL)
    await deleteOld({ ...mesh.app.ports, store }, async () => true)
    expect(await telemetry(store)).toMatchObject({ keptDays: 4, rowsPerDay: 59 * 96 + 960 })
    expect(pluck('select count(*) from telemetry where node_id > 1')).toBe(before)
  })

  it('keeps more as soon as the disk is larger, and never more than is set', async () => {
    addHistory(10)
    await deleteOld({ ...mesh.app.ports, store: storeOn(SMALL) }, async () => true)
    const larger = storeOn(SMALL * 2)
    await deleteOld({ ...mesh.app.ports, store: larger, now: () => START + HOUR }, async () => true)
    expect((await telemetry(larger))?.keptDays).toBeGreaterThan(8)
    const large = storeOn(SMALL * 100)
    await deleteOld({ ...mesh.app.ports, store: large, now: () => START + 2 * HOUR }, async () => true)
    expect(await telemetry(large)).toMatchObject({ keptDays: 30, reason: null })
  })

  it('is planned once an hour, and not at all if the work is cut off', async () => {
    addHistory(1)
    const planned = () => pluck('select count(*) from retention_plans where planned_at >= 0')
    await deleteOld(
      { ...mesh.app.ports, store: storeOn(SMALL) },
      async () => false,
      () => 0.01,
    )
    expect(planned()).toBe(0)
    await deleteOld(mesh.app.ports, async () => true)
    expect(planned()).toBe(5)
    await deleteOld({ ...mesh.app.ports, now: () => START + HOUR - 1 }, async () => true)
    expect(pluck('select max(planned_at) from retention_plans')).toBe(START)
    await deleteOld({ ...mesh.app.ports, now: () => START + HOUR }, async () => true)
    expect(pluck('select min(planned_at) from retention_plans')).toBe(START + HOUR)
  })
})

test('the state of an empty service has no problem', async () => {
  const state = await readRetentionState(mesh.app.store, START)
  expect(problemsOf(state)).toStrictEqual([])
  expect(state.tables.map(({ table, keptDays, lagSeconds }) => [table, keptDays, lagSeconds])).toStrictEqual([
    ['telemetry', 30, null],
    ['telemetry_hourly', 400, null],
    ['packets', 7, null],
    ['positions', 90, null],
    ['messages', 365, null],
  ])
})

test('each problem is one line: late, shorter than set, large', async () => {
  exec(`insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    values (1, 7, 4294967295, 0, 'old', ${START - 366.5 * DAY}, 'in')`)
  exec(`insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit, via_mqtt,
    pki_encrypted, replayed, payload) select 1, ${START - 8.5 * DAY}, 1, 7, 1, 0, 3, 0, 0, 0, '{}'`)
  exec(`insert into sweeps values ('telemetry', '50', ${START - 30 * DAY}, ${START - 31 * DAY - HOUR}),
    ('positions', null, ${START - 91 * DAY}, ${START - 91 * DAY})`)
  exec(`insert into retention_plans values ('positions', 1, 2000000, 10000000000, ${START})`)
  const problems = problemsOf(await readRetentionState(storeOn(10e9, 7e9), START))
  expect(problems.map(({ key, fact }) => [key, tellFact(ENGLISH, fact)])).toStrictEqual([
    ['late:telemetry', 'Single measurements: deleted 25 h too late'],
    ['late:packets', 'Packets: deleted 36 h too late'],
    ['late:messages', 'Messages: deleted 36 h too late'],
    ['short:positions', 'Positions: kept for 4 of 90 days; the disk has room for 9,090,909'],
    ['large', 'The database fills 70 % of the 10.0 GB that it can reach'],
  ])
  expect(problemsOf(await readRetentionState(storeOn(10e9, 6.99e9), START)).map(({ key }) => key)).not.toContain(
    'large',
  )
})

test('what is set says what should be gone', async () => {
  const settings = await readSettings(mesh.app.store)
  expect(promisedCutoffs(settings, START)).toStrictEqual({
    telemetry: START - 30 * DAY,
    telemetry_hourly: START - 400 * DAY,
    packets: START - 7 * DAY,
    positions: START - 90 * DAY,
    messages: START - 365 * DAY,
  })
})
