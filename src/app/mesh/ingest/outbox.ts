import type { RadioFact } from '../../../meshtastic/radio-fact.ts'
import type { Heard } from '../heard/heard.ts'
import { base64Encode } from '@bufbuild/protobuf/wire'
import { desc, sql, type SQL } from 'drizzle-orm'
import { field, prepareJsonInsert } from '../../../db/json-rows.ts'
import { collectorOutbox } from '../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { eachTurn, inSlices, type Pause } from '../../base/pacing/slices.ts'

/** Packets that have waited longer are not delivered. */
export const OUTBOX_AGE_MS = 7 * DAY_MS
/** Rows deleted in one transaction: a few milliseconds. */
const SLICE_ROWS = 2000

/** A packet that waits for its delivery. */
export type Waiting = Pick<
  typeof collectorOutbox.$inferSelect,
  'id' | 'source' | 'receivedAt' | 'replayed' | 'gateway' | 'identity' | 'data'
>

const VALUES = {
  id: sql`null`,
  source: field('source'),
  receivedAt: field('receivedAt'),
  replayed: field('replayed'),
  gateway: field('gateway'),
  identity: field('identity'),
  data: field('data'),
} satisfies Record<keyof typeof collectorOutbox.$inferSelect, SQL>

const value = sql.placeholder
const oldest = sql`select id, received_at from collector_outbox order by id limit ${value('limit')}`

const queries = prepareOnce((db) => ({
  add: prepareJsonInsert(db, collectorOutbox, { values: VALUES, onConflict: sql`` }),
  count: db
    .select({ n: sql<number>`count(*)` })
    .from(collectorOutbox)
    .prepare(),
  // Packets of the source whose packet has waited longest, because each delivery has one source.
  next: db
    .select()
    .from(collectorOutbox)
    .where(
      sql`id not in (select value from json_each(${value('except')})) and source = (select source
        from collector_outbox where id not in (select value from json_each(${value('except')})) order by id limit 1)`,
    )
    .orderBy(collectorOutbox.id)
    .limit(value('limit'))
    .prepare(),
  newest: db.select().from(collectorOutbox).orderBy(desc(collectorOutbox.id)).limit(1).prepare(),
  remove: db
    .delete(collectorOutbox)
    .where(sql`id in (select value from json_each(${value('ids')}))`)
    .returning({ id: collectorOutbox.id })
    .prepare(),
  trim: db
    .delete(collectorOutbox)
    .where(sql`id in (select id from (${oldest}) where received_at < ${value('before')})`)
    .returning({ id: collectorOutbox.id })
    .prepare(),
}))

/** Kinds of events that the target accepts; it has no use for the radio's own queue, for example. */
const DELIVERED: ReadonlySet<RadioFact['type']> = new Set<RadioFact['type']>([
  'packet',
  'my-info',
  'node-info',
  'metadata',
  'channel',
])

/** Whether a collector may deliver this: it contains no secrets, and the other service accepts it. */
export function isDeliverable({ event, raw }: Heard): boolean {
  return raw !== undefined && raw !== null && DELIVERED.has(event.type)
}

/** The part of a batch that a collector delivers, as rows of the outbox. */
export function listDeliverable(batch: readonly Heard[]): Omit<Waiting, 'id'>[] {
  return batch.flatMap((heard) => {
    const { source, event, raw } = heard
    if (raw === undefined || raw === null || !isDeliverable(heard)) return []
    const isPacket = event.type === 'packet'
    return [
      {
        source: source.name,
        receivedAt: event.receivedAt,
        replayed: isPacket && event.replayed,
        gateway: isPacket ? (event.gateway ?? null) : null,
        identity: event.type === 'channel' ? event.channel.identity : null,
        data: base64Encode(raw),
      },
    ]
  })
}

/** Statements that keep rows until they are delivered. */
export function writeOutbox(store: Store, rows: readonly Omit<Waiting, 'id'>[]): Statement[] {
  return rows.length === 0 ? [] : [queries(store).add(rows)]
}

/** Queues an event that no radio heard. */
export async function addToOutbox(
  store: Store,
  { source, receivedAt, raw }: { readonly source: string; readonly receivedAt: number; readonly raw: Uint8Array },
): Promise<void> {
  const row = { source, receivedAt, replayed: false, gateway: null, identity: null, data: base64Encode(raw) }
  await store.atomic([queries(store).add([row])])
}

/** The number of waiting rows. */
export async function countOutbox(store: Store): Promise<number> {
  return (await queries(store).count.get())?.n ?? 0
}

/** At most `limit` rows of one source, oldest first, without those in `except`. */
export async function readOutbox(store: Store, limit: number, except: Iterable<number>): Promise<Waiting[]> {
  return queries(store).next.all({ limit, except: JSON.stringify([...except]) })
}

/** The newest row, if there is one. */
export async function readNewestOfOutbox(store: Store): Promise<Waiting[]> {
  return queries(store).newest.all()
}

/** Returns the number of deleted rows. */
export async function removeFromOutbox(store: Store, ids: readonly number[]): Promise<number> {
  return (await queries(store).remove.all({ ids: JSON.stringify(ids) })).length
}

/** Deletes the oldest `excess` rows. Returns the number of deleted rows. */
export async function trimOutbox(store: Store, excess: number): Promise<number> {
  const { trim } = queries(store)
  const deleteSlice = (limit: number) => trim.all({ limit, before: Number.MAX_SAFE_INTEGER })
  return (await inSlices(deleteSlice, { full: SLICE_ROWS, atMost: excess, pause: eachTurn })).rows
}

/**
 * Deletes packets received before `before`, in slices; awaits `pause` after each, which returns whether to continue.
 * Returns the number of deleted packets.
 */
export async function expireOutbox(store: Store, before: number, pause: Pause): Promise<number> {
  const { trim } = queries(store)
  // Usually the oldest one is not expired, and so no other is.
  const { length: first } = await trim.all({ limit: 1, before })
  if (first === 0 || !(await pause())) return first
  return first + (await inSlices((limit) => trim.all({ limit, before }), { full: SLICE_ROWS, pause })).rows
}
