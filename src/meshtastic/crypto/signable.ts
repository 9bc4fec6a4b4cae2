import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Packet } from '../packet.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { contentOf } from '../payload/payload.ts'
import { SIGNATURE_BYTES } from './xeddsa.ts'

/** The size of a LoRa packet without its header. A message is signed if it fits together with its signature. */
const MAX_DATA_BYTES = 255 - 16
/** The signature as a field of `Data`. */
const SIGNATURE_FIELD_BYTES = SIGNATURE_BYTES + 2

/** Firmware 2.8 counts only the fields that it knows in these, so that nobody makes one too large to be signed. */
const COUNTED_BY_FIELD = [PortNum.POSITION_APP, PortNum.TELEMETRY_APP, PortNum.WAYPOINT_APP, PortNum.NODEINFO_APP]

/**
 * Whether the encoded `Data` of a packet has room for a signature, so that firmware 2.8 would have signed it as a
 * broadcast. Fields of `Data` that are not known here may make it larger, never smaller.
 */
export function canCarrySignature({
  port,
  bytes,
  wantResponse,
  requestId,
  replyId,
  isEmoji,
  bitfield,
}: Packet): boolean {
  if (port === null) return false
  const payload = countBytes(port, bytes)
  const varint = (n: number) => (n < 0x80 ? 1 : 2)
  const size = 1 + varint(port) + 1 + varint(payload) + payload + (wantResponse ? 2 : 0) + (bitfield === null ? 0 : 2)
  const fixed = [requestId !== null, replyId !== null, isEmoji].filter(Boolean).length * 5
  return size + fixed + SIGNATURE_FIELD_BYTES <= MAX_DATA_BYTES
}

function countBytes(port: number, bytes: Uint8Array): number {
  const counted = COUNTED_BY_FIELD.find((each) => each === port)
  const schema = counted === undefined ? null : contentOf(counted)
  if (schema === null || schema === 'text') return bytes.length
  try {
    return Math.min(bytes.length, toBinary(schema, fromBinary(schema, bytes), { writeUnknownFields: false }).length)
  } catch {
    return bytes.length
  }
}
