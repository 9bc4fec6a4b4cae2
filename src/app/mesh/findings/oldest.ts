import { sql } from 'drizzle-orm'
import { pathOf, RUNS_OF } from '../../../db/runs.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { packetFrom } from '../topology/last-packet.ts'
import { aboutHeard, type Looking } from './rule.ts'

// When what is stored of a rule's evidence begins, in milliseconds; null: nothing is stored.

const least = (times: readonly { readonly t: number | null }[]): number | null => {
  const known = times.flatMap(({ t }) => t ?? [])
  return known.length === 0 ? null : known.reduce((a, b) => Math.min(a, b))
}

/** The first summary of a measurement, in rows of both forms. */
export function oldestMeasured(table: 'telemetry_hourly' | 'telemetry_daily', metric: string) {
  const form = RUNS_OF[table]
  const packed = sql`select r.t + (select min(e.key + 0) from json_each(r.body, ${pathOf(sql`m.id`)}) e) * ${form.stepMs}
    from ${sql.raw(form.table)} r where r.node_id = n.id and json_type(r.body, ${pathOf(sql`m.id`)}) is not null
    order by r.t limit 1`
  return async (looking: Looking): Promise<number | null> =>
    least(
      await aboutHeard(looking, (nums) =>
        looking.store.db.all<{ t: number | null }>(
          sql`select min(t) as t from (select (select d.t from ${sql.raw(table)} d where d.node_id = n.id and d.metric = m.id
              order by d.t limit 1) as t
            from metrics m cross join nodes n
            where m.name = ${metric} and n.node_num in (select value from json_each(${nums}))
            union all select (${packed}) from metrics m cross join nodes n
            where m.name = ${metric} and n.node_num in (select value from json_each(${nums})))`,
        ),
      ),
    )
}

/** The first day of the calendars. */
export async function oldestHearing(looking: Looking): Promise<number | null> {
  const days = await aboutHeard(looking, (nums) =>
    looking.store.db.all<{ t: number | null }>(
      sql`select min((select d.day from node_days d where d.node_num = j.value order by d.day limit 1)) * ${DAY_MS} as t
        from json_each(${nums}) j`,
    ),
  )
  return least(days)
}

/** The first position. */
export async function oldestPosition(looking: Looking): Promise<number | null> {
  const first = await aboutHeard(looking, (nums) =>
    looking.store.db.all<{ t: number | null }>(
      sql`select min((select p.t from positions p where p.node_id = n.id order by p.t limit 1)) as t
        from nodes n where n.node_num in (select value from json_each(${nums}))`,
    ),
  )
  return least(first)
}

/** The first packet in the log. */
export async function oldestPacket({ store }: Looking): Promise<number | null> {
  return (await packetFrom(store, 0))?.t ?? null
}
