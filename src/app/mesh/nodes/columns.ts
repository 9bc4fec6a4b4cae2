import { getTableColumns } from 'drizzle-orm'
import { nodes } from '../../../db/schema.ts'
import { namesOf } from '../../../shared/names.ts'

export type NodeRow = typeof nodes.$inferSelect
export type NodeColumn = keyof NodeRow

/**
 * How a report changes a column of `nodes`, and where a node continues under another number:
 *
 * - `identity`: what a node announces about itself. Replaced by a later report that is not worse founded.
 * - `announced`: the same, whoever vouches for it. Replaced by a later report.
 * - `position`, `status`: one of the contents that are replaced as a whole; see `CONTENTS`.
 * - `metric`: one value of such a content, in which other values stay.
 * - `arrival`: replaced by each later packet that has it.
 * - `newest`: the highest value stays.
 * - `own`: has a rule of its own in `ingest/nodes.ts`, or is not reported at all.
 *
 * A column whose absence is not null, such as a flag with a default, needs a rule of its own.
 */
const RULES = {
  id: 'own',
  nodeNum: 'own',
  longName: 'identity',
  shortName: 'identity',
  nameAltered: 'own',
  hwModel: 'identity',
  role: 'identity',
  isLicensed: 'own',
  firmwareVersion: 'announced',
  publicKey: 'own',
  previousPublicKey: 'own',
  refusedPublicKey: 'own',
  refusedLongName: 'own',
  refusedShortName: 'own',
  refusedHeard: 'own',
  keyMismatch: 'own',
  keyConfirmed: 'own',
  keySigned: 'own',
  keyHeard: 'own',
  nameSigned: 'own',
  nameHeard: 'own',
  signedAt: 'own',
  spoofSuspected: 'own',
  spoofClaim: 'own',
  latitude: 'position',
  longitude: 'position',
  altitude: 'position',
  precisionBits: 'position',
  positionTime: 'position',
  positionChannel: 'position',
  positionSigned: 'own',
  positionHeard: 'own',
  status: 'status',
  statusTime: 'status',
  statusChannel: 'status',
  statusSigned: 'own',
  statusHeard: 'own',
  publicChannel: 'own',
  publicHeard: 'own',
  publicHops: 'own',
  publicViaMqtt: 'own',
  batteryLevel: 'metric',
  voltage: 'metric',
  channelUtilization: 'metric',
  airUtilTx: 'metric',
  uptimeSeconds: 'metric',
  deviceMetricsTime: 'own',
  metricsChannel: 'own',
  metricsHeard: 'own',
  telemetryTime: 'newest',
  snr: 'arrival',
  rssi: 'arrival',
  hopsAway: 'arrival',
  channel: 'arrival',
  viaMqtt: 'own',
  lastHeard: 'own',
  lastHeardByRadio: 'newest',
  lastHeardByBroker: 'newest',
  firstHeard: 'own',
  daysHeard: 'own',
  lastHeardDay: 'own',
  heardByRadio: 'own',
  sourceId: 'own',
  isFavorite: 'own',
  isIgnored: 'own',
  isMuted: 'own',
  isLocal: 'own',
  isHidden: 'own',
  notes: 'own',
  revision: 'own',
} as const satisfies Record<
  NodeColumn,
  'identity' | 'announced' | 'position' | 'status' | 'metric' | 'arrival' | 'newest' | 'own'
>

/** Columns that anonymous callers see of a node that is shown to them. Nobody but users sees the others. */
export const PUBLIC_COLUMNS = [
  'nodeNum',
  'longName',
  'shortName',
  'nameAltered',
  'hwModel',
  'role',
  'isLicensed',
  'hopsAway',
  'lastHeard',
  'firstHeard',
  'viaMqtt',
  'channel',
] as const satisfies readonly NodeColumn[]

/** Columns that reports do not set. */
type UnreportedColumn =
  | 'id'
  | 'nodeNum'
  | 'previousPublicKey'
  | 'keyMismatch'
  | 'keyConfirmed'
  | 'isLocal'
  | 'isHidden'
  | 'notes'
  | 'daysHeard'
  | 'sourceId'
  | 'revision'
export type ReportedColumn = Exclude<NodeColumn, UnreportedColumn>

type Rule = (typeof RULES)[NodeColumn]
/** The columns with a rule. */
export type ColumnOf<R extends Rule> = {
  [Name in NodeColumn]: (typeof RULES)[Name] extends R ? Name : never
}[NodeColumn]

/** The columns with a rule, in the order of the table. */
export function columnsOf<R extends Rule>(rule: R): readonly ColumnOf<R>[] {
  return namesOf(RULES).filter((name): name is ColumnOf<R> => RULES[name] === rule)
}

/** Device metrics, as columns of a node. */
export const DEVICE_METRICS = columnsOf('metric')

/**
 * What comes in one packet, with the time and the channel of that packet. It is there if one of the columns in `has` has
 * a value. `mixed`: columns whose value may be from an earlier packet. `founded`: those that say who vouches for it.
 */
export const CONTENTS = {
  position: {
    has: ['latitude'],
    mixed: ['altitude'],
    columns: columnsOf('position'),
    time: 'positionTime',
    channel: 'positionChannel',
    founded: ['positionSigned', 'positionHeard'],
  },
  status: {
    has: ['status'],
    mixed: [],
    columns: columnsOf('status'),
    time: 'statusTime',
    channel: 'statusChannel',
    founded: ['statusSigned', 'statusHeard'],
  },
  metrics: {
    has: DEVICE_METRICS,
    mixed: DEVICE_METRICS,
    columns: [...DEVICE_METRICS, 'deviceMetricsTime', 'metricsChannel'],
    time: 'deviceMetricsTime',
    channel: 'metricsChannel',
    founded: ['metricsHeard'],
  },
} as const satisfies Record<string, Content>

/** One of `CONTENTS`. */
export type Content = {
  readonly has: readonly ReportedColumn[]
  readonly mixed: readonly ReportedColumn[]
  readonly columns: readonly ReportedColumn[]
  readonly time: 'positionTime' | 'statusTime' | 'deviceMetricsTime'
  readonly channel: 'positionChannel' | 'statusChannel' | 'metricsChannel'
  readonly founded: readonly ReportedColumn[]
}

const TABLE = getTableColumns(nodes)

/** The name of a column in the database. */
export function sqlNameOf(column: NodeColumn): string {
  return TABLE[column].name
}

/** Whether a report without this column means `false` for a new node. */
export function isFlag(column: NodeColumn): boolean {
  return TABLE[column].notNull && TABLE[column].dataType === 'boolean'
}

/** Some columns of a row. */
export function pickColumns<Name extends NodeColumn>(row: NodeRow, names: readonly Name[]): Pick<NodeRow, Name> {
  const picked: Partial<Pick<NodeRow, Name>> = {}
  for (const name of names) picked[name] = row[name]
  // Each name has got its value.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return picked as Pick<NodeRow, Name>
}

/** For each of these columns the value that says nothing. */
export function blanksOf(names: readonly NodeColumn[]): Record<string, null | false | 0 | ''> {
  return Object.fromEntries(names.map((name) => [name, blankOf(TABLE[name])]))
}

function blankOf({ notNull, dataType }: { readonly notNull: boolean; readonly dataType: string }) {
  if (!notNull) return null
  return dataType === 'boolean' ? false : dataType === 'number' ? 0 : ''
}

/** The names among these that are columns. */
export function columnsAmong<Name extends string>(names: readonly Name[]): readonly Extract<Name, NodeColumn>[] {
  return names.filter((name): name is Extract<Name, NodeColumn> => Object.hasOwn(TABLE, name))
}
