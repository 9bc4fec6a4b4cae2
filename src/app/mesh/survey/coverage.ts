import { and, gt, sql } from 'drizzle-orm'
import * as z from 'zod'
import { coverage } from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Store } from '../../../db/store.ts'
import { COVERAGE_BITS, MAX_CELLS } from '../../../shared/mesh/coverage.ts'
import { ofVisibleNodes, onVisibleChannel, type View, viewKey, visibleValues } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { timeField } from '../../http/fields.ts'
import { around, type Bounds, boundsOf, type Cell, isWithin, packed, unpacked } from './cells.ts'
import { keepSurveyed } from './kept.ts'
import { countsSchema } from './survey.ts'

/** Rows that are read at once, and cells that are looked at. */
const SLICE_ROWS = 500
const SLICE_CELLS = 5000

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

const isSeen = and(onVisibleChannel(coverage.channel), ofVisibleNodes(coverage.nodeNum, receiver))

const queries = prepareOnce((db) => ({
  cells: db
    .select({ id: coverage.id, bits: coverage.bits, x: coverage.x, y: coverage.y })
    .from(coverage)
    .where(and(gt(coverage.id, sql.placeholder('after')), isSeen))
    .orderBy(coverage.id)
    .limit(SLICE_ROWS)
    .prepare(),
  rows: db
    .select({
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
    .where(and(sql`${coverage.id} in (select value from json_each(${sql.placeholder('ids')}))`, isSeen))
    .orderBy(coverage.id)
    .prepare(),
}))

type Row = readonly [
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

/** The ids of the rows that a viewer may see, and their cells, each as one number: 16 bytes for a row. */
type Seen = { readonly ids: Float64Array; readonly cells: Float64Array }

// At most 100,000 rows are 1.6 MB, and an answer is about 2 MB: what is kept stays below 16 MB.
const keptSeen = keepSurveyed<Seen>(3)
const keptAnswers = keepSurveyed<Coverage>(5)

/**
 * The cells of at most this many bits within the bounds (degrees), summed up over what the viewer may see. If there are
 * too many, larger ones.
 */
export async function readCoverage(
  { store, viewer }: Reader,
  { bounds, bits }: { readonly bounds: Bounds; readonly bits: number },
): Promise<Coverage> {
  const { view, permissions } = viewer
  if (!permissions.nodes.read) return { type: 'FeatureCollection', bits, features: [] }
  const key = viewKey(view)
  return keptAnswers(store, `${bits} ${bounds.join()} ${key}`, async () => {
    const seen = await keptSeen(store, key, () => readSeen(store, view))
    const { level, cells } = await levelOf(seen, bounds, bits)
    const sums = await sumUp(rowsIn(store, view, seen, { level, cells }), level)
    return { type: 'FeatureCollection', bits: level, features: sums.slice(0, MAX_CELLS).map(featureOf) }
  })
}

/** Other requests have their turn between slices, here and below. */
async function readSeen(store: Store, view: View): Promise<Seen> {
  const values = visibleValues(view)
  const [ids, cells]: [number[], number[]] = [[], []]
  for (let after = -1; ;) {
    const rows = await rawRows<readonly [id: number, bits: number, x: number, y: number]>(queries(store).cells, {
      ...values,
      after,
    })
    for (const [id, bits, x, y] of rows) {
      ids.push(id)
      cells.push(packed({ bits, x, y }))
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < SLICE_ROWS)
      return { ids: new Float64Array(ids), cells: new Float64Array(cells) }
    after = last[0]
    await nextTurn()
  }
}

type Level = { readonly level: number; readonly cells: ReadonlySet<number> }

/** The cells within the bounds, of as many of these bits as there may be. */
async function levelOf({ cells }: Seen, bounds: Bounds, bits: number): Promise<Level> {
  let all: Iterable<number> = cells
  for (let level = bits; ; level -= 1) {
    const [larger, within] = [new Set<number>(), new Set<number>()]
    let looked = 0
    for (const each of all) {
      const cell = around(unpacked(each), level)
      const name = packed(cell)
      if (!larger.has(name) && isWithin(boundsOf(cell), bounds)) within.add(name)
      larger.add(name)
      looked += 1
      if (looked % SLICE_CELLS === 0) await nextTurn()
    }
    if (within.size <= MAX_CELLS || level === COVERAGE_BITS.min) return { level, cells: within }
    all = larger
  }
}

async function sumUp(parts: AsyncIterable<readonly Sum[]>, bits: number): Promise<readonly Sum[]> {
  const cells = new Map<number, Sum>()
  for await (const part of parts) {
    for (const sum of part) {
      const cell = around(sum, bits)
      const key = packed(cell)
      const known = cells.get(key)
      cells.set(key, known === undefined ? { ...sum, ...cell } : together(known, sum))
    }
    await nextTurn()
  }
  return [...cells.values()]
}

/** The rows of these cells, without those that are gone meanwhile. */
async function* rowsIn(store: Store, view: View, seen: Seen, { level, cells }: Level): AsyncIterable<readonly Sum[]> {
  const values = visibleValues(view)
  for (let at = 0; at < seen.ids.length; at += SLICE_ROWS) {
    const end = at + SLICE_ROWS
    const parts = seen.cells.subarray(at, end)
    const ids = [...seen.ids.subarray(at, end)].filter((_, index) =>
      cells.has(packed(around(unpacked(parts[index] ?? 0), level))),
    )
    const rows =
      ids.length === 0 ? [] : await rawRows<Row>(queries(store).rows, { ...values, ids: JSON.stringify(ids) })
    yield rows.map(([bits, x, y, packets, snr, rssi, ...rest]) => {
      const [bestSnr, minHops, maxHops, lastAt] = rest
      return { bits, x, y, packets, snr: countsOf(snr), rssi: countsOf(rssi), bestSnr, minHops, maxHops, lastAt }
    })
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
