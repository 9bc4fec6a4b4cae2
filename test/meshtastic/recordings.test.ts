import { fromBinary, toBinary, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { decodeFromRadio } from '../../src/meshtastic/link/from-radio.ts'
import type { Data, MeshPacket } from '../../src/meshtastic/gen/packet_pb.ts'
import { RouteDiscoverySchema, RoutingSchema, UserSchema } from '../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../src/meshtastic/gen/position_pb.ts'
import { FromRadioSchema, ToRadioSchema } from '../../src/meshtastic/gen/stream_pb.ts'
import { TelemetrySchema } from '../../src/meshtastic/gen/telemetry_pb.ts'
import { readRecordings } from './recordings.ts'

/** Fields of the reference that our .proto files leave out. None so far; each must occur in the recordings. */
const LEFT_OUT: readonly string[] = []

/** Fields that we know and the reference does not. */
const NOT_IN_REFERENCE: readonly string[] = [
  'regionPresets',
  'moduleConfig.trafficManagement',
  'moduleConfig.tak',
  'moduleConfig.meshBeacon',
  'config.lora.femLnaMode',
]

const INNER_SCHEMAS = {
  [PortNum.POSITION_APP]: PositionSchema,
  [PortNum.NODEINFO_APP]: UserSchema,
  [PortNum.ROUTING_APP]: RoutingSchema,
  [PortNum.TELEMETRY_APP]: TelemetrySchema,
  [PortNum.TRACEROUTE_APP]: RouteDiscoverySchema,
} as const

/** A copy of a JSON value without the fields at these dotted paths, and the paths that occurred. */
function without(value: unknown, paths: readonly string[], seen: Set<string>, at = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => without(each, paths, seen, at))
  if (typeof value !== 'object' || value === null) return value
  const kept: Record<string, unknown> = {}
  for (const [name, each] of Object.entries(value)) {
    const path = at === '' ? name : `${at}.${name}`
    if (paths.includes(path)) seen.add(path)
    else kept[name] = without(each, paths, seen, path)
  }
  return kept
}

function innerJson(data: Data): unknown {
  if (data.portnum === PortNum.TEXT_MESSAGE_APP) return { text: new TextDecoder().decode(data.payload) }
  const schema = Object.entries(INNER_SCHEMAS).find(([port]) => Number(port) === data.portnum)?.[1]
  return schema === undefined
    ? { payloadHex: Buffer.from(data.payload).toString('hex') }
    : toJson(schema, fromBinary(schema, data.payload))
}

function dataOf(packet: MeshPacket): Data | null {
  return packet.payloadVariant.case === 'decoded' ? packet.payloadVariant.value : null
}

describe('recordings of real firmware', () => {
  it('decodes every FromRadio like the reference', () => {
    const leftOut = new Set<string>()
    const ours = new Set<string>()
    const recordings = readRecordings('fromradio')
    expect(recordings).toHaveLength(364)
    for (const [index, { bytes, json }] of recordings.entries()) {
      const decoded = toJson(FromRadioSchema, fromBinary(FromRadioSchema, bytes))
      const expected = without(json, LEFT_OUT, leftOut)
      expect(without(decoded, NOT_IN_REFERENCE, ours), `line ${index + 1}`).toStrictEqual(expected)
    }
    expect([...leftOut]).toStrictEqual([...LEFT_OUT])
    expect([...ours]).toStrictEqual([...NOT_IN_REFERENCE])
  })

  it('decodes every ToRadio like the reference', () => {
    const recordings = readRecordings('toradio')
    expect(recordings).toHaveLength(73)
    for (const [index, { bytes, json }] of recordings.entries()) {
      expect(toJson(ToRadioSchema, fromBinary(ToRadioSchema, bytes)), `line ${index + 1}`).toStrictEqual(json)
    }
  })

  it('decodes every inner payload like the reference', () => {
    let compared = 0
    for (const [index, { bytes, inner }] of readRecordings('fromradio').entries()) {
      if (inner === null) continue
      const { payloadVariant } = fromBinary(FromRadioSchema, bytes)
      const data = payloadVariant.case === 'packet' ? dataOf(payloadVariant.value) : null
      expect(data === null ? null : innerJson(data), `line ${index + 1}`).toStrictEqual(inner)
      compared += 1
    }
    expect(compared).toBe(79)
  })

  it('keeps unknown fields when a message is written again', () => {
    for (const { bytes } of readRecordings('fromradio')) {
      const again = toBinary(FromRadioSchema, fromBinary(FromRadioSchema, bytes))
      expect(toJson(FromRadioSchema, fromBinary(FromRadioSchema, again))).toStrictEqual(
        toJson(FromRadioSchema, fromBinary(FromRadioSchema, bytes)),
      )
      expect(again.length).toBe(bytes.length)
    }
  })

  it('accepts every recorded message, of variants in our table', () => {
    const decoded = readRecordings('fromradio').map(({ bytes }) => decodeFromRadio(bytes))
    expect(decoded.filter((message) => message === null)).toHaveLength(0)
    expect(decoded.filter((message) => message?.payloadVariant.case === undefined)).toHaveLength(0)
  })
})
