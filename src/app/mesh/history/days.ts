import { and, gte, sql } from 'drizzle-orm'
import { nodeDays } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import { hoursOf } from './hearings.ts'

/** An hour in which a node was heard. */
export type HeardHour = { readonly t: number; readonly packets: number }

const queries = prepareOnce((db) => ({
  ofNodes: db
    .select({
      day: nodeDays.day,
      hours: nodeDays.hours,
      packets: nodeDays.packets,
      direct: nodeDays.direct,
      minHops: nodeDays.minHops,
      maxHops: nodeDays.maxHops,
    })
    .from(nodeDays)
    .where(
      and(
        sql`${nodeDays.nodeNum} in (select value from json_each(${sql.placeholder('nums')}))`,
        gte(nodeDays.day, sql.placeholder('day')),
      ),
    )
    .orderBy(nodeDays.day)
    .prepare(),
}))

/** The hours since a time in which a node with these numbers was heard, oldest first. */
export async function listHours(store: Store, nums: readonly number[], since: number): Promise<HeardHour[]> {
  const rows = await queries(store).ofNodes.all({ nums: JSON.stringify(nums), day: Math.floor(since / DAY_MS) })
  const hours = new Map<number, number>()
  for (const { day, hours: counts } of rows) {
    for (const [hour, packets] of hoursOf(counts).entries()) {
      const t = day * DAY_MS + hour * HOUR_MS
      if (packets > 0) hours.set(t, (hours.get(t) ?? 0) + packets)
    }
  }
  return Array.from(hours, ([t, packets]) => ({ t, packets }))
}

/** A day (UTC) in which a node was heard, and how. `direct`: packets without another node between. */
export type HeardDay = {
  readonly t: number
  readonly packets: number
  readonly direct: number
  readonly minHops: number | null
  readonly maxHops: number | null
}

/** The days since a time in which a node with these numbers was heard, oldest first. */
export async function listDays(store: Store, nums: readonly number[], since: number): Promise<HeardDay[]> {
  const rows = await queries(store).ofNodes.all({ nums: JSON.stringify(nums), day: Math.floor(since / DAY_MS) })
  return Array.from(Map.groupBy(rows, ({ day }) => day)).map(([day, parts]) => {
    const known = parts.flatMap(({ minHops, maxHops }) => [minHops ?? [], maxHops ?? []].flat())
    return {
      t: day * DAY_MS,
      packets: parts.reduce((sum, { packets }) => sum + packets, 0),
      direct: parts.reduce((sum, { direct }) => sum + direct, 0),
      minHops: known.length === 0 ? null : Math.min(...known),
      maxHops: known.length === 0 ? null : Math.max(...known),
    }
  })
}

const SHORTEST_MS = 10 * MINUTE_MS
const LONGEST_MS = DAY_MS
const UNKNOWN_MS = 3 * HOUR_MS
/** Fewer hours than this say nothing. */
const FEW = 6

/** The time that usually passes between two packets of a node which was heard in these hours, in milliseconds. */
export function usualPause(hours: readonly HeardHour[]): number {
  const [first, last] = [hours.at(0), hours.at(-1)]
  if (first === undefined || last === undefined || hours.length < FEW) return UNKNOWN_MS
  const packets = hours.reduce((sum, hour) => sum + hour.packets, 0)
  const pause = (last.t + HOUR_MS - first.t) / packets
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, pause))
}
