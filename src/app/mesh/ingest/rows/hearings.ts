import { sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../../db/json-rows.ts'
import { channelHearings } from '../../../../db/schema.ts'
import type { NodeRow } from './node-row.ts'
import { prepareOnce, type Statement, type Store } from '../../../../db/store.ts'

/** When a packet that anonymous callers may know about was received from a node on a channel. Times in milliseconds. */
export type Hearing = {
  readonly nodeNum: number
  readonly channel: number
  readonly heardAt: number
  readonly hopsAway: number | null
  readonly viaMqtt: boolean
}

const VALUES = {
  nodeId: sql`n.id`,
  channel: field('channel'),
  firstHeard: field('heardAt'),
  lastHeard: field('heardAt'),
  hopsAway: field('hopsAway'),
  viaMqtt: field('viaMqtt'),
} satisfies Record<keyof typeof channelHearings.$inferSelect, SQL>

const IS_LATER = sql.raw('excluded.last_heard >= last_heard')

const queries = prepareOnce((db) => ({
  hearings: prepareJsonInsert(db, channelHearings, {
    values: VALUES,
    // The row of the node has its latest one already: writeNodes.
    from: sql`cross join nodes n on n.node_num = ${field('nodeNum')} and not (n.public_channel is ${field('channel')}
      and n.public_heard >= ${field('heardAt')} and exists (select 1 from channel_hearings h
        where h.node_id = n.id and h.channel = ${field('channel')} and h.first_heard <= ${field('heardAt')}))`,
    onConflict: sql`on conflict (node_id, channel) do update set
      hops_away = iif(${IS_LATER}, excluded.hops_away, hops_away),
      via_mqtt = iif(${IS_LATER}, excluded.via_mqtt, via_mqtt),
      first_heard = min(first_heard, excluded.first_heard), last_heard = max(last_heard, excluded.last_heard)`,
  }),
}))

/** The same in the row of its node. */
export function hearingFields(hearing: Hearing | null): Partial<NodeRow> {
  if (hearing === null) return {}
  const { channel, heardAt, hopsAway, viaMqtt } = hearing
  return { publicChannel: channel, publicHeard: heardAt, publicHops: hopsAway, publicViaMqtt: viaMqtt }
}

/** Statements that record hearings; the nodes were written earlier in the same step. */
export function writeHearings(store: Store, rows: readonly Hearing[]): Statement[] {
  return rows.length === 0 ? [] : [queries(store).hearings(latestOf(rows))]
}

/** Keeps the latest row for each node and channel, and also the first one: otherwise the first time would be lost. */
function latestOf(rows: readonly Hearing[]): Hearing[] {
  const kept = new Map<string, readonly [first: Hearing, last: Hearing]>()
  for (const row of rows) {
    const key = `${row.nodeNum} ${row.channel}`
    const [first, last] = kept.get(key) ?? [row, row]
    kept.set(key, [row.heardAt < first.heardAt ? row : first, row.heardAt >= last.heardAt ? row : last])
  }
  return [...kept.values()].flatMap(([first, last]) => (first === last ? [last] : [first, last]))
}
