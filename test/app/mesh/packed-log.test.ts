import * as fc from 'fast-check'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/sqlite-proxy'
import { afterAll, expect, test, vi } from 'vitest'
import { type View, WHOLE_VIEW } from '../../../src/app/accounts/access/visible.ts'
import { readWorld } from '../../../src/app/alerts/world/read-world.ts'
import { readHeard as readPast } from '../../../src/app/alerts/past/history.ts'
import { hops } from '../../../src/app/mesh/findings/rules/hops.ts'
import { summariseHearings } from '../../../src/app/mesh/history/hearings.ts'
import { findInRecentPages, readRecentPages } from '../../../src/app/mesh/ingest/duplicates/recent-pages.ts'
import {
  recallPackets,
  readRecentPackets,
  readSeenPackets,
} from '../../../src/app/mesh/ingest/duplicates/seen-packets.ts'
import { type PacketRow, writeLog } from '../../../src/app/mesh/ingest/rows/log.ts'
import { readHeard } from '../../../src/app/mesh/playback/heard.ts'
import { listSources } from '../../../src/app/mesh/radios/sources.ts'
import { surveyPackets } from '../../../src/app/mesh/survey/survey.ts'
import { lastPacketBy } from '../../../src/app/mesh/topology/last-packet.ts'
import { listLinks } from '../../../src/app/mesh/topology/links.ts'
import { listPackets, type PacketFilters } from '../../../src/app/mesh/topology/packets.ts'
import { deleteOldTraffic } from '../../../src/app/upkeep/traffic-retention.ts'
import { hasPages } from '../../../src/db/packet-log.ts'
import { coverage, heardLinks, nodeDays, nodeReceivers, nodes, sources } from '../../../src/db/schema.ts'
import type { Store } from '../../../src/db/store.ts'
import { sqliteStore } from '../../../src/node/database.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { ALL_PERMISSIONS } from '../../../src/shared/access/resources.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/shared/time.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { heard, packet, text } from '../../support/mesh/mesh.ts'
import { readTrafficHours } from '../../support/mesh/traffic-hours.ts'

const BEGIN = Date.UTC(2026, 0, 15, 12)
const NODES = [7, 8, 9, 0xffff_fff0, 0x8000_0001] as const
const LOCAL = 0xa0cb0001
const PORTS = [null, 1, 3, 67, 71] as const

const open = openMemoryStore
type Opened = ReturnType<typeof open>
const opened: Opened[] = []
afterAll(() => opened.forEach((store) => store.close()))

async function fresh(packs: boolean): Promise<Store> {
  const store = open()
  opened.push(store)
  await store.db.insert(sources).values([
    { id: 1, kind: 'tcp', name: 'radio', localNodeNum: LOCAL, createdAt: BEGIN },
    { id: 2, kind: 'mqtt', name: 'broker', createdAt: BEGIN },
  ])
  await store.db.insert(nodes).values(NODES.map((nodeNum) => ({ nodeNum, firstHeard: BEGIN, lastHeard: BEGIN })))
  return { ...store, packs }
}

const someNode = fc.constantFrom(...NODES)
const somePacket = fc.record({
  source: fc.constantFrom('radio', 'broker'),
  after: fc.oneof({ weight: 30, arbitrary: fc.nat(2 * MINUTE_MS) }, fc.nat(7 * HOUR_MS)),
  /** Few ids, so that some packets are in the log already. */
  packetId: fc.oneof({ weight: 9, arbitrary: fc.nat(2 ** 32 - 1) }, fc.nat(20)),
  fromNodeNum: someNode,
  toNodeNum: fc.oneof({ weight: 4, arbitrary: fc.constant(BROADCAST) }, someNode),
  gateway: fc.option(someNode, { freq: 2 }),
  channel: fc.nat(3),
  port: fc.constantFrom(...PORTS),
  rxSnr: fc.option(fc.integer({ min: -80, max: 80 }).map((n) => n / 4)),
  rxRssi: fc.option(fc.integer({ min: -120, max: -1 })),
  hopsAway: fc.option(fc.nat(3)),
  hopLimit: fc.nat(7),
  viaMqtt: fc.boolean(),
  pkiEncrypted: fc.nat(9).map((n) => n === 0),
  replayed: fc.nat(9).map((n) => n === 0),
  trustLevel: fc.constantFrom('plain', 'plain', 'plain', 'signed', 'spoofed', 'own'),
  words: fc.string({ unit: 'grapheme', maxLength: 12 }),
})
type Some = typeof somePacket extends fc.Arbitrary<infer T> ? T : never

function payloadOf({ port, words, packetId }: Some): string {
  const place = { latitude: 47 + (packetId % 50) / 1000, longitude: 8, precisionBits: 13, time: null, altitude: null }
  if (port === null) return JSON.stringify({ kind: 'encrypted', bytes: words })
  if (port === 3) return JSON.stringify({ kind: 'position', fix: place })
  return JSON.stringify({ kind: 'text', text: words, n: [1.5, null, { deep: true }], origin: 'message' })
}

/** The same packets as rows, in pages, and as both by turns. */
async function fill(deliveries: readonly (readonly Some[])[]) {
  const [rows, pages, both] = [await fresh(false), await fresh(true), await fresh(true)]
  let now = BEGIN
  for (const [index, delivery] of deliveries.entries()) {
    const log = delivery.map((each): PacketRow => {
      now += each.after
      const { words: _words, after: _after, ...row } = each
      return { ...row, t: now, payload: payloadOf(each), isReadable: each.port !== null }
    })
    for (const store of [rows, pages, { ...both, packs: index % 7 > 2 }]) {
      const [first, ...others] = writeLog(store, log)
      if (first !== undefined) await store.atomic([first, ...others])
    }
  }
  return { rows, others: [pages, both], now }
}

const read = (store: Store, view: View = WHOLE_VIEW) => ({
  store,
  viewer: { permissions: ALL_PERMISSIONS, view },
})

async function listAll(store: Store, view: View, filters: Partial<PacketFilters>): Promise<unknown[]> {
  const all: unknown[] = []
  for (let { before } = filters, page = 0; page < 200; page++) {
    const answer = JSON.parse(await listPackets(read(store, view), { limit: 150, ...filters, before }))
    all.push(...answer.packets)
    if (answer.nextBefore === null) return all
    before = answer.nextBefore
  }
  throw new Error('a list without an end')
}

const goesOn = async () => true

/** What all prepared queries have in common. */
const queriesOf = (): { all: () => unknown } => Object.getPrototypeOf(opened[0]?.sqlite.prepare('select 1'))

async function everything(store: Store, now: number, hidden: readonly number[], filters: Partial<PacketFilters>[]) {
  const view = { ...WHOLE_VIEW, hidden: new Set(hidden) }
  const looking = { store, now, links: [], heard: NODES, pause: goesOn }
  const lists = []
  for (const filter of filters) lists.push(await listAll(store, view, filter))
  await summariseHearings(store, goesOn)
  await surveyPackets(store, goesOn)
  const recalled = recallPackets(store)
  return {
    lists,
    log: await store.db.all(sql`select * from logged order by id`),
    links: await listLinks(read(store, view), { since: now - DAY_MS, until: now }),
    heard: await readHeard(read(store, view), { from: BEGIN, to: now, after: 0 }),
    past: await readPast(store, now - DAY_MS, 'radios'),
    hours: await readTrafficHours(store, now, view),
    sources: await listSources(store, { withTokens: false }),
    places: await Promise.all(
      [0, 1, 2, 3].map((part) => lastPacketBy({ store, now: BEGIN + ((now - BEGIN) * part) / 3 })),
    ),
    hops: await hops.look(looking),
    recent: await readRecentPackets(store, now - 6 * HOUR_MS, null),
    recalled: await Promise.all([1, 2, 3, 4].map((id) => recalled({ from: 7, id }))),
    derived: [
      await store.db.select().from(nodeDays).orderBy(nodeDays.nodeNum, nodeDays.day).all(),
      await store.db.select().from(nodeReceivers).all(),
      await store.db.select().from(coverage).orderBy(coverage.id).all(),
      await store.db.select().from(heardLinks).all(),
      await store.db.all(sql`select * from packet_hours order by t`),
    ],
  }
}

const someFilter = fc.record(
  {
    from: someNode,
    to: fc.oneof(fc.constant(BROADCAST), someNode),
    port: fc.constantFrom(1, 3, 67, 5),
    since: fc.nat(3 * DAY_MS).map((ms) => BEGIN + ms),
    until: fc.nat(3 * DAY_MS).map((ms) => BEGIN + ms),
    before: fc.nat(500),
    after: fc.nat(500),
  },
  { requiredKeys: [] },
)

test('rows, pages and both by turns: each list, filter and summary is the same', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(somePacket, { minLength: 1, maxLength: 60, size: 'max' }), {
        minLength: 1,
        maxLength: 16,
        size: 'max',
      }),
      fc.array(someFilter, { minLength: 4, maxLength: 4 }),
      fc.subarray([...NODES], { maxLength: 2 }),
      async (deliveries, filters, hidden) => {
        const { rows, others, now } = await fill(deliveries)
        const expected = await everything(rows, now, hidden, filters)
        for (const store of others) expect(await everything(store, now, hidden, filters)).toStrictEqual(expected)
      },
    ),
    { numRuns: 3, endOnFailure: true },
  )
})

/** Logs packets, of node 7 and with their time as id unless they say otherwise. */
async function log(store: Store, ...logged: readonly (Partial<PacketRow> & { readonly t: number })[]) {
  const row = { source: 'radio', fromNodeNum: 7, toNodeNum: BROADCAST, gateway: null, channel: 0, port: 1, rxSnr: 1.5 }
  const more = { rxRssi: null, hopsAway: 0, hopLimit: 3, viaMqtt: false, pkiEncrypted: false, replayed: false }
  const said = { trustLevel: 'plain', payload: '{"kind":"text"}', isReadable: true } as const
  const rows = logged.map((each) => ({ ...row, ...more, ...said, packetId: each.t % 2 ** 32, ...each }))
  const [first, ...others] = writeLog(store, rows)
  if (first !== undefined) await store.atomic([first, ...others])
}

const idsOf = async (store: Store) =>
  (await store.db.all<{ id: number }>(sql`select id from logged order by id`)).map(({ id }) => id)

const expire = (store: Store, packets: number) =>
  deleteOldTraffic(store, { telemetry_hourly: 0, messages: 0, packets }, { pause: goesOn })

test('no id is used again after all pages expired, and rows go on after pages', async () => {
  const store = await fresh(true)
  const node = { ...store, packs: false }
  await log(store, { t: BEGIN })
  await log(store, { t: BEGIN + 1 })
  expect((await expire(store, BEGIN + 2)).packets).toBe(2)
  expect(await idsOf(store)).toEqual([])
  await log(store, { t: BEGIN + 2 })
  await log(store, { t: BEGIN + 2 * HOUR_MS })
  await log(node, { t: BEGIN + 2 * HOUR_MS + 1 })
  await log(store, { t: BEGIN + 2 * HOUR_MS + 2 })
  expect(await idsOf(store)).toEqual([3, 4, 5, 6])
  expect((await expire(store, BEGIN + HOUR_MS)).packets).toBe(1)
  expect(await idsOf(store)).toEqual([4, 5, 6])
})

test('pages go on to expire after their log was emptied, and was continued as rows', async () => {
  const store = await fresh(true)
  await log(store, { t: BEGIN })
  await expire(store, BEGIN + 1)
  await log({ ...store, packs: false }, { t: BEGIN + 1 })
  await log(store, { t: BEGIN + 2 })
  await log(store, { t: BEGIN + 3 * HOUR_MS })
  expect((await expire(store, BEGIN + HOUR_MS)).packets).toBe(2)
  expect(await idsOf(store)).toEqual([4])
})

test('a log of rows has no page once the packets of the last one expired', async () => {
  const edge = await fresh(true)
  const node = { ...edge, packs: false }
  await log(edge, { t: BEGIN }, { t: BEGIN + 1 })
  expect(await hasPages(node)).toBe(true)
  expect((await expire(node, BEGIN + 2)).packets).toBe(2)
  expect(await hasPages(node)).toBe(false)
  await log(node, { t: BEGIN + 3 })
  expect(await idsOf(node)).toEqual([3])
})

test('rows have no packet that is in a page', async () => {
  const store = await fresh(true)
  await log(store, { t: BEGIN, packetId: 5 }, { t: BEGIN, packetId: 6 })
  await log({ ...store, packs: false }, { t: BEGIN + 1, packetId: 6 }, { t: BEGIN + 1, packetId: 7 })
  await log({ ...store, packs: false }, { t: BEGIN + 7 * HOUR_MS, packetId: 5 })
  const ids = await store.db.all<{ id: number }>(sql`select packet_id as id from logged order by logged.id`)
  expect(ids.map(({ id }) => id)).toEqual([5, 6, 7, 5])
})

/** What the log knows of a packet of node 7. */
const seen = (store: Store, id: number) =>
  readSeenPackets(store, [heard(packet(text('again'), { from: 7, id }), { at: BEGIN })], null)

/** The same database as another process sees it. */
const elsewhere = (store: Store): Store => ({ ...store, db: sqliteStore(opened.at(-1)?.sqlite ?? expect.fail()).db })

test('what other processes log meanwhile is not logged twice', async () => {
  const store = await fresh(true)
  const other = elsewhere(store)
  await log(store, { t: BEGIN, packetId: 1 })
  expect(await seen(store, 1)).toMatchObject([{ from: 7, id: 1 }])
  expect(await seen(store, 2)).toEqual([])
  // In the page that this process knows, and in one after it.
  await log(other, { t: BEGIN, packetId: 2 })
  await log(other, { t: BEGIN + 2 * HOUR_MS, packetId: 3 })
  const again = [1, 2, 3].map((packetId) => ({ t: BEGIN + 2 * HOUR_MS, packetId }))
  await log(store, ...again)
  expect(await idsOf(store)).toEqual([1, 2, 3])
  for (const id of [1, 2, 3]) expect(await seen(store, id)).toHaveLength(1)
  await log(store, ...again)
  expect(await idsOf(store)).toEqual([1, 2, 3])
})

/** A database whose answers wait until they are let go. */
function holding(store: Store) {
  const sqlite = opened.at(-1)?.sqlite ?? expect.fail()
  const waiting: (() => void)[] = []
  const db: Store['db'] = Object(
    drizzle(async (query, values) => {
      const rows = sqlite
        .prepare(query)
        .raw()
        .all(...values)
      await new Promise<void>((go) => waiting.push(go))
      return { rows }
    }),
  )
  const next = async () => {
    await vi.waitFor(() => expect(waiting).not.toHaveLength(0))
    return waiting.pop() ?? expect.fail()
  }
  const read = async (at: Store) => {
    const reading = readRecentPages(at)
    return { reading, letGo: await next() }
  }
  return { held: { ...store, db }, next, read }
}

test('a late answer takes nothing from what other deliveries of the process know', async () => {
  const store = await fresh(true)
  const { held, next, read } = holding(store)
  const finish = async ({ reading, letGo }: Awaited<ReturnType<typeof read>>, isAnew: boolean) => {
    letGo()
    if (isAnew) (await next())()
    await reading
  }
  await log(store, { t: BEGIN, packetId: 1 })
  await finish(await read(held), false)
  // Another log, so that the next deliveries read all of it.
  await store.db.run(sql`update packet_pages set first_id = 1001, last_id = 1001`)
  const late = await read(held)
  late.letGo()
  const lateAnswer = await next()
  await log(store, { t: BEGIN + 2 * HOUR_MS, packetId: 2 })
  await finish(await read(held), true)
  await log(store, { t: BEGIN + 4 * HOUR_MS, packetId: 3 })
  await finish(await read(held), false)
  lateAnswer()
  await late.reading
  const asked = [1, 2, 3].map((id) => ({ from: 7, id, at: BEGIN + 2 * HOUR_MS }))
  expect(findInRecentPages(held, asked)).toMatchObject({ ids: [1001, 1002, 1003], newest: 1003 })
})

test('another log in place of the known one is read anew', async () => {
  const store = await fresh(true)
  for (let id = 1; id <= 5; id++) await log(store, { t: BEGIN + id * 2 * HOUR_MS, packetId: id })
  expect(await seen(store, 1)).toHaveLength(1)
  // As after a restore of what had fewer packets.
  await store.db.run(sql`delete from packet_pages`)
  await log(elsewhere(store), { t: BEGIN, packetId: 8 })
  expect(await seen(store, 1)).toEqual([])
  expect(await seen(store, 8)).toHaveLength(1)
})

test('a log of another past that has come just as far is read anew', async () => {
  const store = await fresh(true)
  await log(store, { t: BEGIN, packetId: 1 })
  await log(store, { t: BEGIN + 2 * HOUR_MS, packetId: 2 })
  expect(await seen(store, 1)).toHaveLength(1)
  await store.db.run(sql`delete from packet_pages`)
  await store.db.run(sql`update sqlite_sequence set seq = 0 where name = 'packets'`)
  await log(elsewhere(store), { t: BEGIN, packetId: 8 })
  await log(elsewhere(store), { t: BEGIN + 2 * HOUR_MS, packetId: 9 })
  expect(await seen(store, 8)).toHaveLength(1)
})

test('the links of silent nodes are those of their latest packets in each form, in few queries', async () => {
  const many = Array.from({ length: 600 }, (_, index) => 1000 + index)
  const answers = []
  for (const packs of [true, false]) {
    const store = await fresh(packs)
    await store.db.insert(nodes).values(many.map((nodeNum) => ({ nodeNum, firstHeard: BEGIN, lastHeard: BEGIN })))
    for (let part = 0; part < 30; part++) {
      const [t, source] = [BEGIN + part * HOUR_MS, part < 10 ? 'broker' : 'radio']
      await log(store, { t, source }, { t: t + 1, source })
      await log(store, ...many.slice(part * 20, part * 20 + 20).map((from) => ({ t, source, fromNodeNum: from })))
      await store.db.run(sql`update nodes set last_heard = ${t + 1} where node_num = 7
        or node_num in (select from_node_num from logged where t = ${t})`)
    }
    const links = ['radio', 'broker'].map((name) => ({ name, kind: 'tcp', state: 'connected', since: BEGIN }))
    const needs = { radio: Object({ links: () => links }), now: BEGIN + 99 * HOUR_MS, startedAt: BEGIN }
    const all = vi.spyOn(queriesOf(), 'all')
    const read = await readWorld({ store, ...needs }, [{ nodes: true, waysAfterMs: HOUR_MS }], goesOn)
    expect(all.mock.calls.length).toBeLessThan(20)
    expect(all.mock.calls.length).toBeGreaterThan(0)
    all.mockRestore()
    answers.push(new Map([...(read?.world.heardBy ?? [])].map(([num, names]) => [num, names.toSorted()])))
  }
  const [packed, plain] = answers
  expect(packed).toEqual(plain)
  // The latest 30 of the node that sends much.
  expect([7, 1000, 1599].map((num) => packed?.get(num))).toEqual([['radio'], ['broker'], ['radio']])
})

test('a packet is found in a long log, part by part', async () => {
  const store = await fresh(true)
  await log(store, { t: BEGIN, packetId: 5 })
  // As if so many had come since.
  const skip = 'insert into packet_pages select last_id + @ids, last_id + @ids, packets, @t, @t, replayed, ports,'
  opened
    .at(-1)
    ?.sqlite.prepare(`${skip} receivers, signed, '["0000000700000006"]', body from packet_pages`)
    .run({ ids: 900_000, t: BEGIN + DAY_MS })
  expect(await recallPackets(store)({ from: 7, id: 5 })).toBe(true)
  expect(await recallPackets(store)({ from: 7, id: 8 })).toBe(false)
})

test('pages take the share of one table', async () => {
  const store = await fresh(true)
  for (let hours = 0; hours < 90; hours += 2) await log(store, { t: BEGIN + hours * HOUR_MS })
  const shares: number[] = []
  const each = () => {
    const place = shares.push(0) - 1
    return async () => (shares[place] = (shares[place] ?? 0) + 1) < 2
  }
  const cutoffs = { telemetry_hourly: 0, messages: 0, packets: BEGIN + 100 * DAY_MS }
  const { packets } = await deleteOldTraffic(store, cutoffs, { pause: goesOn, each })
  // Of rows, pages, traceroutes, channels and hourly values.
  expect({ packets, shares: shares.length, ofPages: shares[1] }).toEqual({ packets: 40, shares: 5, ofPages: 2 })
})
