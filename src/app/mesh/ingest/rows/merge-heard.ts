import { columnsOf, type Content, CONTENTS, type ReportedColumn } from '../../nodes/columns.ts'
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
  return CONTENT_LIST.every((content) => canMergeContent(earlier, later, content))
}

function canMergeContent(earlier: NodeRow, later: NodeRow, content: Content): boolean {
  if (!has(earlier, content) || !has(later, content)) return true
  // A viewer who may read only one of the two channels sees the latest value of that channel, so the database needs
  // both.
  if (earlier[content.channel] !== later[content.channel]) return false
  const [old, fresh] = isOlder(earlier, later, content) ? [later, earlier] : [earlier, later]
  return content.mixed.every((name) => !isKnown(old[name]) || isKnown(fresh[name]))
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
  const differs = (isSaid: (row: NodeRow) => boolean, names: readonly ReportedColumn[]) =>
    isSaid(earlier) && isSaid(later) && names.some((name) => (earlier[name] ?? false) !== (later[name] ?? false))
  return (
    differs(hasNames, ['nameSigned', 'nameHeard']) ||
    differs(({ publicKey }) => isKnown(publicKey), ['keySigned', 'keyHeard']) ||
    differs(hasRefused, ['refusedHeard']) ||
    CONTENT_LIST.some((content) => differs((row) => has(row, content), content.founded))
  )
}

/** What another key takes away. */
const FOUNDATIONS = ['nameSigned', 'nameHeard', ...CONTENTS.position.founded, ...CONTENTS.status.founded] as const

function isFounded(row: NodeRow): boolean {
  return FOUNDATIONS.some((name) => row[name] === true)
}

const CONTENT_LIST: readonly Content[] = Object.values(CONTENTS)

const isKnown = (value: unknown): boolean => value !== null && value !== undefined
const hasNames = ({ longName, shortName }: NodeRow): boolean => isKnown(longName) || isKnown(shortName)
const hasBothNames = ({ longName, shortName }: NodeRow): boolean => isKnown(longName) && isKnown(shortName)
const has = (row: NodeRow, content: Content): boolean => content.has.some((name) => isKnown(row[name]))

/** Whether the later row has an older content of this kind than the earlier one. */
function isOlder(earlier: NodeRow, later: NodeRow, content: Content): boolean {
  return has(earlier, content) && has(later, content) && (later[content.time] ?? 0) < (earlier[content.time] ?? 0)
}

function mergeRows(earlier: NodeRow, later: NodeRow): NodeRow {
  const older = new Set<string>(
    CONTENT_LIST.flatMap((content) => (isOlder(earlier, later, content) ? content.columns : [])),
  )
  const reported = Object.fromEntries(
    Object.entries(later).filter(([name, value]) => value !== null && value !== undefined && !older.has(name)),
  )
  const isTimed = later.lastHeard !== null && later.lastHeard !== undefined
  return {
    ...earlier,
    ...reported,
    ...wholeContents(earlier, later),
    seenAt: earlier.seenAt,
    firstHeard: firstHeardOf(earlier),
    lastHeard: isTimed ? Math.max(earlier.lastHeard ?? 0, later.lastHeard) : (earlier.lastHeard ?? null),
    ...latestOf(earlier, later),
    ...hearingOf(earlier, later),
    ...refusedOf(earlier, later),
    viaMqtt: (isTimed ? later : earlier).viaMqtt ?? false,
    source: earlier.source,
    heardByRadio: earlier.heardByRadio === true || later.heardByRadio === true,
    spoofSuspected: earlier.spoofSuspected === true || later.spoofSuspected === true,
    ...mergeClaims(earlier, later),
  }
}

/** A content is taken as a whole: fields missing in the later one become empty, except those that may be mixed. */
function wholeContents(earlier: NodeRow, later: NodeRow): Partial<NodeRow> {
  const taken = CONTENT_LIST.filter((content) => has(later, content) && !isOlder(earlier, later, content))
  return Object.fromEntries(
    taken.flatMap(({ columns, mixed }) =>
      columns.filter((name) => !mixed.includes(name)).map((name) => [name, later[name] ?? null]),
    ),
  )
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
  const reported = columnsOf('newest').flatMap((name) => {
    const times = [earlier[name], later[name]].filter((time) => time !== null && time !== undefined)
    return times.length === 0 ? [] : [[name, Math.max(...times)] as const]
  })
  return Object.fromEntries(reported)
}

/** The later hearing, as a whole. */
function hearingOf(earlier: NodeRow, later: NodeRow): Partial<NodeRow> {
  const times = [earlier.publicHeard ?? 0, later.publicHeard ?? 0] as const
  const {
    publicChannel = null,
    publicHeard = null,
    publicHops = null,
    publicViaMqtt = null,
  } = times[1] >= times[0] ? later : earlier
  return publicHeard === null ? {} : { publicChannel, publicHeard, publicHops, publicViaMqtt }
}

/** Each suspicion has a claim; `*` stands for several claims. */
function mergeClaims({ spoofClaim: earlier }: NodeRow, { spoofClaim: later }: NodeRow): Partial<NodeRow> {
  const spoofClaim = earlier !== undefined && later !== undefined && earlier !== later ? '*' : (later ?? earlier)
  return spoofClaim === undefined ? {} : { spoofClaim }
}

function firstHeardOf({ firstHeard, lastHeard, seenAt }: NodeRow): number {
  return firstHeard ?? lastHeard ?? seenAt
}
