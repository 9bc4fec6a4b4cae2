import { getTableColumns, sql } from 'drizzle-orm'
import * as z from 'zod'
import { FIRST_PACKET, hasPages, LAST_PACKET, packetsWithin } from '../../../db/packet-log.ts'
import { coverage, heardLinks, nodes, packets, survey } from '../../../db/schema.ts'
import { field, ofKnown, prepareJsonInsert } from '../../../db/json-rows.ts'
import { bind, type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { PortNum } from '../../../meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { partOf, type Share, wholeSlices } from '../../base/pacing/slice-share.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { type Cell, cellOf } from './cells.ts'

/** Ids of the log that one transaction covers. */
const SLICE_IDS = 250
/** Packets that were in the log before the first survey, the latest ones: more would keep a small machine busy for long. */
const MAX_BEFORE = 500_000
/** Receivers of a node that are kept: our radios, then those that heard it last. Gateways can be made up. */
const MAX_RECEIVERS = 32
/**
 * Rows of coverage. If there are more, those nodes that have the most lose some, so that nobody's invented places push
 * out those of others, nor do nodes with few or none. What a radio of this service heard stays longest.
 */
const MAX_ROWS = 100_000
const MAX_ROWS_OF_NODE = 300
const MIN_ROWS_OF_NODE = 4
/** New rows after which they are counted again, and nodes with too many that are then trimmed at once. */
const RECOUNT_ROWS = 5000
const TRIMMED_NODES = 10
/** Before the first survey there is no place. */
const NOWHERE = -1
/** What a radio can measure, in dB and dBm. */
const SNR = { min: -40, max: 40 } as const
const RSSI = { min: -160, max: 20 } as const

const value = sql.placeholder
const { raw } = sql

type Row = typeof coverage.$inferSelect
type LinkRow = typeof heardLinks.$inferSelect

/** How many packets came with which signal, in whole dB or dBm. */
export const countsSchema = z.record(z.string(), z.number())

const receiver = sql<number | null>`coalesce(${packets.gateway},
  (select local_node_num from sources where sources.id = ${packets.sourceId}))`

const isAmong = sql`(node_num, source_id, gateway, channel, bits, x, y) in (select value ->> 'nodeNum',
  value ->> 'sourceId', value ->> 'gateway', value ->> 'channel', value ->> 'bits', value ->> 'x', value ->> 'y'
  from json_each(${value('keys')}))`
const inNums = sql`in (select value from json_each(${value('nums')}))`

/** Each column from the field of its name. */
const fieldsOf = (table: typeof coverage | typeof heardLinks) =>
  Object.fromEntries(Object.keys(getTableColumns(table)).map((name) => [name, field(name)]))

/** The packets of a slice: those that it needs of the log, or of a part of it. */
const prepareSlice = (db: Db, log: typeof packets | ReturnType<typeof packetsWithin>) =>
  db
    .select({
      nodeNum: packets.fromNodeNum,
      sourceId: packets.sourceId,
      gateway: packets.gateway,
      receiver: receiver.as('receiver'),
      channel: packets.channel,
      t: packets.t,
      hops: packets.hopsAway,
      snr: packets.rxSnr,
      rssi: packets.rxRssi,
      payload: sql<
        string | null
      >`iif(${packets.port} = ${raw(String(PortNum.POSITION_APP))}, ${packets.payload}, null)`,
    })
    .from(log)
    .where(
      // Sent to all, because others may be about nodes that are hidden.
      sql`${packets.id} > ${value('after')} and ${packets.id} <= ${value('last')}
        and ${packets.toNodeNum} = ${raw(String(BROADCAST))} and not ${packets.pkiEncrypted}
        and not ${packets.viaMqtt} and not ${packets.replayed}
        and ${packets.trustLevel} is not 'spoofed' and ${packets.trustLevel} is not 'own'
        and exists (select 1 from ${nodes} where ${nodes.nodeNum} = ${packets.fromNodeNum})`,
    )
    .orderBy(packets.id)
    .prepare()

const queries = prepareOnce((db) => ({
  place: db.select({ id: survey.packetId }).from(survey).prepare(),
  span: db
    .select({
      first: FIRST_PACKET.as('first'),
      last: LAST_PACKET.as('last'),
    })
    .from(sql`(select 1)`)
    .prepare(),
  owners: db
    .select({ rows: sql<number>`x.n`, nodes: sql<number>`count(*)` })
    .from(sql`(select count(*) as n from coverage group by node_num) x`)
    .groupBy(sql`x.n`)
    .prepare(),
  largest: db
    .select({ nodeNum: coverage.nodeNum })
    .from(coverage)
    .groupBy(coverage.nodeNum)
    .having(sql`count(*) > ${value('most')}`)
    .orderBy(sql`count(*) desc`)
    .limit(TRIMMED_NODES)
    .prepare(),
  slice: prepareSlice(db, packets),
  packedSlice: prepareSlice(db, packetsWithin(value('after'), sql`${value('last')} + 1`)),
  rows: db.select().from(coverage).where(isAmong).prepare(),
  leave: db
    .insert(survey)
    .values({ id: 1, packetId: value('id'), version: 1 })
    .onConflictDoUpdate({
      target: survey.id,
      // Fails, and all with it, if another run has come further.
      set: {
        packetId: sql`case ${survey.packetId} when ${value('from')} then excluded.packet_id end`,
        version: sql`${survey.version} + 1`,
      },
    })
    .prepare(),
  store: prepareJsonInsert(db, coverage, {
    values: { ...fieldsOf(coverage), id: sql`null` },
    from: ofKnown('nodeNum'),
    onConflict: sql`on conflict (node_num, source_id, gateway, channel, bits, x, y) do update set packets = excluded.packets,
      snr = excluded.snr, rssi = excluded.rssi, best_snr = excluded.best_snr, min_hops = excluded.min_hops,
      max_hops = excluded.max_hops, last_at = excluded.last_at`,
  }),
  storeLinks: prepareJsonInsert(db, heardLinks, {
    values: fieldsOf(heardLinks),
    from: ofKnown('fromNodeNum'),
    onConflict: sql`on conflict do update set packets = heard_links.packets + excluded.packets, snr = excluded.snr,
      t = max(heard_links.t, excluded.t)`,
  }),
  trim: db
    .delete(coverage)
    .where(
      sql`id in (select id from (select id, row_number() over (partition by node_num
        order by gateway <> 0, last_at desc, id desc) as n
        from coverage where node_num ${inNums}) where n > ${value('most')})`,
    )
    .prepare(),
  trimLinks: db
    .delete(heardLinks)
    .where(
      sql`(from_node_num, to_node_num) in (select from_node_num, to_node_num from (select from_node_num, to_node_num,
        row_number() over (partition by from_node_num
          order by to_node_num in (select local_node_num from sources) is not true, t desc, to_node_num) as n
        from heard_links where from_node_num ${inNums}) where n > ${raw(String(MAX_RECEIVERS))})`,
    )
    .prepare(),
}))

/**
 * Surveys what was added to the log of packets: who heard whom directly, and how well at which place. Only packets to all
 * count, and none that a radio remembered, that a broker brought to the receiver, or that seems forged. Awaits `pause`
 * after each slice, which returns whether to continue. Returns the number of ids of the log that were looked at. A slice
 * and how far it came are stored together, so nothing counts twice, also after a restore, or in two runs at once, of which
 * one ends early.
 */
export async function surveyPackets(store: Store, pause: Pause, share: Share = wholeSlices): Promise<number> {
  const prepared = queries(store)
  const isPacked = await hasPages(store)
  const found = await prepared.span.get()
  const latest = found?.last ?? 0
  const place = (await prepared.place.get())?.id
  // A log that begins anew has lower ids.
  const isAnew = place !== undefined && place > latest
  if (isAnew) await prepared.leave.run({ id: latest, from: place })
  let from = isAnew ? latest : (place ?? NOWHERE)
  const begin = Math.max(place ?? latest - MAX_BEFORE, (found?.first ?? 1) - 1)
  let after = Math.min(begin, latest)
  let bound: Bound | null = null
  for (let added = 0; after < latest;) {
    if (bound === null || added >= RECOUNT_ROWS) {
      bound = await boundOf(store)
      added = 0
    }
    const last = Math.min(latest, after + partOf(SLICE_IDS, share()))
    const slice = await (isPacked ? prepared.packedSlice : prepared.slice).all({ after, last })
    try {
      added += await storeSlice(store, slice, { id: last, from }, bound)
    } catch (error) {
      if (((await prepared.place.get())?.id ?? NOWHERE) === from) throw error
      break
    }
    from = last
    bound = { ...bound, over: [] }
    after = last
    if (!(await pause())) break
  }
  return after - Math.min(begin, latest)
}

/** Ids of the log of packets that were not looked at yet. */
export async function countWaiting(store: Store): Promise<number> {
  const { span, place } = queries(store)
  const latest = (await span.get())?.last ?? 0
  return latest - Math.min(latest, (await place.get())?.id ?? 0)
}

/** Rows of coverage that each node may have, and nodes that have more. */
type Bound = { readonly most: number; readonly over: readonly number[] }

async function boundOf(store: Store): Promise<Bound> {
  const { owners, largest } = queries(store)
  const all = await owners.all()
  await nextTurn()
  const total = (most: number) => all.reduce((sum, { rows, nodes: n }) => sum + n * Math.min(rows, most), 0)
  let most = MAX_ROWS_OF_NODE
  while (most > MIN_ROWS_OF_NODE && total(most) > MAX_ROWS) most -= 1
  if (most === MAX_ROWS_OF_NODE) return { most, over: [] }
  const over = (await largest.all({ most })).map(({ nodeNum }) => nodeNum)
  await nextTurn()
  return { most, over }
}

type Heard = {
  readonly nodeNum: number
  readonly sourceId: number
  readonly gateway: number | null
  readonly receiver: number | null
  readonly channel: number
  readonly t: number
  readonly hops: number | null
  readonly snr: number | null
  readonly rssi: number | null
  readonly payload: string | null
}

/** `id`: of its last packet. `from`: the stored place before. Returns how many rows of coverage are new. */
async function storeSlice(
  store: Store,
  all: readonly Heard[],
  place: { readonly id: number; readonly from: number },
  { most, over }: Bound,
): Promise<number> {
  const prepared = queries(store)
  const leave = bind(prepared.leave, place)
  // A gateway publishes its own packets, too.
  const heard = all.filter(({ nodeNum, receiver: by }) => by !== null && by !== nodeNum)
  const samples = heard.flatMap((row) => {
    const cell = placeOf(row.payload)
    return cell === null ? [] : [{ row, key: { ...keyOf(row), ...cell } }]
  })
  const links = linksOf(heard)
  if (links.length + samples.length === 0) {
    await store.atomic([leave], 'lazily')
    return 0
  }
  const keys = JSON.stringify(samples.map(({ key }) => key))
  const before = await prepared.rows.all({ keys })
  const rows = new Map<string, Counted>(before.map((row) => [nameOf(row), row]))
  for (const { row, key } of samples) rows.set(nameOf(key), counted(rows.get(nameOf(key)), key, row))
  const added = [...rows.values()].filter((row) => row.id === null)
  const numsOf = (nums: readonly number[]) => JSON.stringify([...new Set(nums)])
  await store.atomic(
    [
      prepared.store([...rows.values()]),
      prepared.storeLinks(links),
      bind(prepared.trim, {
        // The others have no more rows than before.
        nums: numsOf([...added.map(({ nodeNum }) => nodeNum), ...over]),
        most,
      }),
      bind(prepared.trimLinks, { nums: numsOf(links.map(({ fromNodeNum }) => fromNodeNum)) }),
      leave,
    ],
    'lazily',
  )
  return added.length
}

const payloadSchema = z.looseObject({
  kind: z.literal('position'),
  fix: z.looseObject({ latitude: z.number(), longitude: z.number(), precisionBits: z.number().nullable() }),
})

/** Where the node was that sent this. */
function placeOf(payload: string | null): Cell | null {
  const said = payload === null ? null : (payloadSchema.safeParse(JSON.parse(payload)).data ?? null)
  return said === null ? null : cellOf(said.fix)
}

type Key = Pick<Row, 'nodeNum' | 'sourceId' | 'gateway' | 'channel'>
const keyOf = ({ nodeNum, sourceId, gateway, channel }: Heard): Key => {
  return { nodeNum, sourceId, gateway: gateway ?? 0, channel }
}
const nameOf = ({ nodeNum, sourceId, gateway, channel, bits, x, y }: Key & Cell) =>
  [nodeNum, sourceId, gateway, channel, bits, x, y].join(' ')

/** A new row has no id yet. */
type Counted = Omit<Row, 'id'> & { readonly id: number | null }

function counted(before: Counted | undefined, key: Key & Cell, { t, hops, snr, rssi }: Heard): Counted {
  const isDirect = hops === 0
  const signal = isDirect && snr !== null && Number.isFinite(snr) ? within(snr, SNR) : null
  const strength = isDirect && rssi !== null && rssi !== 0 ? within(rssi, RSSI) : null
  const known = [before?.minHops ?? null, before?.maxHops ?? null, hops].filter((each) => each !== null)
  return {
    id: before?.id ?? null,
    ...key,
    packets: (before?.packets ?? 0) + 1,
    snr: withOne(before?.snr, signal),
    rssi: withOne(before?.rssi, strength),
    bestSnr: signal === null ? (before?.bestSnr ?? null) : Math.max(signal, before?.bestSnr ?? signal),
    minHops: known.length === 0 ? null : Math.min(...known),
    maxHops: known.length === 0 ? null : Math.max(...known),
    lastAt: Math.max(t, before?.lastAt ?? t),
  }
}

const within = (measured: number, { min, max }: { readonly min: number; readonly max: number }) =>
  Math.max(min, Math.min(max, measured))

function withOne(counts: string | undefined, measured: number | null): string {
  if (measured === null) return counts ?? '{}'
  const before = countsSchema.parse(JSON.parse(counts ?? '{}'))
  const name = String(Math.round(measured))
  return JSON.stringify({ ...before, [name]: (before[name] ?? 0) + 1 })
}

/** What was received directly: one row for each pair, by the latest packet. */
function linksOf(heard: readonly Heard[]): LinkRow[] {
  const links = new Map<string, LinkRow>()
  for (const { nodeNum: fromNodeNum, receiver: toNodeNum, hops, snr, t } of heard) {
    if (hops !== 0 || toNodeNum === null) continue
    const key = `${fromNodeNum} ${toNodeNum}`
    links.set(key, { fromNodeNum, toNodeNum, packets: (links.get(key)?.packets ?? 0) + 1, snr, t })
  }
  return [...links.values()]
}
