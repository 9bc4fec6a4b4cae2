import {
  type Grant,
  NONE,
  type Permissions,
  permissionsFrom,
  RESOURCE_NAMES,
} from '../../../shared/access/resources.ts'
import { MAX_SCOPE_CHANNELS, NO_SCOPE, type Scope } from '../../../shared/access/scope.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import type { Job } from '../job.ts'
import { flagIn, integerIn, type Row, textIn } from '../source/row.ts'
import type { Origin, Places } from './places.ts'

/** Resources that are granted for each source: a grant without a source means nothing. */
const PER_SOURCE: ReadonlySet<string> = new Set([
  ...Array.from({ length: RADIO_CHANNELS }, (_, index) => `channel_${index}`),
  'messages',
  'nodes',
  'nodes_private',
  'traceroute',
  'packetmonitor',
  'configuration',
  'connection',
  'automation',
  'waypoints',
  'remote_admin',
])
/** From these migrations on, settings are granted for each source, and there is a second resource for automation. */
const SETTINGS_PER_SOURCE = 132
const AUTOMATIONS = 98

type Rule = { readonly read: boolean; readonly write: boolean; readonly map: boolean }
const NO_RULE: Rule = { read: false, write: false, map: false }

/** What a user of the file may do, and what is given here for it. */
export type Rights = {
  readonly permissions: Permissions
  readonly scope: Scope
  readonly before: readonly string[]
  readonly after: readonly string[]
  /** When the latest of the grants was made, in milliseconds, and by which user of the file. */
  readonly grantedAt: number | null
  readonly grantedBy: number | null
}

/** Reads the rights of all users: on the safe side, what somebody had on every source. */
export function readRights({ source }: Job, places: Places): (userId: number) => Rights {
  const columns = [
    'user_id',
    'resource',
    'can_view_on_map',
    'can_read',
    'can_write',
    'granted_at',
    'granted_by',
    'sourceId',
  ]
  const rows = Map.groupBy([...source.rows('permissions', columns, 'order by id')], (row) => integerIn(row, 'user_id'))
  const ofDatabase = [
    ...source.rows('channel_database_permissions', ['user_id', 'channel_database_id', 'can_view_on_map', 'can_read']),
  ]
  return (userId) => {
    const own = rows.get(userId) ?? []
    const database = new Set(
      ofDatabase.flatMap((row) => {
        const isAllowed =
          integerIn(row, 'user_id') === userId && flagIn(row, 'can_read') && flagIn(row, 'can_view_on_map')
        return isAllowed ? [integerIn(row, 'channel_database_id')] : []
      }),
    )
    const held = heldBy(own, source.migration)
    const everywhere = (resource: string): Rule => everySource(held, places, resource, source.migration)
    const scope = scopeOf(held, places, database)
    const permissions = permissionsOf(everywhere, scope, source.migration)
    const latest = own.toSorted((a, b) => (integerIn(b, 'granted_at') ?? 0) - (integerIn(a, 'granted_at') ?? 0))[0]
    return {
      permissions,
      scope,
      before: describeBefore(own, places),
      after: describeAfter(permissions, scope, places),
      grantedAt: latest === undefined ? null : integerIn(latest, 'granted_at'),
      grantedBy: latest === undefined ? null : integerIn(latest, 'granted_by'),
    }
  }
}

/** The rule for a resource on a source; `key` null: for all of them at once. */
type Held = (resource: string, key: string | null) => Rule

function heldBy(rows: readonly Row[], migration: number): Held {
  const rules = new Map(
    rows.map((row) => [
      `${textIn(row, 'resource')} ${textIn(row, 'sourceId') ?? ''}`,
      { read: flagIn(row, 'can_read'), write: flagIn(row, 'can_write'), map: flagIn(row, 'can_view_on_map') },
    ]),
  )
  return (resource, key) =>
    key === null && isPerSource(resource, migration) ? NO_RULE : (rules.get(`${resource} ${key ?? ''}`) ?? NO_RULE)
}

function isPerSource(resource: string, migration: number): boolean {
  return PER_SOURCE.has(resource) || (resource === 'settings' && migration >= SETTINGS_PER_SOURCE)
}

function everySource(held: Held, { origins }: Places, resource: string, migration: number): Rule {
  if (!isPerSource(resource, migration)) return held(resource, null)
  return least(listed(origins).map(({ key }) => held(resource, key)))
}

function listed(origins: readonly Origin[]): readonly Origin[] {
  return origins.filter(({ key }) => key !== null)
}

function least(rules: readonly Rule[]): Rule {
  if (rules.length === 0) return NO_RULE
  return {
    read: rules.every(({ read }) => read),
    write: rules.every(({ read, write }) => read && write),
    map: rules.every(({ map }) => map),
  }
}

const both = (a: Rule, b: Rule): Rule => least([a, b])

function permissionsOf(
  everywhere: (resource: string) => Rule,
  { channels, direct }: Scope,
  migration: number,
): Permissions {
  const hasChannel = (action: 'read' | 'write') => channels === 'all' || channels[action].length > 0
  const info = everywhere('info')
  const automation = everywhere('automation')
  const given: Readonly<Record<(typeof RESOURCE_NAMES)[number], Grant>> = {
    dashboard: everywhere('dashboard'),
    nodes: everywhere('nodes'),
    messages: { read: hasChannel('read') || direct.read, write: hasChannel('write') || direct.write },
    settings: everywhere('settings'),
    configuration: both(everywhere('configuration'), everywhere('connection')),
    // Writing means to ask for traceroutes here.
    info: { read: info.read, write: info.read && everywhere('traceroute').write },
    automation: migration >= AUTOMATIONS ? both(automation, everywhere('automations')) : automation,
  }
  return permissionsFrom((resource) => {
    const { read, write } = given[resource]
    return read ? { read, write } : NONE
  })
}

/**
 * A channel counts if it was allowed on every source that has it, with its positions on the map. All channels, and
 * those to come, only for who had all slots of all sources.
 */
function scopeOf(held: Held, places: Places, database: ReadonlySet<number | null>): Scope {
  const origins = listed(places.origins)
  if (origins.length === 0) return NO_SCOPE
  const messages = least(origins.map(({ key }) => held('messages', key)))
  const direct = { read: messages.read, write: messages.write }
  const all = least(
    origins.flatMap(({ key }) => Array.from({ length: RADIO_CHANNELS }, (_, index) => held(`channel_${index}`, key))),
  )
  const isOfDatabase = ({ index }: { index: number }) => index >= RADIO_CHANNELS
  if (all.read && all.map && all.write && !places.slots.some(isOfDatabase)) return { channels: 'all', direct }
  const read: number[] = []
  const write: number[] = []
  for (const [number, slots] of Map.groupBy(places.slots, ({ number }) => number)) {
    const rule = least(
      slots.map((slot): Rule => {
        const isAllowed = database.has(slot.index - 100)
        if (isOfDatabase(slot)) return { read: isAllowed, write: false, map: isAllowed }
        return slot.origin.key === null ? NO_RULE : held(`channel_${slot.index}`, slot.origin.key)
      }),
    )
    if (!rule.read || !rule.map) continue
    read.push(number)
    if (rule.write) write.push(number)
  }
  const cut = (numbers: number[]) => numbers.toSorted((a, b) => a - b).slice(0, MAX_SCOPE_CHANNELS)
  const shown = cut(read)
  return { channels: { read: shown, write: cut(write).filter((number) => shown.includes(number)) }, direct }
}

function describeBefore(rows: readonly Row[], { originOf }: Places): string[] {
  const bySource = Map.groupBy(rows, (row) => textIn(row, 'sourceId'))
  return Array.from(bySource, ([key, own]) => {
    const place = key === null ? 'everywhere' : (originOf(key)?.name ?? 'a source without data')
    const rules = own.flatMap((row) => {
      const actions = [
        ...(flagIn(row, 'can_view_on_map') ? ['map'] : []),
        ...(flagIn(row, 'can_read') ? ['read'] : []),
        ...(flagIn(row, 'can_write') ? ['write'] : []),
      ]
      return actions.length === 0 ? [] : [`${textIn(row, 'resource')} ${actions.join('+')}`]
    })
    return `${place}: ${rules.join(', ') || '–'}`
  })
}

/** The rights of an administrator, who needs no list. */
export const ADMINISTRATOR = ['administrator'] as const

function describeAfter(permissions: Permissions, { channels, direct }: Scope, { slots }: Places): string[] {
  const actions = ({ read, write }: Grant) => (write ? 'read+write' : read ? 'read' : null)
  const given = RESOURCE_NAMES.flatMap((resource) => {
    const text = actions(permissions[resource])
    return text === null ? [] : [`${resource} ${text}`]
  })
  const ofChannels =
    channels === 'all'
      ? ['all channels']
      : channels.read.map((number) => {
          const slot = slots.find((one) => one.number === number)
          const name = slot?.name || slot?.identity.slice(slot.identity.indexOf(':') + 1) || String(number)
          return `channel ${name} ${channels.write.includes(number) ? 'read+write' : 'read'}`
        })
  const ofDirect = actions(direct)
  return [...given, ...ofChannels, ...(ofDirect === null ? [] : [`direct messages ${ofDirect}`])]
}
