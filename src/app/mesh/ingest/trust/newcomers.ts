import type { Heard } from '../../heard/heard.ts'
import type { NodeRow } from '../rows/node-row.ts'
import { sql } from 'drizzle-orm'
import { insertSelect } from '../../../../db/insert-select.ts'
import { gateways, newcomers, nodes, sources } from '../../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../../db/store.ts'
import { HOUR_MS } from '../../../../shared/time.ts'
import type { Plan } from '../plan.ts'
import type { Source } from '../../radios/source-table.ts'
import { dayOf } from '../../nodes/deletion/evidence.ts'

/** New nodes of one source within an hour: more than a radio's memory holds. Anybody can make up numbers. */
export const MAX_NEW_NODES = 6000
/** The limit for all collectors together, because they may have many sources. */
const MAX_DELIVERED = 20_000

/** A gateway is known if it delivered on at least this many days, the last time within `FORGOTTEN_DAYS`. */
const KNOWN_DAYS = 3
const FORGOTTEN_DAYS = 30
/** The part of the limit that the known gateways of a source share equally. The rest is first come, first served. */
const RESERVED = MAX_NEW_NODES / 2
/** Gateways remembered of each source. */
const MAX_KNOWN_GATEWAYS = 400
const MAX_NEW_GATEWAYS = 100

/** Sources that have just reached their limit, once an hour each. */
export type NewNodeExcess = { readonly source: string; readonly newNodes: number }

const value = sql.placeholder

const IS_KNOWN = sql`(g.days >= ${sql.raw(String(KNOWN_DAYS))}
  and g.last_day > ${value('today')} - ${sql.raw(String(FORGOTTEN_DAYS))})`

const queries = prepareOnce((db) => ({
  unknown: db
    .select({ nodeNum: sql<number>`k.value` })
    .from(sql`json_each(${value('keys')}) k`)
    .where(sql`not exists (select 1 from ${nodes} where node_num = k.value)`)
    .prepare(),
  asked: db
    .select({ source: sources.name, kind: sources.kind, asked: newcomers.asked, opened: newcomers.opened })
    .from(newcomers)
    .innerJoin(sources, sql`${sources.id} = ${newcomers.sourceId}`)
    .where(sql`${newcomers.hour} = ${value('hour')}`)
    .prepare(),
  count: insertSelect(
    db,
    newcomers,
    {
      sourceId: sql`s.id`,
      hour: value('hour'),
      asked: sql`k.value ->> 'asked'`,
      refused: sql`k.value ->> 'refused'`,
      opened: sql`k.value ->> 'opened'`,
    },
    sql`from json_each(${value('counts')}) k cross join sources s on s.name = k.value ->> 'source' where true
      on conflict (source_id) do update set asked = iif(hour = excluded.hour, asked, 0) + excluded.asked,
        opened = iif(hour = excluded.hour, opened, 0) + excluded.opened,
        refused = refused + excluded.refused, hour = excluded.hour`,
  ).prepare(),
  gateways: db
    .select({
      source: sql<string>`s.name`,
      gateway: sql<number>`g.gateway`,
      days: sql<number>`g.days`,
      lastDay: sql<number>`g.last_day`,
      taken: sql<number>`iif(g.hour = ${value('hour')}, g.taken, 0)`,
    })
    .from(
      sql`json_each(${value('keys')}) k cross join sources s on s.name = k.value ->> 'source'
        cross join gateways g on g.source_id = s.id and g.gateway = k.value ->> 'gateway'`,
    )
    .prepare(),
  known: db
    .select({ source: sql<string>`s.name`, n: sql<number>`count(*)` })
    .from(
      sql`json_each(${value('keys')}) k cross join sources s on s.name = k.value
        cross join gateways g on g.source_id = s.id`,
    )
    .where(IS_KNOWN)
    .groupBy(sql`s.id`)
    .prepare(),
  note: insertSelect(
    db,
    gateways,
    {
      sourceId: sql`s.id`,
      gateway: sql`k.value ->> 'gateway'`,
      days: 1,
      lastDay: value('today'),
      hour: value('hour'),
      taken: sql`k.value ->> 'taken'`,
    },
    sql`from json_each(${value('met')}) k cross join sources s on s.name = k.value ->> 'source' where true
      on conflict (source_id, gateway) do update set days = days + (last_day <> excluded.last_day),
        last_day = excluded.last_day, taken = iif(hour = excluded.hour, taken, 0) + excluded.taken, hour = excluded.hour`,
  ).prepare(),
  // Gateways made up today displace neither known ones nor those that came before them.
  forget: db
    .delete(gateways)
    .where(
      sql`id in (select id from (select id, is_known, row_number() over (partition by source_id, is_known
        order by last_day >= ${value('today')} - ${sql.raw(String(KNOWN_DAYS * 2))} desc, days desc, id) as place
        from (select g.id, g.source_id, g.days, g.last_day, ${IS_KNOWN} as is_known
          from json_each(${value('keys')}) k cross join sources s on s.name = k.value
          cross join gateways g on g.source_id = s.id))
        where place > iif(is_known, ${sql.raw(String(MAX_KNOWN_GATEWAYS))}, ${sql.raw(String(MAX_NEW_GATEWAYS))}))`,
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
type Count = { readonly source: string; asked: number; refused: number; opened: number }

/** The nodes of a batch that are stored, and how they are counted. */
export type Admission = {
  readonly nodes: Nodes
  readonly count: readonly Statement[]
  readonly excesses: readonly NewNodeExcess[]
  /** Nodes that were unknown. */
  readonly newNodes: ReadonlySet<number>
}

/**
 * Leaves out nodes beyond the number that a source may add within an hour. Our own radios always pass. Known gateways
 * of a broker have an allowance of their own. Reports of a refused sender about itself are dropped, but its packets are
 * stored. `now` in milliseconds. Decision: docs/decisions/made-up-nodes.md
 */
export async function admitNewcomers(
  store: Store,
  plan: Plan,
  batch: readonly Heard[],
  now: number,
): Promise<Admission> {
  const { late, remembered, heard } = plan
  const prepared = queries(store)
  const hour = Math.floor(now / HOUR_MS)
  const today = dayOf(now)
  const met = await readGateways(store, batch, hour)
  const firstSources = new Map(
    [...late, ...remembered, ...heard].map((row) => [row.nodeNum, row.source] as const).toReversed(),
  )
  const unknown =
    firstSources.size === 0 ? [] : await prepared.unknown.all({ keys: JSON.stringify([...firstSources.keys()]) })
  const refused = new Set<number>()
  const rooms = unknown.length === 0 ? null : await openRooms(store, { batch, met, hour, today })
  if (rooms !== null) {
    const own = new Set(plan.localNodes.values())
    const ways = new Map(batch.flatMap(({ source, event }) => wayOf(source, event)).toReversed())
    for (const { nodeNum } of unknown) {
      const source = firstSources.get(nodeNum)
      if (source === undefined || own.has(nodeNum)) continue
      if (!rooms.take(source, ways.get(`${nodeNum} ${source}`) ?? null)) refused.add(nodeNum)
    }
  }
  const counts = rooms?.counts() ?? []
  const admitted = ({ nodeNum }: NodeRow) => !refused.has(nodeNum)
  return {
    nodes:
      refused.size === 0
        ? { late, remembered, heard }
        : { late: late.filter(admitted), remembered: remembered.filter(admitted), heard: heard.filter(admitted) },
    count: [
      ...(counts.length === 0 ? [] : [bind(prepared.count, { hour, counts: JSON.stringify(counts) })]),
      ...noteGateways(store, met, { hour, today }),
    ],
    excesses: rooms?.excesses() ?? [],
    newNodes: new Set(unknown.map(({ nodeNum }) => nodeNum).filter((nodeNum) => !refused.has(nodeNum))),
  }
}

/** The gateway of each sender's first packet from a source. */
function wayOf(source: Source, event: Heard['event']): (readonly [string, number])[] {
  const gateway = gatewayOf(event)
  return event.type !== 'packet' || gateway === null ? [] : [[`${event.packet.from} ${source.name}`, gateway]]
}

function gatewayOf(event: Heard['event']): number | null {
  return event.type === 'packet' ? (event.gateway ?? null) : null
}

/** A gateway of a batch. `before`: its stored row. `taken`: new nodes of this batch within its own share. */
type Gateway = {
  readonly source: string
  readonly gateway: number
  readonly before: { readonly days: number; readonly lastDay: number; readonly taken: number } | null
  taken: number
}

async function readGateways(store: Store, batch: readonly Heard[], hour: number): Promise<Map<string, Gateway>> {
  const keys = new Map<string, { source: string; gateway: number }>()
  for (const { source, event } of batch) {
    const gateway = gatewayOf(event)
    if (gateway !== null) keys.set(`${gateway} ${source.name}`, { source: source.name, gateway })
  }
  if (keys.size === 0) return new Map()
  const stored = await queries(store).gateways.all({ hour, keys: JSON.stringify([...keys.values()]) })
  const known = new Map(stored.map((row) => [`${row.gateway} ${row.source}`, row]))
  return new Map([...keys].map(([key, each]) => [key, { ...each, before: known.get(key) ?? null, taken: 0 }]))
}

/** Writes each gateway once a day, and whenever it brought new nodes. */
function noteGateways(
  store: Store,
  all: ReadonlyMap<string, Gateway>,
  { hour, today }: { readonly hour: number; readonly today: number },
): Statement[] {
  const changed = [...all.values()].filter(({ before, taken }) => taken > 0 || before?.lastDay !== today)
  if (changed.length === 0) return []
  const { note, forget } = queries(store)
  const met = changed.map(({ source, gateway, taken }) => ({ source, gateway, taken }))
  const grown = new Set(changed.filter(({ before }) => before === null).map(({ source }) => source))
  return [
    bind(note, { hour, today, met: JSON.stringify(met) }),
    ...(grown.size === 0 ? [] : [bind(forget, { today, keys: JSON.stringify([...grown]) })]),
  ]
}

type Asked = { readonly source: string; readonly kind: Source['kind']; readonly asked: number; readonly opened: number }
type Opening = {
  readonly batch: readonly Heard[]
  readonly met: ReadonlyMap<string, Gateway>
  readonly hour: number
  readonly today: number
}

/** The remaining allowances of this hour. */
async function openRooms(store: Store, { batch, met, hour, today }: Opening) {
  const prepared = queries(store)
  const kinds = new Map(batch.map(({ source }) => [source.name, source.kind]))
  const before: Asked[] = await prepared.asked.all({ hour })
  const behind = new Set([...met.values()].map(({ source }) => source))
  const known = behind.size === 0 ? [] : await prepared.known.all({ today, keys: JSON.stringify([...behind]) })
  return createRooms(before, kinds, { met, today, known: new Map(known.map(({ source, n }) => [source, n])) })
}

/** `known`: the number of known gateways of each source. */
type Gateways = Pick<Opening, 'met' | 'today'> & { readonly known: ReadonlyMap<string, number> }

function createRooms(
  before: readonly Asked[],
  kinds: ReadonlyMap<string, Source['kind']>,
  { met, today, known }: Gateways,
) {
  const opened = new Map(before.map((each) => [each.source, each.opened]))
  const asked = new Map(before.map((each) => [each.source, each.asked]))
  const counts = new Map<string, Count>()
  const excesses: NewNodeExcess[] = []
  let delivered = before
    .filter(({ kind }) => kind === 'ingest')
    .reduce((sum, { asked }) => sum + Math.min(asked, MAX_NEW_NODES), 0)
  const takeOwnShare = (source: string, gateway: number | null): boolean => {
    const way = gateway === null ? undefined : met.get(`${gateway} ${source}`)
    if (way === undefined || way.before === null) return false
    const { days, lastDay, taken } = way.before
    const isGatewayKnown = days >= KNOWN_DAYS && lastDay > today - FORGOTTEN_DAYS
    const share = Math.floor(RESERVED / Math.max(1, known.get(source) ?? 0))
    if (!isGatewayKnown || taken + way.taken >= share) return false
    way.taken++
    return true
  }
  return {
    take(source: string, gateway: number | null): boolean {
      const count = counts.get(source) ?? { source, asked: 0, refused: 0, opened: 0 }
      counts.set(source, count)
      count.asked++
      const isDelivered = kinds.get(source) === 'ingest'
      const isFull = isDelivered && delivered >= MAX_DELIVERED
      const open = MAX_NEW_NODES - ((known.get(source) ?? 0) > 0 ? RESERVED : 0)
      const isOfShare = !isFull && takeOwnShare(source, gateway)
      const place = isOfShare ? 0 : (opened.get(source) ?? 0) + ++count.opened
      const isTaken = isOfShare || (place <= open && !isFull)
      if (isTaken && isDelivered) delivered++
      if (!isTaken) count.refused++
      if (place === open + 1 || (isTaken && isDelivered && delivered === MAX_DELIVERED)) {
        excesses.push({ source, newNodes: (asked.get(source) ?? 0) + count.asked })
      }
      return isTaken
    },
    counts: () => [...counts.values()],
    excesses: () => excesses,
  }
}

/** The total of numbers that were not stored as nodes, by source. */
export async function listRefused(store: Store): Promise<{ source: string; refused: number }[]> {
  return queries(store).refused.all()
}
