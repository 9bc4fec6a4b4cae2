import { desc, eq, sql } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { refusedIdentities, sources } from '../../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { MAX_REFUSED_IDENTITIES } from '../../../../shared/limits.ts'

/** What a source announced in the name of a node, and was not accepted. `gateway` 0: the radio of the source itself. */
export type RefusedRow = {
  readonly nodeNum: number
  readonly source: string
  readonly gateway: number
  /** One of our own radios heard it off the air. */
  readonly heard: boolean
  readonly publicKey: string | null
  readonly longName: string | null
  readonly shortName: string | null
  /** Milliseconds. */
  readonly lastAt: number
}

const queries = prepareOnce((db) => ({
  note: prepareJsonInsert(db, refusedIdentities, {
    values: {
      nodeNum: field('nodeNum'),
      sourceId: sql`s.id`,
      heard: field('heard'),
      publicKey: field('publicKey'),
      longName: field('longName'),
      shortName: field('shortName'),
      gateway: field('gateway'),
      lastAt: field('lastAt'),
    },
    from: sql`cross join sources s on s.name = ${field('source')} cross join nodes n on n.node_num = ${field('nodeNum')}`,
    // Names that came with a refused key stay with it.
    onConflict: sql`on conflict do update set public_key = excluded.public_key, long_name = excluded.long_name,
      short_name = excluded.short_name, gateway = excluded.gateway, last_at = excluded.last_at
      where excluded.last_at >= last_at and (excluded.public_key is not null or public_key is null)`,
  }),
  list: db
    .select({
      publicKey: refusedIdentities.publicKey,
      longName: refusedIdentities.longName,
      shortName: refusedIdentities.shortName,
      heard: refusedIdentities.heard,
      source: sources.name,
      gateway: sql<number | null>`nullif(${refusedIdentities.gateway}, 0)`,
      lastAt: refusedIdentities.lastAt,
    })
    .from(refusedIdentities)
    .innerJoin(sources, eq(sources.id, refusedIdentities.sourceId))
    .where(eq(refusedIdentities.nodeNum, sql.placeholder('nodeNum')))
    .orderBy(desc(refusedIdentities.heard), desc(refusedIdentities.lastAt))
    .limit(MAX_REFUSED_IDENTITIES)
    .prepare(),
}))

/** Statements that keep what was refused; the nodes and sources are stored earlier in the same step. */
export function writeRefused(store: Store, rows: readonly RefusedRow[]): Statement[] {
  return rows.length === 0 ? [] : [queries(store).note(rows)]
}

/** What was refused of a node, by who announced it: first what our own radios heard, then the latest. */
export async function listRefused(store: Store, nodeNum: number) {
  return queries(store).list.all({ nodeNum })
}
