import { desc, eq, sql } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { nodes, sources, suspicions } from '../../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import type { Suspicion } from '../../../../shared/mesh/packets.ts'
import { MAX_SUSPICIONS } from '../../../../shared/limits.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import type { Pause } from '../../../base/pacing/slices.ts'

/**
 * A packet that somebody other than its stated sender seems to have sent. `gateway` 0: the radio of the source itself.
 */
export type SuspicionRow = {
  readonly nodeNum: number
  readonly source: string
  readonly gateway: number
  readonly reason: Suspicion
  readonly claim: string
  readonly t: number
}

/** A suspicion that the node itself lifts: see `claimOf`. */
export type LiftedSuspicion = { readonly nodeNum: number; readonly claim: string }

/** A suspicion that is not repeated ends after this time. */
const FADES_MS = 3 * DAY_MS
/** Rows in one transaction. */
const SLICE = 500

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  note: prepareJsonInsert(db, suspicions, {
    values: {
      nodeNum: field('nodeNum'),
      sourceId: sql`s.id`,
      gateway: field('gateway'),
      reason: field('reason'),
      claim: field('claim'),
      count: sql`1`,
      firstAt: field('t'),
      lastAt: field('t'),
    },
    from: sql`cross join sources s on s.name = ${field('source')} cross join nodes n on n.node_num = ${field('nodeNum')}
      and ((select count(*) from suspicions x where x.node_num = n.node_num) < ${sql.raw(String(MAX_SUSPICIONS))}
        or exists (select 1 from suspicions x where x.node_num = n.node_num and x.source_id = s.id
          and x.gateway = ${field('gateway')} and x.reason = ${field('reason')}))`,
    onConflict: sql`on conflict do update set count = count + 1, claim = excluded.claim,
      last_at = max(last_at, excluded.last_at)`,
  }),
  list: db
    .select({
      reason: suspicions.reason,
      source: sources.name,
      gateway: sql<number | null>`nullif(${suspicions.gateway}, 0)`,
      count: suspicions.count,
      firstAt: suspicions.firstAt,
      lastAt: suspicions.lastAt,
    })
    .from(suspicions)
    .innerJoin(sources, eq(sources.id, suspicions.sourceId))
    .where(eq(suspicions.nodeNum, value('nodeNum')))
    .orderBy(desc(suspicions.lastAt))
    .limit(MAX_SUSPICIONS)
    .prepare(),
  lift: db
    .update(nodes)
    .set({ spoofSuspected: false, spoofClaim: null })
    .where(
      sql`(node_num, spoof_claim) in
        (select value ->> 'nodeNum', value ->> 'claim' from json_each(${value('lifted')}))`,
    )
    .prepare(),
  forgetLifted: db
    .delete(suspicions)
    .where(
      sql`node_num in (select n.node_num from json_each(${value('lifted')}) k cross join nodes n
        on n.node_num = k.value ->> 'nodeNum' where not n.spoof_suspected)`,
    )
    .prepare(),
  fade: db
    .delete(suspicions)
    .where(
      sql`(node_num, source_id, gateway, reason) in (select node_num, source_id, gateway, reason from suspicions
        where last_at < ${value('before')} limit ${sql.raw(String(SLICE))})`,
    )
    .returning({ nodeNum: suspicions.nodeNum })
    .prepare(),
  // A key that was refused beside one that has signed is a forgery, and ends with the suspicion.
  clear: db
    .update(nodes)
    .set({
      spoofSuspected: false,
      spoofClaim: null,
      keyMismatch: sql`iif(key_signed and previous_public_key is null, 0, key_mismatch)`,
      refusedPublicKey: sql`iif(key_signed and previous_public_key is null, null, refused_public_key)`,
      refusedHeard: sql`iif((key_signed and previous_public_key is null) or refused_public_key is null, 0, refused_heard)`,
      refusedLongName: sql`iif(key_mismatch and not key_signed, refused_long_name, null)`,
      refusedShortName: sql`iif(key_mismatch and not key_signed, refused_short_name, null)`,
    })
    .where(sql`spoof_suspected and not exists (select 1 from suspicions x where x.node_num = nodes.node_num)`)
    .prepare(),
}))

/** Why a node is suspected, latest first. */
export async function listSuspicions(store: Store, nodeNum: number) {
  return queries(store).list.all({ nodeNum })
}

/** Statements that record suspicions; their nodes and sources are stored earlier in the same step. */
export function writeSuspicions(store: Store, rows: readonly SuspicionRow[]): Statement[] {
  return rows.length === 0 ? [] : [queries(store).note(rows)]
}

/** Statements that end suspicions, except those with a further cause. */
export function liftSuspicions(store: Store, lifted: readonly LiftedSuspicion[]): Statement[] {
  if (lifted.length === 0) return []
  const values = { lifted: JSON.stringify(lifted) }
  return [bind(queries(store).lift, values), bind(queries(store).forgetLifted, values)]
}

/**
 * Ends suspicions that were not repeated for three days, so that no node stays marked for ever. Marks of earlier
 * versions have no suspicions and end at once. Returns the number of suspicions.
 */
export async function fadeSuspicions(store: Store, now: number, pause: Pause): Promise<number> {
  const { fade, clear } = queries(store)
  let count = 0
  for (let isMore = true; isMore;) {
    const gone = await fade.all({ before: now - FADES_MS })
    count += gone.length
    isMore = gone.length === SLICE && (await pause())
  }
  await clear.run()
  return count
}
