import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { capTo, tally } from '../../../src/app/base/fair-cap.ts'
import type { BoundTable } from '../../../src/app/retention/bounds.ts'
import { recountAll } from '../../../src/app/retention/recount.ts'
import { enforceRowQuotas } from '../../../src/app/upkeep/row-quotas.ts'
import { createSeededRandom } from '../../../src/node/radio/demo/seeded-random.ts'
import { createDice } from '../../support/mesh/made-up.ts'
import { START } from '../../support/app.ts'
import { createTestMesh, heard, packet, position, type TestMesh, text } from '../../support/mesh/mesh.ts'

const DAY = 86_400_000
const HOUR = 3_600_000
const BROKER = { kind: 'mqtt', name: 'broker' } as const

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
  mesh.app.store.sqlite.exec(`insert into sources (kind, name, created_at) values ('mqtt', 's', 1);
    insert into metrics (name) values ('a.a'), ('a.b')`)
})
afterEach(() => mesh.app.close())

const exec = (sql: string) => mesh.app.store.sqlite.exec(sql)
const pluck = (sql: string) => mesh.app.store.sqlite.prepare(sql).pluck().get()
const numbers = (count: number) => `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${count})`
const keep = (most: Partial<Record<BoundTable, number>>, share = 1) =>
  enforceRowQuotas(mesh.app.store, async () => true, { now: START, most, share: () => share })

/** Nodes 1 to `count` that were heard on that many days. */
const addNodes = (count: number, days: number, first = 1) =>
  exec(`${numbers(count)} insert into nodes (node_num, first_heard, last_heard, days_heard, last_heard_day)
    select n + ${first - 1}, 1, ${START}, ${days}, ${Math.floor(START / DAY)} from i`)

const addMessages = (senders: number, each: number, first = 1) =>
  exec(`${numbers(senders)} insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp,
    direction) select 1, e.value, n + ${first - 1}, 1, 0, 'm', ${START}, 'in' from i,
    json_each('[${Array.from({ length: each }, (_, index) => index + 1).join()}]') e`)

describe('the shares', () => {
  it('together never exceed the limit, and come as close to it as whole numbers allow', () => {
    const dice = createDice(createSeededRandom(7))
    for (let round = 0; round < 500; round++) {
      const counts = Array.from({ length: 1 + dice.below(30) }, () => dice.below(1000))
      const total = dice.below(20_000)
      const cap = capTo(tally(counts), total)
      const kept = counts.reduce((sum, n) => sum + Math.min(n, cap), 0)
      const all = counts.reduce((sum, n) => sum + n, 0)
      expect(kept).toBeLessThanOrEqual(Math.min(all, total))
      expect(kept).toBeGreaterThan(Math.min(all, total) - counts.length)
    }
  })
})

describe('made-up nodes repeated for days at a broker', () => {
  it('displace no row of nodes that a radio of ours heard once', async () => {
    addNodes(100, 1)
    exec('update nodes set heard_by_radio = 1')
    addNodes(500, 40, 10_000)
    addMessages(100, 3)
    addMessages(500, 10, 10_000)
    await keep({ messages: 1000 })
    expect(pluck('select count(*) from messages where from_node_num <= 100')).toBe(300)
    expect(pluck('select count(*) from messages')).toBe(1000)
  })

  it('keep a part of the room, whatever is said on the air', async () => {
    addNodes(500, 1)
    exec('update nodes set heard_by_radio = 1')
    addNodes(100, 40, 10_000)
    addMessages(500, 10)
    addMessages(100, 2, 10_000)
    await keep({ messages: 1000 })
    expect(pluck('select count(*) from messages where from_node_num >= 10000')).toBe(200)
    expect(pluck('select count(*) from messages')).toBe(1000)
  })
})

describe('the row counts', () => {
  it('follow each row of each table', async () => {
    const from = [packet(text('hi')), packet(position({ latitudeI: 1, longitudeI: 2 }))]
    await mesh.ingest.store(from.map((each) => heard(each, { source: BROKER })))
    addMessages(3, 2, 50)
    exec(`insert into receptions select id, 1, 7, 1, null, null, null, null from messages;
      insert into telemetry values (1, 1, 1, 1, 0), (1, 2, 1, 1, 0); insert into telemetry_hourly select node_id, metric, t, 1, 1, 1, 1, 1, 0 from telemetry;
      insert into telemetry_daily select * from telemetry_hourly;
      insert into neighbors values (1, 2, 1, 1, 0, 0), (1, 3, 1, 1, 0, 0);
      insert into traceroutes (source_id, request_id, from_node_num, to_node_num, timestamp, state, requested_by)
        values (1, 1, 1, 9, 1, 'sent', 'admin'), (1, 2, 1, 9, 1, 'delivered', null);
      insert into waypoints values (1, 5, 1, '', '', null, 1, 1, null, null, 0, 0, '');
      update waypoints set from_node_num = 6;
      insert into telemetry values (1, 1, 1, 9, 0) on conflict do nothing;
      delete from messages where from_node_num = 51; delete from telemetry where metric = 2`)
    const owners: Record<string, string> = {
      messages: 'from_node_num',
      packets: 'from_node_num',
      waypoints: 'from_node_num',
      neighbors: 'node_num',
      traceroutes: 'to_node_num',
      telemetry: 'node_id',
      telemetry_hourly: 'node_id',
      telemetry_daily: 'node_id',
      positions: 'node_id',
    }
    const counted = (table: string) =>
      mesh.app.store.sqlite
        .prepare('select owner, n from row_counts where table_name = ? and n <> 0 order by owner')
        .all(table)
    for (const [table, owner] of Object.entries(owners)) {
      const own = table === 'traceroutes' ? 'where requested_by is null' : ''
      const there = mesh.app.store.sqlite
        .prepare(`select ${owner} owner, count(*) n from ${table} ${own} group by 1`)
        .all()
      expect([table, there.length > 0, counted(table)]).toStrictEqual([table, true, there])
    }
    const heardOf = 'select from_node_num owner, count(*) n from receptions join messages on id = message_id group by 1'
    expect(counted('receptions')).toStrictEqual(mesh.app.store.sqlite.prepare(heardOf).all())
  })
})

describe('in a table with too many rows', () => {
  it('the loudest sender loses its latest rows, the others none', async () => {
    addNodes(3, 40)
    addMessages(2, 20)
    addMessages(1, 300, 3)
    expect(await keep({ messages: 100 })).toStrictEqual({ messages: 240 })
    expect(pluck("select json_group_array(n) from row_counts where table_name = 'messages'")).toBe('[20,20,60]')
    expect(pluck('select max(packet_id) from messages where from_node_num = 3')).toBe(60)
    expect(await keep({ messages: 100 })).toStrictEqual({})
  })

  it.each([1, 0.1])('unknown senders share one bucket, however many they are (slices × %d)', async (share) => {
    addNodes(30, 7)
    addMessages(30, 10)
    addMessages(5000, 1, 1_000_000)
    addMessages(20, 50, 2_000_000)
    expect(await keep({ messages: 1000 }, share)).toStrictEqual({ messages: 5300 })
    expect(pluck('select count(*) from messages where from_node_num <= 30')).toBe(300)
    // A sender with fifty fares no better than fifty senders with one.
    expect(pluck('select count(*) from messages where from_node_num >= 2000000')).toBeLessThanOrEqual(20)
    expect(pluck("select count(*) from row_counts where table_name = 'messages'")).toBeGreaterThan(700)
    await keep({ messages: 1000 }, share)
    expect(pluck("select count(*) from row_counts where n = 0 and table_name = 'messages'")).toBe(0)
  })

  it('a flood in the name of a known node loses its latest rows', async () => {
    addNodes(2, 40)
    addMessages(2, 30)
    exec(`${numbers(7000)} insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp,
      direction) select 1, -n, 2, 1, 0, 'flood', ${START}, 'in' from i`)
    expect(await keep({ messages: 1000 }, 0.3)).toStrictEqual({ messages: 6060 })
    expect(pluck("select json_group_array(distinct from_node_num) from messages where text = 'm'")).toBe('[1,2]')
    expect(pluck("select count(*) from messages where text = 'm'")).toBe(60)
  })

  it('an excess of measurements of a node is thinned out, without losing a day', async () => {
    addNodes(2, 40)
    exec(`${numbers(6000)} insert into telemetry select 1, 1 + n % 2, ${START} + n * 100, n, 0 from i;
      ${numbers(240)} insert into telemetry select 1, 1, ${START - 30 * DAY} + n * ${HOUR}, n, 0 from i;
      ${numbers(240)} insert into telemetry select 2, 1, ${START - 30 * DAY} + n * ${HOUR}, n, 0 from i;
      ${numbers(6000)} insert into positions select 1, ${START} + n * 100, 1, 1, null, null, 0 from i`)
    expect(await keep({ telemetry: 2000, positions: 700 }, 0.2)).toStrictEqual({ telemetry: 4480, positions: 5300 })
    expect(pluck(`select count(*) from telemetry where t < ${START}`)).toBe(480)
    const span = `(select max(t) - min(t) from`
    expect(pluck(`select ${span} telemetry where t >= ${START}) > 500000 and ${span} positions) > 500000`)).toBe(1)
  })

  it('the packet log is a ring per sender: its latest packets stay', async () => {
    addNodes(2, 40)
    const add = (sender: number, count: number) =>
      exec(`${numbers(count)} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit,
        via_mqtt, pki_encrypted, replayed, payload) select 1, n, n, ${sender}, 1, 0, 3, 0, 0, 0, '{}' from i`)
    add(1, 10)
    add(2, 3000)
    expect(await keep({ packets: 100 })).toStrictEqual({ packets: 2910 })
    expect(pluck('select min(t) from packets where from_node_num = 2')).toBe(2911)
    expect(pluck('select count(*) from packets where from_node_num = 1')).toBe(10)
  })

  it('neighbours, waypoints, traceroutes and receptions are shared as well', async () => {
    addNodes(2, 40)
    addMessages(2, 3)
    exec(`${numbers(50)} insert into neighbors select 1 + (n > 3), n, 1, n, 0, 0 from i;
      ${numbers(50)} insert into waypoints select n, 1 + (n > 3), n, '', '', null, 1, 1, null, null, 0, 0, '' from i;
      ${numbers(50)} insert into traceroutes (source_id, request_id, from_node_num, to_node_num, timestamp, state, requested_by)
        select 1, n, 9, iif(n > 3, 2, 1), n, 'delivered', iif(n = 50, 'admin', null) from i;
      insert into receptions select m.id, 1, e.value, e.value, null, null, null, null from messages m,
        json_each('[0,1,2,3,4,5,6,7,8,9]') e where m.from_node_num = 2 or e.value < 2`)
    const most = { neighbors: 20, waypoints: 20, traceroutes: 20, receptions: 20 }
    expect(await keep(most)).toStrictEqual({ neighbors: 30, waypoints: 30, traceroutes: 29, receptions: 16 })
    for (const [table, owner] of [
      ['neighbors', 'node_num'],
      ['waypoints', 'from_node_num'],
      ['traceroutes', 'to_node_num'],
    ]) {
      expect(pluck(`select count(*) from ${table} where ${owner} = 1`)).toBe(3)
    }
    expect(pluck('select count(*) from traceroutes where requested_by is not null')).toBe(1)
    expect(pluck('select count(*) from receptions where gateway = 0')).toBe(6)
  })
})

describe('where a run has few slices, each for many rows', () => {
  /** Slices of one run on the edge. */
  const SLICES = 75
  /** Runs as on the edge. Returns what it deleted, and the slices it took. */
  const keepIn = async (slices: number, most: Partial<Record<BoundTable, number>>) => {
    let taken = 0
    const pause = async () => ++taken < slices
    const deleted = await enforceRowQuotas({ ...mesh.app.store, packs: true }, pause, { now: START, most })
    return { deleted, taken }
  }
  const recountRows = () => recountAll({ ...mesh.app.store, packs: true }, { pause: async () => true })
  const addInvented = () => exec(`${numbers(300_000)} insert into proven_packets select n + 1000, n, n, 0 from i`)

  it('senders that are all made up leave enough of them for the tables that come later', async () => {
    addInvented()
    exec(`${numbers(3000)} insert into neighbors select 1, n, 1, n, 0, 0 from i;
      ${numbers(50)} insert into waypoints select n, 1, n, '', '', null, 1, 1, null, null, 0, 0, '' from i`)
    await recountRows()
    const { deleted, taken } = await keepIn(SLICES, { proven_packets: 270_000, neighbors: 2000, waypoints: 20 })
    expect(deleted).toStrictEqual({ proven_packets: 30_000, neighbors: 1000, waypoints: 30 })
    expect(taken).toBeLessThan(SLICES)
    expect(pluck('select count(*) from proven_packets')).toBe(270_000)
  })

  it('a run that could only count is not followed by others that only count', async () => {
    addInvented()
    await recountRows()
    const most = { proven_packets: 270_000 }
    // Two to measure, one to count, two to measure what was counted, and six that look for senders with several rows, and
    // for others behind the number where this run starts.
    expect(await keepIn(11, most)).toStrictEqual({ deleted: { proven_packets: 0 }, taken: 11 })
    expect((await keepIn(11, most)).deleted.proven_packets).toBeGreaterThan(0)
  })

  it('all rows of the loudest sender are sorted once for what it loses, not once for each slice', async () => {
    exec(`${numbers(100_000)} insert into proven_packets select 7, n, n, n % 2 from i;
      ${numbers(2000)} insert into proven_packets select 1000 + n, n, n, 0 from i`)
    addNodes(1, 40, 7)
    await recountRows()
    const { deleted, taken } = await keepIn(SLICES, { proven_packets: 72_000 })
    expect(deleted).toStrictEqual({ proven_packets: 30_000 })
    expect(taken).toBeLessThan(10)
    expect(pluck('select min(packet_id) from proven_packets where proven = 0 and from_node_num = 7')).toBe(60_002)
    expect(pluck('select count(*) from proven_packets where proven = 1')).toBe(50_000)
  })
})

describe('the receptions that made-up gateways may add at once', () => {
  it('are those of a hundred gateways per message, and our own radio besides', async () => {
    const said = packet(text('hi'), { id: 4711 })
    const copies = Array.from({ length: 150 }, (_, index) => heard(said, { source: BROKER, at: START + index }))
    for (const [index, { source, event }] of copies.entries()) {
      if (event.type === 'packet') await mesh.ingest.store([{ source, event: { ...event, gateway: 1000 + index } }])
    }
    await mesh.ingest.store([heard(said)])
    expect([
      pluck('select count(*) from receptions'),
      pluck('select count(*) from receptions where gateway = 0'),
    ]).toStrictEqual([101, 1])
  })
})
