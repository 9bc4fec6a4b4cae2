import type { NodeRow } from './node-row.ts'
import { getTableColumns, sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { nodes } from '../../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { Config_DeviceConfig_RoleSchema } from '../../../../meshtastic/gen/config_pb.ts'
import { HardwareModelSchema } from '../../../../meshtastic/gen/hardware_pb.ts'
import type { PositionFix } from '../../../../meshtastic/payload/position.ts'
import type { Metric } from '../../../../meshtastic/payload/telemetry.ts'
import type { NodeUser } from '../../../../meshtastic/payload/user.ts'
import { type ColumnOf, columnsOf, DEVICE_METRICS, isFlag, type NodeColumn, sqlNameOf } from '../../nodes/columns.ts'
import { CLAIMED_EVIDENCE, HEARD_EVIDENCE } from '../../nodes/deletion/evidence.ts'
import { enumNumber } from './enum-number.ts'
import { isLocalNode } from '../../radios/source-table.ts'
import { mergeHeard } from './merge-heard.ts'
import { forEachName } from '../../../../shared/names.ts'
import { FIRST_DIRECT, MIXED_WITH_DIRECT, UNKNOWN_CHANNEL } from '../../../../shared/mesh/channels.ts'

/** Columns that are not just what a report has. */
const OWN_VALUES: { readonly [Name in NodeColumn]?: SQL } = {
  id: sql`null`,
  previousPublicKey: sql`null`,
  // The key of one of our radios is certain, whatever others announce.
  keyMismatch: sql`(${field('refusedPublicKey')} is not null and not ${isLocalNode(field('nodeNum'))})`,
  keyConfirmed: sql`false`,
  firstHeard: sql`coalesce(${field('firstHeard')}, ${field('lastHeard')}, ${field('seenAt')})`,
  isLocal: isLocalNode(field('nodeNum')),
  notes: sql`''`,
  daysHeard: sql`iif(${field('lastHeardDay')} is null, 0, 1)`,
  sourceId: sql`(select id from sources where name = ${field('source')})`,
  isHidden: sql`false`,
  revision: sql`(select value + 1 from revisions where name = 'nodes')`,
}

/** A new node, by column. */
const VALUES = forEachName(
  getTableColumns(nodes),
  (name) => OWN_VALUES[name] ?? (isFlag(name) ? sql`coalesce(${field(name)}, 0)` : field(name)),
)

const METRIC_COLUMNS = DEVICE_METRICS.map(sqlNameOf)
const ARRIVAL_COLUMNS = columnsOf('arrival').map(sqlNameOf)
/** Without its altitude, which may be from an earlier one. */
const PLACE_COLUMNS = columnsOf('position')
  .filter((name) => name !== 'altitude')
  .map(sqlNameOf)
const STATUS_COLUMNS = columnsOf('status').map(sqlNameOf)
const PUBLIC_COLUMNS = (['publicChannel', 'publicHeard', 'publicHops', 'publicViaMqtt'] as const).map(sqlNameOf)

const choose = (columns: readonly string[], by: (column: string) => string): string =>
  columns.map((column) => `${column} = ${by(column)}`).join(', ')

const newest = (column: string) => `coalesce(excluded.${column}, ${column})`
const oldest = (column: string) => `coalesce(${column}, excluded.${column})`

/**
 * When a content with a time of its own replaces the known one, whenever it arrives. `value` is the column that has it.
 * Only signed data replaces signed data, and only a radio's own reports change one of our radios.
 */
function timed(content: 'position' | 'status', value: 'latitude' | 'status') {
  const isFirmer = `(excluded.is_local or excluded.${content}_signed >= ${content}_signed)`
  const isSaid = `excluded.${value} is not null and ${isFirmer}`
  return {
    isNewer: `(${isSaid} and (${value} is null or excluded.${content}_time > coalesce(${content}_time, 0)))`,
    isAsNew: `(${isSaid} and (${value} is null or excluded.${content}_signed > ${content}_signed
      or (excluded.${content}_heard > ${content}_heard and not excluded.is_local)
      or coalesce(excluded.${content}_time, 0) >= coalesce(${content}_time, 0)))`,
  }
}

const PLACE = timed('position', 'latitude')
const STATUS = timed('status', 'status')
const ARE_METRICS_NEWER = `excluded.device_metrics_time > coalesce(device_metrics_time, 0)`
const ARE_METRICS_AS_NEW = `((excluded.metrics_heard > metrics_heard and not excluded.is_local)
  or coalesce(excluded.device_metrics_time, 0) >= coalesce(device_metrics_time, 0))`
const IS_LATEST = `coalesce(excluded.last_heard, -1) >= coalesce(last_heard, 0)`

const places = (isTaken: string): string =>
  choose(PLACE_COLUMNS, (column) => `iif(${isTaken}, excluded.${column}, ${column})`)

const statuses = (isTaken: string): string =>
  choose(STATUS_COLUMNS, (column) => `iif(${isTaken}, excluded.${column}, ${column})`)

const measurements = (areTaken: string): string => `
  ${choose(METRIC_COLUMNS, (column) => `iif(${areTaken}, ${newest(column)}, ${oldest(column)})`)},
  device_metrics_time = iif(${areTaken}, ${newest('device_metrics_time')}, device_metrics_time),
  metrics_heard = iif((${areTaken}) and not (${allMetrics((column) => `excluded.${column} is null`)}),
    excluded.metrics_heard, metrics_heard),
  metrics_channel = ${channelOfMetrics(areTaken)}`

const allMetrics = (by: (column: string) => string): string =>
  METRIC_COLUMNS.map((column) => `(${by(column)})`).join(' and ')

/** The channel of all remaining metrics, or a marker if there are several. */
function channelOfMetrics(areTaken: string): string {
  const areAllReplaced = allMetrics((column) => `${column} is null or excluded.${column} is not null`)
  const areAllKept = allMetrics((column) => `${column} is not null or excluded.${column} is null`)
  const isOfDirect = (column: string) => `(${column} >= ${FIRST_DIRECT} or ${column} = ${MIXED_WITH_DIRECT})`
  return `case when ${allMetrics((column) => `excluded.${column} is null`)} then metrics_channel
    when iif(${areTaken}, ${areAllReplaced}, 0) then excluded.metrics_channel
    when not (${areTaken}) and ${areAllKept} then metrics_channel
    when ${allMetrics((column) => `${column} is null`)} or excluded.metrics_channel is metrics_channel then excluded.metrics_channel
    when ${isOfDirect('metrics_channel')} or ${isOfDirect('excluded.metrics_channel')} then ${MIXED_WITH_DIRECT}
    else ${UNKNOWN_CHANNEL} end`
}

const IDENTITY_COLUMNS = columnsOf('identity').map(sqlNameOf)
const ANNOUNCED_COLUMNS = columnsOf('announced').map(sqlNameOf)
const NEWEST_COLUMNS = columnsOf('newest').map(sqlNameOf)

/**
 * How reliable a name is, in rising order: claimed, heard by our own radio, signed. A signed key that our radio heard
 * counts most.
 */
const nameRank = (row: string) => `iif(${row}name_signed, 2, ${row}name_heard)`
const keyRank = (row: string) => `(8 * ${row}key_confirmed + 2 * ${row}key_signed + ${row}key_heard)`

const latest = (column: string) => `${column} = nullif(max(coalesce(${column}, 0), coalesce(excluded.${column}, 0)), 0)`

const IS_KEY_FIRMER = `(excluded.is_local or ${keyRank('excluded.')} > ${keyRank('nodes.')})`
const IS_NAME_FIRMER = `(excluded.is_local or ${nameRank('excluded.')} > ${nameRank('nodes.')})`
const IS_NAMED = `(excluded.long_name is not null or excluded.short_name is not null)`
/**
 * A node's identity stays until a later report changes it that is at least as reliable. The first key stays until a
 * more reliable one is announced. Replaced keys, and values that are not accepted, are recorded.
 */
function identity(isTaken: string, areTimed: 'isNewer' | 'isAsNew'): string {
  const isPlaceTaken = PLACE[areTimed]
  const isStatusTaken = STATUS[areTimed]
  const isOther = `coalesce(excluded.public_key <> public_key and ((${isTaken}) or ${IS_KEY_FIRMER}), 0)`
  const isNewKey = `(${isOther} and ${IS_KEY_FIRMER})`
  const refusedKey = `iif(${isOther} and not ${isNewKey}, excluded.public_key, excluded.refused_public_key)`
  // What our own radio heard is not hidden by another one. Names that came with a refused key stay with it.
  const isHeard = `iif(${isOther}, excluded.key_heard, excluded.refused_heard)`
  const mayBeRefused = `(${isHeard} >= refused_heard)`
  const areNamesRefused = `(${mayBeRefused} and (excluded.refused_public_key is not null or (refused_public_key is null
    and coalesce(excluded.refused_long_name, excluded.refused_short_name) is not null)))`
  const isRefused = `(coalesce(excluded.public_key <> public_key, 0) and not ${IS_KEY_FIRMER})`
  const isNewName = `(not ${isRefused} and (${IS_NAME_FIRMER}
    or ((${isTaken}) and (${isNewKey} or ${nameRank('excluded.')} = ${nameRank('nodes.')}))))`
  const ofKey = (column: string, isSaid: string) => `${column} = case when ${isNewKey} then excluded.${column}
    when ${isSaid} then max(${column}, excluded.${column}) else ${column} end`
  return `
  ${choose(IDENTITY_COLUMNS, (column) => `iif(${isNewName}, ${newest(column)}, ${oldest(column)})`)},
  ${choose(ANNOUNCED_COLUMNS, (column) => `iif(${isTaken}, ${newest(column)}, ${oldest(column)})`)},
  is_licensed = iif(excluded.role is null or (role is not null and not ${isNewName}), is_licensed, excluded.is_licensed),
  public_key = iif(${isNewKey}, excluded.public_key, ${oldest('public_key')}),
  previous_public_key = iif(${isNewKey}, coalesce(previous_public_key, public_key), previous_public_key),
  refused_public_key = iif(${mayBeRefused}, coalesce(${refusedKey}, refused_public_key), refused_public_key),
  refused_heard = iif((${mayBeRefused} and ${refusedKey} is not null) or ${areNamesRefused}, ${isHeard}, refused_heard),
  refused_long_name = iif(${areNamesRefused}, excluded.refused_long_name, refused_long_name),
  refused_short_name = iif(${areNamesRefused}, excluded.refused_short_name, refused_short_name),
  key_mismatch = max(key_mismatch, excluded.key_mismatch, ${isOther}),
  key_confirmed = iif(${isNewKey}, 0, key_confirmed),
  ${['key_signed', 'key_heard'].map((column) => ofKey(column, 'excluded.public_key is public_key or public_key is null')).join(', ')},
  signed_at = max(${newest('signed_at')}, ${oldest('signed_at')}),
  name_altered = case when ${isNewName} and excluded.long_name is not null and excluded.short_name is not null
      then excluded.name_altered
    when ${isNewName} or long_name is null or short_name is null then max(name_altered, excluded.name_altered)
    else name_altered end,
  ${['name_signed', 'name_heard'].map((column) => ofKey(column, `${IS_NAMED} and ${isNewName}`)).join(', ')},
  ${ofKey('position_signed', 'excluded.latitude is not null')},
  position_heard = iif(${isPlaceTaken}, excluded.position_heard, iif(${isNewKey}, 0, position_heard)),
  ${choose(['status_signed', 'status_heard'], (column) => `iif(${isStatusTaken}, excluded.${column}, iif(${isNewKey}, 0, ${column}))`)},
  spoof_claim = case when not excluded.spoof_suspected then spoof_claim when not spoof_suspected then excluded.spoof_claim
    when spoof_claim is excluded.spoof_claim then spoof_claim else '*' end,
  spoof_suspected = max(spoof_suspected, excluded.spoof_suspected),
  last_heard = max(${oldest('last_heard')}, ${newest('last_heard')}),
  ${NEWEST_COLUMNS.map(latest).join(', ')},
  ${choose(PUBLIC_COLUMNS, (column) => `iif(excluded.public_heard >= coalesce(public_heard, 0), excluded.${column}, ${column})`)},
  revision = excluded.revision`
}

/** A node that was just heard: its signal and its identity replace the known ones. */
const HEARD = `do update set ${identity('true', 'isAsNew')}, ${HEARD_EVIDENCE},
  ${places(PLACE.isAsNew)},
  ${statuses(STATUS.isAsNew)},
  altitude = iif(${PLACE.isAsNew},
    iif(excluded.position_channel is position_channel, ${newest('altitude')}, excluded.altitude), altitude),
  ${measurements(ARE_METRICS_AS_NEW)},
  ${choose(ARRIVAL_COLUMNS, newest)},
  via_mqtt = iif(excluded.last_heard is null, via_mqtt, excluded.via_mqtt)`

const OLDER = `${places(PLACE.isNewer)},
  ${statuses(STATUS.isNewer)},
  altitude = iif(${PLACE.isNewer}, excluded.altitude, altitude),
  ${measurements(ARE_METRICS_NEWER)},
  ${choose(ARRIVAL_COLUMNS, (column) => `iif(${IS_LATEST}, ${newest(column)}, ${oldest(column)})`)},
  via_mqtt = iif(${IS_LATEST}, excluded.via_mqtt, via_mqtt)`

/**
 * A radio's memory of a node only replaces older data. A radio without a clock does not know when it heard the node.
 * Only the radio itself decides its own name.
 */
const REMEMBERED = `on conflict (node_num) do update set ${CLAIMED_EVIDENCE}, ${OLDER},
  ${identity(`(excluded.last_heard is null or excluded.is_local or ${IS_LATEST})`, 'isNewer')}`

/** Late data only replaces older data, including names and key. */
const LATE = `do update set ${CLAIMED_EVIDENCE}, ${OLDER}, ${identity(IS_LATEST, 'isNewer')},
  first_heard = min(first_heard, excluded.first_heard)`

const KNOWN_VALUES = { ...VALUES, id: sql`(select n.id from nodes n where n.node_num = ${field('nodeNum')})` }

const queries = prepareOnce((db) => ({
  late: prepareJsonInsert(db, nodes, { values: VALUES, onConflict: sql.raw(`on conflict (node_num) ${LATE}`) }),
  heard: prepareJsonInsert(db, nodes, { values: VALUES, onConflict: sql.raw(`on conflict (node_num) ${HEARD}`) }),
  // With its id a known node takes no new one, which is a write although nothing is inserted.
  lateAgain: prepareJsonInsert(db, nodes, { values: KNOWN_VALUES, onConflict: sql.raw(`on conflict (id) ${LATE}`) }),
  heardAgain: prepareJsonInsert(db, nodes, { values: KNOWN_VALUES, onConflict: sql.raw(`on conflict (id) ${HEARD}`) }),
  remembered: prepareJsonInsert(db, nodes, { values: VALUES, onConflict: sql.raw(REMEMBERED) }),
}))

type NodeRows = {
  readonly remembered: readonly NodeRow[]
  readonly late: readonly NodeRow[]
  readonly heard: readonly NodeRow[]
}

/**
 * Statements that update nodes: first from radios' memories, then from heard packets, oldest first. `newNodes`: those that
 * are not stored yet.
 */
export function writeNodes(
  store: Store,
  { remembered, late, heard }: NodeRows,
  newNodes: ReadonlySet<number>,
): Statement[] {
  const prepared = queries(store)
  const split = (rows: readonly NodeRow[]) => {
    const isKnown = ({ nodeNum }: NodeRow) => store.packs && !newNodes.has(nodeNum)
    const known = rows.filter(isKnown)
    return { known, others: known.length > 0 ? rows.filter((row) => !isKnown(row)) : rows }
  }
  const [atOnce, later] = [split(heard), split(late)]
  return [
    ...(later.known.length > 0 ? [prepared.lateAgain(later.known)] : []),
    ...(later.others.length > 0 ? [prepared.late(later.others)] : []),
    ...(remembered.length > 0 ? [prepared.remembered(remembered)] : []),
    ...(atOnce.known.length > 0 ? [prepared.heardAgain(mergeHeard(atOnce.known))] : []),
    ...(atOnce.others.length > 0 ? [prepared.heard(mergeHeard(atOnce.others))] : []),
  ]
}

/** A node's identity. Without any name, role and licence are unknown too: the protocol cannot mark them as absent. */
export function userFields(user: NodeUser): Partial<NodeRow> {
  const { longName, shortName, publicKey, isLicensed, isNameAltered: nameAltered = false } = user
  const hwModel = user.hwModel === null ? null : enumNumber(HardwareModelSchema, user.hwModel)
  const isNamed = longName !== null || shortName !== null
  const role = isNamed ? { role: enumNumber(Config_DeviceConfig_RoleSchema, user.role), isLicensed, nameAltered } : {}
  return { longName, shortName, hwModel, publicKey, ...role }
}

export function placeFields(
  { latitude, longitude, altitude, precisionBits }: PositionFix,
  { time, channel }: { readonly time: number | null; readonly channel: number | null },
) {
  return {
    latitude,
    longitude,
    altitude,
    precisionBits,
    positionTime: time,
    positionChannel: channel,
  } satisfies Partial<NodeRow>
}

type DeviceMetricsFields = { [Name in ColumnOf<'metric'>]?: number } & {
  deviceMetricsTime?: number | null
  metricsChannel?: number | null
}

export function hasDeviceMetrics(metrics: readonly Metric[]): boolean {
  return metrics.some(([name]) => DEVICE_METRICS.some((each) => name === `deviceMetrics.${each}`))
}

/** The device metrics among the metrics. */
export function deviceMetricsFields(
  metrics: readonly Metric[],
  { time, channel }: { readonly time: number | null; readonly channel: number | null },
): DeviceMetricsFields {
  const values = new Map(metrics)
  const known = DEVICE_METRICS.flatMap((name) => {
    const value = values.get(`deviceMetrics.${name}`)
    return value === undefined ? [] : [[name, value] as const]
  })
  return known.length === 0 ? {} : { ...Object.fromEntries(known), deviceMetricsTime: time, metricsChannel: channel }
}
