import { useMemo } from 'preact/hooks'
import type { Series } from '../../../app/mesh/telemetry/telemetry.ts'
import type { PacketPage } from '../../../app/mesh/topology/packets.ts'
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import { api, ApiError, askAs } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { type Range, rangeKey, spanOf, type TimeSpan } from '../../state/range.ts'
import { t } from '../../strings.ts'
import { metricName } from '../mesh/metric-name.ts'
import type { Line } from './chart.ts'
import { lookAt, lookOf } from './looks.ts'

/** A node of a chart. */
export type Source = { readonly nodeId: string; readonly name: string }

/** The signal of a node, which is no stored measurement: its logged packets have it. */
export const SNR = 'snr'

const POINTS = '1000'
/** Up to this many requests for the signal of a node. */
const MAX_PAGES = 4
const PAGE_SIZE = '500'

export const chartMetric = (metric: string, among: readonly string[] = []): string =>
  metric === SNR ? t.nodes.snr : metricName(metric, among)

type Found = { readonly nodeId: string; readonly series: Series }

/** The measurements of some nodes as lines, loaded again as often as the range shows a change. */
export function useLines(nodes: readonly Source[], metrics: readonly string[], range: Range) {
  const ids = nodes.map(({ nodeId }) => nodeId).join()
  const { data, error, reload } = useLoad(
    async () => {
      const span = spanOf(range, Date.now())
      const asked = nodes.flatMap(({ nodeId }) => metrics.map((metric) => ({ nodeId, metric })))
      return Promise.all(
        asked.map(async ({ nodeId, metric }): Promise<Found> => {
          const series = await inTurn(() => readSeries(nodeId, metric, span))
          return { nodeId, series }
        }),
      )
    },
    [ids, metrics.join(), rangeKey(range)],
    typeof range === 'string' ? pollMs(spanOf(range, Date.now())) : undefined,
  )
  const found = data.value
  const names = nodes.map(({ name }) => name).join('\n')
  const lines = useMemo(
    () => (found === null ? null : linesOf(found, nodes, metrics)),
    [found, ids, names, metrics.join()],
  )
  return { lines, error, reload }
}

/** A pixel of a long range is many minutes. */
function pollMs({ from, to }: TimeSpan): number {
  return Math.max(MINUTE_MS, Math.min(HOUR_MS, (to - from) / 1440))
}

function linesOf(found: readonly Found[], nodes: readonly Source[], metrics: readonly string[]): readonly Line[] {
  return nodes.flatMap(({ nodeId, name }, node) =>
    metrics.flatMap((metric, index): Line[] => {
      const one = found.find(({ series, ...of }) => of.nodeId === nodeId && series.metric === metric)
      if (one === undefined) return []
      const [isOfNodes, isOfMetrics] = [nodes.length > 1, metrics.length > 1]
      const inWords = chartMetric(metric, metrics)
      const words = [...(isOfNodes || !isOfMetrics ? [name] : []), ...(isOfMetrics ? [inWords] : [])]
      const look = isOfNodes && isOfMetrics ? lookOf(node, index) : lookAt(isOfNodes ? node : index)
      return [{ name: words.join(' · '), node: name, look, series: one.series }]
    }),
  )
}

/** The service reads two series of a user at a time, and refuses more than some that wait. */
const AT_ONCE = 4
const waiting: (() => void)[] = []
let running = 0

async function inTurn<T>(read: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
  else running++
  try {
    return await read()
  } finally {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
}

async function readSeries(nodeId: string, metric: string, { from, to }: TimeSpan): Promise<Series> {
  const none: Series = { metric, unit: null, resolution: 'raw', series: [] }
  if (metric === SNR) return { ...none, unit: 'dB', series: await readSignals(nodeId, { from, to }) }
  const query = { nodeId, metric, from: String(from), to: String(to), points: POINTS }
  try {
    return await askAs<Series>(api.telemetry.$get({ query }))
  } catch (error) {
    // A node that was forgotten has no measurements, and no node has one that does not exist.
    if (error instanceof ApiError && (error.code === 'node_not_found' || error.code === 'invalid_request')) return none
    throw error
  }
}

/** The signal of each packet that was heard directly from the node, oldest first. */
async function readSignals(nodeId: string, { from, to }: TimeSpan): Promise<[number, number][]> {
  const found: [number, number][] = []
  let before: number | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const { packets, nextBefore } = await readPackets(nodeId, before)
    for (const { timestamp, rxSnr, hopsAway, viaMqtt } of packets) {
      const isWithin = timestamp >= from && timestamp <= to
      if (isWithin && rxSnr !== null && hopsAway === 0 && !viaMqtt) found.push([timestamp, rxSnr])
    }
    if (nextBefore === null || (packets.at(-1)?.timestamp ?? 0) < from) break
    before = nextBefore
  }
  return found.toSorted(([a], [b]) => a - b)
}

async function readPackets(from: string, before: number | null): Promise<PacketPage> {
  const query = { from, limit: PAGE_SIZE, ...(before !== null && { before: String(before) }) }
  return askAs<PacketPage>(api.packets.$get({ query }))
}
