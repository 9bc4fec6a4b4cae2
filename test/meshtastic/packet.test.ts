import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { parseDeviceTime } from '../../src/meshtastic/device-time.ts'
import { enumName } from '../../src/meshtastic/enum-name.ts'
import { HardwareModelSchema } from '../../src/meshtastic/gen/hardware_pb.ts'
import { type DataSchema, MeshPacketSchema } from '../../src/meshtastic/gen/packet_pb.ts'
import {
  Config_LoRaConfig_ModemPreset as ModemPreset,
  Config_LoRaConfig_RegionCode as RegionCode,
} from '../../src/meshtastic/gen/config_pb.ts'
import {
  MeshBeaconSchema,
  NeighborInfoSchema,
  RouteDiscoverySchema,
  RoutingSchema,
  StoreAndForward_RequestResponse,
  StoreAndForwardSchema,
  UserSchema,
  WaypointSchema,
} from '../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../src/meshtastic/gen/position_pb.ts'
import { TelemetrySchema } from '../../src/meshtastic/gen/telemetry_pb.ts'
import { BROADCAST, formatNodeId, parseNodeId } from '../../src/meshtastic/node-id.ts'
import { countHops, decodePacket, type Packet } from '../../src/meshtastic/packet.ts'
import type { Payload } from '../../src/meshtastic/payload/payload.ts'

const NOW = Date.UTC(2026, 5, 1, 12)
const SECONDS = NOW / 1000

function decodeData(data: MessageInitShape<typeof DataSchema>): Payload {
  const payloadVariant = { case: 'decoded', value: data } as const
  return decodePacket(create(MeshPacketSchema, { from: 1, payloadVariant }), NOW).payload
}

function decodeMesh(packet: MessageInitShape<typeof MeshPacketSchema>): Packet {
  return decodePacket(create(MeshPacketSchema, packet), NOW)
}

function decodePositionOf(position: MessageInitShape<typeof PositionSchema>): Payload {
  const payload = toBinary(PositionSchema, create(PositionSchema, position))
  return decodeData({ portnum: PortNum.POSITION_APP, payload })
}

function decodeTelemetryOf(telemetry: MessageInitShape<typeof TelemetrySchema>): Payload {
  const payload = toBinary(TelemetrySchema, create(TelemetrySchema, telemetry))
  return decodeData({ portnum: PortNum.TELEMETRY_APP, payload })
}

describe('node ids', () => {
  it.each([
    [0xa0cb0001, '!a0cb0001'],
    [1, '!00000001'],
    [0x80000000, '!80000000'],
    [BROADCAST, '!ffffffff'],
  ])('%d is %s, unsigned both ways', (nodeNum, text) => {
    expect(formatNodeId(nodeNum)).toBe(text)
    expect(parseNodeId(text)).toBe(nodeNum)
  })

  it.each(['a0cb0001', '!a0cb001', '!a0cb00011', '!a0cb000g', '', '!'])('refuses %j', (text) => {
    expect(parseNodeId(text)).toBeNull()
  })
})

describe('enumName', () => {
  it('names known values and numbers the rest', () => {
    expect(enumName(HardwareModelSchema, 43)).toBe('HELTEC_V3')
    expect(enumName(HardwareModelSchema, 254)).toBe('UNKNOWN_254')
  })
})

describe('countHops', () => {
  it.each([
    [3, 3, 0],
    [3, 1, 2],
    [7, 0, 7],
    [0, 3, null],
    [0, 0, null],
    [2, 3, null],
  ])('start %d and limit %d give %s', (start, limit, hops) => {
    expect(countHops(start, limit)).toBe(hops)
  })
})

describe('parseDeviceTime', () => {
  it.each([
    [0, null],
    [Date.UTC(2019, 11, 31, 23, 59, 59) / 1000, null],
    [Date.UTC(2020, 0, 1) / 1000, Date.UTC(2020, 0, 1)],
    [SECONDS, NOW],
    [SECONDS + 600, NOW + 600_000],
    [SECONDS + 601, null],
    [0xffffffff, null],
  ])('%d s is %s', (seconds, expected) => {
    expect(parseDeviceTime(seconds, NOW)).toBe(expected)
  })
})

describe('decodePacket', () => {
  it('leaves absent fields null', () => {
    const packet = decodeMesh({ from: 0xeaa4e7dd, to: BROADCAST, id: 7, hopLimit: 3 })
    expect(packet).toMatchObject({ from: 0xeaa4e7dd, snr: null, rssi: null, hopsAway: null, rxTime: null, port: null })
    expect(packet.payload).toStrictEqual({ kind: 'encrypted' })
  })

  it('keeps a measured 0', () => {
    expect(decodeMesh({ rxSnr: 0, rxRssi: -90 })).toMatchObject({ snr: 0, rssi: -90 })
    expect(decodeMesh({ rxSnr: -3.5, rxRssi: 0 })).toMatchObject({ snr: -3.5, rssi: 0 })
    expect(decodeMesh({ rxSnr: Number.NaN, rxRssi: -90 })).toMatchObject({ snr: null, rssi: -90 })
  })

  it('reads both marks of an internet transport', () => {
    expect(decodeMesh({ viaMqtt: true }).viaMqtt).toBe(true)
    expect(decodeMesh({ transportMechanism: 5 }).viaMqtt).toBe(true)
    expect(decodeMesh({ transportMechanism: 1 }).viaMqtt).toBe(false)
  })

  it('gives unknown ports and transports by number', () => {
    const bytes = Uint8Array.of(0xa8, 1, 77, 0x22, 3, 8, 0xac, 2)
    const packet = decodePacket(fromBinary(MeshPacketSchema, bytes), NOW)
    expect(packet).toMatchObject({ port: 300, portName: 'UNKNOWN_300', transport: 'UNKNOWN_77' })
    expect(packet.payload).toStrictEqual({ kind: 'unknown' })
  })

  it('keeps nothing of an admin packet', () => {
    const value = { portnum: PortNum.ADMIN_APP, payload: Uint8Array.of(1, 2, 3) }
    const packet = decodeMesh({ payloadVariant: { case: 'decoded', value } })
    expect(packet.payload).toStrictEqual({ kind: 'admin' })
    expect(packet.bytes).toHaveLength(0)
  })

  it('reports malformed when a known payload does not decode', () => {
    const payload = Uint8Array.of(0x0d, 1)
    for (const portnum of [PortNum.POSITION_APP, PortNum.NODEINFO_APP, PortNum.TELEMETRY_APP, PortNum.ROUTING_APP]) {
      expect(decodeData({ portnum, payload })).toStrictEqual({ kind: 'malformed' })
    }
  })

  it('reads texts, with their reaction flag and reply', () => {
    const value = { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode('👍'), emoji: 1, replyId: 9 }
    const packet = decodeMesh({ payloadVariant: { case: 'decoded', value } })
    expect(packet).toMatchObject({ isEmoji: true, replyId: 9, requestId: null })
    expect(packet.payload).toStrictEqual({ kind: 'text', text: '👍', origin: 'message' })
    const cut = decodeData({ portnum: PortNum.ALERT_APP, payload: Uint8Array.of(0x41, 0xf0, 0x9f) })
    expect(cut).toStrictEqual({ kind: 'text', text: 'A\uFFFD', origin: 'alert' })
  })
})

describe('positions', () => {
  it('are degrees, with absent fields null and an altitude of 0 kept', () => {
    const payload = decodePositionOf({ latitudeI: 525163510, longitudeI: 133777030, altitude: 0, time: SECONDS })
    expect(payload).toStrictEqual({
      kind: 'position',
      fix: {
        latitude: 52.516351,
        longitude: 13.377703,
        altitude: 0,
        precisionBits: null,
        time: NOW,
        satsInView: null,
      },
    })
  })

  it.each([
    ['nothing', {}],
    ['a time only', { time: SECONDS }],
    ['a latitude only', { latitudeI: 525163510 }],
    ['Null Island', { latitudeI: 0, longitudeI: 0 }],
  ])('are dropped with %s', (_, position) => {
    expect(decodePositionOf(position)).toStrictEqual({ kind: 'position', fix: null })
  })

  it.each([
    ['a latitude over 90°', { latitudeI: 900000001, longitudeI: 10 }],
    ['a longitude under −180°', { latitudeI: 10, longitudeI: -1800000001 }],
  ])('have no coordinates with %s', (_, position) => {
    expect(decodePositionOf(position)).toStrictEqual({ kind: 'position', fix: null, isOffGlobe: true })
  })

  it('on the equator or the prime meridian count', () => {
    expect(decodePositionOf({ latitudeI: 0, longitudeI: 95000000 })).toMatchObject({ fix: { latitude: 0 } })
  })

  it('prefer the time of the fix and ignore clocks in the future', () => {
    const place = { latitudeI: 10, longitudeI: 10 }
    const older = decodePositionOf({ ...place, timestamp: SECONDS - 60, time: SECONDS })
    expect(older).toMatchObject({ fix: { time: NOW - 60_000 } })
    expect(decodePositionOf({ ...place, time: SECONDS + 90_000 })).toMatchObject({ fix: { time: null } })
  })
})

describe('telemetry', () => {
  it('names metrics by variant, keeps an optional 0 and leaves out absent ones', () => {
    const value = { batteryLevel: 101, voltage: 0, uptimeSeconds: 75 }
    const payload = decodeTelemetryOf({ time: SECONDS, variant: { case: 'deviceMetrics', value } })
    expect(payload).toStrictEqual({
      kind: 'telemetry',
      variant: 'deviceMetrics',
      time: NOW,
      metrics: [
        ['deviceMetrics.batteryLevel', 101],
        ['deviceMetrics.voltage', 0],
        ['deviceMetrics.uptimeSeconds', 75],
      ],
    })
  })

  it('reads 64-bit and repeated values, drops what is not a number', () => {
    const host = { freememBytes: 8_000_000_000n, load1: 12 }
    expect(decodeTelemetryOf({ variant: { case: 'hostMetrics', value: host } })).toMatchObject({
      time: null,
      metrics: [
        ['hostMetrics.freememBytes', 8_000_000_000],
        ['hostMetrics.diskfree1Bytes', 0],
        ['hostMetrics.load1', 12],
        ['hostMetrics.load5', 0],
        ['hostMetrics.load15', 0],
      ],
    })
    const stats = decodeTelemetryOf({ variant: { case: 'localStats', value: { numPacketsTx: 3 } } })
    expect(stats).toMatchObject({
      metrics: expect.arrayContaining([
        ['localStats.numPacketsTx', 3],
        ['localStats.numPacketsRxBad', 0],
      ]),
    })
    expect(stats).not.toMatchObject({ metrics: expect.arrayContaining([['localStats.noiseFloor', 0]]) })
    const environment = { temperature: Number.NaN, rainfall1h: 0.5, oneWireTemperature: [1.5, 2.5] }
    expect(decodeTelemetryOf({ variant: { case: 'environmentMetrics', value: environment } })).toMatchObject({
      metrics: [
        ['environmentMetrics.rainfall1h', 0.5],
        ['environmentMetrics.oneWireTemperature', 1.5],
        ['environmentMetrics.oneWireTemperature2', 2.5],
      ],
    })
  })

  it('of a range test is its numbered text', () => {
    const payload = new TextEncoder().encode('seq 5')
    expect(decodeData({ portnum: PortNum.RANGE_TEST_APP, payload })).toStrictEqual({ kind: 'rangetest', text: 'seq 5' })
  })

  it('of an unknown variant has no metrics', () => {
    expect(decodeData({ portnum: PortNum.TELEMETRY_APP, payload: Uint8Array.of(0xfa, 1, 0) })).toMatchObject({
      variant: null,
      metrics: [],
    })
  })
})

describe('other payloads', () => {
  it('users: names are cleaned, absent fields are null, and the key has 32 bytes', () => {
    const user = { longName: 'Hut\0', publicKey: new Uint8Array(32), hwModel: 131, role: 2 } as const
    const payload = toBinary(UserSchema, create(UserSchema, user))
    expect(decodeData({ portnum: PortNum.NODEINFO_APP, payload })).toStrictEqual({
      kind: 'nodeinfo',
      user: {
        longName: 'Hut',
        shortName: null,
        hwModel: 'THINKNODE_M9',
        role: 'ROUTER',
        isLicensed: false,
        publicKey: `${'A'.repeat(43)}=`,
        isUnmessagable: null,
      },
    })
  })

  it('users: a name that was cut inside a character is shown without that character', () => {
    const payload = Uint8Array.of(0x12, 4, 0x48, 0x75, 0xf0, 0x9f)
    expect(decodeData({ portnum: PortNum.NODEINFO_APP, payload })).toMatchObject({ user: { longName: 'Hu' } })
  })

  it('routing: an acknowledgement is error 0 or an empty message', () => {
    const none = { kind: 'routing', error: 'NONE', errorCode: 0 }
    expect(decodeData({ portnum: PortNum.ROUTING_APP, payload: Uint8Array.of(0x18, 0) })).toStrictEqual(none)
    expect(decodeData({ portnum: PortNum.ROUTING_APP, payload: new Uint8Array(0) })).toStrictEqual(none)
    const failed = toBinary(RoutingSchema, create(RoutingSchema, { variant: { case: 'errorReason', value: 39 } }))
    expect(decodeData({ portnum: PortNum.ROUTING_APP, payload: failed })).toMatchObject({
      error: 'PKI_SEND_FAIL_PUBLIC_KEY',
    })
    expect(decodeData({ portnum: PortNum.ROUTING_APP, payload: Uint8Array.of(0x18, 99) })).toMatchObject({
      error: 'UNKNOWN_99',
      errorCode: 99,
    })
  })

  it('traceroutes: SNR in decibels, unknown hops are null, and a request is not a reply', () => {
    const discovery = { route: [5, BROADCAST], snrTowards: [25, -14, -128], snrBack: [] }
    const payload = toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, discovery))
    const route = { route: [5, null], snrTowards: [6.25, -3.5, null], routeBack: [], snrBack: [] }
    const portnum = PortNum.TRACEROUTE_APP
    expect(decodeData({ portnum, payload })).toStrictEqual({ kind: 'traceroute', isReply: false, route })
    expect(decodeData({ portnum, payload, requestId: 4 })).toStrictEqual({ kind: 'traceroute', isReply: true, route })
  })

  it('neighbours and waypoints are decoded', () => {
    const info = { nodeId: 9, neighbors: [{ nodeId: 4_000_000_000, snr: -7.25 }, { nodeId: 0 }] }
    const neighbors = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, info))
    expect(decodeData({ portnum: PortNum.NEIGHBORINFO_APP, payload: neighbors })).toStrictEqual({
      kind: 'neighborinfo',
      nodeNum: 9,
      neighbors: [{ nodeNum: 4_000_000_000, snr: -7.25 }],
    })
    const point = { id: 3, latitudeI: 10, longitudeI: 20, expire: 0x7fffffff, name: 'Well', icon: 0x1f4a7 }
    const waypoint = toBinary(WaypointSchema, create(WaypointSchema, point))
    expect(decodeData({ portnum: PortNum.WAYPOINT_APP, payload: waypoint })).toMatchObject({
      waypoint: { id: 3, latitude: 0.000001, expiresAt: null, lockedTo: null, icon: '💧' },
    })
  })

  it('invitations to a mesh are decoded, without the key that they offer', () => {
    const beacon = (init: MessageInitShape<typeof MeshBeaconSchema>) =>
      decodeData({
        portnum: PortNum.MESH_BEACON_APP,
        payload: toBinary(MeshBeaconSchema, create(MeshBeaconSchema, init)),
      })
    const offerChannel = { name: 'Hut', psk: new Uint8Array(32).fill(7) }
    expect(
      beacon({
        message: 'Join us',
        offerChannel,
        offerRegion: RegionCode.EU_N_868,
        offerPreset: ModemPreset.LONG_FAST,
      }),
    ).toStrictEqual({
      kind: 'beacon',
      message: 'Join us',
      channelName: 'Hut',
      hasKey: true,
      region: 'EU_N_868',
      preset: 'LONG_FAST',
    })
    expect(beacon({ message: 'Hello' })).toStrictEqual({
      kind: 'beacon',
      message: 'Hello',
      channelName: null,
      hasKey: false,
      region: null,
      preset: null,
    })
  })

  it.each([0xd800, 0xdfff, 0x110000, 0xffffffff])('a waypoint with the invalid icon %d has none', (icon) => {
    const payload = toBinary(WaypointSchema, create(WaypointSchema, { id: 3, icon }))
    expect(decodeData({ portnum: PortNum.WAYPOINT_APP, payload })).toMatchObject({ waypoint: { id: 3, icon: null } })
  })

  it('a waypoint without coordinates has none', () => {
    expect(decodeData({ portnum: PortNum.WAYPOINT_APP, payload: Uint8Array.of(8, 3) })).toMatchObject({
      waypoint: { id: 3, latitude: null, longitude: null, expiresAt: null, icon: null },
    })
  })

  it('a store & forward replay contains the text that it repeats', () => {
    const replay = {
      rr: StoreAndForward_RequestResponse.ROUTER_TEXT_BROADCAST,
      variant: { case: 'text', value: new TextEncoder().encode('late') } as const,
    }
    const payload = toBinary(StoreAndForwardSchema, create(StoreAndForwardSchema, replay))
    expect(decodeData({ portnum: PortNum.STORE_FORWARD_APP, payload })).toStrictEqual({
      kind: 'storeforward',
      storeForward: {
        request: 'ROUTER_TEXT_BROADCAST',
        replay: { text: 'late', isDirect: false, originalId: null },
      },
    })
  })
})
