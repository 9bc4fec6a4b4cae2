import { create, toBinary } from '@bufbuild/protobuf'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { forgetSurveyed } from '../../../../src/app/mesh/survey/forget.ts'
import { surveyRoutes } from '../../../../src/app/mesh/survey/route-links.ts'
import { surveyPackets } from '../../../../src/app/mesh/survey/survey.ts'
import { survey as surveyTable } from '../../../../src/db/schema.ts'
import { NeighborInfoSchema, RouteDiscoverySchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import type { Scope } from '../../../../src/shared/access/scope.ts'
import { type Client, START } from '../../../support/app.ts'
import {
  type At,
  createTestMesh,
  heard,
  LOCAL,
  myInfo,
  packet,
  position,
  store,
  type TestMesh,
  text,
} from '../../../support/mesh/mesh.ts'

const READ = { read: true, write: false }
const MINUTE = 60_000
const DAY = 86_400_000
const BROKER = { kind: 'mqtt', name: 'mqtt' } as const
const [A, B, C, GATE] = [0xc0000001, 0xc0000002, 0xc0000003, 0xc0000009]
const NODES = [A, B, C]

let mesh: TestMesh
let admin: Client
beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  await store(mesh.ingest, [myInfo])
})
afterEach(() => mesh.app.close())

const goesOn = async () => true
const run = (query: string, ...values: unknown[]) => mesh.app.store.sqlite.prepare(query).run(...values)
const all = (query: string) => mesh.app.store.sqlite.prepare(query).all()
/** Everything that a survey has stored, without the ids of its rows. */
const stored = () =>
  ['coverage', 'heard_links', 'route_links'].map((table) =>
    all(`select * from ${table}`)
      .map((row) => JSON.stringify({ ...Object(row), id: 0 }))
      .toSorted(),
  )

type Arrival = { snr?: number; rssi?: number; hops?: number; at?: number; channel?: number; to?: number }

async function sent(from: number, at: Partial<At> & { gateway?: number }, data: ReturnType<typeof text>, by: Arrival) {
  const { snr = 5, rssi = -80, hops = 0, channel = 0, to } = by
  const more = {
    from,
    channel,
    rxSnr: snr,
    rxRssi: rssi,
    hopStart: 5,
    hopLimit: 5 - hops,
    ...(to === undefined ? {} : { to }),
  }
  const variant = packet(data, more)
  const { gateway, ...given } = at
  const told = heard(variant, { at: by.at ?? START, ...given })
  if (gateway !== undefined) Object.assign(told.event, { gateway })
  await mesh.ingest.store([told])
}

const place = (latitude: number, longitude: number, precisionBits = 32) =>
  position({
    latitudeI: Math.round(latitude * 1e7),
    longitudeI: Math.round(longitude * 1e7),
    precisionBits,
  })

async function survey(now = START + DAY): Promise<void> {
  await surveyPackets(mesh.app.store, goesOn)
  await surveyRoutes({ store: mesh.app.store, now: () => now }, goesOn)
}

type Feature = {
  geometry: { coordinates: [number, number][][] }
  properties: Record<string, number | null> & { bits: number }
}
async function cells(query = '?bits=18', client = admin): Promise<Feature[]> {
  const answer = await client.send('GET', `/api/coverage${query}`)
  expect(answer.status).toBe(200)
  return Object(await answer.json()).features
}
type Edge = { from: number; to: number; snr: number | null; at: number; by: string[] }
async function topology(client = admin, query = ''): Promise<{ edges: Edge[]; receivers: number[]; isWhole: boolean }> {
  const answer = await client.send('GET', `/api/topology${query}`)
  expect(answer.status).toBe(200)
  return Object(await answer.json())
}

describe('coverage', () => {
  it('sums up how well positions were heard: directly, over hops, by radios and gateways', async () => {
    for (const [index, snr] of [4.5, -3, 1, 9].entries())
      await sent(A, {}, place(52.5, 13.4), { snr, rssi: -70 - index, at: START + index * MINUTE })
    await sent(A, {}, place(52.5, 13.4), { hops: 2, snr: 12, rssi: -20, at: START + 9 * MINUTE })
    await sent(A, { source: BROKER, gateway: GATE }, place(52.5, 13.4), { snr: -11, rssi: -115 })
    // Not heard off the air: a gateway's own position, and what is for one node.
    await sent(GATE, { source: BROKER, gateway: GATE }, place(52.6, 13.4), {})
    await sent(B, {}, place(52.7, 13.4), { to: LOCAL })
    await sent(B, {}, text('no place'), {})
    await survey()
    const found = await cells()
    expect(found.map(({ properties }) => properties)).toEqual([
      {
        bits: 18,
        packets: 6,
        direct: 5,
        bestSnr: 9,
        // As -11, -3, 1, 5, 9 and -115, -73, -72, -71, -70 are stored in whole dB.
        medianSnr: 1,
        bestRssi: -70,
        medianRssi: -72,
        minHops: 0,
        maxHops: 2,
        lastAt: START + 9 * MINUTE,
      },
    ])
    const [[west, south] = [0, 0], , [east, north] = [0, 0]] = found[0]?.geometry.coordinates[0] ?? []
    expect([west <= 13.4 && 13.4 < east, south <= 52.5 && 52.5 < north]).toEqual([true, true])
    expect(east - west).toBeCloseTo(2 ** 14 / 1e7, 9)
    expect(await cells('?bits=18&bounds=13.5,50,20,60')).toEqual([])
    // Across the date line.
    expect(await cells('?bits=18&bounds=170,50,-170,60')).toEqual([])
    expect(await cells('?bits=18&bounds=10,50,-170,60')).toHaveLength(1)
    expect((await admin.send('GET', '/api/coverage?bounds=1,2,3')).status).toBe(400)
    expect((await admin.send('GET', '/api/coverage?bounds=1,2,3,99')).status).toBe(400)
  })

  it('counts each packet once, in slices of any size, also if it ends in the middle of one, and after a restore', async () => {
    for (let n = 0; n < 40; n += 1) {
      const from = NODES[n % 3] ?? A
      await sent(from, {}, place(50 + n / 7, 8, n % 2 === 0 ? 32 : 13), { snr: n - 20, hops: n % 4, at: START + n })
    }
    await survey()
    const whole = stored()
    const [, links] = whole
    expect(links).toHaveLength(3)
    const { store: database } = mesh.app
    await fc.assert(
      fc.asyncProperty(
        fc.infiniteStream(fc.double({ min: 0.001, max: 0.03, noNaN: true })),
        fc.nat(9),
        async (shares, end) => {
          for (const table of ['coverage', 'heard_links', 'survey']) run(`delete from ${table}`)
          run('insert into survey (id, packet_id, version) values (1, 0, 1)')
          let slices = 0
          const share = () => shares.next().value
          await surveyPackets(database, async () => (slices += 1) < end, share)
          // The process is killed while a slice is being stored: all of it or nothing is there.
          const killed = {
            ...database,
            atomic: (...[statements]: Parameters<typeof database.atomic>) =>
              database.atomic([
                ...statements,
                database.db.insert(surveyTable).values({ id: 1, packetId: 0, version: 0 }),
              ]),
          }
          await surveyPackets(killed, goesOn, share).catch(() => {})
          await surveyPackets(database, goesOn, share)
          await surveyPackets(database, goesOn, share)
          expect(stored()).toEqual(whole)
        },
      ),
      { numRuns: 15 },
    )
    // Two runs at once, also the first ones of all.
    for (const before of ['insert into survey (id, packet_id, version) values (1, 0, 1)', 'delete from survey']) {
      for (const table of ['coverage', 'heard_links', 'survey']) run(`delete from ${table}`)
      run(before)
      await Promise.all([0.01, 0.02].map((share) => surveyPackets(database, goesOn, () => share)))
      await surveyPackets(database, goesOn)
      expect(stored()).toEqual(whole)
    }
    // A node that is deleted meanwhile does not come back.
    for (const table of ['coverage', 'heard_links', 'survey']) run(`delete from ${table}`)
    const forgetting = {
      ...database,
      atomic: (...given: Parameters<typeof database.atomic>) => {
        run('delete from nodes where node_num = ?', A)
        return database.atomic(...given)
      },
    }
    await surveyPackets(forgetting, goesOn)
    const isOfOthers = (row: string) => !row.includes(`node_num":${A},`)
    expect(stored()).toEqual(whole.map((rows) => rows.filter(isOfOthers)))
  })

  it('is forgotten with its node, in time, and is bounded for each node', async () => {
    for (let n = 0; n < 320; n += 1) await sent(A, {}, place(40 + n / 100, 8), { at: START + n })
    await sent(B, {}, place(40, 8), { at: START })
    await survey()
    expect(mesh.count('coverage')).toBe(301)
    // The latest ones stay.
    expect(all(`select min(last_at) as t from coverage where node_num = ${A}`)).toEqual([{ t: START + 20 }])
    await forgetSurveyed(mesh.app.store, { places: START + 100, links: 0, future: null }, goesOn, () => 1)
    expect(mesh.count('coverage')).toBe(220)
    expect(await cells('?bits=10')).not.toEqual([])
    expect((await admin.send('DELETE', `/api/nodes/${A}`)).status).toBe(204)
    expect([mesh.count('coverage'), await cells('?bits=10')]).toEqual([0, []])
    expect((await topology()).edges.filter(({ from }) => from === A)).toEqual([])
  })

  it('stays, however many nodes there are with few places or none; only those with the most lose some', async () => {
    const rowsOf = (node: number) => all(`select count(*) as n from coverage where node_num = ${node}`)
    const many = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < ?)'
    const columns = '(node_num, source_id, gateway, channel, bits, x, y, packets, snr, rssi, last_at)'
    run(`${many} insert into nodes (node_num, first_heard, last_heard) select n, ?, ? from i`, 30_000, START, START)
    run(`${many} insert into coverage ${columns} select n, 1, 0, 0, 18, n, 1, 1, '{}', '{}', ? from i`, 20_000, START)
    for (let n = 0; n < 60; n += 1) await sent(A, {}, place(40 + n / 100, 8), { at: START + n })
    await survey()
    expect(rowsOf(A)).toEqual([{ n: 60 }])
    // With 80,000 more, somebody has too many: not A, and not those with one.
    run(
      `${many} insert into coverage ${columns} select -1 - n / 290, 1, 0, 0, 18, n, 2, 1, '{}', '{}', ? from i`,
      87_000,
      START,
    )
    await sent(A, {}, place(30, 8), { at: START + 100 })
    await survey()
    const others = all('select min(n) as n from (select count(*) as n from coverage group by node_num having n > 61)')
    expect(rowsOf(A)).toEqual([{ n: 61 }])
    expect(others).toEqual([{ n: Math.floor((100_000 - 20_060) / 300) }])
    expect(all('select count(*) as n from coverage where node_num between 1 and 20000')).toEqual([{ n: 20_000 }])
  })

  it('puts cells together if there are too many', async () => {
    const row = 'insert into coverage (node_num, source_id, gateway, channel, bits, x, y, packets, snr, rssi, last_at)'
    const insert = mesh.app.store.sqlite.prepare(`${row} values (?, 1, 0, 0, 18, ?, ?, 1, '{"3":1}', '{}', 5)`)
    for (let n = 0; n < 2500; n += 1) insert.run(A, n % 50, Math.floor(n / 50))
    const answer = await admin.send('GET', '/api/coverage?bits=18')
    const { bits, features } = Object(await answer.json())
    expect([bits, features.length]).toEqual([17, 625])
    expect(features[0].properties).toMatchObject({ packets: 4, direct: 4, medianSnr: 3 })
    // 20,000 in a row: after four halvings the whole answer is there again without its rows being read.
    run('delete from coverage')
    for (let n = 0; n < 20_000; n += 1) insert.run(A, n - 10_000, -3)
    run('insert into survey (id, packet_id, version) values (1, 0, 9) on conflict do update set version = version + 1')
    const part = await cells('?bits=18&bounds=-0.01,-1,0.01,1')
    expect(part.map(({ properties }) => [properties.bits, properties['packets']])).toEqual(
      Array.from({ length: Math.floor(0.01 / (2 ** 14 / 1e7)) * 2 + 2 }, () => [18, 1]),
    )
    const whole = await cells()
    expect([whole.length, whole[0]?.properties]).toEqual([1250, expect.objectContaining({ bits: 14, packets: 16 })])
    run('delete from coverage')
    expect(await cells()).toEqual(whole)
    run('update survey set version = version + 1')
    expect(await cells()).toEqual([])
  })
})

describe('topology', () => {
  it('says who heard whom, by whatever is known, the latest first', async () => {
    await sent(A, {}, text('hello'), { snr: 4, at: START })
    await sent(A, { source: BROKER, gateway: GATE }, text('hello, gateway'), { snr: -5, at: START + 1000 })
    await sent(B, {}, text('from afar'), { hops: 1, at: START })
    const neighborInfo = { nodeId: A, neighbors: [{ nodeId: B, snr: 3.5 }] }
    const report = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, neighborInfo))
    await sent(A, {}, { portnum: PortNum.NEIGHBORINFO_APP, payload: report }, { snr: 4, at: START + 2000 })
    const route = { route: [A], snrTowards: [20, -8], routeBack: [A], snrBack: [12, 16] }
    const answer = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, route))
    const traced = { portnum: PortNum.TRACEROUTE_APP, payload: answer, requestId: 77 }
    await sent(B, {}, traced, { hops: 1, to: LOCAL, at: START + 3000 })
    await survey()
    mesh.app.clock.now = START + MINUTE
    const { edges, receivers, isWhole } = await topology()
    expect(edges).toEqual(
      expect.arrayContaining([
        // LOCAL -> A -> B and back; what is known of A -> LOCAL by radio is older.
        { from: LOCAL, to: A, snr: 5, at: START + 3000, by: ['traced'] },
        { from: A, to: B, snr: -2, at: START + 3000, by: ['traced'] },
        { from: B, to: A, snr: 3, at: START + 3000, by: ['traced', 'reported'] },
        { from: A, to: LOCAL, snr: 4, at: START + 3000, by: ['traced', 'heard'] },
        { from: A, to: GATE, snr: -5, at: START + 1000, by: ['heard'] },
      ]),
    )
    expect([edges.length, new Set(receivers), isWhole]).toEqual([5, new Set([LOCAL, GATE]), true])
    mesh.app.clock.now = START + 2 * DAY
    const since = `?since=${START + 2 * DAY - DAY}`
    expect((await topology(await mesh.app.admin(), since)).edges).toEqual([])
    const until = await topology(await mesh.app.admin(), `?since=${START - DAY}&until=${START + 2000}`)
    expect(until.edges).toEqual([expect.objectContaining({ from: A, to: GATE, at: START + 1000 })])
    const before = stored()
    await survey()
    expect(stored()).toEqual(before)
    await forgetSurveyed(mesh.app.store, { places: 0, links: START + DAY, future: null }, goesOn, () => 1)
    expect([mesh.count('heard_links'), mesh.count('route_links')]).toEqual([0, 0])
  })

  it('goes on after a clock that was a year ahead, and what that left ends with it', async () => {
    const hop = (id: number, at: number) =>
      run(
        `insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, answered_at, state, route, channel)
          values (?, ?, ?, ?, ?, 'delivered', ?, 0)`,
        id,
        A,
        B,
        at,
        at,
        JSON.stringify({ route: [], snrTowards: [2], routeBack: [], snrBack: [] }),
      )
    const kept = (table: string) => all(`select from_node_num as "from", t from ${table}`)
    const year = START + 365 * DAY
    await sent(A, {}, place(50, 8), { at: year })
    hop(1, year)
    await survey(year)
    expect([kept('heard_links'), kept('route_links')]).toEqual([[{ from: A, t: year }], [{ from: A, t: year }]])
    await forgetSurveyed(mesh.app.store, { places: 0, links: 0, future: null }, goesOn, () => 1)
    expect(mesh.count('route_links')).toBe(1)
    await sent(A, {}, text('now'), { at: START })
    hop(2, START)
    run(
      `insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, answered_at, state, route, channel)
        select 3, to_node_num, from_node_num, timestamp, answered_at, state, route, 0 from traceroutes where request_id = 2`,
    )
    await survey(START)
    const hops = [
      { from: A, t: START },
      { from: B, t: START },
    ]
    expect(kept('route_links')).toEqual(hops)
    run('update route_links set t = ? where from_node_num = ?', year, A)
    const future = { at: START, from: START + DAY }
    await forgetSurveyed(mesh.app.store, { places: 0, links: 0, future }, goesOn, () => 1)
    expect([kept('heard_links'), kept('route_links')]).toEqual([[], hops.slice(1)])
    expect(all('select last_at as t from coverage')).toEqual([{ t: START }])
    await sent(A, {}, text('again'), { at: START + 1000 })
    await survey(START + 1000)
    expect(kept('heard_links')).toEqual([{ from: A, t: START + 1000 }])
    // The traceroutes of the last hour are looked at again.
    expect(kept('route_links')).toEqual(hops)
  })

  it('keeps our radio and the latest receivers of a node: gateways can be made up', async () => {
    await sent(A, {}, place(50, 8), { at: START - 1000 })
    for (let n = 0; n < 40; n += 1)
      await sent(A, { source: BROKER, gateway: GATE + n }, text(`${n}`), { at: START + n * 1000 })
    await survey()
    const kept = (condition: string) => all(`select count(*) as n, min(t) as t from heard_links where ${condition}`)
    expect(kept(`to_node_num <> ${LOCAL}`)).toEqual([{ n: 31, t: START + 9000 }])
    expect(kept(`to_node_num = ${LOCAL}`)).toEqual([{ n: 1, t: START - 1000 }])
    for (let n = 0; n < 320; n += 1)
      await sent(A, { source: BROKER, gateway: GATE }, place(40 + n / 100, 8), { at: START + 50_000 + n })
    await survey()
    expect(all('select last_at as t from coverage where gateway = 0')).toEqual([{ t: START - 1000 }])
  })
})

// What a viewer may not see is in nothing, not in a count, not in an aggregate.
describe('whatever a viewer may not see, and however', () => {
  type Sample = { node: number; channel: number; bits: number; lat: number; snr: number; gateway: number | null }
  const someSample = fc.record({
    node: fc.constantFrom(...NODES),
    channel: fc.nat(2),
    bits: fc.constantFrom<number>(10, 13, 15, 17, 32),
    lat: fc.integer({ min: -20, max: 20 }).map((n) => 48 + n / 300),
    snr: fc.integer({ min: -20, max: 10 }),
    gateway: fc.constantFrom(null, null, A, B, C, GATE),
  })
  const someViewer = fc
    .record({
      channels: fc.subarray([0, 1, 2]),
      seesHidden: fc.boolean(),
      hidden: fc.subarray([...NODES, GATE]),
      // Who may change nodes may see them.
      blind: fc.integer({ min: 0, max: 7 }).map((n) => n === 0),
    })
    .map(({ blind, ...who }) => ({ ...who, seesNodes: !blind, seesHidden: who.seesHidden && !blind }))

  /** By another way than the service: the text of the number's bits. */
  const cut = (degrees: number, bits: number) => {
    const unsigned = BigInt.asUintN(32, BigInt(Math.round(degrees * 1e7)))
    return unsigned.toString(2).padStart(32, '0').slice(0, bits)
  }

  let viewer: Client & { id: number }
  let made = 0
  beforeEach(async () => {
    made += 1
    viewer = await mesh.app.user(`viewer${made}`, { nodes: READ, info: READ })
    for (const from of [...NODES, GATE]) await sent(from, {}, text('hello'), { hops: 1 })
  })

  function open({ channels, seesHidden, seesNodes, hidden }: ReturnType<typeof someViewer.generate>['value']): void {
    const scope: Scope['channels'] = { read: channels, write: [] }
    run('update users set channels = ?, direct_read = 0 where id = ?', JSON.stringify(scope), viewer.id)
    run(
      "update user_permissions set can_read = ?, can_write = ? where user_id = ? and resource = 'nodes'",
      Number(seesNodes),
      Number(seesHidden),
      viewer.id,
    )
    run(`update nodes set is_hidden = node_num in (${hidden.join()})`)
  }

  const empty = () => {
    for (const table of ['packets', 'coverage', 'heard_links', 'route_links', 'neighbors', 'traceroutes'])
      run(`delete from ${table}`)
    // Answers are kept while the survey stays as it is.
    run('update survey set version = version + 1')
  }

  it('coverage has exactly what is seen, and no cell is smaller than the precision of a position', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someSample, { minLength: 1, maxLength: 12 }), someViewer, async (samples, who) => {
        empty()
        const told = samples.filter(({ node, gateway }) => node !== gateway)
        for (const { node, channel, bits, lat, snr, gateway } of told) {
          const by = gateway === null ? {} : { source: BROKER, gateway }
          await sent(node, by, place(lat, 11, bits), { channel, snr })
        }
        open(who)
        await survey()
        // The number of a channel of the broker is another one.
        const numbers = new Map(
          told.map((sample, index) => [
            sample,
            Number(Object(all('select channel from logged order by id')[index]).channel),
          ]),
        )
        const isSeen = (sample: Sample) => {
          const { node, gateway } = sample
          const isShown = (num: number | null) => who.seesHidden || num === null || !who.hidden.includes(num)
          return who.seesNodes && who.channels.includes(numbers.get(sample) ?? -1) && isShown(node) && isShown(gateway)
        }
        for (const most of [18, 14, 9]) {
          const expected = new Map<string, number[]>()
          for (const sample of told.filter(isSeen)) {
            const bits = Math.min(sample.bits, most, 18)
            const key = `${cut(sample.lat, bits)} ${cut(11, bits)}`
            expected.set(key, [...(expected.get(key) ?? []), sample.snr])
          }
          const found = (await cells(`?bits=${most}`, viewer)).map(({ geometry, properties }) => {
            const [[[west, south] = [0, 0], , [east, north] = [0, 0]] = []] = geometry.coordinates
            const { bits } = properties
            return [
              `${cut((south + north) / 2, bits)} ${cut((west + east) / 2, bits)}`,
              [properties['direct'], properties['bestSnr'], properties['medianSnr']],
            ]
          })
          const reckoned = Array.from(expected, ([key, snrs]) => {
            const sorted = snrs.toSorted((a, b) => a - b)
            const [low = 0, high = 0] = [
              sorted[Math.floor((sorted.length - 1) / 2)],
              sorted[Math.floor(sorted.length / 2)],
            ]
            return [key, [snrs.length, Math.max(...snrs), (low + high) / 2]]
          })
          expect(Object.fromEntries(found)).toEqual(Object.fromEntries(reckoned))
        }
      }),
      { numRuns: 30 },
    )
  })

  it('topology has exactly the links that are seen', async () => {
    const someNum = fc.constantFrom(...NODES, GATE)
    const someReport = fc.record({
      kind: fc.constant('report' as const),
      from: fc.constantFrom(...NODES),
      to: someNum,
      channel: fc.nat(2),
    })
    const someHearing = fc.record({
      kind: fc.constant('heard' as const),
      from: fc.constantFrom(...NODES),
      to: someNum,
      channel: fc.nat(2),
    })
    const someTrace = fc.record({
      kind: fc.constant('trace' as const),
      from: fc.constantFrom(...NODES),
      to: someNum,
      channel: fc.nat(2),
      over: fc.uniqueArray(someNum, { maxLength: 2 }),
    })
    const someTold = fc.array(fc.oneof(someReport, someHearing, someTrace), { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(someTold, someViewer, async (told, who) => {
        empty()
        const expected = new Map<string, boolean>()
        const isShown = (...nums: number[]) => who.seesHidden || nums.every((num) => !who.hidden.includes(num))
        for (const [index, each] of told.entries()) {
          const { from, to, channel } = each
          if (from === to) continue
          const isRead = who.channels.includes(channel)
          if (each.kind === 'heard') {
            await sent(from, { source: BROKER, gateway: to }, text(`${index}`), { channel })
            if (isShown(from, to)) expected.set(`${from} ${to}`, true)
          } else if (each.kind === 'report') {
            run(
              'insert or replace into neighbors (node_num, neighbor_num, snr, t, channel, heard) values (?, ?, 3, ?, ?, 0)',
              to,
              from,
              START,
              channel,
            )
          } else {
            const stops = [from, ...each.over.filter((num) => num !== from && num !== to), to]
            const way = {
              route: stops.slice(1, -1),
              snrTowards: stops.slice(1).map(() => 2),
              routeBack: [],
              snrBack: [],
            }
            run(
              `insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, answered_at, state, route, channel)
                values (?, ?, ?, ?, ?, 'delivered', ?, ?)`,
              index + 1,
              from,
              to,
              START + index,
              START + index,
              JSON.stringify(way),
              channel,
            )
            // The latest traceroute of a hop decides whether it is seen.
            for (const [at, stop] of stops.slice(0, -1).entries())
              expected.set(
                `trace ${stop} ${stops[at + 1]} ${channel}`,
                isRead && isShown(stop, stops[at + 1] ?? 0, from, to),
              )
          }
        }
        for (const row of all('select neighbor_num as "from", node_num as "to", channel from neighbors')) {
          const { from, to, channel } = Object(row)
          if (who.channels.includes(channel) && isShown(from, to)) expected.set(`${from} ${to}`, true)
        }
        open(who)
        await survey()
        const { edges, receivers } = await topology(viewer)
        const wanted = [...expected]
          .filter(([, isSeen]) => isSeen)
          .map(([key]) => key.replace('trace ', '').split(' ').slice(0, 2).join(' '))
        expect(edges.map(({ from, to }) => `${from} ${to}`).toSorted()).toEqual([...new Set(wanted)].toSorted())
        expect(receivers.filter((num) => !isShown(num))).toEqual([])
        // A node that is hidden now is gone at once, before the next survey.
        run(`update nodes set is_hidden = node_num = ${A}`)
        if (!who.seesHidden) {
          const left = (await topology(viewer)).edges
          expect(left.filter(({ from, to }) => from === A || to === A)).toEqual([])
        }
      }),
      { numRuns: 30 },
    )
  })
})
