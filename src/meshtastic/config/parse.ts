import { ScalarType } from '@bufbuild/protobuf'
import { base64Decode } from '@bufbuild/protobuf/wire'
import type { SectionField } from './fields.ts'
import { writeFlags } from './flags.ts'

/** A value in the form of the message, or the error in the given one. Never repeats the value. */
export type Parsed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string }

const refuse = (message: string): Parsed => ({ ok: false, message })
const accept = (value: unknown): Parsed => ({ ok: true, value })

/** A value from JSON, for a field; `present` is its current value, which may have names unknown to us. */
export function parseField(field: SectionField, value: unknown, present: unknown): Parsed {
  if (!field.list) return parseItem(field, value, present)
  if (!Array.isArray(value)) return refuse('a list')
  if (field.maxItems !== null && value.length > field.maxItems) return refuse(`at most ${field.maxItems}`)
  const items = value.map((item) => parseItem(field, item, null))
  return items.find(({ ok }) => !ok) ?? accept(items.map((item) => (item.ok ? item.value : null)))
}

/** A secret: a text, digits for a number, base64 for bytes; null clears it. */
export function parseSecret(field: SectionField, value: string | null): Parsed {
  if (field.type === 'integer') {
    if (value === null) return accept(0)
    return /^\d{6}$/.test(value) ? accept(Number(value)) : refuse('six digits')
  }
  if (value === null && field.sizes?.includes(0) === false) return refuse('it can be replaced, not cleared')
  return parseItem(field, value ?? '', null)
}

function parseItem(field: SectionField, value: unknown, present: unknown): Parsed {
  switch (field.type) {
    case 'boolean':
      return typeof value === 'boolean' ? accept(value) : refuse('true or false')
    case 'enum':
      return parseEnum(field, value, present)
    case 'flags':
      return parseFlags(field, value, present)
    case 'integer':
      return parseInteger(field, value)
    case 'number': {
      const isNumber = typeof value === 'number' && Number.isFinite(Math.fround(value))
      return isNumber ? accept(value) : refuse('a number')
    }
    case 'string':
      return parseText(field, value)
    case 'bytes':
      return parseBytes(field, value)
    case 'ipv4':
      return parseIpv4(value)
    default:
      return field.type satisfies never
  }
}

function parseEnum({ enum: options }: SectionField, value: unknown, present: unknown): Parsed {
  const known = options?.values.find(({ name }) => name === value)
  if (known !== undefined) return accept(known.number)
  const unknown = typeof value === 'string' && value === present ? /^UNKNOWN_(\d+)$/.exec(value)?.[1] : undefined
  return unknown === undefined ? refuse('one of the options') : accept(Number(unknown))
}

function parseFlags({ enum: table, way }: SectionField, value: unknown, present: unknown): Parsed {
  const names = textsOf(value)
  const bits = table === null || names === null ? null : writeFlags(table, names, textsOf(present) ?? [])
  if (bits === null) return refuse('a list of options')
  return accept(way.at(-1)?.scalar === ScalarType.UINT64 ? bits : Number(bits))
}

function textsOf(value: unknown): string[] | null {
  if (!Array.isArray(value)) return null
  const texts = value.filter((each) => typeof each === 'string')
  return texts.length === value.length ? texts : null
}

function parseInteger({ min, max }: SectionField, value: unknown): Parsed {
  const isInside = typeof value === 'number' && Number.isInteger(value) && value >= (min ?? 0) && value <= (max ?? 0)
  return isInside ? accept(value) : refuse(`an integer from ${min} to ${max}`)
}

function parseText({ maxBytes }: SectionField, value: unknown): Parsed {
  if (typeof value !== 'string' || !value.isWellFormed() || value.includes('\0')) {
    return refuse('text without NUL or lone surrogates')
  }
  const isShort = maxBytes === null || new TextEncoder().encode(value).length <= maxBytes
  return isShort ? accept(value) : refuse(`at most ${maxBytes} bytes of UTF-8`)
}

function parseBytes({ sizes, maxBytes }: SectionField, value: unknown): Parsed {
  const bytes = typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value) ? decodeBase64(value) : null
  if (bytes === null) return refuse('base64')
  if (sizes !== null && !sizes.includes(bytes.length)) return refuse(`base64 of ${sizes.join(', ')} bytes`)
  return maxBytes !== null && bytes.length > maxBytes ? refuse(`at most ${maxBytes} bytes`) : accept(bytes)
}

function decodeBase64(text: string): Uint8Array | null {
  try {
    return base64Decode(text)
  } catch {
    return null
  }
}

function parseIpv4(value: unknown): Parsed {
  const bytes = typeof value === 'string' ? /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(value) : null
  const parts = bytes?.slice(1).map(Number) ?? []
  if (parts.length !== 4 || parts.some((part) => part > 255)) return refuse('an IPv4 address')
  return accept(parts.reduce((sum, part, index) => sum + part * 2 ** (8 * index), 0))
}
