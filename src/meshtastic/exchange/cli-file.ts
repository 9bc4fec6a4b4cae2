import { type DescField, type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf'
import type { SectionInput } from '../config/change.ts'
import type { SectionField } from '../config/fields.ts'
import { readFlags } from '../config/flags.ts'
import { type RawSection, SECTION_SCHEMAS } from '../config/sections.ts'
import { type Leaf, listLeaves, readLeaf } from '../config/values.ts'

/** Where the CLI of Meshtastic keeps sections in the file of `--export-config` and `--configure`. */
const GROUPS = { config: 'config', moduleConfig: 'module_config' } as const
type Group = keyof typeof GROUPS

/** Keys of the file that have no settings of ours: the radio keeps them apart, or reports them elsewhere. */
const ELSEWHERE: ReadonlySet<string> = new Set(['location', 'cannedmessages', 'ringtone'])

export const LEFT_OUT_REASONS = ['unknown', 'unreported', 'elsewhere', 'derived', 'managed', 'lora_of_url'] as const
/** A key of a file that is not applied, with dots, as it is spelled there. */
export type LeftOut = { readonly key: string; readonly why: (typeof LEFT_OUT_REASONS)[number] }

/** Name of a secret: `network.wifiPsk`. That of the channels with their keys is `channels`. */
export function listSecretNames(sections: ReadonlyMap<string, RawSection>): string[] {
  const inGroups = leavesOf(sections).filter((leaf) => leaf.field.secret && isSet(leaf))
  const channels = sections.has('channels') ? ['channels'] : []
  return [...channels, ...inGroups.map((leaf) => nameOf(leaf))]
}

type SectionLeaf = Leaf & { readonly section: RawSection & { readonly kind: Group } }

function leavesOf(sections: ReadonlyMap<string, RawSection>): SectionLeaf[] {
  return [...SECTION_SCHEMAS.keys()].flatMap((name) => {
    const section = sections.get(name)
    const kind = section?.kind
    if (section === undefined || (kind !== 'config' && kind !== 'moduleConfig')) return []
    return listLeaves(section).map((leaf) => ({ ...leaf, section: { ...section, kind } }))
  })
}

function nameOf({ section: { section }, path }: SectionLeaf): string {
  return `${section}.${path}`
}

/** Whether a secret has a value. */
function isSet(leaf: Leaf): boolean {
  const value = readLeaf(leaf)
  return value !== '' && value !== 0
}

/**
 * The settings of a radio as that CLI writes them, with the secrets in `named` and no others. `channelUrl` null: without
 * channels.
 */
export function exportFile(
  sections: ReadonlyMap<string, RawSection>,
  named: ReadonlySet<string>,
  channelUrl: string | null,
): JsonObject {
  const groups: Record<Group, Record<string, JsonObject>> = { config: {}, moduleConfig: {} }
  for (const leaf of leavesOf(sections)) {
    const { section, kind } = leaf.section
    // The CLI would take the key of one radio together with the private key of another.
    const secret = leaf.field.readOnly ? 'security.privateKey' : leaf.field.secret ? nameOf(leaf) : null
    if (secret !== null && !named.has(secret)) continue
    const value = exportValue(leaf)
    if (value !== null) put((groups[kind][section] ??= {}), leaf.field.way.map(spell), value)
  }
  return {
    ...exportOwner(sections.get('owner')),
    ...(channelUrl === null ? {} : { channel_url: channelUrl }),
    ...(Object.keys(groups.config).length > 0 && { [GROUPS.config]: groups.config }),
    ...(Object.keys(groups.moduleConfig).length > 0 && { [GROUPS.moduleConfig]: groups.moduleConfig }),
  }
}

/** As in protobuf JSON, unless the CLI could not find its way back from there: `use12hClock` is `use_12h_clock`. */
function spell({ name, jsonName }: DescField): string {
  return jsonName.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`) === name ? jsonName : name
}

function exportOwner(owner: RawSection | undefined): JsonObject {
  const values = new Map(owner === undefined ? [] : listLeaves(owner).map((leaf) => [leaf.path, readLeaf(leaf)]))
  return Object.fromEntries(
    [['owner', values.get('longName') ?? ''] as const, ['owner_short', values.get('shortName') ?? ''] as const].filter(
      ([, value]) => value !== '',
    ),
  )
}

/** Null: nothing that the CLI could read back. */
function exportValue(leaf: Leaf): JsonValue | null {
  const { field, part } = leaf
  if (field.type === 'number') return readLeaf(leaf)
  const all = toJson(part.schema, part.message, { alwaysEmitImplicit: true })
  const value = leaf.path
    .split('.')
    .reduce<JsonValue | undefined>((at, step) => (isObject(at) ? at[step] : undefined), all)
  // The CLI reads an empty text as bytes.
  if (value === undefined || value === '') return null
  const prefix = field.type === 'bytes' ? BASE64 : ''
  // The CLI reads the items of a list only from texts.
  if (Array.isArray(value)) return value.map((item) => `${prefix}${textOf(item)}`)
  return prefix === '' ? value : `${prefix}${textOf(value)}`
}

const BASE64 = 'base64:'

function put(object: JsonObject, [step = '', ...rest]: readonly string[], value: JsonValue): void {
  if (rest.length === 0) {
    object[step] = value
    return
  }
  const inner = object[step]
  const next: JsonObject = isObject(inner) ? inner : {}
  object[step] = next
  put(next, rest, value)
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a file asks for, compared with the settings of a radio. */
export type FileRead = {
  /** By section. Secrets that the radio has already are left out. */
  readonly inputs: ReadonlyMap<string, SectionInput>
  /** It has LoRa settings of its own, besides those in the URL. */
  readonly hasLora: boolean
  readonly channelUrl: string | null
  readonly leftOut: readonly LeftOut[]
}

/**
 * Keys may be written with capitals or underscores. Nothing is dropped in silence: what is not in `inputs` is in
 * `leftOut`, or equals what the radio has.
 */
export function readFile(file: Readonly<Record<string, unknown>>, sections: ReadonlyMap<string, RawSection>): FileRead {
  const inputs = new Map<string, Input>()
  const leftOut: LeftOut[] = []
  let channelUrl: string | null = null
  let hasLora = false
  for (const [key, value] of Object.entries(file)) {
    const name = plain(key)
    if (name === 'owner' || name === 'ownershort') {
      const text = textOf(value)?.trim() ?? ''
      if (!sections.has('owner')) leftOut.push({ key, why: 'unreported' })
      // The firmware ignores an empty name.
      else if (text !== '') inputFor(inputs, 'owner').values[name === 'owner' ? 'longName' : 'shortName'] = text
    } else if (name === 'channelurl') channelUrl = textOf(value)?.trim() ?? ''
    else if (name === 'config') readGroup('config', key, value)
    else if (name === 'moduleconfig') readGroup('moduleConfig', key, value)
    else leftOut.push({ key, why: ELSEWHERE.has(name) ? 'elsewhere' : 'unknown' })
  }
  return { inputs, hasLora, channelUrl: channelUrl === '' ? null : channelUrl, leftOut }

  function readGroup(kind: Group, at: string, value: unknown): void {
    if (!isRecord(value)) return void leftOut.push({ key: at, why: 'unknown' })
    for (const [key, content] of Object.entries(value)) {
      const known = [...SECTION_SCHEMAS].find(([name, each]) => each.kind === kind && plain(name) === plain(key))
      const section = known === undefined ? undefined : sections.get(known[0])
      hasLora ||= known?.[0] === 'lora'
      if (section === undefined || !isRecord(content)) {
        leftOut.push({ key: `${at}.${key}`, why: known !== undefined && isRecord(content) ? 'unreported' : 'unknown' })
      } else readSection({ section, leaves: listLeaves(section) }, `${at}.${key}`, content, '')
    }
  }

  function readSection(of: Reading, at: string, content: Readonly<Record<string, unknown>>, prefix: string): void {
    for (const [key, value] of Object.entries(content)) {
      const path = `${prefix}${plain(key)}`
      const leaf = of.leaves.find((each) => plain(each.path) === path)
      const where = `${at}.${key}`
      if (leaf === undefined && isRecord(value) && of.leaves.some((each) => plain(each.path).startsWith(`${path}.`))) {
        readSection(of, where, value, `${path}.`)
      } else if (leaf === undefined) leftOut.push({ key: where, why: 'unknown' })
      else readValue(of, where, leaf, value)
    }
  }

  function readValue({ section }: Reading, where: string, leaf: Leaf, value: unknown): void {
    const name = `${section.section}.${leaf.path}`
    const imported = importValue(leaf.field, value)
    const isSame = JSON.stringify(imported) === JSON.stringify(readLeaf(leaf))
    if (isSame) return
    if (leaf.field.readOnly) return void leftOut.push({ key: where, why: 'derived' })
    // A managed radio refuses everything that follows, even to save.
    if (name === 'security.isManaged' && imported === true) return void leftOut.push({ key: where, why: 'managed' })
    const input = inputFor(inputs, section.section)
    if (leaf.field.secret) input.secrets[leaf.path] = secretOf(leaf.field, imported)
    else put(input.values, leaf.path.split('.'), imported)
  }
}

type Reading = { readonly section: RawSection; readonly leaves: readonly Leaf[] }
type Input = { readonly values: JsonObject; readonly secrets: Record<string, string | null> }

function inputFor(inputs: Map<string, Input>, section: string): Input {
  const input = inputs.get(section) ?? { values: {}, secrets: {} }
  inputs.set(section, input)
  return input
}

/** `hop_limit` and `hopLimit` are the same. */
function plain(key: string): string {
  return key.replaceAll('_', '').toLowerCase()
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null
}

/** A value of the file in the form of our API; one that cannot be right stays as it is, and is refused there. */
function importValue(field: SectionField, value: unknown): JsonValue {
  if (!field.list) return importItem(field, value)
  const items = Array.isArray(value) ? value : value === null || value === 0 || value === '' ? [] : [value]
  return items.map((item) => importItem(field, item))
}

function importItem(field: SectionField, value: unknown): JsonValue {
  const text = textOf(value)
  switch (field.type) {
    case 'boolean':
      return importBoolean(value, text)
    case 'integer':
    case 'number': {
      const isNumber = text !== null && /^[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|0x[\da-f]+)$/i.test(text.trim())
      return isNumber ? Number(text) : (text ?? null)
    }
    case 'enum': {
      const found = field.enum?.values.find(({ name, number }) => name === text || String(number) === text)
      return found?.name ?? text
    }
    case 'flags':
      return importFlags(field, value, text)
    case 'bytes':
      return importBytes(text ?? '')
    case 'ipv4':
      return text !== null && /^\d+$/.test(text) ? ipv4Of(Number(text)) : text
    case 'string':
      return text ?? ''
    default:
      return field.type satisfies never
  }
}

function importBoolean(value: unknown, text: string | null): JsonValue {
  if (typeof value === 'boolean') return value
  const word = text?.toLowerCase() ?? ''
  if (['t', 'true', 'yes', 'on', '1'].includes(word)) return true
  return ['f', 'false', 'no', 'off', '0'].includes(word) ? false : text
}

function importFlags({ enum: table }: SectionField, value: unknown, text: string | null): JsonValue {
  if (Array.isArray(value)) return value.map(String)
  if (text === null || table === null) return null
  if (/^\d{1,20}$/.test(text)) return readFlags(table, BigInt(text))
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !table.values.some((each) => each.number === 0 && each.name === name))
}

function importBytes(text: string): string {
  if (text.startsWith(BASE64)) return text.slice(BASE64.length)
  const hex = /^0x((?:[\da-f]{2})*)$/i.exec(text)?.[1]
  return hex === undefined
    ? text
    : btoa(String.fromCharCode(...(hex.match(/../g) ?? []).map((two) => parseInt(two, 16))))
}

/** Radios store an address with its first byte lowest. */
function ipv4Of(value: number): string {
  return [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff).join('.')
}

/** Null clears. */
function secretOf({ type }: SectionField, value: JsonValue): string | null {
  if (value === '' || value === 0 || value === null) return null
  const text = textOf(value) ?? ''
  return type === 'integer' ? text.padStart(6, '0') : text
}
