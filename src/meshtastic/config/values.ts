import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from '@bufbuild/protobuf'
import { isReflectList, isReflectMessage, reflect, type ReflectMessage } from '@bufbuild/protobuf/reflect'
import { base64Encode } from '@bufbuild/protobuf/wire'
import type { KEY_KINDS } from './kinds.ts'
import type { ConfigPart, RawSection } from './sections.ts'
import { listFields, type SectionField } from './fields.ts'
import { readFlags } from './flags.ts'
import { enumName } from '../enum-name.ts'

export type SecretState = { readonly isSet: boolean; readonly kind: (typeof KEY_KINDS)[number] | null }

/** A section without its secrets. */
export type SectionView = {
  readonly values: JsonObject
  /** By path. */
  readonly secrets: Readonly<Record<string, SecretState>>
}

/** A field of one part, with its full path. */
export type Leaf = { readonly path: string; readonly part: ConfigPart; readonly field: SectionField }

/** Every field of a section that is shown or written. */
export function listLeaves(section: RawSection): Leaf[] {
  const fields = listFields(section.section)
  return section.parts.flatMap((part) =>
    fields.map((field) => ({ path: field.path.replace(/^channels\.\*\./, part.prefix), part, field })),
  )
}

/** The fields of a section that may be shown: those in our table that are not secret. */
export function viewSection(section: RawSection): SectionView {
  const leaves = listLeaves(section)
  const secrets = leaves.filter(({ field }) => field.secret)
  return {
    values: section.kind === 'channels' ? { channels: section.parts.map((part) => viewPart(part, leaves)) } : viewAll(),
    secrets: Object.fromEntries(secrets.map((leaf) => [leaf.path, secretState(leaf)])),
  }
  function viewAll(): JsonObject {
    const [part] = section.parts
    return part === undefined ? {} : viewPart(part, leaves)
  }
}

function viewPart(part: ConfigPart, leaves: readonly Leaf[]): JsonObject {
  const view: JsonObject = {}
  for (const leaf of leaves) {
    if (leaf.part !== part || leaf.field.secret) continue
    const steps = leaf.path.slice(part.prefix.length).split('.')
    const last = steps.pop() ?? ''
    let at = view
    for (const step of steps) at = child(at, step)
    at[last] = readLeaf(leaf)
  }
  return view
}

function child(object: JsonObject, name: string): JsonObject {
  const found = object[name]
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found
  const made: JsonObject = {}
  object[name] = made
  return made
}

function secretState(leaf: Leaf): SecretState {
  const { owner, last } = reach(leaf)
  const value = (owner ?? reflect(last.parent)).get(last)
  if (value instanceof Uint8Array && leaf.path.endsWith('.psk')) {
    const kind = kindOfKey(value)
    return { isSet: kind !== 'none', kind }
  }
  return { isSet: owner !== null && owner.isSet(last), kind: null }
}

/** A single byte is an index into well-known keys; 0 means "none". */
function kindOfKey(psk: Uint8Array): SecretState['kind'] {
  if (psk.length > 1) return 'custom'
  return (psk[0] ?? 0) === 0 ? 'none' : 'default'
}

/** The value as JSON. It may be a secret, which must not be shown. */
export function readLeaf(leaf: Leaf): JsonValue {
  const { owner, last } = reach(leaf)
  const value = (owner ?? reflect(last.parent)).get(last)
  if (isReflectList(value)) return [...value].map((item) => toValue(leaf.field, last, item))
  return toValue(leaf.field, last, value)
}

/** The message that contains a field, null where it is absent, and the field in it. */
function reach({ part, field }: Leaf): { readonly owner: ReflectMessage | null; readonly last: DescField } {
  let owner: ReflectMessage | null = reflect(part.schema, part.message)
  for (const step of field.way.slice(0, -1)) {
    const inner: unknown = owner?.isSet(step) === true ? owner.get(step) : null
    owner = isReflectMessage(inner) ? inner : null
  }
  return { owner, last: lastOf(field) }
}

function lastOf({ way, path }: SectionField): DescField {
  const last = way.at(-1)
  if (last === undefined) throw new Error(`${path} leads nowhere`)
  return last
}

function toValue(field: SectionField, { scalar }: DescField, value: unknown): JsonValue {
  if (value instanceof Uint8Array) return base64Encode(value)
  if (field.type === 'flags' && field.enum !== null && (typeof value === 'number' || typeof value === 'bigint')) {
    return readFlags(field.enum, value)
  }
  if (typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value !== 'number') return null
  if (field.enum !== null) return enumName(field.enum, value)
  if (field.type === 'ipv4') return formatIpv4(value)
  // A 32-bit float has seven digits: 3.2 instead of 3.200000047683716.
  if (scalar === ScalarType.FLOAT) return Number.isFinite(value) ? Number(value.toPrecision(7)) : null
  return value
}

/** Radios store an address with its first byte lowest. */
function formatIpv4(value: number): string {
  return [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff).join('.')
}

/** Sets fields of a message, as protobuf values, and a list as an array. The message keeps its other fields. */
export function writeLeaves(
  schema: DescMessage,
  message: ConfigPart['message'],
  writes: readonly { readonly field: SectionField; readonly value: unknown }[],
): void {
  const root = reflect(schema, message)
  for (const { field, value } of writes) writeAt(root, field.way, value)
}

function writeAt(owner: ReflectMessage, [step, ...rest]: readonly DescField[], value: unknown): void {
  if (step === undefined) return
  if (rest.length > 0) {
    const inner: unknown = owner.get(step)
    if (!isReflectMessage(inner)) throw new Error(`${step.name} is no message`)
    writeAt(inner, rest, value)
    owner.set(step, inner)
    return
  }
  const list: unknown = owner.get(step)
  if (!isReflectList(list)) {
    owner.set(step, value)
    return
  }
  list.clear()
  for (const item of Array.isArray(value) ? value : []) list.add(item)
}
