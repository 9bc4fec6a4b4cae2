import { unitSystem } from '../../display.ts'
import { capital, duration, humanize } from '../../format.ts'
import { distance } from '../../measure.ts'
import { FIELDS, OPTIONS, SPELLINGS } from '../../strings/system/configuration-fields.ts'
import { c, SECTIONS } from '../../strings/system/configuration.ts'
import { type FieldInfo, type Leaf, linesOf, type Raw, type Section } from './model.ts'

/** What names a field: its path, with `*` for the index of a channel. */
type Named = { readonly field: Pick<FieldInfo, 'path'>; readonly channel: number | null }

export function sectionName(section: string): string {
  return SECTIONS[section]?.[0] ?? spell(section)
}

function wordsFor(section: string, { field, channel }: Named): readonly [name: string, help?: string] | undefined {
  return FIELDS[channel === null ? `${section}.${field.path}` : field.path.replace('channels.*', 'channels')]
}

/** The label of a field in its section. */
export function fieldName(section: string, leaf: Named): string {
  return wordsFor(section, leaf)?.[0] ?? spell(leaf.field.path.split('.').at(-1) ?? '')
}

/** The label together with the channel. */
export function fullName(section: string, leaf: Named): string {
  const name = fieldName(section, leaf)
  return leaf.channel === null ? name : `${c.channel(leaf.channel)}: ${name}`
}

export function fieldHelp(section: string, leaf: Leaf): string {
  return wordsFor(section, leaf)?.[1] ?? ''
}

/** `airQualityScreenEnabled` as `Air quality screen`. */
function spell(name: string): string {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(' ')
    .map((word) => SPELLINGS[word.toLowerCase()] ?? word.toLowerCase())
    .filter((word) => word !== '')
  const text = words.join(' ')
  return text === '' ? c.onOff : capital(text)
}

const CAPITALS: ReadonlySet<string> = new Set(['DHCP', 'TAK', 'NMEA', 'HQ', 'RTO'])

/** An option in readable form; regions keep their capitals. */
export function optionName(field: Pick<FieldInfo, 'path' | 'type'>, option: string): string {
  const speed = /^BAUD_(\d+)$/.exec(option)?.[1]
  const words = OPTIONS[option] ?? speed
  if (words !== undefined) return words
  const bit = field.type === 'flags' ? /^UNKNOWN_(\d+)$/.exec(option)?.[1] : undefined
  if (bit !== undefined) return c.unknownFlag(bit)
  if (/region$/i.test(field.path) || CAPITALS.has(option) || /^[A-Z]+_?\d/.test(option))
    return option.replaceAll('_', ' ')
  return humanize(option)
}

/** Whether a number counts seconds. */
export function isSeconds(section: string, leaf: Leaf): boolean {
  return (
    leaf.field.path.endsWith('Secs') ||
    leaf.field.path.endsWith('Interval') ||
    (section === 'rangeTest' && leaf.field.path === 'sender')
  )
}

/** A duration that is easier to read than seconds; empty if it is not. */
export function asDuration(raw: Raw): string {
  const seconds = Number(raw)
  return Number.isInteger(seconds) && seconds >= 60 ? duration(seconds) : ''
}

/** The only distance among the settings: radios take it in metres. */
const SMART_DISTANCE = 'broadcastSmartMinimumDistance'

/** A distance for users of other units; empty for metric ones, and for other settings. */
export function asDistance({ field }: Leaf, raw: Raw): string {
  const metres = Number(raw)
  return !field.path.endsWith(SMART_DISTANCE) || unitSystem.value === 'metric' || !(metres > 0) ? '' : distance(metres)
}

/** A value for reading. */
export function describe(section: string, leaf: Leaf, raw: Raw): string {
  if (typeof raw === 'boolean') return raw ? c.on : c.off
  if (raw === '') return c.empty
  if (leaf.field.type === 'enum') return optionName(leaf.field, raw)
  if (leaf.field.type === 'flags')
    return linesOf(raw)
      .map((flag) => optionName(leaf.field, flag))
      .join(', ')
  const also = isSeconds(section, leaf) ? asDuration(raw) : asDistance(leaf, raw)
  return also === '' ? raw.split('\n').join(', ') : `${raw} (${also})`
}

/** The first fields of a section. The others follow in the radio's order, then switches, then flags. */
const ORDER: Readonly<Record<string, readonly string[]>> = {
  channels: ['role', 'settings.name', 'settings.psk', 'settings.moduleSettings.positionPrecision'],
  lora: ['region', 'hopLimit', 'usePreset', 'modemPreset', 'txEnabled', 'txPower', 'channelNum'],
  network: ['wifiEnabled', 'ethEnabled', 'wifiSsid', 'wifiPsk', 'addressMode'],
}
const USUAL_ORDER = ['enabled']

/** Fields in the order in which people look for them. */
export function inOrder(section: string, leaves: readonly Leaf[]): readonly Leaf[] {
  const first = ORDER[section] ?? USUAL_ORDER
  const rank = ({ field }: Leaf) => {
    const index = first.indexOf(field.path.replace('channels.*.', ''))
    if (index !== -1) return index
    if (field.type === 'flags') return first.length + 2
    return field.type === 'boolean' ? first.length + 1 : first.length
  }
  return leaves.toSorted((a, b) => (a.channel ?? 0) - (b.channel ?? 0) || rank(a) - rank(b))
}

/** The labels of these field names. */
export function namesOf(section: Section, leaves: readonly Leaf[], paths: readonly string[]): string {
  return paths
    .map((path) => {
      const leaf = leaves.find((each) => each.path === path)
      return leaf === undefined ? path : fullName(section.section, leaf)
    })
    .join(', ')
}
