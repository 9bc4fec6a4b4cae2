import { type DescField, type DescMessage, fromBinary, type MessageShape, ScalarType } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'

/** How far a newer firmware's field number may be above our newest one. A higher number is noise. */
const FIELDS_TO_COME = 32

/** Messages of the protocol nest three deep. */
const MAX_DEPTH = 8

/**
 * The message in these bytes, or null. Stricter than the library: known fields must have their own wire type and occur
 * once unless repeated, and newer fields must have a number near ours. Bytes decrypted with a wrong key practically
 * never pass.
 */
export function decodeStrictly<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> | null {
  try {
    return hasShape(schema, bytes, MAX_DEPTH) ? fromBinary(schema, bytes) : null
  } catch {
    return null
  }
}

function hasShape(schema: DescMessage, bytes: Uint8Array, depth: number): boolean {
  const highest = schema.fields.reduce((max, { number }) => Math.max(max, number), 0)
  const reader = new BinaryReader(bytes)
  const seen = new Set<number>()
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    const field = schema.fields.find((each) => each.number === number)
    const isTwice = seen.has(number) && field?.fieldKind !== 'list'
    if (isTwice || !(field === undefined ? isToCome(number, wireType, highest) : isOfType(field, wireType)))
      return false
    seen.add(number)
    if (field?.message === undefined) reader.skip(wireType, number)
    else if (depth === 0 || !hasShape(field.message, reader.bytes(), depth - 1)) return false
  }
  return true
}

function isToCome(number: number, wireType: WireType, highest: number): boolean {
  const isGroup = wireType === WireType.StartGroup || wireType === WireType.EndGroup
  return number <= highest + FIELDS_TO_COME && !isGroup
}

function isOfType(field: DescField, wireType: WireType): boolean {
  if (field.fieldKind === 'message' || field.fieldKind === 'map') return wireType === WireType.LengthDelimited
  if (field.fieldKind === 'list') {
    // Numbers may be packed or not, regardless of the schema.
    return (
      wireType === WireType.LengthDelimited || (field.listKind === 'scalar' && wireType === wireTypeOf(field.scalar))
    )
  }
  return wireType === (field.fieldKind === 'enum' ? WireType.Varint : wireTypeOf(field.scalar))
}

function wireTypeOf(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
    case ScalarType.FLOAT:
      return WireType.Bit32
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
    case ScalarType.DOUBLE:
      return WireType.Bit64
    default:
      return WireType.Varint
  }
}
