import type { Heard } from '../heard.ts'
import type { NodeRow } from '../node-row.ts'
import { sql } from 'drizzle-orm'
import { newcomers, nodes, sources } from '../../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import type { Plan } from '../plan.ts'
import type { Source } from '../sources.ts'

/** New nodes of one source within an hour: more than a radio's memory holds. Anybody can make up numbers. */
export const MOST_NEW_NODES = 6000
/** The limit of all collectors together, which may have many sources. */
const MOST_DELIVERED = 20_000

/** Sources that have just reached their limit, once an hour each. */
export type Crowd = { readonly source: string; readonly newNodes: number }

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  unknown: db
    .select({ nodeNum: sql<number>`k.value` })
    .from(sql`json_each(${value('keys')}) k`)
    .where(sql`not exists (select 1 from ${nodes} where node_num = k.value)`)
    .prepare(),
  asked: db
    .select({ source: sources.name, kind: sources.kind, asked: newcomers.asked })
    .from(newcomers)
    .innerJoin(sources, sql`${sources.id} = ${newcomers.sourceId}`)
    .where(sql`${newcomers.hour} = ${value('hour')}`)
    .prepare(),
  count: db
    .insert(newcomers)
    .select(
      sql`select s.id, ${value('hour')}, k.value ->> 'asked', k.value ->> 'refused' from json_each(${value('counts')}) k
        cross join sources s on s.name = k.value ->> 'source' where true
        on conflict (source_id) do update set asked = iif(hour = excluded.hour, asked, 0) + excluded.asked,
          refused = refused + excluded.refused, hour = excluded.hour`,
    )
    .prepare(),
  refused: db
    .select({ source: sources.name, refused: newcomers.refused })
    .from(newcomers)
    .innerJoin(sources, sql`${sources.id} = ${newcomers.sourceId}`)
    .where(sql`${newcomers.refused} > 0`)
    .prepare(),
}))

type Nodes = Pick<Plan, 'late' | 'remembered' | 'heard'>
type Count = { readonly source: string; asked: number; refused: number }

/** The nodes of a batch that are stored, and how they are counted. */
export type Admission = {
  readonly nodes: Nodes
  readonly count: readonly Statement[]
  readonly crowds: readonly Crowd[]
  /** Nodes that were unknown. */
  readonly newNodes: ReadonlySet<number>
}

/**
 * Leaves out nodes beyond the number that a source may add within an hour; our own radios always pass. Reports of such
 * a sender about itself are dropped, but its packets are stored. `now` in milliseconds.
 */
export async function admitNewcomers(
  store: Store,
  plan: Plan,
  batch: readonly Heard[],
  now: number,
): Promise<Admission> {
  const { late, remembered, heard } = plan
  const firstSources = new Map(
    [...late, ...remembered, ...heard].map((row) => [row.nodeNum, row.source] as const).toReversed(),
  )
  const all = { nodes: { late, remembered, heard }, count: [], crowds: [], newNodes: new Set<number>() }
  if (firstSources.size === 0) return all
  const prepared = queries(store)
  const unknown = await prepared.unknown.all({ keys: JSON.stringify([...firstSources.keys()]) })
  if (unknown.length === 0) return all
  const hour = Math.floor(now / HOUR_MS)
  const kinds = new Map(batch.map(({ source }) => [source.name, source.kind]))
  const rooms = createRooms(await prepared.asked.all({ hour }), kinds)
  const own = new Set(plan.localNodes.values())
  const refused = new Set<number>()
  for (const { nodeNum } of unknown) {
    const source = firstSources.get(nodeNum)
    if (source !== undefined && !own.has(nodeNum) && !rooms.take(source)) refused.add(nodeNum)
  }
  const counts = rooms.counts()
  const admitted = ({ nodeNum }: NodeRow) => !refused.has(nodeNum)
  return {
    nodes: { late: late.filter(admitted), remembered: remembered.filter(admitted), heard: heard.filter(admitted) },
    count: counts.length === 0 ? [] : [bind(prepared.count, { hour, counts: JSON.stringify(counts) })],
    crowds: rooms.crowds(),
    newNodes: new Set(unknown.map(({ nodeNum }) => nodeNum).filter((nodeNum) => !refused.has(nodeNum))),
  }
}

type Asked = { readonly source: string; readonly kind: Source['kind']; readonly asked: number }

/** The remaining allowances of this hour. */
function createRooms(before: readonly Asked[], kinds: ReadonlyMap<string, Source['kind']>) {
  const known = new Map(before.map(({ source, asked }) => [source, asked]))
  const counts = new Map<string, Count>()
  const crowds: Crowd[] = []
  let delivered = before
    .filter(({ kind }) => kind === 'ingest')
    .reduce((sum, { asked }) => sum + Math.min(asked, MOST_NEW_NODES), 0)
  return {
    take(source: string): boolean {
      const count = counts.get(source) ?? { source, asked: 0, refused: 0 }
      counts.set(source, count)
      const asked = (known.get(source) ?? 0) + ++count.asked
      const isDelivered = kinds.get(source) === 'ingest'
      const isTaken = asked <= MOST_NEW_NODES && !(isDelivered && delivered >= MOST_DELIVERED)
      if (isTaken && isDelivered) delivered++
      if (!isTaken) count.refused++
      if (asked === MOST_NEW_NODES + 1 || (isTaken && isDelivered && delivered === MOST_DELIVERED)) {
        crowds.push({ source, newNodes: asked })
      }
      return isTaken
    },
    counts: () => [...counts.values()],
    crowds: () => crowds,
  }
}

/** The total of numbers that were not stored as nodes, by source. */
export async function listRefused(store: Store): Promise<{ source: string; refused: number }[]> {
  return queries(store).refused.all()
}
