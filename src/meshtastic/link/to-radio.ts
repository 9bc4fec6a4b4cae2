import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { PortNum } from '../gen/ports_pb.ts'
import { type ToRadio, ToRadioSchema } from '../gen/stream_pb.ts'
import { MAX_TEXT_BYTES } from '../../shared/limits.ts'

/** The longest content of a packet, in bytes. */
export const MAX_PAYLOAD_BYTES = 233

/** Routing fields of every packet that we send. */
export type Destination = {
  /** Node number (u32) or `BROADCAST`. */
  readonly to: number
  /** Channel index, 0 to 7. */
  readonly channel: number
  /** From `createPacketIds`, never 0. */
  readonly id: number
  /** 0 to 7. The radio does not limit it to its own setting, so the caller must. */
  readonly hopLimit: number
  readonly wantAck: boolean
}

export type TextPacket = Destination & {
  readonly text: string
  readonly replyId?: number | null
  /** The text is one emoji that reacts to `replyId`. */
  readonly isEmoji?: boolean
}

export type DataPacket = Destination & {
  readonly port: PortNum
  readonly payload: Uint8Array
  readonly wantResponse?: boolean
  readonly replyId?: number | null
  readonly isEmoji?: boolean
}

/** Requests everything the radio knows. `nonce` (u32, not 0) comes back in `config-complete`. */
export function encodeWantConfig(nonce: number): Uint8Array {
  return encode({ case: 'wantConfigId', value: nonce })
}

/** Keeps the connection open. The nonce stays 0: 1 would make the radio announce itself on the mesh. */
export function encodeHeartbeat(): Uint8Array {
  return encode({ case: 'heartbeat', value: { nonce: 0 } })
}

/** Bytes of UTF-8. */
export function countTextBytes(text: string): number {
  return new TextEncoder().encode(text).length
}

/** Throws `RangeError` for more than `MAX_TEXT_BYTES` bytes. */
export function encodeText({ text, ...packet }: TextPacket): Uint8Array {
  const payload = new TextEncoder().encode(text)
  if (payload.length > MAX_TEXT_BYTES) throw new RangeError(`A text holds at most ${MAX_TEXT_BYTES} bytes`)
  return encodeData({ ...packet, port: PortNum.TEXT_MESSAGE_APP, payload })
}

/** Traces the route to a node. */
export function encodeTraceroute(destination: Destination): Uint8Array {
  return encodeData({ ...destination, port: PortNum.TRACEROUTE_APP, payload: new Uint8Array(0), wantResponse: true })
}

/** Any payload to any port. */
export function encodeData(packet: DataPacket): Uint8Array {
  const { to, channel, id, hopLimit, wantAck, port, payload } = packet
  const decoded = {
    portnum: port,
    payload,
    wantResponse: packet.wantResponse ?? false,
    replyId: packet.replyId ?? 0,
    emoji: packet.isEmoji === true ? 1 : 0,
  }
  const payloadVariant = { case: 'decoded', value: decoded } as const
  return encode({ case: 'packet', value: { to, channel, id, hopLimit, wantAck, payloadVariant } })
}

/**
 * Packet ids as the firmware makes them: a 10-bit counter below 22 random bits, never 0. `random` returns numbers from
 * 0 to below 1.
 */
export function createPacketIds(random: () => number): () => number {
  let counter = Math.floor(random() * 1024)
  return () => {
    counter = (counter + 1) % 1024
    const id = Math.floor(random() * 2 ** 22) * 1024 + counter
    return id === 0 ? 1 : id
  }
}

type Variant = NonNullable<MessageInitShape<typeof ToRadioSchema>['payloadVariant']>

function encode(payloadVariant: Variant): Uint8Array {
  const message: ToRadio = create(ToRadioSchema, { payloadVariant })
  return toBinary(ToRadioSchema, message)
}
