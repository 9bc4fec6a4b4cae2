import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { createPacketWindow } from '../../../../src/app/mesh/ingest/duplicates/packet-window.ts'
import { Channel_Role } from '../../../../src/meshtastic/gen/channel_pb.ts'
import { NeighborInfoSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { FromRadioSchema } from '../../../../src/meshtastic/gen/stream_pb.ts'
import { toRadioEvent } from '../../../../src/meshtastic/radio-event.ts'
import { createReplayDetector } from '../../../../src/meshtastic/replay.ts'
import { readRecordings } from '../../../meshtastic/recordings.ts'
import { START } from '../../../support/app.ts'
import {
  createTestMesh,
  type At,
  FAR,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  position,
  RADIO,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'
import type { FromRadioVariant } from '../../../support/radio/device.ts'

const MINUTE = 60_000
const neighbors = (nodeId: number, neighbor: number): Uint8Array =>
  toBinary(NeighborInfoSchema, create(NeighborInfoSchema, { nodeId, neighbors: [{ nodeId: neighbor, snr: 5 }] }))

const PLACE = { latitudeI: 525_000_000, longitudeI: 134_000_000 }

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
})
afterEach(() => mesh.app.close())

describe('the memory of a radio', () => {
  it('fills gaps and replaces only what is older', async () => {
    const stale = nodeInfo({
      num: FAR,
      user: { longName: 'Far Hill' },
      position: { ...PLACE, time: seconds(START - 60 * MINUTE) },
      deviceMetrics: { batteryLevel: 50 },
      lastHeard: seconds(START - 60 * MINUTE),
      hopsAway: 2,
    })
    await store(mesh.ingest, [stale])
    expect(await mesh.node()).toMatchObject({ longName: 'Far Hill', position: { latitude: 52.5 }, hopsAway: 2 })
    await store(mesh.ingest, [
      packet(position({ latitudeI: 480_000_000, longitudeI: 110_000_000, time: seconds(START) })),
      packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 70 } } })),
      stale,
    ])
    const live = { position: { latitude: 48 }, deviceMetrics: { batteryLevel: 70 }, hopsAway: 0, lastHeard: START }
    expect(await mesh.node()).toMatchObject(live)
    await store(mesh.ingest, [stale])
    expect(await mesh.node()).toMatchObject(live)
  })

  it('updates the state from replayed packets without reporting them as new', async () => {
    const time = seconds(START - 10 * MINUTE)
    const replay = [
      packet(position({ ...PLACE, time }), { rxTime: time, hopLimit: 2 }),
      packet(telemetry({ time, variant: { case: 'deviceMetrics', value: { batteryLevel: 33 } } }), { rxTime: time }),
    ]
    expect(await store(mesh.ingest, replay, { replayed: true })).toStrictEqual([])
    expect(await mesh.node()).toMatchObject({
      position: { latitude: 52.5, time: START - 10 * MINUTE },
      deviceMetrics: { batteryLevel: 33 },
      lastHeard: START - 10 * MINUTE,
    })
    expect([mesh.count('positions'), mesh.count('telemetry')]).toStrictEqual([1, 1])
    const later = { at: START + MINUTE }
    const live = position({ latitudeI: 480_000_000, longitudeI: 110_000_000 })
    expect(await store(mesh.ingest, [packet(live)], later)).toHaveLength(1)
    await store(mesh.ingest, [packet(position({ ...PLACE, time }), { rxTime: time, hopLimit: 2 })], {
      replayed: true,
      ...later,
    })
    expect(await mesh.node()).toMatchObject({ position: { latitude: 48 }, hopsAway: 0, lastHeard: START + MINUTE })
  })

  it('recognises the replay in a recorded reconnect', async () => {
    const detector = createReplayDetector()
    const replaying = readRecordings('reconnect-2.8').map(({ bytes }) => {
      const message = fromBinary(FromRadioSchema, bytes)
      return { source: RADIO, event: toRadioEvent(message, START, detector.isReplayed(message, START)) }
    })
    expect((await mesh.ingest.store(replaying)).news).toStrictEqual([])
    const far = await mesh.node(2037093567)
    expect(far).toMatchObject({ longName: 'Lab Node B', lastHeard: null, deviceMetrics: { batteryLevel: 101 } })
    expect([mesh.count('logged'), mesh.count('telemetry')]).toStrictEqual([1, 0])
    const dashboard = await (await (await mesh.app.admin()).send('GET', '/api/dashboard')).json()
    expect(dashboard).toMatchObject({ counts: { nodes: 3, activeNodes: 0, packets: 0 } })
  })

  it.each<[string, At]>([
    ['in the queue of the radio', {}],
    ['from a broker', { source: { kind: 'mqtt', name: 'mqtt://b' } }],
    ['retained by a broker', { source: { kind: 'mqtt', name: 'mqtt://b' }, replayed: true }],
    ['from the memory of another radio', { source: { kind: 'tcp', name: 'radio-2' }, replayed: true }],
  ])('never lets older data replace newer, also when it comes late %s', async (_, at) => {
    const old = seconds(START - 10 * MINUTE)
    const battery = (batteryLevel: number, time: number) =>
      packet(telemetry({ time, variant: { case: 'deviceMetrics', value: { batteryLevel } } }), { rxTime: time })
    const link = (nodeId: number, rxTime: number) =>
      packet({ portnum: PortNum.NEIGHBORINFO_APP, payload: neighbors(FAR, nodeId) }, { rxTime })
    const live = [
      packet(user({ longName: 'New', shortName: 'N' })),
      packet(position({ latitudeI: 480_000_000, longitudeI: 110_000_000, time: seconds(START) })),
      battery(70, seconds(START)),
      link(7, seconds(START)),
    ]
    const late = [
      packet(user({ longName: 'Old', shortName: 'O' }), { rxTime: old, hopLimit: 0 }),
      packet(position({ ...PLACE, time: old }), { rxTime: old, hopLimit: 0 }),
      battery(20, old),
      link(8, old),
    ]
    await store(mesh.ingest, live)
    await store(mesh.ingest, late, at)
    expect(await mesh.node()).toMatchObject({
      longName: 'New',
      shortName: 'N',
      position: { latitude: 48, time: START },
      deviceMetrics: { batteryLevel: 70, time: START },
      lastHeard: START,
      hopsAway: 0,
    })
    expect(mesh.app.store.sqlite.prepare('select neighbor_num from neighbors').pluck().all()).toStrictEqual([7])
    // Where our own radio hears a node, no broker adds to its track.
    const isByBroker = at.source?.kind === 'mqtt'
    expect([mesh.count('positions'), mesh.count('telemetry')]).toStrictEqual([isByBroker ? 1 : 2, 2])
    expect(await mesh.node()).toMatchObject({ spoofSuspected: false })
  })

  it('never lets an older position or measurement replace a newer one, whenever it was sent', async () => {
    const time = seconds(START - 10 * MINUTE)
    await store(mesh.ingest, [
      packet(position({ latitudeI: 480_000_000, longitudeI: 110_000_000, time: seconds(START) })),
      packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 70 } } })),
    ])
    await store(mesh.ingest, [
      packet(position({ ...PLACE, time })),
      packet(telemetry({ time, variant: { case: 'deviceMetrics', value: { batteryLevel: 20, voltage: 3 } } })),
    ])
    expect(await mesh.node()).toMatchObject({
      position: { latitude: 48, time: START },
      deviceMetrics: { batteryLevel: 70, voltage: 3, time: START },
    })
  })

  it('puts no replayed packet without any time into the history', async () => {
    const metrics = telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 33 } } })
    await store(mesh.ingest, [packet(position(PLACE)), packet(metrics)], { replayed: true })
    expect(await mesh.node()).toMatchObject({ position: { latitude: 52.5, time: null }, lastHeard: null })
    expect([mesh.count('positions'), mesh.count('telemetry')]).toStrictEqual([0, 0])
  })
})

describe('a deleted node', () => {
  const memory = (lastHeard: number) =>
    nodeInfo({ num: FAR, user: { longName: 'Far Hill', shortName: 'FH' }, lastHeard: seconds(lastHeard) })

  beforeEach(async () => {
    await store(mesh.ingest, [myInfo, memory(START - MINUTE)])
    mesh.app.clock.now = START
    const admin = await mesh.app.admin()
    expect((await admin.send('DELETE', `/api/nodes/${FAR}`)).status).toBe(204)
  })

  it.each<[string, FromRadioVariant, At]>([
    ['an entry in the memory of a radio', memory(START - MINUTE), {}],
    ['an entry without a time', memory(0), {}],
    ['a replayed packet', packet(position(PLACE), { rxTime: seconds(START - MINUTE) }), { replayed: true }],
    ['a packet from its queue', packet(text('hi'), { rxTime: seconds(START - 2 * MINUTE) }), {}],
  ])('does not come back by %s', async (_, said, at) => {
    await store(mesh.ingest, [myInfo, said], { ...at, at: START + MINUTE })
    expect(await mesh.node()).toBeUndefined()
  })

  it('comes back when it is heard, and is remembered from then on', async () => {
    await store(mesh.ingest, [packet(text('hi'))], { at: START + MINUTE })
    await store(mesh.ingest, [memory(START - MINUTE)], { at: START + MINUTE })
    expect(await mesh.node()).toMatchObject({ longName: 'Far Hill', lastHeard: START + MINUTE })
  })

  it('comes back when a radio heard it while the service was away', async () => {
    await store(mesh.ingest, [memory(START + MINUTE)], { at: START + 2 * MINUTE })
    expect(await mesh.node()).toMatchObject({ longName: 'Far Hill', lastHeard: START + MINUTE })
  })

  it('comes back at once if it is our own radio', async () => {
    await store(mesh.ingest, [nodeInfo({ num: LOCAL, user: { longName: 'Ours', shortName: 'O' } })])
    const admin = await mesh.app.admin()
    expect((await admin.send('DELETE', `/api/nodes/${LOCAL}`)).status).toBe(204)
    await store(mesh.ingest, [myInfo, nodeInfo({ num: LOCAL, user: { longName: 'Ours', shortName: 'O' } })])
    expect(await mesh.node(LOCAL)).toMatchObject({ longName: 'Ours' })
  })
})

describe('a repeated packet', () => {
  it('is stored once, from any radio, with its fewest hops', async () => {
    const far = packet(position({ ...PLACE, time: 0 }), { id: 77, hopLimit: 1, rxSnr: -9, rxRssi: -110 })
    const near = packet(position({ ...PLACE, time: 0 }), { id: 77, hopLimit: 3, rxSnr: 5, rxRssi: -60 })
    expect(await store(mesh.ingest, [far])).toHaveLength(1)
    const other = { source: { kind: 'tcp', name: 'radio-2' }, at: START + 1000 } as const
    expect(await store(mesh.ingest, [near, far], other)).toStrictEqual([])
    expect(await mesh.node()).toMatchObject({ hopsAway: 0, snr: 5, rssi: -60 })
    expect(mesh.count('positions')).toBe(1)
  })

  it('is decoded if the first copy could not be', async () => {
    const encrypted = packet({}, { id: 78, payloadVariant: { case: 'encrypted', value: Uint8Array.of(1, 2, 3) } })
    await store(mesh.ingest, [encrypted])
    expect(await mesh.node()).toMatchObject({ position: null, lastHeard: START, channel: null })
    await store(mesh.ingest, [packet(position(PLACE), { id: 78 }), encrypted])
    expect(await mesh.node()).toMatchObject({ position: { latitude: 52.5 } })
  })

  it('is new after six hours', async () => {
    const again = packet(position({ ...PLACE, time: 0 }), { id: 79 })
    await store(mesh.ingest, [again])
    await store(mesh.ingest, [again], { at: START + 6 * 60 * MINUTE })
    expect(mesh.count('positions')).toBe(1)
    await store(mesh.ingest, [again], { at: START + 6 * 60 * MINUTE + 1 })
    expect(mesh.count('positions')).toBe(2)
  })

  it('from simulated radios is not compared', async () => {
    await store(mesh.ingest, [packet({ portnum: PortNum.SIMULATOR_APP }, { hopLimit: 1 })])
    expect(mesh.count('nodes')).toBe(0)
  })
})

describe('sources', () => {
  it('gives the firmware of a radio to its node', async () => {
    const metadata: FromRadioVariant = { case: 'metadata', value: { firmwareVersion: '2.8.0.1a2b3c4' } }
    await store(mesh.ingest, [metadata])
    expect(mesh.count('nodes')).toBe(0)
    await store(mesh.ingest, [myInfo, metadata])
    expect(await mesh.node(LOCAL)).toMatchObject({ firmwareVersion: '2.8.0.1a2b3c4', lastHeard: null })
  })

  it('stores channels without keys, one row per channel index', async () => {
    const channel = (name: string, role: Channel_Role): FromRadioVariant => ({
      case: 'channel',
      value: { index: 1, role, settings: { name, psk: new Uint8Array(32).fill(7) } },
    })
    await store(mesh.ingest, [channel('Hut', Channel_Role.SECONDARY)])
    await store(mesh.ingest, [
      channel('Hut 2', Channel_Role.SECONDARY),
      { case: 'metadata', value: { firmwareVersion: '2.8.0' } },
      myInfo,
    ])
    const rows = mesh.app.store.sqlite.prepare('select s.name as source, c.* from channels c join sources s').all()
    const untimed = { first_heard: null, last_heard: null }
    expect(rows).toStrictEqual([
      {
        source: RADIO.name,
        source_id: 1,
        channel_index: 1,
        name: 'Hut 2',
        role: 'SECONDARY',
        identity: null,
        ...untimed,
      },
    ])
    const sources = mesh.app.store.sqlite
      .prepare('select kind, name, local_node_num, firmware_version from sources')
      .raw()
    expect(sources.all()).toStrictEqual([['tcp', 'radio-1', LOCAL, '2.8.0']])
  })

  it('knows its own number again after a restart', async () => {
    await store(mesh.ingest, [myInfo])
    await store(createIngest(mesh.app.store), [packet(text('fake'), { from: LOCAL })])
    const row = mesh.app.store.sqlite.prepare('select spoof_suspected, is_local from nodes where node_num = ?').raw()
    expect(row.get(LOCAL)).toStrictEqual([1, 1])
  })
})

describe('createPacketWindow', () => {
  const arrival = (id: number) => ({ from: 1, id, at: START, hopsAway: 3, isReadable: true })

  it('holds 50,000 packets and forgets the oldest ones', () => {
    const window = createPacketWindow()
    const sightings = window.open()
    for (let id = 1; id <= 50_001; id++) sightings.see(arrival(id))
    sightings.commit()
    expect(window.size).toBe(50_000)
    expect([1, 2, 50_001].map((id) => window.open().see(arrival(id)))).toStrictEqual(['first', 'copy', 'copy'])
  })

  it('forgets the packets of a batch that was not stored', () => {
    const window = createPacketWindow()
    const failed = window.open()
    expect([failed.see(arrival(1)), failed.see(arrival(1))]).toStrictEqual(['first', 'copy'])
    expect(window.open().see(arrival(1))).toBe('first')
  })

  it('never recognises a packet without an id', () => {
    const sightings = createPacketWindow().open()
    expect([sightings.see(arrival(0)), sightings.see(arrival(0))]).toStrictEqual(['first', 'first'])
  })

  /** Copies of one packet, as its receivers bring them. */
  const copies = fc.array(
    fc.record({
      from: fc.constant(1),
      id: fc.constant(1),
      at: fc.constant(START),
      hopsAway: fc.option(fc.integer({ min: 0, max: 7 })),
      isReadable: fc.constant(true),
      trustLevel: fc.constantFrom('own', 'signed', 'plain'),
    }),
    { minLength: 1, maxLength: 8 },
  )

  it('recognises each copy after the first one, in any order and any batches', () => {
    const inAnyOrder = copies.chain((all) =>
      fc.tuple(
        fc.constant(all),
        fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length }),
        fc.integer({ min: 0, max: all.length }),
        copies,
      ),
    )
    fc.assert(
      fc.property(inAnyOrder, ([all, shuffled, cut, later]) => {
        const [one, other] = [createPacketWindow(), createPacketWindow()]
        const seen = (window: typeof one, batch: typeof all) => {
          const sightings = window.open()
          const answers = batch.map((each) => sightings.see(each))
          sightings.commit()
          return answers
        }
        expect(seen(one, all)[0]).toBe('first')
        seen(other, shuffled.slice(0, cut))
        seen(other, shuffled.slice(cut))
        for (const window of [one, other]) expect(new Set(seen(window, all))).toStrictEqual(new Set(['copy']))
        expect(seen(other, later)).toStrictEqual(seen(one, later))
      }),
    )
  })
})
