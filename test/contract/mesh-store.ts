import { create, toBinary } from '@bufbuild/protobuf'
import { WHOLE_VIEW } from '../../src/app/accounts/access/visible.ts'
import { eq, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, expect, it } from 'vitest'
import { createLog } from '../../src/app/base/log.ts'
import { sweepForgotten } from '../../src/app/mesh/nodes/deletion/forgotten.ts'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import { listMessages } from '../../src/app/mesh/messages/messages.ts'
import { getNode } from '../../src/app/mesh/nodes/seen.ts'
import { listNodes } from '../../src/app/mesh/nodes/list/list.ts'
import { listPackets } from '../../src/app/mesh/topology/packets.ts'
import { readTrack } from '../../src/app/mesh/nodes/positions.ts'
import { followRenumbered } from '../../src/app/mesh/nodes/identity/renumbering.ts'
import { listReceptions } from '../../src/app/mesh/messages/receptions.ts'
import { deleteExpired } from '../../src/app/upkeep/retention.ts'
import { rollUp } from '../../src/app/mesh/telemetry/roll-up.ts'
import { listMetrics, readSeries } from '../../src/app/mesh/telemetry/telemetry.ts'
import { listChannels, listNeighbors, listWaypoints } from '../../src/app/mesh/topology/topology.ts'
import { readTraceroutes } from '../../src/app/mesh/topology/traceroutes.ts'
import { promisedCutoffs } from '../../src/app/retention/plan.ts'
import { deleteOldTraffic } from '../../src/app/upkeep/traffic-retention.ts'
import { readSettings } from '../../src/app/settings/settings.ts'
import { ALL_PERMISSIONS } from '../../src/shared/access/resources.ts'
import { MEASUREMENTS } from '../support/mesh/measurements.ts'
import { readTrafficHours } from '../support/mesh/traffic-hours.ts'
import { packetsWithin } from '../../src/db/packet-log.ts'
import {
  channels,
  forgottenNodes,
  gateways,
  metrics,
  nodes,
  packets,
  positions,
  telemetry,
  telemetryRuns,
} from '../../src/db/schema.ts'
import type { Store } from '../../src/db/store.ts'
import { identifyChannel, MAX_HEARD_CHANNELS, numberChannel } from '../../src/meshtastic/channel-identity.ts'
import { decodeFromRadio } from '../../src/meshtastic/link/from-radio.ts'
import { Channel_Role, ChannelSchema } from '../../src/meshtastic/gen/channel_pb.ts'
import { NeighborInfoSchema, RouteDiscoverySchema, WaypointSchema } from '../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { describeChannel } from '../../src/meshtastic/config/channel-info.ts'
import { readRecordings } from '../meshtastic/recordings.ts'
import {
  FAR,
  heard,
  packet,
  position,
  store as storePackets,
  telemetry as measured,
  text,
  user,
} from '../support/mesh/mesh.ts'
import { DAY_MS } from '../../src/shared/time.ts'

const NOW = Date.UTC(2026, 10, 21, 13)

/** The statements of the mesh on a database: they are written in SQL, which each driver must treat alike. */
export function meshStoreContract(name: string, open: () => Store): void {
  const count = (table: SQLiteTable) => open().db.$count(table)
  const countMeasured = async () =>
    (await open().db.get<{ n: number }>(sql.raw(`select count(*) as n from ${MEASUREMENTS}`))).n
  const reader = () => ({
    store: open(),
    config: { SESSION_SECRET: ['a secret of this store, of 32 characters'] },
    viewer: { permissions: ALL_PERMISSIONS, view: WHOLE_VIEW },
    now: () => NOW,
  })
  const play = async () => {
    const heard = readRecordings('fromradio').flatMap(({ bytes, source }) => {
      const message = decodeFromRadio(bytes)
      return message === null
        ? []
        : [{ source: { kind: 'tcp', name: source } as const, event: toRadioEvent(message, NOW, false) }]
    })
    return createIngest(open()).store(heard)
  }

  describe(`mesh on ${name}`, () => {
    it('stores everything that real radios sent, once', async () => {
      expect((await play()).news.length).toBeGreaterThan(20)
      const told = async () => {
        const page = JSON.parse(await listMessages(open(), { limit: 100 }, WHOLE_VIEW))
        return { nodes: read(await listNodes(reader(), { limit: 5000 })), messages: page.messages }
      }
      const first = await told()
      expect(first.nodes).toHaveLength(6)
      expect(first.nodes).toContainEqual(
        expect.objectContaining({
          nodeId: '!796b94bf',
          longName: 'Lab Node B',
          hwModel: 'PORTDUINO',
          isFavorite: true,
          deviceMetrics: {
            batteryLevel: 101,
            voltage: null,
            channelUtilization: 20.18833351135254,
            airUtilTx: 0.25386112928390503,
            uptimeSeconds: 135,
            time: 1_795_256_594_000,
          },
        }),
      )
      // What our radio heard from another of our radios is only in the packet log, unless that radio reported it itself.
      expect(first.messages).toHaveLength(8)
      expect(first.messages[0]).toMatchObject({ text: 'dm to C', emoji: false, pkiEncrypted: true })
      const rows = [await countMeasured(), await count(metrics), await count(channels)]
      expect(rows).toStrictEqual([42, 17, 24])
      await play()
      expect(await told()).toStrictEqual(first)
      expect([await countMeasured(), await count(metrics), await count(channels)]).toStrictEqual(rows)
    })

    it('reports each change of a list since the previous revision', async () => {
      const tag = async () => (await listNodes(reader(), { limit: 5000 })).body.etag
      const before = await tag()
      expect(await tag()).toBe(before)
      await storePackets(createIngest(open()), [packet(position({ latitudeI: 5, longitudeI: 6 }))], { at: NOW })
      expect(await tag()).not.toBe(before)
      const found = await listNodes(reader(), { limit: 10, q: '!A0CB0002', since: 1, activeWithin: 60 })
      expect(read(found)).toMatchObject([{ nodeNum: FAR, position: { latitude: 5e-7, longitude: 6e-7 } }])
      expect(read(await listNodes(reader(), { limit: 10, ids: [FAR, 1] }))).toMatchObject([{ nodeNum: FAR }])
    })

    it('stores routes, neighbours, receptions and the packet log, and rolls measurements up', async () => {
      // The recordings only contain a request that passes by.
      expect(await readTraceroutes(reader(), { limit: 10 })).toStrictEqual([])
      const route = create(RouteDiscoverySchema, { route: [7], snrTowards: [24, -128] })
      const neighbors = create(NeighborInfoSchema, { nodeId: FAR, neighbors: [{ nodeId: 7, snr: 2.5 }] })
      const point = create(WaypointSchema, { id: 3, latitudeI: 5, longitudeI: 6, name: 'Hut' })
      const told = [
        { portnum: PortNum.TRACEROUTE_APP, payload: toBinary(RouteDiscoverySchema, route), requestId: 3 },
        { portnum: PortNum.NEIGHBORINFO_APP, payload: toBinary(NeighborInfoSchema, neighbors) },
        { portnum: PortNum.WAYPOINT_APP, payload: toBinary(WaypointSchema, point) },
      ]
      await storePackets(
        createIngest(open()),
        told.map((data) => packet(data, { to: 9 })),
        { at: NOW },
      )
      const answered = { state: 'delivered', route: [7], snrTowards: [6, null] }
      expect(await readTraceroutes(reader(), { limit: 10, node: 9 })).toMatchObject([answered])
      expect(await listNeighbors(reader())).toMatchObject([{ nodeNum: FAR, neighborNum: 7, snr: 2.5 }])
      expect(await listWaypoints(reader())).toMatchObject([{ id: 3, name: 'Hut' }])
      expect((await listChannels(open(), null, WHOLE_VIEW)).map(({ index }) => index)).toStrictEqual([
        0, 1, 2, 3, 4, 5, 6, 7,
      ])
      const { packets: log } = JSON.parse(await listPackets(reader(), { limit: 500, port: 1 }))
      expect(log).toContainEqual(
        expect.objectContaining({ payload: { kind: 'text', text: 'B says Überprüfung 👍', origin: 'message' } }),
      )
      expect((await listReceptions(open(), 1, WHOLE_VIEW)).map(({ source }) => source)).toStrictEqual([
        'node-B',
        'node-C',
      ])
      expect(await rollUp(open(), async () => true)).toBeGreaterThan(0)
      const nodeNum = 0x796b94bf
      const range = { nodeNum, metric: 'deviceMetrics.batteryLevel', from: NOW - 30 * DAY_MS, to: NOW, points: 100 }
      expect(await readSeries(reader(), range)).toMatchObject({
        resolution: 'hour',
        series: [[expect.any(Number), 101, 101, 101]],
      })
      const days = await readSeries(reader(), { ...range, from: NOW - 90 * DAY_MS })
      expect(days).toMatchObject({ resolution: 'day', series: [[expect.any(Number), 101, 101, 101]] })
      const { metrics: known } = await listMetrics(reader(), nodeNum)
      expect(known).toContainEqual({ metric: 'deviceMetrics.batteryLevel', unit: '%' })
      const logged = async () =>
        (await open().db.select({ id: packets.id }).from(packetsWithin(0, Number.MAX_SAFE_INTEGER)).all()).length
      const hour = (await readTrafficHours(open(), NOW)).at(-1)
      expect(hour).toStrictEqual({ t: NOW, messages: 8, packets: await logged() })
      const settings = await readSettings(open())
      const cutoffs = promisedCutoffs(settings, NOW + 8 * DAY_MS)
      const deleted = await deleteOldTraffic(open(), cutoffs, { pause: async () => true })
      expect(deleted).toMatchObject({ hours: 0, traceroutes: 0 })
      expect(deleted.packets).toBeGreaterThan(0)
      expect(await logged()).toBe(0)
    })

    it('deletes what has expired', async () => {
      expect(await count(positions)).toBe(1)
      // A packed hour is deleted when all of it is old.
      const later = NOW + 3_600_000
      const cutoffs = { telemetry: later, positions: later, messages: later }
      const deleted = await deleteExpired(open(), cutoffs, async () => true)
      // A packed hour is one row.
      expect(deleted).toStrictEqual({ telemetry: open().packs ? 3 : 42, positions: 1, messages: 8 })
      expect([await countMeasured(), await count(positions), await count(nodes)]).toStrictEqual([0, 0, 7])
      expect(await listMessages(open(), { limit: 1 }, WHOLE_VIEW)).toBe('{"messages":[],"nextBefore":null}')
    })

    it('moves the history of a node to another number, and back', async () => {
      const [from, to] = [0xd0000001, 0xd0000002]
      const publicKey = new Uint8Array(32).fill(7)
      const speak = (nodeNum: number, at: number) => {
        const power = { case: 'deviceMetrics', value: { batteryLevel: 50 } } as const
        const said = [
          user({ longName: 'Same', publicKey }),
          measured({ variant: power }),
          position({ latitudeI: 5, longitudeI: 6 }),
        ]
        return storePackets(
          createIngest(open()),
          said.map((data) => packet(data, { from: nodeNum })),
          { at },
        )
      }
      const lines: string[] = []
      const log = createLog({ level: 'info', format: 'json', now: () => NOW, write: (line) => lines.push(line) })
      const follow = (at: number) => followRenumbered({ store: open(), log, now: () => at }, async () => true)
      const hour = 3_600_000
      await speak(from, NOW)
      await speak(to, NOW + hour)
      await follow(NOW + 2 * hour)
      expect(await getNode(open(), WHOLE_VIEW, to)).toMatchObject({ formerNodeNums: [from], firstHeard: NOW })
      expect([await countMeasured(), await count(positions)]).toStrictEqual([2, 2])
      await speak(from, NOW + 3 * hour)
      await follow(NOW + 3 * hour)
      expect(await getNode(open(), WHOLE_VIEW, to)).toMatchObject({ formerNodeNums: [], firstHeard: NOW + hour })
      expect(await getNode(open(), WHOLE_VIEW, from)).toMatchObject({ formerNodeNums: [], firstHeard: NOW })
      expect([await countMeasured(), await count(positions)]).toStrictEqual([3, 3])
      expect(lines).toHaveLength(2)
    })

    it('deletes a node at once and its history afterwards, but not what it sends later', async () => {
      const gone = 0xd0000001
      const speak = () =>
        storePackets(createIngest(open()), [packet(position({ latitudeI: 5, longitudeI: 6 }), { from: gone })], {
          at: NOW + DAY_MS,
        })
      const rows = async () => [await countMeasured(), await count(positions), await count(forgottenNodes)]
      expect(await sweepForgotten(open(), async () => true)).toBe(0)
      const before = await rows()
      await open().db.delete(nodes).where(eq(nodes.nodeNum, gone))
      await speak()
      expect(await rows()).toStrictEqual([before[0], Number(before[1]) + 1, 1])
      expect(await sweepForgotten(open(), async () => true)).toBeGreaterThan(1)
      const [left, places, waiting] = await rows()
      expect(left).toBeLessThan(Number(before[0]))
      // It had two positions before, and has one now.
      expect([places, waiting]).toStrictEqual([Number(before[1]) - 1, 0])
      expect((await readTrack(reader(), gone, { from: 0, to: NOW * 2, limit: 9 })).positions).toHaveLength(1)
    })

    it('moves messages from a broker into the channel of a radio once that is known', async () => {
      const broker = { source: { kind: 'mqtt', name: 'mqtt://broker' }, at: NOW } as const
      const number = numberChannel('8:LongFast')
      const ingest = createIngest(open(), { radios: ['hilltop'] })
      const words = ['by', 'the', 'broker'].map((word) => packet(text(word), { channel: number }))
      const named = { case: 'channel', value: { index: number, role: 2, settings: { name: 'LongFast' } } } as const
      await storePackets(ingest, [named, ...words], broker)
      const list = async (channel: number) => {
        const { messages } = JSON.parse(await listMessages(open(), { limit: 100, channel }, WHOLE_VIEW))
        return messages.map(({ text }: { text: string }) => text)
      }
      expect(await list(number)).toStrictEqual(['broker', 'the', 'by'])
      const channel = describeChannel(
        create(ChannelSchema, { index: 6, role: Channel_Role.SECONDARY }),
        identifyChannel(8, 'LongFast'),
      )
      const event = { type: 'channel', receivedAt: NOW, channel } as const
      await createIngest(open(), { radios: ['hilltop'] }).store([{ source: { kind: 'tcp', name: 'hilltop' }, event }])
      expect([await list(number), await list(6)]).toStrictEqual([[], ['broker', 'the', 'by']])
      await storePackets(ingest, [packet(text('later'), { channel: number })], broker)
      expect(await list(6)).toContain('later')
      const names = (await listChannels(open(), ['hilltop'], WHOLE_VIEW)).filter(
        ({ index }) => index === 6 || index === number,
      )
      expect(names).toStrictEqual([{ source: 'hilltop', index: 6, name: '', role: 'SECONDARY' }])
    })

    it('keeps the latest of the made-up channels, and hides none of our own behind them', async () => {
      const HOUR_MS = 3_600_000
      const started = NOW + 2 * DAY_MS
      const loud = { kind: 'mqtt', name: 'mqtt://loud' } as const
      const madeUp = (n: number) => ({ index: numberChannel(identifyChannel(n % 256, `x${n}`)), name: `x${n}` })
      const tell = ({ index, name }: { index: number; name: string }) =>
        ({ case: 'channel', value: { index, role: 2, settings: { name } } }) as const
      for (let hour = 0; hour < 5; hour++) {
        const told = Array.from({ length: 100 }, (_, n) => tell(madeUp(hour * 100 + n)))
        await storePackets(createIngest(open()), told, { source: loud, at: started + hour * HOUR_MS })
      }
      const radio = { kind: 'tcp', name: 'late-hill' } as const
      const slots = Array.from({ length: 8 }, (_, index) => {
        const channel = create(ChannelSchema, {
          index,
          role: index === 0 ? Channel_Role.PRIMARY : Channel_Role.SECONDARY,
        })
        const event = {
          type: 'channel',
          receivedAt: started,
          channel: describeChannel(channel, `${index}:own${index}`),
        } as const
        return { source: radio, event } as const
      })
      await createIngest(open(), { radios: ['late-hill'] }).store(slots)
      const listed = await listChannels(open(), ['late-hill'], WHOLE_VIEW)
      const own = listed.filter(({ source }) => source === 'late-hill')
      expect(own.map(({ index }) => index)).toStrictEqual([0, 1, 2, 3, 4, 5, 6, 7])
      const kept = listed.filter(({ source }) => source === loud.name).map(({ name }) => name)
      const latest = Array.from({ length: MAX_HEARD_CHANNELS }, (_, n) => madeUp(300 + n).name)
      expect(new Set(kept)).toStrictEqual(new Set(latest))

      // Somebody invents a channel with the number of ours, and is faster than the radio.
      const number = numberChannel('1:own1')
      const twin = Array.from({ length: 100_000 }, (_, n) => `t${n}`).find(
        (name) => numberChannel(identifyChannel(1, name)) === number,
      )
      const said = packet(text('said in our own'), { channel: number })
      const ingest = createIngest(open(), { radios: ['late-hill'] })
      await storePackets(ingest, [tell({ index: number, name: String(twin) }), said], { source: loud, at: started })
      const channelOf = async () => {
        const { messages } = JSON.parse(await listMessages(open(), { limit: 1, q: 'said in our own' }, WHOLE_VIEW))
        return messages[0].channel
      }
      expect(await channelOf()).toBe(number)
      const { value } = Object(said)
      const byRadio = { case: 'packet', value: { ...value, channel: 1, hopLimit: 0 } } as const
      await storePackets(ingest, [byRadio], { source: radio, at: started + 1000 })
      expect(await channelOf()).toBe(1)

      const settings = await readSettings(open())
      const now = started + settings.messageRetentionDays * DAY_MS + 4 * HOUR_MS
      const { channels: forgotten } = await deleteOldTraffic(open(), promisedCutoffs(settings, now), {
        pause: async () => true,
      })
      expect(forgotten).toBeGreaterThan(0)
      const left = await listChannels(open(), ['late-hill'], WHOLE_VIEW)
      expect(left.filter(({ source }) => source === loud.name)).toHaveLength(100)
      expect(left.filter(({ source }) => source === 'late-hill')).toHaveLength(8)
    })

    it('keeps room for the known gateways of a broker, and forgets the invented ones', async () => {
      const broker = { kind: 'mqtt', name: 'mqtt://crowded' } as const
      const ingest = createIngest(open())
      const through = (gateway: number, from: number, at: number) => {
        const each = heard(packet(text('hi'), { from }), { at, source: broker })
        return { ...each, event: { ...each.event, gateway } }
      }
      const invented = Array.from({ length: 200 }, (_, n) => 0xb000 + n)
      for (const day of [0, 1, 2]) await ingest.store([through(0xa1, 0xa1, NOW + day * DAY_MS)])
      await ingest.store(invented.map((gateway) => through(gateway, gateway, NOW + 2 * DAY_MS)))
      await ingest.store([through(0xa1, 0xa2, NOW + 2 * DAY_MS)])
      const kept = await open().db.select().from(gateways).orderBy(gateways.id)
      expect(kept).toHaveLength(101)
      expect(kept[0]).toMatchObject({ gateway: 0xa1, days: 3, taken: 1 })
      expect(kept[1]).toMatchObject({ gateway: 0xb000, days: 1, taken: 0 })
    })

    it('draws a chart from hourly values where the measurements are gone, by channel', async () => {
      const at = NOW - 20 * DAY_MS
      const paxcounter = { portnum: PortNum.PAXCOUNTER_APP, payload: Uint8Array.of(0x08, 7, 0x10, 3, 0x18, 60) }
      await storePackets(createIngest(open()), [packet(paxcounter, { from: 0xc1 })], { at })
      expect(await rollUp(open(), async () => true)).toBeGreaterThan(0)
      await open().db.delete(telemetry)
      await open().db.delete(telemetryRuns)
      const range = {
        nodeNum: 0xc1,
        metric: 'paxcounter.wifi',
        from: at - DAY_MS / 2,
        to: at + DAY_MS / 2,
        points: 100,
      }
      const seenOn = async (channel: number) => {
        const view = {
          channels: { read: [channel], write: [] },
          direct: { read: false, write: false },
          hidden: new Set<number>(),
        }
        return (await readSeries({ ...reader(), viewer: { permissions: ALL_PERMISSIONS, view } }, range)).series.length
      }
      expect((await readSeries(reader(), range)).series).toHaveLength(1)
      expect([await seenOn(0), await seenOn(5)]).toStrictEqual([1, 0])
    })
  })
}

function read({ body }: Awaited<ReturnType<typeof listNodes>>) {
  return JSON.parse(new TextDecoder().decode(body.bytes))
}
