import { decimal } from '../../../format.ts'
import type { Token } from '../../../parts/map/colour.ts'
import { colourTexts } from '../../../strings/mesh/map-colours.ts'
import { coverageTexts } from '../../../strings/mesh/coverage.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import type { Measure } from './choice.ts'

/** As GeoJSON. */
export type Cell = {
  /** A ring from the south-west, by the south-east and the north-east. */
  readonly geometry: { readonly coordinates: readonly (readonly (readonly [number, number])[])[] }
  readonly properties: {
    readonly bits: number
    readonly packets: number
    readonly direct: number
    readonly bestSnr: number | null
    readonly medianSnr: number | null
    readonly bestRssi: number | null
    readonly medianRssi: number | null
    readonly minHops: number | null
    readonly maxHops: number | null
    readonly lastAt: number
  }
}

/** The classes of a measure, whose colours are those of the nodes' scales; the last one is hollow. */
export type CellScale = {
  readonly names: readonly string[]
  readonly tokens: readonly Token[]
  /** Null: unknown. */
  valueOf(cell: Cell, now: number): number | null
  /** An index of `names`. */
  classOf(value: number): number
  /** Short, for the cell itself. */
  textOf(value: number): string
}

const SHADES = ['--shade-0', '--shade-1', '--shade-2', '--shade-3', '--shade-4'] as const

/** The class of a value: the first whose limit it reaches, else the last. */
const reach = (limits: readonly number[]) => (value: number) => {
  const found = limits.findIndex((limit) => value >= limit)
  return found < 0 ? limits.length : found
}

function scale(
  names: readonly string[],
  unknown: string,
  of: Pick<CellScale, 'valueOf' | 'classOf' | 'textOf'>,
): CellScale {
  return { names: [...names, unknown], tokens: [...SHADES.slice(0, names.length), '--age-2'], ...of }
}

const whole = (value: number) => decimal(value, 0)

const signal = (names: readonly string[], limits: readonly number[], valueOf: CellScale['valueOf']) =>
  scale(names, coverageTexts.unknown, { valueOf, classOf: reach(limits), textOf: whole })

const SNR = [0, -7, -15]
const RSSI = [-90, -105, -120]

const SCALES: Readonly<Record<Measure, CellScale>> = {
  bestSnr: signal(colourTexts.snr.names, SNR, ({ properties }) => properties.bestSnr),
  medianSnr: signal(colourTexts.snr.names, SNR, ({ properties }) => properties.medianSnr),
  bestRssi: signal(coverageTexts.rssi, RSSI, ({ properties }) => properties.bestRssi),
  medianRssi: signal(coverageTexts.rssi, RSSI, ({ properties }) => properties.medianRssi),
  hops: scale(colourTexts.hops.names, coverageTexts.unknownHops, {
    valueOf: ({ properties }) => properties.minHops,
    classOf: (hops) => Math.min(4, hops),
    textOf: whole,
  }),
  age: scale(coverageTexts.ages, coverageTexts.unknownHops, {
    valueOf: ({ properties }, now) => Math.max(0, (now - properties.lastAt) / DAY_MS),
    classOf: (days) => (days <= 1 ? 0 : days <= 7 ? 1 : days <= 30 ? 2 : 3),
    textOf: (days) => decimal(Math.floor(days), 0),
  }),
}

export const scaleOf = (by: Measure): CellScale => SCALES[by]

/** Degrees. */
export function edgesOf({ geometry }: Cell) {
  const [ring = []] = geometry.coordinates
  const [[west, south] = [0, 0], , [east, north] = [0, 0]] = ring
  return { west, south, east, north }
}
