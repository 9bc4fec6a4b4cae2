import { and, gt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { coverage } from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { COVERAGE_BITS, MAX_CELLS } from '../../../shared/mesh/coverage.ts'
import { ofVisibleNodes, onVisibleChannel, type View, viewKey, visibleValues } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { timeField } from '../../http/fields.ts'
import { around, type Bounds, boundsOf, type Cell, isWithin } from './cells.ts'
import { keepSurveyed } from './kept.ts'
import { countsSchema } from './survey.ts'

/** Rows that are read at once. */
const SLICE_ROWS = 500

const position = z.tuple([z.number(), z.number()])
const level = (unit: string) => z.number().nullable().describe(`${unit}; null: no packet came directly`)

export const coverageSchema = z
  .object({
    type: z.literal('FeatureCollection'),
    bits: z
      .int()
      .describe('Bits of the smallest cells in the answer. Fewer than asked for if there are too many cells'),
    features: z.array(
      z.object({
        type: z.literal('Feature'),
        geometry: z.object({ type: z.literal('Polygon'), coordinates: z.array(z.array(position)) }),
        properties: z.object({
          bits: z
            .int()
            .describe('Bits of the coordinates; a cell is never smaller than the precision of the positions in it'),
          packets: z.int().describe('Positions that were sent from there and received'),
          direct: z.int().describe('How many of them came directly, without another node between'),
          bestSnr: level('dB'),
          medianSnr: level('dB'),
          bestRssi: level('dBm'),
          medianRssi: level('dBm'),
          minHops: z.int().nullable(),
          maxHops: z.int().nullable(),
          lastAt: timeField,
        }),
      }),
    ),
  })
  .meta({ id: 'Coverage', description: 'How well receivers hear what is sent from where, as GeoJSON' })
type Coverage = z.infer<typeof coverageSchema>

type Counts = ReadonlyMap<number, number>
/** What was heard from a cell. `snr`, `rssi`: how many packets came directly with which signal. */
type Sum = Cell & {
  readonly packets: number
  readonly snr: Counts
  readonly rssi: Counts
  readonly bestSnr: number | null
  readonly minHops: number | null
  readonly maxHops: number | null
  readonly lastAt: number
}

const receiver = sql`coalesce(iif(${coverage.gateway} = 0,
  (select local_node_num from sources where sources.id = ${coverage.sourceId}), ${coverage.gateway}), 0)`

const queries = prepareOnce((db) => ({
  slice: db
    .select({
      id: coverage.id,
      bits: coverage.bits,
      x: coverage.x,
      y: coverage.y,
      packets: coverage.packets,
      snr: coverage.snr,
      rssi: coverage.rssi,
      bestSnr: coverage.bestSnr,
      minHops: coverage.minHops,
      maxHops: coverage.maxHops,
      lastAt: coverage.lastAt,
    })
    .from(coverage)
    .where(
      and(
        gt(coverage.id, sql.placeholder('after')),
        onVisibleChannel(coverage.channel),
        ofVisibleNodes(coverage.nodeNum, receiver),
      ),
    )
    .orderBy(coverage.id)
    .limit(SLICE_ROWS)
    .prepare(),
}))

type Row = readonly [
  id: number,
  bits: number,
  x: number,
  y: number,
  packets: number,
  snr: string,
  rssi: string,
  bestSnr: number | null,
  minHops: number | null,
  maxHops: number | null,
  lastAt: number,
]

const kept = keepSurveyed<readonly Sum[]>(3)

/**
 * The cells of at most this many bits within the bounds (degrees), summed up over what the viewer may see. If there are
 * too many, larger ones.
 */
export async function readCoverage(
  { store, viewer }: Reader,
  { bounds, bits }: { readonly bounds: Bounds; readonly bits: number },
): Promise<Coverage> {
  const { view, permissions } = viewer
  const none: Coverage = { type: 'FeatureCollection', bits, features: [] }
  if (!permissions.nodes.read) return none
  let all = await kept(store, `${bits} ${viewKey(view)}`, () => sumUp(rowsSeenBy(store, view), bits))
  for (let level = bits; ; level -= 1) {
    const found = all.filter((cell) => isWithin(boundsOf(cell), bounds))
    if (found.length <= MAX_CELLS || level === COVERAGE_BITS.min)
      return { ...none, bits: level, features: found.slice(0, MAX_CELLS).map(featureOf) }
    const finer = all
    all = await kept(store, `${level - 1} ${viewKey(view)}`, () => sumUp(inParts(finer), level - 1))
  }
}

/** Other requests have their turn between parts. */
async function sumUp(parts: AsyncIterable<readonly Sum[]>, bits: number): Promise<readonly Sum[]> {
  const cells = new Map<string, Sum>()
  for await (const part of parts) {
    for (const sum of part) {
      const cell = around(sum, bits)
      const key = `${cell.bits} ${cell.x} ${cell.y}`
      const known = cells.get(key)
      cells.set(key, known === undefined ? { ...sum, ...cell } : together(known, sum))
    }
    await nextTurn()
  }
  return [...cells.values()]
}

async function* inParts(all: readonly Sum[]): AsyncIterable<readonly Sum[]> {
  for (let at = 0; at < all.length; at += SLICE_ROWS) yield all.slice(at, at + SLICE_ROWS)
}

async function* rowsSeenBy(store: Store, view: View): AsyncIterable<readonly Sum[]> {
  const values = visibleValues(view)
  for (let after = -1; ;) {
    const rows = await rawRows<Row>(queries(store).slice, { ...values, after })
    yield rows.map(([, bits, x, y, packets, snr, rssi, ...rest]) => {
      const [bestSnr, minHops, maxHops, lastAt] = rest
      return { bits, x, y, packets, snr: countsOf(snr), rssi: countsOf(rssi), bestSnr, minHops, maxHops, lastAt }
    })
    const last = rows.at(-1)
    if (last === undefined || rows.length < SLICE_ROWS) return
    after = last[0]
  }
}

const NO_COUNTS: Counts = new Map()

function countsOf(json: string): Counts {
  if (json === '{}') return NO_COUNTS
  return new Map(Object.entries(countsSchema.parse(JSON.parse(json))).map(([measured, n]) => [Number(measured), n]))
}

function together(a: Sum, b: Sum): Sum {
  return {
    ...a,
    packets: a.packets + b.packets,
    snr: bothOf(a.snr, b.snr),
    rssi: bothOf(a.rssi, b.rssi),
    bestSnr: furthest(Math.max, a.bestSnr, b.bestSnr),
    minHops: furthest(Math.min, a.minHops, b.minHops),
    maxHops: furthest(Math.max, a.maxHops, b.maxHops),
    lastAt: Math.max(a.lastAt, b.lastAt),
  }
}

function bothOf(a: Counts, b: Counts): Counts {
  if (b.size === 0) return a
  const both = new Map(a)
  for (const [measured, n] of b) both.set(measured, (both.get(measured) ?? 0) + n)
  return both
}

function furthest(pick: (a: number, b: number) => number, a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : pick(a, b)
}

function featureOf(cell: Sum): Coverage['features'][number] {
  const { bits, packets, bestSnr, minHops, maxHops, lastAt, snr, rssi } = cell
  const [west, south, east, north] = boundsOf(cell)
  const ring: [number, number][] = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ]
  const direct = [...snr.values()].reduce((sum, n) => sum + n, 0)
  return {
    type: 'Feature',
    geometry: { type: 'Polygon', coordinates: [ring] },
    properties: {
      bits,
      packets,
      direct,
      bestSnr,
      medianSnr: median(snr),
      bestRssi: rssi.size === 0 ? null : Math.max(...rssi.keys()),
      medianRssi: median(rssi),
      minHops,
      maxHops,
      lastAt,
    },
  }
}

/** The middle of what was counted, or the mean of both in the middle. */
function median(counts: ReadonlyMap<number, number>): number | null {
  const sorted = [...counts].toSorted(([a], [b]) => a - b)
  const total = sorted.reduce((sum, [, n]) => sum + n, 0)
  const at = (place: number) => {
    let seen = 0
    for (const [measured, n] of sorted) {
      seen += n
      if (place < seen) return measured
    }
    return null
  }
  const [low, high] = [at(Math.floor((total - 1) / 2)), at(Math.floor(total / 2))]
  return low === null || high === null ? null : (low + high) / 2
}
