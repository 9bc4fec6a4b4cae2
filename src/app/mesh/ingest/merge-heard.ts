import type { NodeRow } from './node-row.ts'

/**
 * One row per node instead of one per packet, with the same outcome as if the database merged them one by one. Where
 * the outcome depends on the content of the database, a node keeps several rows, in order.
 */
export function mergeHeard(rows: readonly NodeRow[]): NodeRow[] {
  const merged: NodeRow[] = []
  const places = new Map<number, number>()
  for (const row of rows) {
    const place = places.get(row.nodeNum)
    const earlier = place === undefined ? undefined : merged[place]
    if (place === undefined || earlier === undefined || !canMerge(earlier, row)) {
      places.set(row.nodeNum, merged.length)
      merged.push(row)
    } else merged[place] = mergeRows(earlier, row)
  }
  return merged
}

/** Fields that only one of the two rows has may be newer or older than those in the database. */
function canMerge(earlier: NodeRow, later: NodeRow): boolean {
  if (isOtherKey(earlier, later) || isOtherFoundation(earlier, later)) return false
  // Another key takes the foundation from what is known before it, and from nothing after it.
  if ((isKnown(earlier.publicKey) && isFounded(later)) || (isKnown(later.publicKey) && isFounded(earlier))) return false
  if (hasNames(earlier) && hasNames(later) && !(hasBothNames(earlier) && hasBothNames(later))) return false
  const [first, last] = isPlaceOlder(earlier, later) ? [later, earlier] : [earlier, later]
  if (hasPlace(first) && hasPlace(last) && isKnown(first.altitude) && !isKnown(last.altitude)) return false
  // A viewer who may read only one of the two channels sees the latest value of that channel, so the database needs
  // both.
  if (hasPlace(first) && hasPlace(last) && first.positionChannel !== last.positionChannel) return false
  if (hasStatus(earlier) && hasStatus(later) && earlier.statusChannel !== later.statusChannel) return false
  const [old, fresh] = areMetricsOlder(earlier, later) ? [later, earlier] : [earlier, later]
  if (hasMetrics(old) && hasMetrics(fresh) && old.metricsChannel !== fresh.metricsChannel) return false
  return (
    !hasMetrics(old) ||
    !hasMetrics(fresh) ||
    DEVICE_METRICS.every((name) => !isKnown(old[name]) || isKnown(fresh[name]))
  )
}

/** Both keys must reach the database: a difference between them raises a warning. */
function isOtherKey({ publicKey: earlier = null }: NodeRow, { publicKey: later = null }: NodeRow): boolean {
  return earlier !== null && later !== null && earlier !== later
}

/**
 * Data that is signed or heard by our own radio is not merged with other data, because the database decides between
 * them.
 */
function isOtherFoundation(earlier: NodeRow, later: NodeRow): boolean {
  const differs = (has: (row: NodeRow) => boolean, names: readonly (keyof NodeRow)[]) =>
    has(earlier) && has(later) && names.some((name) => (earlier[name] ?? false) !== (later[name] ?? false))
  return (
    differs(hasNames, ['nameSigned', 'nameHeard']) ||
    differs(hasPlace, ['positionSigned', 'positionHeard']) ||
    differs(hasMetrics, ['metricsHeard']) ||
    differs(hasStatus, ['statusSigned', 'statusHeard']) ||
    differs(({ publicKey }) => isKnown(publicKey), ['keySigned', 'keyHeard']) ||
    differs(hasRefused, ['refusedHeard'])
  )
}

const FOUNDATIONS = [
  'nameSigned',
  'nameHeard',
  'positionSigned',
  'positionHeard',
  'statusSigned',
  'statusHeard',
] as const

function isFounded(row: NodeRow): boolean {
  return FOUNDATIONS.some((name) => row[name] === true)
}

/** A node's own measurements, as columns of its row. */
export const DEVICE_METRICS = ['batteryLevel', 'voltage', 'channelUtilization', 'airUtilTx', 'uptimeSeconds'] as const
const PLACE = ['latitude', 'longitude', 'altitude', 'precisionBits', 'positionTime', 'positionChannel'] as const

const STATUS = ['status', 'statusTime', 'statusChannel'] as const

const isKnown = (value: unknown): boolean => value !== null && value !== undefined
const hasNames = ({ longName, shortName }: NodeRow): boolean => isKnown(longName) || isKnown(shortName)
const hasBothNames = ({ longName, shortName }: NodeRow): boolean => isKnown(longName) && isKnown(shortName)
const hasPlace = ({ latitude }: NodeRow): boolean => isKnown(latitude)
const hasStatus = ({ status }: NodeRow): boolean => isKnown(status)
const hasMetrics = (row: NodeRow): boolean => DEVICE_METRICS.some((name) => isKnown(row[name]))

function isPlaceOlder(earlier: NodeRow, later: NodeRow): boolean {
  return hasPlace(earlier) && hasPlace(later) && (later.positionTime ?? 0) < (earlier.positionTime ?? 0)
}

function isStatusOlder(earlier: NodeRow, later: NodeRow): boolean {
  return hasStatus(earlier) && hasStatus(later) && (later.statusTime ?? 0) < (earlier.statusTime ?? 0)
}

function areMetricsOlder(earlier: NodeRow, later: NodeRow): boolean {
  return hasMetrics(earlier) && hasMetrics(later) && (later.deviceMetricsTime ?? 0) < (earlier.deviceMetricsTime ?? 0)
}

function mergeRows(earlier: NodeRow, later: NodeRow): NodeRow {
  const older = new Set<string>([
    ...(isPlaceOlder(earlier, later) ? PLACE : []),
    ...(isStatusOlder(earlier, later) ? STATUS : []),
    ...(areMetricsOlder(earlier, later) ? [...DEVICE_METRICS, 'deviceMetricsTime', 'metricsChannel'] : []),
  ])
  const told = Object.fromEntries(
    Object.entries(later).filter(([name, value]) => value !== null && value !== undefined && !older.has(name)),
  )
  // A position is taken as a whole: fields missing in the later one become empty. Only its altitude may be older.
  const place =
    !hasPlace(later) || isPlaceOlder(earlier, later)
      ? {}
      : {
          precisionBits: later.precisionBits ?? null,
          positionTime: later.positionTime ?? null,
          positionChannel: later.positionChannel ?? null,
        }
  const status = !hasStatus(later) || isStatusOlder(earlier, later) ? {} : { statusTime: later.statusTime ?? null }
  const isTimed = later.lastHeard !== null && later.lastHeard !== undefined
  return {
    ...earlier,
    ...told,
    ...place,
    ...status,
    seenAt: earlier.seenAt,
    firstHeard: firstHeardOf(earlier),
    lastHeard: isTimed ? Math.max(earlier.lastHeard ?? 0, later.lastHeard) : (earlier.lastHeard ?? null),
    ...latestOf(earlier, later),
    ...refusedOf(earlier, later),
    viaMqtt: (isTimed ? later : earlier).viaMqtt ?? false,
    source: earlier.source,
    heardByRadio: earlier.heardByRadio === true || later.heardByRadio === true,
    spoofSuspected: earlier.spoofSuspected === true || later.spoofSuspected === true,
    ...mergeClaims(earlier, later),
  }
}

/** The key that was refused last, with its names; without one, the names that were refused last. */
function refusedOf(earlier: NodeRow, later: NodeRow): Partial<NodeRow> {
  const isLater = isKnown(later.refusedPublicKey) || (!isKnown(earlier.refusedPublicKey) && hasRefusedNames(later))
  const { refusedPublicKey, refusedLongName, refusedShortName, refusedHeard = false } = isLater ? later : earlier
  const refused = [refusedPublicKey, refusedLongName, refusedShortName]
  if (!refused.some(isKnown)) return {}
  return {
    refusedHeard,
    refusedPublicKey: refusedPublicKey ?? null,
    refusedLongName: refusedLongName ?? null,
    refusedShortName: refusedShortName ?? null,
  }
}

function hasRefused(row: NodeRow): boolean {
  return isKnown(row.refusedPublicKey) || hasRefusedNames(row)
}

function hasRefusedNames({ refusedLongName, refusedShortName }: NodeRow): boolean {
  return isKnown(refusedLongName) || isKnown(refusedShortName)
}

/** Absent fields stay absent. */
function latestOf(earlier: NodeRow, later: NodeRow): Partial<NodeRow> {
  const names = ['lastHeardByRadio', 'lastHeardByBroker', 'telemetryTime'] as const
  const told = names.flatMap((name) => {
    const times = [earlier[name], later[name]].filter((time) => time !== null && time !== undefined)
    return times.length === 0 ? [] : [[name, Math.max(...times)] as const]
  })
  return Object.fromEntries(told)
}

/** Each suspicion has a claim; `*` stands for several claims. */
function mergeClaims({ spoofClaim: earlier }: NodeRow, { spoofClaim: later }: NodeRow): Partial<NodeRow> {
  const spoofClaim = earlier !== undefined && later !== undefined && earlier !== later ? '*' : (later ?? earlier)
  return spoofClaim === undefined ? {} : { spoofClaim }
}

function firstHeardOf({ firstHeard, lastHeard, seenAt }: NodeRow): number {
  return firstHeard ?? lastHeard ?? seenAt
}
