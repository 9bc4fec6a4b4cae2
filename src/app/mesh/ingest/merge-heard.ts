import type { NodeRow } from './nodes.ts'

/**
 * One row for each node instead of one for each of its packets, with the same outcome: the rows are merged as the
 * database would merge them one after the other. A node that announces two keys keeps a row for each, in order.
 */
export function mergeHeard(rows: readonly NodeRow[]): NodeRow[] {
  const merged: NodeRow[] = []
  const places = new Map<number, number>()
  for (const row of rows) {
    const place = places.get(row.nodeNum)
    const earlier = place === undefined ? undefined : merged[place]
    if (place === undefined || earlier === undefined || isOtherKey(earlier, row)) {
      places.set(row.nodeNum, merged.length)
      merged.push(row)
    } else merged[place] = mergeRows(earlier, row)
  }
  return merged
}

/** Both keys must reach the database: that they differ is news of its own. */
function isOtherKey({ publicKey: earlier = null }: NodeRow, { publicKey: later = null }: NodeRow): boolean {
  return earlier !== null && later !== null && earlier !== later
}

function mergeRows(earlier: NodeRow, later: NodeRow): NodeRow {
  const told = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null && value !== undefined))
  // A place is taken whole: what the later one leaves open in it is open. Its altitude alone may be older.
  const place =
    later.latitude === undefined
      ? {}
      : { precisionBits: later.precisionBits ?? null, positionTime: later.positionTime ?? null }
  const isTimed = later.lastHeard !== null && later.lastHeard !== undefined
  return {
    ...earlier,
    ...told,
    ...place,
    seenAt: earlier.seenAt,
    firstHeard: firstHeardOf(earlier),
    lastHeard: isTimed ? Math.max(earlier.lastHeard ?? 0, later.lastHeard) : (earlier.lastHeard ?? null),
    viaMqtt: (isTimed ? later : earlier).viaMqtt ?? false,
    source: earlier.source,
    heardByRadio: earlier.heardByRadio === true || later.heardByRadio === true,
    spoofSuspected: earlier.spoofSuspected === true || later.spoofSuspected === true,
  }
}

function firstHeardOf({ firstHeard, lastHeard, seenAt }: NodeRow): number {
  return firstHeard ?? lastHeard ?? seenAt
}
