import { create, fromBinary, type MessageInitShape, toBinary, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import {
  bytesWithoutSecrets,
  decodeFromRadio,
  echoSent,
  isFreeOfSecrets,
} from '../../src/meshtastic/link/from-radio.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { MeshPacket_TransportMechanism as Transport } from '../../src/meshtastic/gen/packet_pb.ts'
import { type FromRadio, FromRadioSchema, ToRadioSchema } from '../../src/meshtastic/gen/stream_pb.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { type RadioEvent, toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { createReplayDetector } from '../../src/meshtastic/replay.ts'
import {
  createPacketIds,
  encodeHeartbeat,
  encodeText,
  encodeTraceroute,
  encodeWantConfig,
} from '../../src/meshtastic/link/to-radio.ts'
import { createSeededRandom } from '../../src/node/radio/demo/seeded-random.ts'
import { readRecordings } from './recordings.ts'

const NOW = 1_795_256_600_000

type Variant = NonNullable<Exclude<MessageInitShape<typeof FromRadioSchema>, FromRadio>['payloadVariant']>

function eventOf(payloadVariant: Variant): RadioEvent {
  return toRadioEvent(create(FromRadioSchema, { payloadVariant }), NOW, false)
}

describe('toRadioEvent', () => {
  const recordings = readRecordings('fromradio')
  const events = recordings.map(({ bytes }) => toRadioEvent(fromBinary(FromRadioSchema, bytes), NOW, false))

  it('distinguishes every recorded message', () => {
    const counts = new Map<string, number>()
    for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1)
    expect(Object.fromEntries(counts)).toStrictEqual({
      'my-info': 5,
      other: 35,
      'node-info': 5,
      metadata: 5,
      channel: 40,
      settings: 135,
      'config-complete': 5,
      'queue-status': 55,
      packet: 79,
    })
  })

  it('never contains a key or a password', () => {
    const text = JSON.stringify(events.filter(({ type }) => type === 'settings' || type === 'channel'))
    const secrets = recordings.flatMap(({ json }) => findSecrets(json))
    expect(new Set(secrets).size).toBe(8)
    expect(secrets.filter((secret) => text.includes(secret))).toStrictEqual([])
    for (const type of ['settings', 'channel']) {
      const safe = recordings
        .filter((_, index) => events[index]?.type === type)
        .map(({ bytes }) => decodeFromRadio(bytes))
      expect(safe.filter((message) => message === null || isFreeOfSecrets(message))).toStrictEqual([])
    }
  })

  it('says which secrets are set', () => {
    const value = { payloadVariant: { case: 'mqtt', value: { password: 'hunter2', root: 'msh' } } } as const
    expect(eventOf({ case: 'moduleConfig', value })).toMatchObject({
      settings: { section: 'mqtt', secretsSet: ['password'], values: { root: 'msh', enabled: false } },
    })
  })

  it('describes channels without their keys', () => {
    const channel = (psk: Uint8Array) =>
      eventOf({ case: 'channel', value: { index: 2, role: 2, settings: { name: 'Hut', psk } } })
    expect(channel(new Uint8Array(32))).toMatchObject({ channel: { hasKey: true, keySize: 32, role: 'SECONDARY' } })
    expect(channel(Uint8Array.of(1))).toMatchObject({ channel: { hasKey: true, keySize: 1 } })
    expect(channel(Uint8Array.of(0))).toMatchObject({ channel: { hasKey: false, keySize: 1 } })
    expect(channel(new Uint8Array(0))).toMatchObject({ channel: { hasKey: false, keySize: 0 } })
  })

  it('gives a node its signal only when the node itself was heard', () => {
    const node = (hopsAway: number) => eventOf({ case: 'nodeInfo', value: { num: 5, snr: 6, hopsAway } })
    expect(node(0)).toMatchObject({ node: { snr: 6, hopsAway: 0 } })
    expect(node(1)).toMatchObject({ node: { snr: null, hopsAway: 1 } })
    expect(eventOf({ case: 'nodeInfo', value: { num: 5, snr: 6 } })).toMatchObject({
      node: { snr: null, hopsAway: null, user: null, fix: null, metrics: [], lastHeard: null },
    })
  })

  it('has no negative hops in the recordings, and none for own packets', () => {
    const packets = events.flatMap((event) => (event.type === 'packet' ? [event.packet] : []))
    for (const { hopsAway } of packets) expect(hopsAway ?? 0).toBeGreaterThanOrEqual(0)
    const own = packets.filter(({ rssi, payload }) => rssi === null && payload.kind === 'telemetry')
    expect(own.length).toBeGreaterThan(0)
    expect(new Set(own.map(({ hopsAway }) => hopsAway))).toStrictEqual(new Set([null]))
  })
})

describe('isFreeOfSecrets', () => {
  it('refuses settings, channels, admin packets and unknown messages', () => {
    const check = (payloadVariant: Variant) => isFreeOfSecrets(create(FromRadioSchema, { payloadVariant }))
    const packet = (portnum: PortNum) =>
      check({ case: 'packet', value: { payloadVariant: { case: 'decoded', value: { portnum } } } })
    expect(packet(PortNum.TEXT_MESSAGE_APP)).toBe(true)
    expect(packet(PortNum.ADMIN_APP)).toBe(false)
    expect(check({ case: 'nodeInfo', value: {} })).toBe(true)
    expect(check({ case: 'channel', value: {} })).toBe(false)
    expect(check({ case: 'config', value: {} })).toBe(false)
    expect(check({ case: undefined })).toBe(false)
  })
})

describe('createReplayDetector', () => {
  const CONNECTED_S = 1_795_256_600
  type PacketInit = {
    from?: number
    rxRssi?: number
    rxTime?: number
    relayNode?: number
    viaMqtt?: boolean
    transportMechanism?: Transport
  }
  const packet = (portnum: PortNum, more: PacketInit = {}) =>
    create(FromRadioSchema, {
      payloadVariant: {
        case: 'packet',
        value: {
          from: 2,
          transportMechanism: Transport.TRANSPORT_LORA,
          ...more,
          payloadVariant: { case: 'decoded', value: { portnum } },
        },
      },
    })
  const message = (payloadVariant: Variant) => create(FromRadioSchema, { payloadVariant })
  const connected = () => {
    const detector = createReplayDetector()
    detector.isReplayed(message({ case: 'myInfo', value: { myNodeNum: 1 } }), CONNECTED_S * 1000)
    detector.isReplayed(message({ case: 'configCompleteId', value: 5 }), CONNECTED_S * 1000 + 1000)
    return (sent: FromRadio, afterMs: number) => detector.isReplayed(sent, CONNECTED_S * 1000 + afterMs)
  }

  it('finds the only replay of a recorded reconnect', () => {
    const detector = createReplayDetector()
    const flags = readRecordings('reconnect-2.8').map(({ bytes }) =>
      detector.isReplayed(fromBinary(FromRadioSchema, bytes), NOW),
    )
    expect(flags).toStrictEqual([...Array(flags.length - 1).fill(false), true])
  })

  it('marks remembered positions and telemetry of others until the radio has sent all of them', () => {
    const isReplayed = connected()
    expect(isReplayed(packet(PortNum.POSITION_APP, { rxTime: CONNECTED_S - 3600 }), 2000)).toBe(true)
    expect(isReplayed(packet(PortNum.TELEMETRY_APP), 55_000)).toBe(true)
    expect(isReplayed(packet(PortNum.TELEMETRY_APP), 110_000)).toBe(true)
    expect(isReplayed(packet(PortNum.TELEMETRY_APP), 175_000)).toBe(false)
  })

  it.each<[string, PortNum, PacketInit]>([
    ['with a signal strength', PortNum.POSITION_APP, { rxRssi: -80 }],
    ['that somebody relayed', PortNum.POSITION_APP, { relayNode: 0xdd }],
    ['heard since the connection', PortNum.POSITION_APP, { rxTime: CONNECTED_S + 1 }],
    ['of a broker', PortNum.POSITION_APP, { viaMqtt: true }],
    ['from the local network', PortNum.POSITION_APP, { transportMechanism: Transport.TRANSPORT_MULTICAST_UDP }],
    ['that was never sent over the air', PortNum.POSITION_APP, { transportMechanism: Transport.TRANSPORT_INTERNAL }],
    ['of the radio itself', PortNum.TELEMETRY_APP, { from: 1 }],
    ['with a text', PortNum.TEXT_MESSAGE_APP, {}],
  ])('leaves a packet %s unmarked', (_, portnum, more) => {
    expect(connected()(packet(portnum, more), 1001)).toBe(false)
  })

  it('recognises what was heard before the connection even if the clock of the radio is ahead', () => {
    const detector = createReplayDetector()
    const ahead = CONNECTED_S + 300
    detector.isReplayed(message({ case: 'myInfo', value: { myNodeNum: 1 } }), CONNECTED_S * 1000)
    detector.isReplayed(message({ case: 'nodeInfo', value: { num: 2, lastHeard: ahead } }), CONNECTED_S * 1000)
    detector.isReplayed(message({ case: 'configCompleteId', value: 5 }), CONNECTED_S * 1000)
    expect(detector.isReplayed(packet(PortNum.POSITION_APP, { rxTime: ahead }), CONNECTED_S * 1000)).toBe(true)
    expect(detector.isReplayed(packet(PortNum.POSITION_APP, { rxTime: ahead + 1 }), CONNECTED_S * 1000)).toBe(false)
  })

  it('finds no replay in recordings without one', () => {
    const detector = createReplayDetector()
    const replayed = readRecordings('fromradio').filter(({ bytes }) =>
      detector.isReplayed(fromBinary(FromRadioSchema, bytes), 0),
    )
    expect(replayed).toHaveLength(0)
  })
})

describe('ToRadio', () => {
  const read = (bytes: Uint8Array) => toJson(ToRadioSchema, fromBinary(ToRadioSchema, bytes))
  const way = { to: BROADCAST, channel: 0, id: 857355090, hopLimit: 3, wantAck: true }

  it('is encoded byte for byte as by the recorded client', () => {
    const recorded = readRecordings('toradio')
    expect(encodeWantConfig(4242)).toStrictEqual(recorded[0]?.bytes)
    const text = recorded.find(({ json }) => JSON.stringify(json).includes('"id":857355090'))
    expect(encodeText({ ...way, text: 'B says Überprüfung 👍' })).toStrictEqual(text?.bytes)
  })

  it('sends heartbeats with nonce 0', () => {
    expect([...encodeHeartbeat()]).toStrictEqual([0x3a, 0])
  })

  it('counts bytes of UTF-8, not characters', () => {
    expect(() => encodeText({ ...way, text: 'ü'.repeat(101) })).toThrow(RangeError)
    expect(encodeText({ ...way, text: 'ü'.repeat(100) }).length).toBeGreaterThan(200)
  })

  it('requests traceroutes', () => {
    expect(read(encodeTraceroute({ ...way, to: 5 }))).toMatchObject({
      packet: { to: 5, wantAck: true, decoded: { portnum: 'TRACEROUTE_APP', wantResponse: true } },
    })
  })

  it('marks reactions and replies', () => {
    expect(read(encodeText({ ...way, text: '👍', replyId: 7, isEmoji: true }))).toMatchObject({
      packet: { decoded: { emoji: 1, replyId: 7 } },
    })
  })

  it('makes ids that are u32, never 0 and differ', () => {
    const nextId = createPacketIds(createSeededRandom(1))
    const ids = Array.from({ length: 5000 }, nextId)
    expect(ids.every((id) => Number.isInteger(id) && id > 0 && id <= BROADCAST)).toBe(true)
    expect(new Set(ids).size).toBe(5000)
    expect(createPacketIds(() => 0)()).toBe(1)
    const zeros = createPacketIds(() => 0)
    expect(Array.from({ length: 2048 }, zeros)).not.toContain(0)
  })
})

/** Every value in the recordings that must stay inside the process. */
function findSecrets(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return ['psk', 'privateKey', 'password', 'wifiPsk'].includes(name) ? [value] : []
  if (typeof value === 'number') return name === 'fixedPin' ? [String(value)] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => findSecrets(each, key))
}

describe('bytesWithoutSecrets', () => {
  const KEY = new TextEncoder().encode('a key of a channel, 32 bytes of it')
  const bytesOf = (payloadVariant: Variant) => {
    const message = create(FromRadioSchema, { payloadVariant })
    return bytesWithoutSecrets(message, toBinary(FromRadioSchema, message))
  }

  it('keeps the fields of a channel that the service shows, but not its key', () => {
    const settings = { psk: KEY, name: 'Team', id: 5, uplinkEnabled: true }
    const bytes = bytesOf({ case: 'channel', value: { index: 2, role: 2, settings } })
    const message = bytes === null ? null : decodeFromRadio(bytes)
    expect(message?.payloadVariant).toMatchObject({ case: 'channel', value: { index: 2, role: 2 } })
    expect(message?.payloadVariant.value).toMatchObject({ settings: { name: 'Team', uplinkEnabled: false } })
    expect(Buffer.from(bytes ?? []).includes(Buffer.from(KEY))).toBe(false)
  })

  it('drops settings completely', () => {
    const network = { case: 'network', value: { wifiPsk: 'secret' } } as const
    expect(bytesOf({ case: 'config', value: { payloadVariant: network } })).toBeNull()
  })
})

describe('echoSent', () => {
  const data = (portnum: PortNum) => ({ case: 'decoded', value: { portnum, payload: Uint8Array.of(65) } }) as const
  const sentPacket = (portnum: PortNum) => {
    const value = { to: 9, id: 7, payloadVariant: data(portnum) }
    return toBinary(ToRadioSchema, create(ToRadioSchema, { payloadVariant: { case: 'packet', value } }))
  }

  it('is what a radio would report of its own packet', () => {
    const bytes = echoSent(sentPacket(PortNum.TEXT_MESSAGE_APP), 5)
    const message = bytes === null ? null : decodeFromRadio(bytes)
    expect(message?.payloadVariant).toMatchObject({ case: 'packet', value: { from: 5, to: 9, id: 7 } })
  })

  it('is null for other messages, and for packets that may contain secrets', () => {
    expect(echoSent(encodeWantConfig(3), 5)).toBeNull()
    expect(echoSent(sentPacket(PortNum.ADMIN_APP), 5)).toBeNull()
  })
})
