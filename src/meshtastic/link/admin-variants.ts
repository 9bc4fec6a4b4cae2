import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

/** The field of `AdminMessage` that is no variant: the session passkey. */
const PASSKEY = 101
const MAX_FIELD = 2047

/** The only variant of an admin message. `bytes` of a message or text, `value` of a number; the other one is null. */
export type AdminVariant = {
  readonly number: number
  readonly value: number | null
  readonly bytes: Uint8Array | null
}

/**
 * The variant of an admin message, also one that is not in our table. Null unless there is exactly one: a radio would
 * take the last of several.
 */
export function readAdminVariant(payload: Uint8Array): AdminVariant | null {
  try {
    const reader = new BinaryReader(payload)
    let found: AdminVariant | null = null
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag()
      if (number === PASSKEY && wireType === WireType.LengthDelimited) {
        reader.bytes()
        continue
      }
      if (found !== null || number > MAX_FIELD) return null
      found = readValue(reader, number, wireType)
      if (found === null) return null
    }
    return found
  } catch {
    return null
  }
}

function readValue(reader: BinaryReader, number: number, wireType: WireType): AdminVariant | null {
  switch (wireType) {
    case WireType.Varint:
      // Negative numbers take ten bytes: only their lowest 32 bits count.
      return { number, value: Number(BigInt.asUintN(32, BigInt(reader.uint64()))), bytes: null }
    case WireType.Bit32:
      return { number, value: reader.fixed32(), bytes: null }
    case WireType.LengthDelimited:
      return { number, value: null, bytes: reader.bytes() }
    default:
      return null
  }
}

/** An admin message with one message or text. */
export function encodeAdminBytes(number: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish()
}

/** What an app shares of a node: `SharedContact`. */
export type SharedContact = {
  readonly nodeNum: number
  readonly publicKey: Uint8Array
  readonly shouldIgnore: boolean
}

const USER_KEY = 8

/** Null for other bytes. */
export function readSharedContact(bytes: Uint8Array): SharedContact | null {
  try {
    const reader = new BinaryReader(bytes)
    let nodeNum = 0
    let shouldIgnore = false
    let publicKey: Uint8Array = new Uint8Array(0)
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag()
      if (number === 1 && wireType === WireType.Varint) nodeNum = reader.uint32()
      else if (number === 2 && wireType === WireType.LengthDelimited)
        publicKey = readUserKey(reader.bytes()) ?? publicKey
      else if (number === 3 && wireType === WireType.Varint) shouldIgnore = reader.bool()
      else reader.skip(wireType, number)
    }
    return nodeNum === 0 ? null : { nodeNum, publicKey, shouldIgnore }
  } catch {
    return null
  }
}

function readUserKey(user: Uint8Array): Uint8Array | null {
  const reader = new BinaryReader(user)
  let key: Uint8Array | null = null
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    if (number === USER_KEY && wireType === WireType.LengthDelimited) key = reader.bytes()
    else reader.skip(wireType, number)
  }
  return key
}
