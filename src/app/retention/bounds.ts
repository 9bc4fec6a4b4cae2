import { PLAIN_ROW_BYTES } from '../../db/runs.ts'
import { MAX_NEIGHBORS, MAX_WAYPOINTS } from '../mesh/topology/topology.ts'
import { forEachName, namesOf } from '../../shared/names.ts'

/**
 * The part of the database that a table may fill, and what a row takes there with its index entries: measured with
 * 60,000 packets of 1000 nodes by SQLite's `dbstat`, and rounded up. `most`: whatever the disk has room for.
 */
type Bound = { readonly share: number; readonly rowBytes: number; readonly most: number } | { readonly rows: number }

/** All together fill two thirds: the rest is for everything else, and for SQLite's own work. */
export const BOUNDS = {
  packets: { share: 0.05, rowBytes: 350, most: 5_000_000 },
  messages: { share: 0.12, rowBytes: 300, most: 10_000_000 },
  receptions: { share: 0.03, rowBytes: 40, most: 20_000_000 },
  positions: { share: 0.05, rowBytes: 55, most: 100_000_000 },
  telemetry: { share: 0.22, rowBytes: PLAIN_ROW_BYTES.telemetry, most: 500_000_000 },
  telemetry_hourly: { share: 0.15, rowBytes: PLAIN_ROW_BYTES.telemetry_hourly, most: 500_000_000 },
  telemetry_daily: { share: 0.04, rowBytes: PLAIN_ROW_BYTES.telemetry_daily, most: 100_000_000 },
  traceroutes: { share: 0.01, rowBytes: 300, most: 1_000_000 },
  proven_packets: { share: 0.01, rowBytes: 30, most: 5_000_000 },
  neighbors: { rows: MAX_NEIGHBORS },
  waypoints: { rows: MAX_WAYPOINTS },
} as const satisfies Record<string, Bound>

export type BoundTable = keyof typeof BOUNDS
export const BOUND_TABLES = namesOf(BOUNDS)

/** The size that a database is taken to reach if nobody knows: that of one at Cloudflare D1. */
export const USUAL_LIMIT_BYTES = 10_000_000_000
/** A tiny disk must not empty the tables. */
const LEAST_ROWS = 10_000

/** Bytes that tables need to keep what is set; absent: unknown. */
export type Needs = Partial<Readonly<Record<BoundTable, number>>>
export type Bounds = Readonly<Record<BoundTable, number>>

/**
 * The maximum number of rows of each table, regardless of their age, in a database that can reach this size. A table that
 * needs less than its share lends half of the rest to those that need more.
 */
export function boundsOf(limitBytes: number, needs: Needs = {}): Bounds {
  const rest = (table: BoundTable) => shareOf(table, limitBytes) - (needs[table] ?? shareOf(table, limitBytes))
  const sum = (amount: (table: BoundTable) => number) => BOUND_TABLES.reduce((all, table) => all + amount(table), 0)
  const lent = sum((table) => Math.max(0, rest(table)) / 2)
  const lacking = sum((table) => Math.max(0, -rest(table)))
  const moved = Math.min(lent, lacking)
  return forEachName(BOUNDS, (table) => {
    const bound: Bound = BOUNDS[table]
    if ('rows' in bound) return bound.rows
    const left = rest(table)
    const change = moved === 0 ? 0 : left > 0 ? (-left / 2) * (moved / lent) : -left * (moved / lacking)
    const fitting = Math.floor((shareOf(table, limitBytes) + change) / bound.rowBytes)
    return Math.min(bound.most, Math.max(LEAST_ROWS, fitting))
  })
}

function shareOf(table: BoundTable, limitBytes: number): number {
  const bound: Bound = BOUNDS[table]
  return 'share' in bound ? limitBytes * bound.share : 0
}

/** What this many rows take. */
export function bytesOf(table: BoundTable, rows: number): number {
  const bound: Bound = BOUNDS[table]
  return 'share' in bound ? Math.min(rows, bound.most) * bound.rowBytes : 0
}

/** Whether the disk limits the table, and not what the service can handle. */
export function isBoundByDisk(table: BoundTable, bounds: Bounds): boolean {
  const bound: Bound = BOUNDS[table]
  return 'share' in bound && bounds[table] < bound.most
}

/** A row takes at least this part of what rows usually take. */
const LEAST_OF_USUAL = 0.4

/** The bounds that a database of this size can have reached at all: the others need not be counted. Null: unknown. */
export function boundsWithin(bounds: Bounds, usedBytes: number | null): Partial<Bounds> {
  const within = BOUND_TABLES.filter(
    (table) => usedBytes === null || bytesOf(table, bounds[table]) * LEAST_OF_USUAL <= usedBytes,
  )
  return Object.fromEntries(within.map((table) => [table, bounds[table]]))
}
