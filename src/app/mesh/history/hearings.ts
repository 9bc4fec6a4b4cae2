import { and, eq, getTableColumns, gt, sql } from 'drizzle-orm'
import { hasPages, LAST_PACKET, packetsWithin } from '../../../db/packet-log.ts'
import { nodeDays, nodeReceivers, nodes, packets } from '../../../db/schema.ts'
import { field, ofKnown, prepareJsonInsert } from '../../../db/json-rows.ts'
import { bind, type Db, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { partOf, type Share, wholeSlices } from '../../base/pacing/slice-share.ts'
import { packetFrom } from '../topology/last-packet.ts'
import type { Pause } from '../../base/pacing/slices.ts'

/** Packets that are read at once, and summarised in one transaction unless it takes several such parts. */
const SLICE_PACKETS = 500
/** Rows of one parameter: D1 takes two million bytes at most. */
const ROWS_AT_ONCE = 5000
/** Packets that were in the log before the first summary, the latest ones: more would keep a small machine busy for long. */
const MAX_BEFORE = 500_000
/** Days of a node that are kept, the latest ones. */
const MAX_DAYS = 90
/** Receivers of a node that are kept: those that heard it last. */
const MAX_RECEIVERS = 16
const HOURS = 24

type Day = typeof nodeDays.$inferSelect
type Receiver = typeof nodeReceivers.$inferSelect

const value = sql.placeholder

/** The row that says how far the log is summarised. */
const PLACE = and(eq(nodeDays.nodeNum, 0), eq(nodeDays.day, 0))
const isAmong = sql`(node_num, day) in (select value ->> 'nodeNum', value ->> 'day' from json_each(${value('keys')}))`
const isReceiver = sql`(node_num, source_id, gateway) in (select value ->> 'nodeNum', value ->> 'sourceId', value ->> 'gateway'
  from json_each(${value('keys')}))`
const areOfNodes = sql`node_num in (select value from json_each(${value('nums')}))`

/** Each column from the field of its name. */
const fieldsOf = (table: typeof nodeDays | typeof nodeReceivers) =>
  Object.fromEntries(Object.keys(getTableColumns(table)).map((name) => [name, field(name)]))

/** The packets after an id, in the log or in a part of it. */
const prepareNext = (db: Db, log: typeof packets | ReturnType<typeof packetsWithin>) =>
  db
    .select({
      id: packets.id,
      nodeNum: packets.fromNodeNum,
      isKnown: sql<number>`exists (select 1 from ${nodes} where ${nodes.nodeNum} = ${packets.fromNodeNum})`,
      sourceId: packets.sourceId,
      gateway: packets.gateway,
      t: packets.t,
      hops: packets.hopsAway,
      snr: packets.rxSnr,
      viaMqtt: packets.viaMqtt,
      replayed: packets.replayed,
      trustLevel: packets.trustLevel,
    })
    .from(log)
    .where(gt(packets.id, value('after')))
    .orderBy(packets.id)
    .limit(value('limit'))
    .prepare()

const queries = prepareOnce((db) => ({
  place: db.select({ id: nodeDays.packets }).from(nodeDays).where(PLACE).prepare(),
  latest: db
    .select({ id: LAST_PACKET.as('id') })
    .from(sql`(select 1)`)
    .prepare(),
  next: prepareNext(db, packets),
  nextPacked: prepareNext(db, packetsWithin(value('after'), value('before'))),
  days: db.select().from(nodeDays).where(isAmong).prepare(),
  receivers: db.select().from(nodeReceivers).where(isReceiver).prepare(),
  leave: db
    .insert(nodeDays)
    .values({ nodeNum: 0, day: 0, hours: '', packets: value('id'), direct: 0 })
    .onConflictDoUpdate({
      target: [nodeDays.nodeNum, nodeDays.day],
      // Fails, and all with it, if another run has come further.
      set: { packets: sql`case ${nodeDays.packets} when ${value('from')} then excluded.packets end` },
    })
    .prepare(),
  storeDays: prepareJsonInsert(db, nodeDays, {
    values: fieldsOf(nodeDays),
    from: ofKnown('nodeNum'),
    onConflict: sql`on conflict do update set hours = excluded.hours, packets = excluded.packets, direct = excluded.direct,
      min_hops = excluded.min_hops, max_hops = excluded.max_hops`,
  }),
  storeReceivers: prepareJsonInsert(db, nodeReceivers, {
    values: fieldsOf(nodeReceivers),
    from: ofKnown('nodeNum'),
    onConflict: sql`on conflict do update set first_at = excluded.first_at, last_at = excluded.last_at,
      packets = excluded.packets, direct = excluded.direct, snr = excluded.snr, hops = excluded.hops,
      via_mqtt = excluded.via_mqtt`,
  }),
  trimDays: db
    .delete(nodeDays)
    .where(
      sql`${areOfNodes} and day <= (select x.day from node_days x where x.node_num = node_days.node_num
        order by x.day desc limit 1 offset ${sql.raw(String(MAX_DAYS))})`,
    )
    .prepare(),
  trimReceivers: db
    .delete(nodeReceivers)
    .where(
      sql`${areOfNodes} and last_at <= (select x.last_at from node_receivers x where x.node_num = node_receivers.node_num
        order by x.last_at desc limit 1 offset ${sql.raw(String(MAX_RECEIVERS))})`,
    )
    .prepare(),
}))

/**
 * Summarises what was added to the log of packets: how often each node was heard in which hour, and by whom. Packets of
 * unknown nodes, those that a radio remembered, and those that seem forged do not count. Awaits `pause` after each
 * slice, which returns whether to continue. Returns the number of packets. A slice and how far it came are stored
 * together, so nothing counts twice, also after a restore, or in two runs at once, of which one ends early. A slice of
 * more `parts` writes fewer rows, because a row counts many packets.
 */
export async function summariseHearings(
  store: Store,
  pause: Pause,
  share: Share = wholeSlices,
  parts = 1,
): Promise<number> {
  const prepared = queries(store)
  const latest = (await prepared.latest.get())?.id ?? 0
  const place = (await prepared.place.get())?.id ?? Math.max(0, latest - MAX_BEFORE)
  // A log that begins anew has lower ids.
  if (place > latest) await prepared.leave.run({ id: latest, from: place })
  let after = Math.min(place, latest)
  const isPacked = await hasPages(store)
  const next = async (from: number, limit: number) => {
    if (!isPacked) return prepared.next.all({ after: from, limit })
    // Only ids between two bounds: there may be a gap before the first one.
    const first = (await packetFrom(store, from + 1))?.id
    return first === undefined ? [] : prepared.nextPacked.all({ after: first - 1, before: first + limit, limit })
  }
  for (let done = 0; ;) {
    const from = after
    const counting: LogRow[] = []
    const before = done
    for (let part = 0; part < parts; part++) {
      const rows = await next(after, partOf(SLICE_PACKETS, share()))
      counting.push(...rows.filter((row) => row.isKnown !== 0 && !row.replayed && row.trustLevel !== 'spoofed'))
      after = rows.at(-1)?.id ?? after
      done += rows.length
      if (rows.length === 0) break
    }
    if (after === from) return done
    try {
      await storeSlice(store, counting, { id: after, from })
    } catch (error) {
      if (((await prepared.place.get())?.id ?? from) === from) throw error
      return before
    }
    if (!(await pause())) return done
  }
}

type LogRow = {
  readonly nodeNum: number
  readonly sourceId: number
  readonly gateway: number | null
  readonly t: number
  readonly hops: number | null
  readonly snr: number | null
  readonly viaMqtt: boolean
  readonly trustLevel: string | null
}

/** `id`: of its last packet. `from`: where the slice before it ended. */
async function storeSlice(
  store: Store,
  rows: readonly LogRow[],
  place: { readonly id: number; readonly from: number },
): Promise<void> {
  const prepared = queries(store)
  const leave: Statement = bind(prepared.leave, place)
  if (rows.length === 0) return store.atomic([leave], 'lazily')
  const days = new Map<string, Counted>()
  const receivers = new Map<string, Receiver>()
  const heardDays = new Map(rows.map((row) => [nameOfDay(dayOf(row)), dayOf(row)]))
  // What a radio of ours says about itself was not received.
  const received = rows.filter(({ trustLevel }) => trustLevel !== 'own')
  const heardBy = new Map(received.map((row) => [keyOf(receiverOf(row)), receiverOf(row)]))
  for (const keys of inParts([...heardDays.values()]))
    for (const day of await prepared.days.all({ keys: JSON.stringify(keys) })) days.set(nameOfDay(day), countsOf(day))
  for (const keys of inParts([...heardBy.values()]))
    for (const each of await prepared.receivers.all({ keys: JSON.stringify(keys) })) receivers.set(keyOf(each), each)
  // Only those with a new row may have too many.
  const newDays = [...heardDays.values()].filter((day) => !days.has(nameOfDay(day)))
  const newReceivers = [...heardBy.values()].filter((each) => !receivers.has(keyOf(each)))
  for (const row of rows) countDay(days, row)
  for (const row of received) countReceiver(receivers, row)
  const stored = Array.from(days.values(), ({ counts, ...day }) => ({ ...day, hours: counts.join() }))
  await store.atomic(
    [
      leave,
      ...inParts(stored).map((part) => prepared.storeDays(part)),
      ...inParts([...receivers.values()]).map((part) => prepared.storeReceivers(part)),
      bind(prepared.trimDays, { nums: numsOf(newDays) }),
      bind(prepared.trimReceivers, { nums: numsOf(newReceivers) }),
    ],
    'lazily',
  )
}

function inParts<Row>(rows: readonly Row[]): Row[][] {
  const count = Math.ceil(rows.length / ROWS_AT_ONCE)
  return Array.from({ length: count }, (_, n) => rows.slice(n * ROWS_AT_ONCE, (n + 1) * ROWS_AT_ONCE))
}

function numsOf(rows: readonly { readonly nodeNum: number }[]): string {
  return JSON.stringify([...new Set(rows.map(({ nodeNum }) => nodeNum))])
}

const dayOf = ({ nodeNum, t }: LogRow): Pick<Day, 'nodeNum' | 'day'> => ({ nodeNum, day: Math.floor(t / DAY_MS) })
const nameOfDay = ({ nodeNum, day }: Pick<Day, 'nodeNum' | 'day'>) => `${nodeNum} ${day}`
const receiverOf = ({ nodeNum, sourceId, gateway }: LogRow) => ({ nodeNum, sourceId, gateway: gateway ?? 0 })

type Counted = Omit<Day, 'hours'> & { readonly counts: number[] }

function countsOf({ hours, ...day }: Day): Counted {
  return { ...day, counts: hoursOf(hours) }
}

/** The packets of each of 24 hours. */
export function hoursOf(hours: string): number[] {
  return hours.split(',').map(Number)
}

function countDay(days: Map<string, Counted>, { nodeNum, t, hops, viaMqtt }: LogRow): void {
  const day = Math.floor(t / DAY_MS)
  const key = nameOfDay({ nodeNum, day })
  const none = {
    nodeNum,
    day,
    counts: Array<number>(HOURS).fill(0),
    packets: 0,
    direct: 0,
    minHops: null,
    maxHops: null,
  }
  const before = days.get(key) ?? none
  const hour = Math.floor((t - day * DAY_MS) / HOUR_MS)
  before.counts[hour] = (before.counts[hour] ?? 0) + 1
  const known = [before.minHops, before.maxHops, hops].filter((each) => each !== null)
  days.set(key, {
    ...before,
    packets: before.packets + 1,
    direct: before.direct + (hops === 0 && !viaMqtt ? 1 : 0),
    minHops: known.length === 0 ? null : Math.min(...known),
    maxHops: known.length === 0 ? null : Math.max(...known),
  })
}

function keyOf({ nodeNum, sourceId, gateway }: Pick<Receiver, 'nodeNum' | 'sourceId' | 'gateway'>): string {
  return `${nodeNum} ${sourceId} ${gateway}`
}

function countReceiver(receivers: Map<string, Receiver>, row: LogRow): void {
  const { t, hops, snr, viaMqtt } = row
  const at = receiverOf(row)
  const before = receivers.get(keyOf(at))
  const isDirect = hops === 0 && !viaMqtt
  receivers.set(keyOf(at), {
    ...at,
    firstAt: Math.min(before?.firstAt ?? t, t),
    lastAt: Math.max(before?.lastAt ?? t, t),
    packets: (before?.packets ?? 0) + 1,
    direct: (before?.direct ?? 0) + (isDirect ? 1 : 0),
    snr: isDirect ? snr : (before?.snr ?? null),
    hops,
    viaMqtt,
  })
}
