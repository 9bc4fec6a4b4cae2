import { base64Decode } from '@bufbuild/protobuf/wire'
import {
  identifyChannel,
  nameIn,
  numberChannel,
  RADIO_CHANNELS,
  channelNameOfPreset,
} from '../../../meshtastic/channel-identity.ts'
import { expandPsk, hashChannel } from '../../../meshtastic/crypto/channel.ts'
import { UNKNOWN_CHANNEL, WITHHELD } from '../../../shared/mesh/channels.ts'
import type { SourceKind } from '../../../shared/mesh/link-kinds.ts'
import { MAX_CONNECTION_NAME } from '../../../shared/limits.ts'
import type { Job } from '../job.ts'
import { flagIn, integerIn, type Row, textIn } from '../source/row.ts'

/** Rows of the program's database of channels are numbered from here on in its other tables. */
const DATABASE_OFFSET = 100

/** A radio or broker of the file. */
export type Origin = {
  /** Null: rows of a source that is not listed any more. */
  readonly key: string | null
  readonly name: string
  readonly kind: SourceKind
  readonly localNodeNum: number | null
}

/** A channel of a source of the file. */
export type Slot = {
  readonly origin: Origin
  readonly index: number
  readonly name: string
  readonly role: 'PRIMARY' | 'SECONDARY'
  readonly identity: string
  /** Whether name and hash are known, so that the channel can be recognised elsewhere. */
  readonly isSure: boolean
  /** Our number. */
  readonly number: number
  /** Base64; null: not in the file. */
  readonly psk: string | null
}

export type Places = {
  /** Those with rows, in the program's order. */
  readonly origins: readonly Origin[]
  readonly slots: readonly Slot[]
  originOf(key: string | null): Origin | null
  /** Our number of a channel; `UNKNOWN_CHANNEL` if the row has none. Channels that nobody knows are added to `slots`. */
  numberOf(key: string | null, index: number | null): number
}

/** The channel of a content: whether its sender allows it to be passed on to the public is not in the file. */
export function withheld(channel: number): number {
  return channel < 0 ? channel : channel + WITHHELD
}

/** Our numbers that are taken, by identity. */
export type KnownNumbers = ReadonlyMap<string, number>

/** Reads sources and channels, and numbers the channels like those that are known here. */
export function readPlaces(job: Job, known: KnownNumbers): Places {
  const origins = readOrigins(job)
  const byKey = new Map(origins.map((origin) => [origin.key, origin]))
  const unlisted = byKey.get(null) ?? null
  const originOf = (key: string | null) => byKey.get(key) ?? unlisted
  const numbers = new Map(known)
  const taken = new Set(known.values())
  const slots: Slot[] = []
  const bySlot = new Map<string, Slot>()
  const add = (slot: Omit<Slot, 'number'>, wanted: number | null): Slot => {
    const free = wanted !== null && !taken.has(wanted) ? wanted : numberChannel(slot.identity)
    const number = numbers.get(slot.identity) ?? free
    numbers.set(slot.identity, number)
    taken.add(number)
    const added = { ...slot, number }
    slots.push(added)
    bySlot.set(`${slot.origin.key} ${slot.index}`, added)
    return added
  }
  for (const slot of readRadioSlots(job, origins)) add(slot, slot.index)
  const [first] = origins
  const stored = readDatabaseSlots(job, first)
  for (const slot of stored) add(slot, null)
  return {
    origins,
    slots,
    originOf,
    numberOf(key, index) {
      const origin = originOf(key)
      if (index === null || origin === null) return UNKNOWN_CHANNEL
      const slot =
        bySlot.get(`${origin.key} ${index}`) ?? bySlot.get(`${first?.key} ${index >= DATABASE_OFFSET ? index : 'none'}`)
      if (slot !== undefined) return slot.number
      const name = `${origin.name} ${index}`
      const guess = { origin, index, name, role: 'SECONDARY' as const, isSure: false, psk: null }
      return add({ ...guess, identity: identifyChannel(0, name) }, null).number
    },
  }
}

const PROTOCOLS_LEFT_OUT = /^(?:meshcore|reticulum)/

function readOrigins({ source, tally }: Job): Origin[] {
  const origins: Origin[] = []
  const names = new Set<string>()
  const rest = source.hasColumn('sources', 'displayOrder')
    ? 'order by displayOrder, createdAt, id'
    : 'order by createdAt, id'
  for (const row of source.rows('sources', ['id', 'name', 'type'], rest)) {
    const key = textIn(row, 'id')
    const type = textIn(row, 'type') ?? ''
    const given = cleanName(textIn(row, 'name') ?? 'MeshMonitor')
    if (key === null) continue
    if (PROTOCOLS_LEFT_OUT.test(type)) {
      tally.lost('other_protocols', given)
      continue
    }
    if (!hasRows(source, key)) {
      tally.lost('sources_empty', given)
      continue
    }
    origins.push({ key, name: unused(given, names), kind: kindOf(type), localNodeNum: readLocalNode(source, key) })
  }
  if (hasUnlisted(source)) {
    origins.push({
      key: null,
      name: unused('MeshMonitor', names),
      kind: 'tcp',
      localNodeNum: readLocalNode(source, null),
    })
  }
  return origins
}

const WITH_SOURCE = ['nodes', 'messages', 'telemetry', 'channels'] as const

function hasRows({ hasColumn, one }: Job['source'], key: string): boolean {
  return WITH_SOURCE.some(
    (table) =>
      hasColumn(table, 'sourceId') && one(`select 1 from "${table}" where sourceId = ? limit 1`, key) !== undefined,
  )
}

function hasUnlisted({ hasColumn, one }: Job['source']): boolean {
  const isUnlisted = '(sourceId is null or sourceId not in (select id from sources))'
  return ['nodes', 'messages'].some((table) => {
    if (!hasColumn(table, 'sourceId')) return true
    const other = table === 'nodes' ? 'and nodeNum <> 4294967295' : ''
    return one(`select 1 from "${table}" where ${isUnlisted} ${other} limit 1`) !== undefined
  })
}

function kindOf(type: string): SourceKind {
  if (type.startsWith('mqtt')) return 'mqtt'
  return type.includes('serial') ? 'serial' : 'tcp'
}

function readLocalNode({ one }: Job['source'], key: string | null): number | null {
  const row = one('select value from settings where key = ?', key === null ? 'localNodeNum' : `localNodeNum_${key}`)
  return row === undefined ? null : integerIn(row, 'value')
}

function cleanName(name: string): string {
  return name.replaceAll(/\p{C}/gu, '').trim().slice(0, MAX_CONNECTION_NAME).trim() || 'MeshMonitor'
}

function unused(name: string, names: Set<string>): string {
  let free = name
  for (let n = 2; names.has(free); n++) free = `${name} ${n}`
  names.add(free)
  return free
}

/** Without a stored preset the channel without a name is the one that radios have by default. */
const USUAL_NAME = 'LongFast'

function readRadioSlots({ source }: Job, origins: readonly Origin[]): Omit<Slot, 'number'>[] {
  const byKey = new Map(origins.map((origin) => [origin.key, origin]))
  const rows = [...source.rows('channels', ['id', 'name', 'psk', 'role', 'sourceId'], 'order by id')]
  return origins.flatMap((origin) => {
    const own = rows.filter((row) => (byKey.get(textIn(row, 'sourceId')) ?? byKey.get(null)) === origin)
    const primary = own.find((row) => roleOf(row) === 'PRIMARY')
    return own.flatMap((row): Omit<Slot, 'number'>[] => {
      const index = integerIn(row, 'id')
      const role = roleOf(row)
      if (index === null || index < 0 || index >= RADIO_CHANNELS || role === null) return []
      const own = textIn(row, 'psk')
      const psk = own === null && role === 'SECONDARY' && primary !== undefined ? textIn(primary, 'psk') : own
      const name = textIn(row, 'name') ?? ''
      return [{ origin, index, name, role, psk, ...identityOf(name || readPreset(source, origin), psk) }]
    })
  })
}

function roleOf(row: Row): 'PRIMARY' | 'SECONDARY' | null {
  const role = integerIn(row, 'role') ?? (integerIn(row, 'id') === 0 ? 1 : 2)
  return role === 1 ? 'PRIMARY' : role === 2 ? 'SECONDARY' : null
}

function readPreset({ one }: Job['source'], { key }: Origin): string {
  const row = one('select value from settings where key = ?', `lora.preset.${key}`)
  const preset = row === undefined ? null : integerIn(row, 'value')
  return (preset === null ? null : channelNameOfPreset(preset)) ?? USUAL_NAME
}

function identityOf(name: string, psk: string | null): { identity: string; isSure: boolean } {
  const key = keyOf(psk)
  if (key === null) return { identity: identifyChannel(0, name), isSure: false }
  return { identity: identifyChannel(hashChannel(name, key), name), isSure: true }
}

function keyOf(psk: string | null): Uint8Array | null {
  if (psk === null) return null
  try {
    const bytes = base64Decode(psk)
    return bytes.length > 32 ? null : expandPsk(bytes)
  } catch {
    return null
  }
}

function readDatabaseSlots({ source }: Job, origin: Origin | undefined): Omit<Slot, 'number'>[] {
  if (origin === undefined) return []
  return Array.from(source.rows('channel_database', ['id', 'name', 'psk', 'channel_hash', 'is_enabled'])).flatMap(
    (row) => {
      const id = integerIn(row, 'id')
      const name = textIn(row, 'name')
      if (id === null || name === null) return []
      const hash = integerIn(row, 'channel_hash')
      const psk = textIn(row, 'psk')
      const passive = hash !== null && !flagIn(row, 'is_enabled') && hash >= 0 && hash < 256
      const found = passive ? { identity: identifyChannel(hash, name), isSure: true } : identityOf(name, psk)
      return [
        {
          origin,
          index: DATABASE_OFFSET + id,
          name: nameIn(found.identity),
          role: 'SECONDARY' as const,
          psk,
          ...found,
        },
      ]
    },
  )
}
