import type { InferRequestType, InferResponseType } from 'hono/client'
import { type api, isRecord } from '../../api.ts'
import { type Loss, lossOf } from '../../../shared/mesh/losses.ts'
import { nest, type Nested, valueAt as valueAtPath } from '../../../shared/nested.ts'

export type Overview = InferResponseType<typeof api.configuration.$get>
type SectionRoute = (typeof api.configuration)[':section']
export type Section = Extract<InferResponseType<SectionRoute['$get']>, { fields: unknown }>
export type Change = NonNullable<Overview['lastChange']>
export type FieldInfo = Section['fields'][number]

export type Body = InferRequestType<SectionRoute['$put']>['json']

/** A field in its place: each channel has its own. */
export type Leaf = {
  /** The service's name for it, e.g. `channels.2.settings.name`. */
  readonly path: string
  readonly field: FieldInfo
  /** Index of its channel; null elsewhere. */
  readonly channel: number | null
}

/** The content of a control: a switch, or a text. Lists and flags have one item per line. */
export type Raw = string | boolean

/** The user's changes, by path. */
export type Edits = {
  readonly values: ReadonlyMap<string, Raw>
  /** Null: clears the secret. */
  readonly secrets: ReadonlyMap<string, string | null>
}

export const NO_EDITS: Edits = { values: new Map(), secrets: new Map() }

type Channel = Readonly<Record<string, unknown>> & { readonly index: number }

export function channelsOf({ values }: Section): readonly Channel[] {
  const all = values['channels']
  if (!Array.isArray(all)) return []
  return all.flatMap((one: unknown) =>
    isRecord(one) && typeof one['index'] === 'number' ? [{ ...one, index: one['index'] }] : [],
  )
}

export function leavesOf(section: Section): readonly Leaf[] {
  if (section.kind !== 'channels') return section.fields.map((field) => ({ path: field.path, field, channel: null }))
  return channelsOf(section).flatMap(({ index }) =>
    section.fields.map((field) => ({ path: field.path.replace('*', String(index)), field, channel: index })),
  )
}

/** The radio's value; undefined for a secret. */
export function valueAt(section: Section, { field, channel }: Leaf): unknown {
  const root: unknown = channel === null ? section.values : channelsOf(section).find(({ index }) => index === channel)
  const path = channel === null ? field.path : field.path.replace('channels.*.', '')
  return valueAtPath(root, path)
}

/** The radio's value in the form of its control. */
export function rawOf({ type, list }: FieldInfo, value: unknown): Raw {
  if (Array.isArray(value)) return value.map(String).join('\n')
  if (list) return ''
  if (type === 'boolean') return value === true
  // A 32-bit float has seven significant digits.
  if (type === 'number' && typeof value === 'number') return String(Number(value.toPrecision(7)))
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Whether a required number is valid; the service checks the rest. */
export function isReadable({ type, list }: FieldInfo, raw: Raw): boolean {
  if (typeof raw === 'boolean') return true
  const isNumber = type === 'number' || type === 'integer'
  return !isNumber || itemsOf(raw, list).every((item) => item !== '' && Number.isFinite(Number(item)))
}

/** Whether a text fits the radio's limit. */
export function fits({ maxBytes, list }: FieldInfo, raw: Raw): boolean {
  return list || maxBytes === null || typeof raw === 'boolean' || new TextEncoder().encode(raw).length <= maxBytes
}

function itemsOf(raw: string, list: boolean): string[] {
  return list ? linesOf(raw) : [raw.trim()]
}

export function linesOf(raw: string): string[] {
  return raw
    .split('\n')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** The content of a control as it is sent. */
export function valueOf({ type, list }: FieldInfo, raw: Raw): unknown {
  if (typeof raw === 'boolean') return raw
  if (type === 'flags') return linesOf(raw)
  // Spaces in a name or a password may be intended.
  if (!list && type === 'string') return raw
  const isNumber = type === 'number' || type === 'integer'
  const items = itemsOf(raw, list).map((item) => (isNumber ? Number(item) : item))
  return list ? items : items[0]
}

/** One difference from the radio's settings. */
export type Difference = { readonly leaf: Leaf } & (
  | { readonly kind: 'value'; readonly before: Raw; readonly after: Raw }
  | { readonly kind: 'secret'; readonly after: string | null }
)

export function differencesOf(section: Section, edits: Edits): readonly Difference[] {
  return leavesOf(section).flatMap((leaf): Difference[] => {
    if (leaf.field.secret) {
      const after = edits.secrets.get(leaf.path)
      return after === undefined || after === '' ? [] : [{ kind: 'secret', leaf, after }]
    }
    const before = rawOf(leaf.field, valueAt(section, leaf))
    const after = edits.values.get(leaf.path) ?? before
    return after === before ? [] : [{ kind: 'value', leaf, before, after }]
  })
}

/**
 * Stored secrets that these changes would send elsewhere, by path, with the change that causes it. They must be entered
 * again.
 */
export function unrenewedOf(section: Section, differences: readonly Difference[]): ReadonlyMap<string, string> {
  const asked = section.renewals.filter(({ path, value, secret }) => {
    const isChanged = differences.some(
      (each) => each.kind === 'value' && each.leaf.path === path && (value === null || each.after === value),
    )
    const isGiven = differences.some(({ leaf }) => leaf.path === secret)
    return isChanged && !isGiven && section.secrets[secret]?.isSet === true
  })
  return new Map(asked.map(({ path, secret }) => [secret, path]))
}

/**
 * The presets that the radio allows in the chosen region, for the field of the preset; null for other fields, and if it
 * allows all.
 */
export function presetsFor(section: Section, { path }: Leaf, edits: Edits): readonly string[] | null {
  if (section.section !== 'lora' || path !== 'modemPreset') return null
  const region = edits.values.get('region') ?? section.values['region']
  const presets = section.regionPresets.find((each) => each.region === region)?.presets ?? []
  return presets.length === 0 ? null : presets
}

/** Where changes of a section go. */
export type Destination = {
  /** Sends them; null: there was nothing to change. `accept`: the fields that can lose a node, confirmed again. */
  put(section: Section, body: Body, accept: readonly string[]): Promise<{ readonly id: string } | null>
  /** What a change costs on the air, in words; null: nothing, because the radio is connected. */
  readonly airtime: string | null
  readonly sent: string
  readonly nothing: string
}

/** What a change can lose if nobody is beside the radio; null: nothing. */
export function lossBy(section: string, { leaf, ...each }: Difference): Loss | null {
  return lossOf(section, leaf.path, each.kind === 'value' ? valueOf(leaf.field, each.after) : undefined)
}

/** The request, with the differences only. */
export function bodyOf(section: Section, differences: readonly Difference[], confirm: readonly string[]): Body {
  const secrets = differences.flatMap((each) => (each.kind === 'secret' ? [[each.leaf.path, each.after] as const] : []))
  const values = differences.flatMap(({ leaf, ...each }) =>
    each.kind === 'value' ? [[leaf, valueOf(leaf.field, each.after)] as const] : [],
  )
  return {
    values: section.kind === 'channels' ? { channels: byChannel(values) } : nestWanted(values),
    secrets: Object.fromEntries(secrets),
    confirm: [...confirm],
    ...(section.revision !== null && { revision: section.revision }),
  }
}

type Wanted = readonly (readonly [leaf: Leaf, value: unknown])[]

function byChannel(wanted: Wanted): Record<string, unknown>[] {
  const indexes = new Set(wanted.map(([{ channel }]) => channel))
  return [...indexes].map((index) => ({ index, ...nestWanted(wanted.filter(([{ channel }]) => channel === index)) }))
}

function nestWanted(wanted: Wanted): Nested<unknown> {
  return nest(wanted.map(([{ field }, value]) => [field.path.replace('channels.*.', ''), value]))
}
