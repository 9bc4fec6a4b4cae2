import { and, eq, gte, sql } from 'drizzle-orm'
import * as z from 'zod'
import { heardLinks, neighbors, nodes, routeLinks } from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { ofVisibleNodes, onVisibleChannel, type View, viewKey, visibleValues } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { nodeNumField, timeField } from '../../http/fields.ts'
import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import { keepSurveyed } from './kept.ts'

/** Rows that are read at once, and of each table: the latest, or all where they are not in the order of time. */
const SLICE_ROWS = 500
const MAX_ROWS = 20_000
/** Directions in an answer, the latest ones. */
export const MAX_EDGES = 12_000
const USUAL_MS = 7 * DAY_MS

export const WAYS = ['heard', 'reported', 'traced'] as const

export const topologySchema = z
  .object({
    edges: z
      .array(
        z.object({
          from: nodeNumField.describe('The node that sent'),
          to: nodeNumField.describe('The node that heard it directly'),
          snr: z.number().nullable().describe('dB, by the latest of what is known; null: unknown'),
          at: timeField,
          by: z
            .array(z.enum(WAYS))
            .describe(
              'How it is known, the latest first. heard: a radio of this service or a gateway received packets; reported: by its neighbour info; traced: by a traceroute',
            ),
        }),
      )
      .describe('One for each direction, the latest first'),
    receivers: z.array(nodeNumField).describe('Radios of this service, and gateways that received packets directly'),
    isWhole: z.boolean().describe('False: there are more edges'),
  })
  .meta({ id: 'Topology', description: 'Who heard whom, by all that is known' })
type Topology = z.infer<typeof topologySchema>

const value = sql.placeholder
const since = value('since')

/** After this row in the order of time, downwards. */
const isEarlier = sql`(t, from_node_num, to_node_num) < (${value('t')}, ${value('a')}, ${value('b')})`

const queries = prepareOnce((db) => ({
  radios: db
    .select({ nodeNum: nodes.nodeNum })
    .from(nodes)
    .where(and(eq(nodes.isLocal, true), ofVisibleNodes(nodes.nodeNum)))
    .prepare(),
  heard: db
    .select({ from: heardLinks.fromNodeNum, to: heardLinks.toNodeNum, snr: heardLinks.snr, t: heardLinks.t })
    .from(heardLinks)
    .where(and(gte(heardLinks.t, since), isEarlier, ofVisibleNodes(heardLinks.fromNodeNum, heardLinks.toNodeNum)))
    .orderBy(sql`t desc, from_node_num desc, to_node_num desc`)
    .limit(value('rows'))
    .prepare(),
  traced: db
    .select({ from: routeLinks.fromNodeNum, to: routeLinks.toNodeNum, snr: routeLinks.snr, t: routeLinks.t })
    .from(routeLinks)
    .where(
      and(
        gte(routeLinks.t, since),
        isEarlier,
        onVisibleChannel(routeLinks.channel),
        // Whoever may not see a traceroute learns nothing from it.
        ofVisibleNodes(routeLinks.fromNodeNum, routeLinks.toNodeNum, routeLinks.startNum, routeLinks.endNum),
      ),
    )
    .orderBy(sql`t desc, from_node_num desc, to_node_num desc`)
    .limit(value('rows'))
    .prepare(),
  reported: db
    .select({ from: neighbors.neighborNum, to: neighbors.nodeNum, snr: neighbors.snr, t: neighbors.t })
    .from(neighbors)
    .where(
      and(
        gte(neighbors.t, since),
        sql`(node_num, neighbor_num) > (${value('b')}, ${value('a')})`,
        onVisibleChannel(neighbors.channel),
        ofVisibleNodes(neighbors.nodeNum, neighbors.neighborNum),
      ),
    )
    .orderBy(neighbors.nodeNum, neighbors.neighborNum)
    .limit(value('rows'))
    .prepare(),
}))

type Row = readonly [from: number, to: number, snr: number | null, t: number]
type Edge = Topology['edges'][number]

const kept = keepSurveyed<Topology>(4)
const LAST = Number.MAX_SAFE_INTEGER

/** From then on, and until then if it is given, in milliseconds. */
export type Asked = { readonly since?: number | undefined; readonly until?: number | undefined }

/**
 * Who heard whom for the last time in a range, by default the last days, as far as the viewer may see it. Reports of
 * neighbours are up to a minute old, all else as the survey is.
 */
export async function readTopology(
  { store, viewer: { view } }: Reader,
  { since, until = LAST, now }: Asked & { readonly now: number },
): Promise<Topology> {
  const minuteOf = (time: number) => Math.floor(time / MINUTE_MS) * MINUTE_MS
  const from = minuteOf(since ?? now - USUAL_MS)
  return kept(store, `${from} ${until} ${minuteOf(now)} ${viewKey(view)}`, () => gather(store, view, from, until))
}

/** Other requests have their turn between slices. */
async function gather(store: Store, view: View, from: number, until: number): Promise<Topology> {
  const edges = new Map<string, Edge>()
  const radios = await queries(store).radios.all(visibleValues(view))
  const receivers = new Set(radios.map(({ nodeNum }) => nodeNum))
  for (const way of WAYS) {
    const first = way === 'reported' ? { t: 0, a: -1, b: -1 } : { t: until, a: -1, b: -1 }
    for await (const rows of slices(store, view, way, { since: from, ...first })) {
      for (const [a, b, snr, t] of rows) {
        if (t >= until) continue
        if (way === 'heard') receivers.add(b)
        const key = `${a} ${b}`
        const known = edges.get(key)
        const isLatest = known === undefined || t > known.at
        const others = known?.by.filter((each) => each !== way) ?? []
        const by = isLatest ? [way, ...others] : [...others, way]
        const latest = isLatest ? { snr, at: t } : { snr: known.snr, at: known.at }
        edges.set(key, { from: a, to: b, ...latest, by })
      }
    }
  }
  const all = [...edges.values()].toSorted((a, b) => b.at - a.at)
  await nextTurn()
  return { edges: all.slice(0, MAX_EDGES), receivers: [...receivers], isWhole: all.length <= MAX_EDGES }
}

type Start = { readonly since: number; readonly t: number; readonly a: number; readonly b: number }

async function* slices(
  store: Store,
  view: View,
  way: (typeof WAYS)[number],
  start: Start,
): AsyncIterable<readonly Row[]> {
  // Where each row that is read costs, there is no index by time: each statement reads the table.
  const sliceRows = store.packs ? MAX_ROWS : SLICE_ROWS
  const values = { ...visibleValues(view), rows: sliceRows }
  let at = start
  for (let read = 0; read < MAX_ROWS; read += sliceRows) {
    const rows = await rawRows<Row>(queries(store)[way], { ...values, ...at })
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < sliceRows) return
    const [a, b, , t] = last
    at = { ...at, a, b, t }
    await nextTurn()
  }
}
