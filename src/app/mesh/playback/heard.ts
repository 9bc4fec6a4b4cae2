import { and, gte, lt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { hasPages, packetsWithin } from '../../../db/packet-log.ts'
import { packets } from '../../../db/schema.ts'
import { prepareShapes, type Store } from '../../../db/store.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { ofVisibleNodes, seesNodes, type View, visibleValues } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nodeNumField } from '../../http/fields.ts'
import { rangeOf } from '../../search/walk.ts'
import { packetFrom } from '../topology/last-packet.ts'
import { spareTurns } from './spare-turns.ts'

/** Ids of packets that one query covers, and that one page does. */
const SLICE = 1000
const PAGE = 40_000
/** A packet may be in the log this much after those that were heard with it. */
const LATE_MS = 10 * MINUTE_MS
/** The most different times in an answer. */
const TIMES = 1440

const steps = z.array(z.int())

export const heardPageSchema = z
  .object({
    step: z.int().describe('Milliseconds: the unit of all times below, which are counted from `from`'),
    heard: z.array(
      z.object({
        nodeNum: nodeNumField,
        at: steps.describe('When it was heard, ascending, each as the difference from the one before'),
      }),
    ),
    links: z.array(
      z.object({
        from: nodeNumField.describe('The node that sent'),
        to: nodeNumField.describe('The node that received it directly, off the air'),
        at: steps.describe('The same as for `heard`'),
        snr: z.array(z.number().nullable()).describe('dB, for each of these times'),
      }),
    ),
    next: z.int().nullable().describe('`after` of the next page; null: this is the last one'),
  })
  .meta({ id: 'PlaybackHeard', description: 'When nodes were heard, and who heard whom directly' })
export type HeardPage = z.infer<typeof heardPageSchema>

const value = sql.placeholder
/** As in the links of the map: the radio's own number stands for a receiver without a gateway. */
const receiver = sql`coalesce(${packets.gateway},
  (select local_node_num from sources where sources.id = ${packets.sourceId}))`
const isDirect = sql`(${packets.hopsAway} = 0 and not ${packets.viaMqtt})`

/** The shape tells whether nodes are hidden from the viewer, and whether the log may have pages. */
const slices = prepareShapes((db, shape) =>
  db
    .select({
      // The signal is that of the packet with the highest id.
      id: sql<number>`max(${packets.id})`,
      nodeNum: packets.fromNodeNum,
      receiver: sql<number | null>`iif(${isDirect}, ${receiver}, null)`.as('receiver'),
      at: sql<number>`cast((${packets.t} - ${value('from')}) / ${value('step')} as integer)`.as('at'),
      snr: packets.rxSnr,
    })
    .from(shape.includes('packed') ? packetsWithin(value('first'), value('end')) : packets)
    .where(
      and(
        gte(packets.id, value('first')),
        lt(packets.id, value('end')),
        sql`+${packets.t} >= ${value('from')} and +${packets.t} < ${value('to')}`,
        sql`not ${packets.replayed} and ${packets.trustLevel} is not 'spoofed'`,
        // The same packets as in the log.
        shape.includes('hidden') ? ofVisibleNodes(packets.fromNodeNum, packets.toNodeNum) : undefined,
      ),
    )
    .groupBy(packets.fromNodeNum, sql`receiver`, sql`at`)
    .prepare(),
)

type Asked = { readonly from: number; readonly to: number; readonly after: number }

/**
 * When nodes were heard in a time (ms, `to` is exclusive), and who heard whom directly, by the log of packets after an
 * id, as far as the viewer may see it.
 */
export async function readHeard({ store, viewer: { view } }: Reader, { from, to, after }: Asked): Promise<HeardPage> {
  const step = Math.max(MINUTE_MS, Math.ceil((to - from) / TIMES))
  const log = await rangeOf(store, 'packet_log')
  const first = Math.max(after + 1, await firstIdAt(store, log, from - LATE_MS))
  const last = await firstIdAt(store, log, to + LATE_MS)
  const end = Math.min(last, first + PAGE)
  const page = collect(view)
  const turn = spareTurns()
  const read = slices(store, [view.hidden.size > 0 && 'hidden', (await hasPages(store)) && 'packed'].join(' '))
  for (let begin = first; begin < end; begin += SLICE) {
    page.add(
      await read.all({ from, to, step, first: begin, end: Math.min(end, begin + SLICE), ...visibleValues(view) }),
    )
    await turn()
  }
  return { step, ...page.result(), next: end < last ? end - 1 : null }
}

/** The id of the first packet at or after a time, if the log is in the order of time; the end of the log: there is none. */
async function firstIdAt(store: Store, log: { readonly from: number; readonly before: number }, t: number) {
  let [low, high] = [log.from, log.before]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const row = await packetFrom(store, middle)
    if (row === undefined || row.t >= t) high = middle
    else low = row.id + 1
  }
  return low
}

type Row = {
  readonly nodeNum: number
  readonly receiver: number | null
  readonly at: number
  readonly snr: number | null
}

function collect(view: View): { add(rows: readonly Row[]): void; result(): Pick<HeardPage, 'heard' | 'links'> } {
  const heard = new Map<number, Set<number>>()
  const links = new Map<string, { from: number; to: number; snr: Map<number, number | null> }>()
  return {
    add: (rows) => {
      for (const { nodeNum, receiver: to, at, snr } of rows) {
        const times = heard.get(nodeNum)
        if (times === undefined) heard.set(nodeNum, new Set([at]))
        else times.add(at)
        if (to === null || to === nodeNum || !seesNodes(view, [to])) continue
        const key = `${nodeNum} ${to}`
        const link = links.get(key) ?? { from: nodeNum, to, snr: new Map<number, number | null>() }
        link.snr.set(at, snr)
        links.set(key, link)
      }
    },
    result: () => ({
      heard: Array.from(heard, ([nodeNum, times]) => ({
        nodeNum,
        at: differences([...times].toSorted((a, b) => a - b)),
      })),
      links: Array.from(links.values(), ({ from, to, snr }) => {
        const known = [...snr].toSorted(([a], [b]) => a - b)
        return { from, to, at: differences(known.map(([at]) => at)), snr: known.map(([, each]) => each) }
      }),
    }),
  }
}

/** Each as the difference from the one before. */
export function differences(ascending: readonly number[]): number[] {
  return ascending.map((each, index) => each - (ascending[index - 1] ?? 0))
}
