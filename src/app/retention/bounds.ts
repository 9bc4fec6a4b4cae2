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
  telemetry: { share: 0.22, rowBytes: 32, most: 500_000_000 },
  telemetry_hourly: { share: 0.15, rowBytes: 70, most: 500_000_000 },
  telemetry_daily: { share: 0.04, rowBytes: 70, most: 100_000_000 },
  traceroutes: { share: 0.01, rowBytes: 300, most: 1_000_000 },
  neighbors: { rows: MAX_NEIGHBORS },
  waypoints: { rows: MAX_WAYPOINTS },
} as const satisfies Record<string, Bound>

export type BoundTable = keyof typeof BOUNDS
export const BOUND_TABLES = namesOf(BOUNDS)

/** The size that a database is taken to reach if nobody knows: that of one at Cloudflare D1. */
export const USUAL_LIMIT_BYTES = 10_000_000_000
/** A tiny disk must not empty the tables. */
const LEAST_ROWS = 10_000

/** The maximum number of rows of each table, regardless of their age, in a database that can reach this size. */
export function boundsOf(limitBytes: number): Readonly<Record<BoundTable, number>> {
  return forEachName(BOUNDS, (table) => {
    const bound: Bound = BOUNDS[table]
    if ('rows' in bound) return bound.rows
    const fitting = Math.floor((limitBytes * bound.share) / bound.rowBytes)
    return Math.min(bound.most, Math.max(LEAST_ROWS, fitting))
  })
}

/** Whether the disk limits the table, and not what the service can handle. */
export function isBoundByDisk(table: BoundTable, limitBytes: number): boolean {
  const bound: Bound = BOUNDS[table]
  return 'share' in bound && boundsOf(limitBytes)[table] < bound.most
}

/** A row takes at least this part of what rows usually take. */
const LEAST_OF_USUAL = 0.4

/** The bounds that a database of this size can have reached at all: the others need not be counted. Null: unknown. */
export function boundsWithin(limitBytes: number, usedBytes: number | null): Partial<Record<BoundTable, number>> {
  const bounds = boundsOf(limitBytes)
  const within = BOUND_TABLES.filter((table) => {
    const bound: Bound = BOUNDS[table]
    return !('share' in bound) || usedBytes === null || bounds[table] * bound.rowBytes * LEAST_OF_USUAL <= usedBytes
  })
  return Object.fromEntries(within.map((table) => [table, bounds[table]]))
}
