import { DAY_MS, HOUR_MS } from '../../../../shared/time.ts'
import { readSeries } from '../../telemetry/telemetry.ts'
import type { Case, Found } from './case.ts'

/** How far back measurements are looked at. */
const LOOKED_AT_MS = 3 * DAY_MS
const POINTS = 300
/** From this level on a node runs on external power. */
const POWERED = 101
const LOW = 15
/** A cell of lithium is nearly empty below this. */
const LOW_VOLTS = 3.4
const FEW = 4

/** A battery that was low, or that had to be empty by now. */
export async function lookAtPower({ ctx, node, lastHeard, now }: Case): Promise<Found[]> {
  const read = async (metric: string) => {
    const range = { from: lastHeard - LOOKED_AT_MS, to: lastHeard + HOUR_MS, points: POINTS }
    const { series } = await readSeries(ctx, { nodeNum: node.nodeNum, metric, ...range })
    return series.map(([t, v]) => ({ t, v }))
  }
  const levels = await read('deviceMetrics.batteryLevel')
  const voltages = await read('deviceMetrics.voltage')
  const [last, volts] = [levels.at(-1), voltages.at(-1)]
  if (last !== undefined && last.v >= POWERED) return []
  const at = last?.t ?? volts?.t
  if (at === undefined) return []
  const perDay = fallOf(levels.filter(({ v }) => v < POWERED))
  const level = last?.v ?? null
  const voltage = volts?.v ?? null
  const evidence = { kind: 'battery', at, level, voltage, perDay } as const
  const isLow = (level !== null && level <= LOW) || (voltage !== null && voltage > 1 && voltage < LOW_VOLTS)
  if (isLow) return [{ weight: 80, reason: { ...evidence, isLikely: true } }]
  const isEmptyByNow = level !== null && perDay !== null && level / perDay < (now - at) / DAY_MS
  return isEmptyByNow ? [{ weight: 45, reason: { ...evidence, isLikely: false } }] : []
}

type Point = { readonly t: number; readonly v: number }

/** How much a value falls a day, by least squares; null: it does not, or too little is known. */
function fallOf(points: readonly Point[]): number | null {
  if (points.length < FEW) return null
  const mean = (pick: (point: Point) => number) => points.reduce((sum, point) => sum + pick(point), 0) / points.length
  const [t, v] = [mean((point) => point.t), mean((point) => point.v)]
  const spread = mean((point) => (point.t - t) ** 2)
  if (spread === 0) return null
  const slope = (mean((point) => (point.t - t) * (point.v - v)) / spread) * DAY_MS
  return slope < -1 ? Math.round(-slope * 10) / 10 : null
}
