import * as z from 'zod'
import { RETAINED_TABLES } from '../../db/schema.ts'
import type { Store } from '../../db/store.ts'
import { DAY_MS, HOUR_MS } from '../../shared/time.ts'
import { readSettings } from '../settings/settings.ts'
import { type Bounds, isBoundByDisk } from './bounds.ts'
import { fitMs, plannedBounds, promisedCutoffs, readPlans, type RetainedTable, SETTING_OF } from './plan.ts'

/** Deletion is late when it is this much behind the settings. */
const LATE_MS = DAY_MS
/** The database is large from this part of its room on. */
const LARGE_SHARE = 0.7
/** A table that keeps less than this part of what is set keeps less than promised. */
const SHORT_SHARE = 0.95

const tableSchema = z
  .object({
    table: z.enum(RETAINED_TABLES),
    setting: z.enum(Object.values(SETTING_OF)).describe('The setting that says how long its rows are kept'),
    setDays: z.number(),
    keptDays: z.number().describe('How long they will really be kept, at the present growth'),
    reason: z
      .enum(['disk', 'rows'])
      .nullable()
      .describe(
        'Why that is less than set. `disk`: the database has no room for more rows; `rows`: the service keeps no more',
      ),
    rowsPerDay: z.int().nullable().describe('Rows that an ordinary day adds; null: not known yet'),
    maxRows: z.int().describe('The most rows of this table, whatever their age'),
    lagSeconds: z
      .number()
      .nullable()
      .describe('How much longer than set the oldest rows stay, because deletion is behind; null: not known yet'),
    isLate: z.boolean().describe('Deletion is more than a day behind'),
  })
  .meta({ id: 'RetainedTable' })

export const retentionSchema = z
  .object({
    tables: z.array(tableSchema),
    database: z.object({
      usedBytes: z.int().nullable(),
      limitBytes: z
        .int()
        .nullable()
        .describe('The size that the database can reach: itself and the free disk, or what D1 allows'),
      isLarge: z.boolean().describe('It has reached 70 % of that size'),
    }),
  })
  .meta({ id: 'Retention', description: 'What is kept, for how long, and what is behind' })

/** The one account of how old data is deleted: log, metrics, alerts, API and page tell what it says. */
export type RetentionState = z.infer<typeof retentionSchema>

/** How retention stands at this moment. Reads about a dozen rows, whatever the size of the tables. */
export async function readRetentionState(store: Store, now: number): Promise<RetentionState> {
  const settings = await readSettings(store)
  const { plans, beginnings } = await readPlans(store)
  const space = await store.space()
  const bounds = plannedBounds(settings, plans, space)
  const promised = promisedCutoffs(settings, now)
  const tables = RETAINED_TABLES.map((table) => {
    const plan = plans.get(table)
    const setDays = settings[SETTING_OF[table]]
    const fitting = plan === undefined ? null : fitMs(plan, bounds[table])
    const fitDays = (fitting ?? Number.POSITIVE_INFINITY) / DAY_MS
    const isShort = fitDays < setDays * SHORT_SHARE
    const lagMs = lagOf(promised[table], beginnings.get(table))
    return {
      table,
      setting: SETTING_OF[table],
      setDays,
      keptDays: isShort ? round(fitDays) : setDays,
      reason: isShort ? reasonOf(table, bounds) : null,
      rowsPerDay: plan?.rowsPerDay ?? null,
      maxRows: bounds[table],
      lagSeconds: lagMs === null ? null : Math.floor(lagMs / 1000),
      isLate: lagMs !== null && lagMs > LATE_MS,
    }
  })
  const isLarge = space !== null && space.usedBytes >= space.limitBytes * LARGE_SHARE
  const { usedBytes = null, limitBytes = null } = space ?? {}
  return { tables, database: { usedBytes, limitBytes, isLarge } }
}

function lagOf(cutoff: number, begun: number | undefined): number | null {
  return begun === undefined ? null : Math.max(0, cutoff - begun)
}

function reasonOf(table: RetainedTable, bounds: Bounds): 'disk' | 'rows' {
  return isBoundByDisk(table, bounds) ? 'disk' : 'rows'
}

/** To a tenth of a day, but never to nothing. */
function round(days: number): number {
  return Math.max(0.1, Math.floor(days * 10) / 10)
}

/** The same as an alert stores it. */
type RetentionFact =
  | { readonly event: 'retention_late'; readonly table: RetainedTable; readonly hours: number }
  | {
      readonly event: 'retention_short'
      readonly table: RetainedTable
      readonly keptDays: number
      readonly setDays: number
      readonly maxRows: number
      readonly reason: 'disk' | 'rows'
    }
  | { readonly event: 'database_large'; readonly percent: number; readonly limitBytes: number }

/** Something about retention that an administrator should know. */
export type RetentionProblem = {
  /** Identifies it as long as it lasts. */
  readonly key: string
  /** One line for the log. */
  readonly message: 'Old data is deleted too slowly' | 'Data is kept shorter than set' | 'The database is large'
  readonly fields: Readonly<Record<string, string | number>>
  readonly fact: RetentionFact
}

/** What is late, shorter than set, or large. */
export function problemsOf({ tables, database }: RetentionState): RetentionProblem[] {
  const late = tables.flatMap(({ table, isLate, lagSeconds }): RetentionProblem[] => {
    const hours = Math.floor(((lagSeconds ?? 0) * 1000) / HOUR_MS)
    const fact = { event: 'retention_late' as const, table, hours }
    const message = 'Old data is deleted too slowly'
    return isLate ? [{ key: `late:${table}`, message, fields: { table, hours }, fact }] : []
  })
  const short = tables.flatMap(({ table, keptDays, setDays, reason, maxRows }): RetentionProblem[] => {
    if (reason === null) return []
    const fact = { event: 'retention_short' as const, table, keptDays, setDays, maxRows, reason }
    const message = 'Data is kept shorter than set'
    return [{ key: `short:${table}`, message, fields: { table, keptDays, setDays, maxRows, reason }, fact }]
  })
  return [...late, ...short, ...largeOf(database)]
}

function largeOf({ usedBytes, limitBytes, isLarge }: RetentionState['database']): RetentionProblem[] {
  if (!isLarge || usedBytes === null || limitBytes === null) return []
  const percent = Math.floor((usedBytes / limitBytes) * 100)
  const fact = { event: 'database_large' as const, percent, limitBytes }
  return [{ key: 'large', message: 'The database is large', fields: { usedBytes, limitBytes, percent }, fact }]
}
