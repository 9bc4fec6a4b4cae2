import { type Placeholder, sql } from 'drizzle-orm'
import { isSummarised, PLAIN_ROW_BYTES, prepareCount, RUNS_OF } from '../../db/runs.ts'
import { telemetryDailyRuns, telemetryHourlyRuns, telemetryRuns } from '../../db/schema.ts'
import { bind, type Db, type Store } from '../../db/store.ts'

const TABLES = {
  telemetry: telemetryRuns,
  telemetry_hourly: telemetryHourlyRuns,
  telemetry_daily: telemetryDailyRuns,
} as const

/** The rows `r` that a quota may delete: what is not summarised yet would be lost for good. */
const DELETABLE = {
  telemetry: isSummarised('hours'),
  telemetry_hourly: isSummarised('days'),
  telemetry_daily: sql`true`,
} as const

/** Packed rows of an owner that one look-up reads, at most. */
const SLICE_RUNS = 1000

const value: (name: string) => Placeholder = sql.placeholder

/** Queries on the packed rows beside a table. */
export function preparePacked(db: Db, table: keyof typeof RUNS_OF) {
  const rows = TABLES[table]
  return {
    isUsed: db.select({ t: rows.t }).from(rows).limit(1).prepare(),
    // Most owners of a service that was updated have none.
    having: db
      .select({ owner: sql<number>`value` })
      .from(sql`json_each(${value('owners')})`)
      .where(sql`exists (select 1 from ${rows} x where x.node_id = value)`)
      .prepare(),
    // The fullest first: where much was sent, and no other hours of the owner. Of equal ones the oldest.
    fullest: db
      .select({
        t: sql<number>`r.t`,
        n: sql<number>`max(1, octet_length(r.body) / ${sql.raw(String(PLAIN_ROW_BYTES[table]))})`,
      })
      .from(sql`${rows} r`)
      .where(sql`r.node_id = ${value('owner')} and ${DELETABLE[table]}`)
      .orderBy(sql`2 desc, r.t`)
      .limit(SLICE_RUNS)
      .prepare(),
    remove: db
      .delete(rows)
      .where(sql`node_id = ${value('owner')} and t in (select value from json_each(${value('times')}))`)
      .prepare(),
    count: prepareCount(db, sql`(select ${value('owner')} as id) k`, sql`k.id`),
  }
}

type Run = { readonly store: Store; readonly pause: () => Promise<boolean> }
type Owner = { readonly owner: number; readonly n: number; readonly bucket: number }

/**
 * Deletes packed rows of owners with more than `keep`, as long as the bucket has an excess, which it lowers. Returns how
 * many rows they count as, and the owners that still have too many.
 */
export async function trimPacked(
  { store, pause }: Run,
  packed: ReturnType<typeof preparePacked> | null,
  bucket: { readonly keep: number; excess: number },
  owners: readonly Owner[],
): Promise<{ readonly removed: number; readonly over: Owner[] }> {
  if (packed === null || owners.length === 0 || (await packed.isUsed.get()) === undefined)
    return { removed: 0, over: [...owners] }
  const having = await packed.having.all({ owners: JSON.stringify(owners.map(({ owner }) => owner)) })
  const packing = new Set(having.map(({ owner }) => owner))
  let removed = 0
  let goesOn = await pause()
  const over: Owner[] = []
  for (const one of owners) {
    const { owner } = one
    const most = Math.min(one.n - bucket.keep, bucket.excess)
    let sum = 0
    const isLooked = most > 0 && goesOn && packing.has(owner)
    const runs = isLooked ? await packed.fullest.all({ owner }) : []
    const surplus = runs.filter(({ n }) => sum < most && (sum += n) > 0)
    if (surplus.length > 0) {
      const times = JSON.stringify(surplus.map(({ t }) => t))
      await store.atomic([bind(packed.remove, { owner, times }), bind(packed.count, { owner })])
    }
    if (isLooked) goesOn = await pause()
    removed += sum
    bucket.excess -= sum
    if (one.n - sum > bucket.keep) over.push({ ...one, n: one.n - sum })
  }
  return { removed, over: goesOn ? over : [] }
}
