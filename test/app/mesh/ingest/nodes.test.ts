import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { UserSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { BROADCAST } from '../../../../src/meshtastic/node-id.ts'
import { START } from '../../../support/app.ts'
import {
  createTestMesh,
  FAR,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

const MINUTE = 60_000
const PLACE = { latitudeI: 525_000_000, longitudeI: 134_000_000 }

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
})
afterEach(() => mesh.app.close())

const detail = async (nodeNum: number): Promise<unknown> =>
  (await (await mesh.app.admin()).send('GET', `/api/nodes/${nodeNum}`)).json()

describe('the identity of a node', () => {
  it('names hardware and role as the protocol does, and shows newer values as numbers', async () => {
    const newer = Object.assign(create(UserSchema, { longName: 'New' }), { hwModel: 999, role: 77 })
    await store(mesh.ingest, [
      packet(user({ longName: 'Far Hill', shortName: 'FH', hwModel: 43, role: 2, isLicensed: true })),
      packet(user(newer), { from: 7 }),
    ])
    expect(await mesh.node()).toMatchObject({
      nodeId: '!a0cb0002',
      longName: 'Far Hill',
      shortName: 'FH',
      hwModel: 'HELTEC_V3',
      role: 'ROUTER',
      isLicensed: true,
    })
    expect(await mesh.node(7)).toMatchObject({ nodeId: '!00000007', hwModel: 'UNKNOWN_999', role: 'UNKNOWN_77' })
  })

  it('is kept when a later NodeInfo lacks a field', async () => {
    await store(mesh.ingest, [
      packet(user({ longName: 'Far Hill', shortName: 'FH', hwModel: 43, role: 2, isLicensed: true })),
    ])
    await store(mesh.ingest, [
      packet(user({ id: '!a0cb0002' })),
      nodeInfo({ num: FAR }),
      nodeInfo({ num: FAR, user: {} }),
    ])
    expect(await mesh.node()).toMatchObject({
      longName: 'Far Hill',
      shortName: 'FH',
      hwModel: 'HELTEC_V3',
      role: 'ROUTER',
      isLicensed: true,
    })
  })

  it('keeps the first key, and a warning, when a node announces another one', async () => {
    const key = (byte: number) => new Uint8Array(32).fill(byte)
    await store(mesh.ingest, [packet(user({ longName: 'F', publicKey: key(1) }))])
    await store(mesh.ingest, [packet(user({ longName: 'F' })), packet(user({ longName: 'F', publicKey: key(1) }))])
    expect(await mesh.node()).toMatchObject({ keyMismatch: false })
    await store(mesh.ingest, [packet(user({ longName: 'F', publicKey: key(2) }))])
    await store(mesh.ingest, [packet(user({ longName: 'F', publicKey: key(3) }))])
    const base64 = (byte: number) => Buffer.from(key(byte)).toString('base64')
    expect(await mesh.node()).toMatchObject({ keyMismatch: true, publicKey: base64(1) })
    expect(await detail(FAR)).toMatchObject({
      previousPublicKey: null,
      refusedPublicKey: base64(3),
      spoofSuspected: false,
    })
  })

  it('takes favourites of the radio for new nodes only: later they belong to the administrator', async () => {
    await store(mesh.ingest, [nodeInfo({ num: FAR, isFavorite: true })])
    expect(await mesh.node()).toMatchObject({ isFavorite: true })
    const admin = await mesh.app.admin()
    await admin.send('PUT', `/api/nodes/${FAR}`, { isFavorite: false, isIgnored: true, notes: 'roof' })
    await store(mesh.ingest, [nodeInfo({ num: FAR, isFavorite: true }), packet(text('hi'))])
    expect(await mesh.node()).toMatchObject({ isFavorite: false, isIgnored: true, notes: 'roof' })
  })

  it('treats node numbers as unsigned, and ignores 0 and the broadcast number', async () => {
    await store(mesh.ingest, [packet(text('a'), { from: 0xfffffffe }), packet(text('b'), { from: 0 })])
    await store(mesh.ingest, [
      packet(text('c'), { from: BROADCAST }),
      nodeInfo({ num: 0 }),
      nodeInfo({ num: BROADCAST }),
    ])
    expect(await mesh.nodes()).toMatchObject([{ nodeNum: 4_294_967_294, nodeId: '!fffffffe' }])
    expect(mesh.count('nodes')).toBe(1)
  })
})

describe('how a node is heard', () => {
  it('counts hops only if the packet has its hop start', async () => {
    await store(mesh.ingest, [
      packet(text('direct'), { from: 11 }),
      packet(text('relayed'), { from: 12, hopLimit: 1 }),
      packet(text('old firmware'), { from: 13, hopStart: 0, hopLimit: 3 }),
      packet(text('nonsense'), { from: 14, hopStart: 2, hopLimit: 5 }),
    ])
    const hops = new Map((await mesh.nodes()).map((each) => [each['nodeNum'], each['hopsAway']]))
    expect(hops).toStrictEqual(
      new Map<unknown, unknown>([
        [11, 0],
        [12, 2],
        [13, null],
        [14, null],
      ]),
    )
  })

  it('never shows the signal of a relay as the node’s own', async () => {
    await store(mesh.ingest, [packet(text('relayed'), { hopLimit: 2, rxSnr: -3, rxRssi: -99 })])
    expect(await mesh.node()).toMatchObject({ snr: null, rssi: null, hopsAway: 1 })
    await store(mesh.ingest, [packet(text('direct'), { rxSnr: 6.25, rxRssi: -70 })])
    await store(mesh.ingest, [
      packet(text('relayed'), { hopLimit: 2, rxSnr: -3, rxRssi: -99 }),
      packet(text('by MQTT'), { viaMqtt: true, rxSnr: 1, rxRssi: -1 }),
    ])
    expect(await mesh.node()).toMatchObject({ snr: 6.25, rssi: -70, hopsAway: 1, viaMqtt: false })
  })

  it('uses the server’s time when the radio has no clock or a wrong one', async () => {
    const clocks = {
      none: 0,
      ancient: 1_000_000_000,
      ahead: seconds(START + 11 * MINUTE),
      early: seconds(START - MINUTE),
    }
    const variants = Object.values(clocks).map((rxTime, index) => packet(text('x'), { from: index + 1, rxTime }))
    await store(mesh.ingest, variants)
    const lastHeard = new Map((await mesh.nodes()).map((each) => [each['nodeNum'], each['lastHeard']]))
    expect(lastHeard).toStrictEqual(
      new Map<unknown, unknown>([
        [1, START],
        [2, START],
        [3, START],
        [4, START - MINUTE],
      ]),
    )
  })

  it('never moves lastHeard beyond the time of receipt, nor backward', async () => {
    await store(mesh.ingest, [packet(text('x'), { rxTime: seconds(START + 5 * MINUTE) })])
    expect(await mesh.node()).toMatchObject({ lastHeard: START, firstHeard: START })
    await store(mesh.ingest, [packet(text('late'), { rxTime: seconds(START - 3 * MINUTE) })], { at: START + 1 })
    await store(mesh.ingest, [nodeInfo({ num: FAR, lastHeard: seconds(START - 9 * MINUTE) })], { at: START + 2 })
    expect(await mesh.node()).toMatchObject({ lastHeard: START, firstHeard: START })
    await store(mesh.ingest, [packet(text('next'))], { at: START + MINUTE })
    expect(await mesh.node()).toMatchObject({ lastHeard: START + MINUTE, firstHeard: START })
  })

  it('marks our own radio, gives it no hops or signal, and notices its replacement', async () => {
    const own = packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 101 } } }), {
      from: LOCAL,
      hopStart: 0,
      rxSnr: 0,
    })
    if (own.case === 'packet') delete own.value.rxRssi
    await store(mesh.ingest, [myInfo, nodeInfo({ num: LOCAL, user: { longName: 'Ours' }, hopsAway: 0, snr: 3 }), own])
    expect(await mesh.node(LOCAL)).toMatchObject({ isLocal: true, hopsAway: null, snr: null, rssi: null })
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: FAR } }, nodeInfo({ num: FAR })])
    expect(await mesh.node(LOCAL)).toMatchObject({ isLocal: false })
    expect(await mesh.node(FAR)).toMatchObject({ isLocal: true })
  })

  it('suspects spoofing when our own number is heard by radio, and believes none of it', async () => {
    await store(mesh.ingest, [myInfo, nodeInfo({ num: LOCAL, user: { longName: 'Ours' } })])
    await store(mesh.ingest, [packet(text('its own'), { from: LOCAL, rxRssi: undefined })])
    expect(await detail(LOCAL)).toMatchObject({ spoofSuspected: false, previousPublicKey: null })
    await store(mesh.ingest, [
      packet(user({ longName: 'Not ours' }), { from: LOCAL }),
      packet(text('fake'), { from: LOCAL }),
    ])
    expect(await detail(LOCAL)).toMatchObject({ spoofSuspected: true })
    expect(await mesh.node(LOCAL)).toMatchObject({ longName: 'Ours', hopsAway: null, snr: null })
  })
})

describe('the position of a node', () => {
  it('keeps coordinates and altitude when later packets have none', async () => {
    await store(mesh.ingest, [packet(position({ ...PLACE, altitude: 120, precisionBits: 14, time: seconds(START) }))])
    const place = { latitude: 52.5, longitude: 13.4, altitude: 120, precisionBits: 14, time: START }
    expect(await mesh.node()).toMatchObject({ position: place })
    await store(mesh.ingest, [packet(position({})), packet(text('hi')), nodeInfo({ num: FAR, position: {} })])
    expect(await mesh.node()).toMatchObject({ position: place })
    expect(mesh.count('positions')).toBe(1)
  })

  it('drops Null Island and impossible coordinates', async () => {
    await store(mesh.ingest, [
      packet(position({ latitudeI: 0, longitudeI: 0 })),
      packet(position({ latitudeI: 910_000_000, longitudeI: 0 })),
      packet(position({ latitudeI: 0, longitudeI: -1_810_000_000 })),
    ])
    expect(await mesh.node()).toMatchObject({ position: null })
    expect(mesh.count('positions')).toBe(0)
  })

  it('accepts 0 for one coordinate', async () => {
    await store(mesh.ingest, [packet(position({ latitudeI: 0, longitudeI: 134_000_000 }))])
    expect(await mesh.node()).toMatchObject({ position: { latitude: 0, longitude: 13.4, time: START } })
  })

  it('uses the time of receipt for a fix without a time', async () => {
    await store(mesh.ingest, [packet(position({ ...PLACE, time: 5 }), { rxTime: seconds(START - MINUTE) })])
    await store(mesh.ingest, [packet(position({ ...PLACE, time: seconds(START + 3600_000) }))], { at: START + 1 })
    const times = mesh.app.store.sqlite.prepare('select t from positions order by t').pluck().all()
    expect(times).toStrictEqual([START - MINUTE, START + 1])
  })
})

describe('the measurements of a node', () => {
  const device = (value: object, time = 0) => telemetry({ time, variant: { case: 'deviceMetrics', value } })

  it('stores all metrics by name, also zeros, and the latest device metrics with the node', async () => {
    await store(mesh.ingest, [
      packet(device({ batteryLevel: 101, voltage: 0, uptimeSeconds: 3_000_000_000 }, seconds(START - MINUTE))),
      packet(telemetry({ variant: { case: 'environmentMetrics', value: { temperature: -4.5 } } })),
    ])
    expect(await mesh.node()).toMatchObject({
      deviceMetrics: {
        batteryLevel: 101,
        voltage: 0,
        channelUtilization: null,
        airUtilTx: null,
        uptimeSeconds: 3_000_000_000,
        time: START - MINUTE,
      },
    })
    const rows = mesh.app.store.sqlite
      .prepare('select name, t, v from telemetry join metrics on metrics.id = metric order by name')
      .raw()
      .all()
    expect(rows).toStrictEqual([
      ['deviceMetrics.batteryLevel', START - MINUTE, 101],
      ['deviceMetrics.uptimeSeconds', START - MINUTE, 3_000_000_000],
      ['deviceMetrics.voltage', START - MINUTE, 0],
      ['environmentMetrics.temperature', START, -4.5],
    ])
  })

  it('lets a partial report change only what it contains', async () => {
    await store(mesh.ingest, [packet(device({ batteryLevel: 80, voltage: 4 }))])
    await store(mesh.ingest, [packet(device({ channelUtilization: 12.5 })), packet(device({}))], { at: START + 1 })
    expect(await mesh.node()).toMatchObject({
      deviceMetrics: { batteryLevel: 80, voltage: 4, channelUtilization: 12.5, time: START + 1 },
    })
  })

  it('has no device metrics for a node that reported none', async () => {
    await store(mesh.ingest, [packet(telemetry({ variant: { case: 'localStats', value: { uptimeSeconds: 5 } } }))])
    expect(await mesh.node()).toMatchObject({ deviceMetrics: null })
  })
})
