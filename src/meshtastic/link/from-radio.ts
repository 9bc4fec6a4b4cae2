import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { ChannelSchema } from '../gen/channel_pb.ts'
import { type FromRadio, FromRadioSchema, ToRadioSchema } from '../gen/stream_pb.ts'
import { mayHoldSecrets } from '../payload/payload.ts'

/** In 2026 the protocol is at field 20. A much higher number means that debug text was taken for a message. */
const MAX_FIELD_NUMBER = 255

/** Variants that are a plain number: configCompleteId and rebooted. All others in our table have a length. */
const NUMBER_VARIANTS: readonly number[] = [7, 8]

const ID_FIELD = 1

/** A message from the radio, or null for other bytes. Newer variants decode to a message without a variant. */
export function decodeFromRadio(payload: Uint8Array): FromRadio | null {
  try {
    return isShapedLikeFromRadio(payload) ? fromBinary(FromRadioSchema, payload) : null
  } catch {
    return null
  }
}

/** At most an id and one variant. The library accepts any wire type for any field, and text often fits that. */
function isShapedLikeFromRadio(payload: Uint8Array): boolean {
  const reader = new BinaryReader(payload)
  let variants = 0
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    if (number !== ID_FIELD) variants += 1
    if (number > MAX_FIELD_NUMBER || variants > 1 || !hasExpectedType(number, wireType)) return false
    reader.skip(wireType, number)
  }
  return true
}

function hasExpectedType(number: number, wireType: WireType): boolean {
  const isNumber = wireType === WireType.Varint
  if (number === ID_FIELD || NUMBER_VARIANTS.includes(number)) return isNumber
  if (FromRadioSchema.fields.some((field) => field.number === number)) return wireType === WireType.LengthDelimited
  return isNumber || wireType === WireType.LengthDelimited
}

/**
 * Whether the bytes of a message may leave the process or be stored: true for packets and facts about nodes. Settings,
 * channels and some packets contain keys and passwords; unknown messages might.
 */
export function isFreeOfSecrets(message: FromRadio): boolean {
  const { case: variant, value } = message.payloadVariant
  if (message.$unknown !== undefined) return false
  if (variant === 'packet') {
    return value.payloadVariant.case !== 'decoded' || !mayHoldSecrets(value.payloadVariant.value.portnum)
  }
  return variant === 'myInfo' || variant === 'nodeInfo' || variant === 'metadata' || variant === 'queueStatus'
}

/**
 * The bytes of a message that may leave the process: the `payload` that it was decoded from; for a channel only its
 * index, name and role. Null for possible secrets.
 */
export function bytesWithoutSecrets(message: FromRadio, payload: Uint8Array): Uint8Array | null {
  const { case: variant, value } = message.payloadVariant
  if (variant !== 'channel') return isFreeOfSecrets(message) ? payload : null
  const { index, role, settings } = value
  const channel = create(ChannelSchema, { index, role, settings: { name: settings?.name ?? '' } })
  return toBinary(FromRadioSchema, create(FromRadioSchema, { payloadVariant: { case: 'channel', value: channel } }))
}

/**
 * A packet that was sent, in the form in which its own radio would report it; null if it is no packet, or may contain
 * secrets.
 */
export function echoSent(toRadio: Uint8Array, ownNodeNum: number): Uint8Array | null {
  const { payloadVariant } = fromBinary(ToRadioSchema, toRadio)
  if (payloadVariant.case !== 'packet') return null
  const value = { ...payloadVariant.value, from: ownNodeNum }
  const message = create(FromRadioSchema, { payloadVariant: { case: 'packet', value } })
  return bytesWithoutSecrets(message, toBinary(FromRadioSchema, message))
}
