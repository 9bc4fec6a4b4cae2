import { useEffect, useRef } from 'preact/hooks'
import type { PacketPage } from '../../../app/mesh/topology/packets.ts'
import { api, ApiError, askAs } from '../../api.ts'
import { zoneName } from '../../format.ts'
import { shownUnit } from '../../measure.ts'
import { Segments } from '../../parts/form/field.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { useLazyDrawing } from '../../parts/lazy-drawing.ts'
import { metricName } from '../../parts/mesh/metric-name.ts'
import { isPower } from '../../parts/mesh/power.ts'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { place, setQuery } from '../../router.ts'
import { useLoad } from '../../state/load.ts'
import { type Range, rangeKey, readRange, spanOf, type TimeSpan } from '../../state/range.ts'
import { isAnonymous } from '../../state/session.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { compareTexts } from '../../strings/mesh/compare.ts'
import { t } from '../../strings.ts'
import './lines.css'
import type { Line, Series } from './chart.ts'

/** A node of the comparison. */
type Compared = { readonly nodeId: string; readonly name: string }

const SNR = 'snr'
const METRICS = [
  'deviceMetrics.batteryLevel',
  'deviceMetrics.channelUtilization',
  'deviceMetrics.airUtilTx',
  SNR,
] as const
type Metric = (typeof METRICS)[number]
const USUAL = '24h'
const POLL_MS = 60_000
const POINTS = '1000'
/** The signal of a node is read from its logged packets: up to this many requests for a node. */
const MAX_PAGES = 4
const PAGE_SIZE = '500'

/** One measurement of several nodes in one chart. */
export function ComparedHistory({ compared }: { compared: readonly Compared[] }) {
  const { query } = place.value
  const metrics = METRICS.filter((name) => name !== SNR || !isAnonymous.value)
  const metric = metrics.find((name) => name === query.get('metric')) ?? METRICS[0]
  const { range } = readRange(query, USUAL)
  const ids = compared.map(({ nodeId }) => nodeId)
  const { data, error, reload } = useLoad(
    () => Promise.all(ids.map((nodeId) => readSeries(nodeId, metric, spanOf(range, Date.now())))),
    [ids.join(), metric, rangeKey(range)],
    POLL_MS,
  )
  const found = data.value
  const lines = (found ?? []).flatMap((series, index): readonly Line[] => {
    const name = compared[index]?.name
    return name === undefined || series.metric !== metric ? [] : [{ name, series }]
  })
  const isEmpty = lines.length > 0 && lines.every(({ series }) => series.series.length === 0)
  return (
    <Card title={nodeTexts.charts}>
      <div class="toolbar">
        <Segments
          label={nodeTexts.metric}
          value={metric}
          options={metrics.map((name) => [name, nameOf(name)] as const)}
          onChange={(name) => setQuery({ metric: name === METRICS[0] ? '' : name })}
        />
        <RangeControl fallback={USUAL} />
      </div>
      <Failure error={error.value} retry={reload} />
      {lines.length === 0 && error.value === null && <div class="chart-awaited" />}
      {isEmpty && <p class="faint">{nodeTexts.noHistory}</p>}
      {lines.length > 0 && !isEmpty && <LinesBox lines={lines} range={range} />}
      {metric === SNR && <p class="about">{compareTexts.snrHelp}</p>}
    </Card>
  )
}

const nameOf = (metric: Metric) => (metric === SNR ? t.nodes.snr : metricName(metric))

function LinesBox({ lines, range }: { lines: readonly Line[]; range: Range }) {
  const box = useRef<HTMLDivElement>(null)
  const { drawing: chart, hasFailed } = useLazyDrawing(box, async () => (await import('./chart.ts')).createChart)
  useEffect(
    () => chart.value?.show(lines, spanOf(range, Date.now())),
    [chart.value, JSON.stringify(lines), rangeKey(range)],
  )
  return (
    <>
      {hasFailed.value && <p class="bad">{nodeTexts.chartFailed}</p>}
      <div class="chart several" ref={box} role="img" aria-label={lines.map(inWords).join('; ')} />
      <p class="about">{nodeTexts.chartZone(zoneName())}</p>
    </>
  )
}

/** A line for those who can't see it. */
function inWords({ name, series: { metric, unit, series } }: Line): string {
  const last = series.at(-1)?.at(-1)
  if (last === undefined) return `${name}: ${t.common.none}`
  const shown = shownUnit(unit)
  const value = `${Number(shown.convert(last).toPrecision(4))}${shown.unit === null ? '' : ` ${shown.unit}`}`
  return `${name}: ${isPower(metric, last) ? t.nodes.powerHelp : value}`
}

async function readSeries(nodeId: string, metric: Metric, span: TimeSpan): Promise<Series> {
  const { from, to } = span
  if (metric === SNR) return { metric, unit: 'dB', resolution: 'raw', series: await readSignals(nodeId, span) }
  const query = { nodeId, metric, from: String(from), to: String(to), points: POINTS }
  try {
    return await askAs<Series>(api.telemetry.$get({ query }))
  } catch (error) {
    // A node that was forgotten has no measurements.
    if (!(error instanceof ApiError) || error.code !== 'node_not_found') throw error
    return { metric, unit: null, resolution: 'raw', series: [] }
  }
}

/** The signal of each packet that was heard directly from the node, oldest first. */
async function readSignals(nodeId: string, { from, to }: TimeSpan): Promise<[number, number][]> {
  const found: [number, number][] = []
  let before: number | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const { packets, nextBefore } = await readPackets(nodeId, before)
    for (const { timestamp, rxSnr, hopsAway, viaMqtt } of packets) {
      if (timestamp >= from && timestamp < to && rxSnr !== null && hopsAway === 0 && !viaMqtt)
        found.push([timestamp, rxSnr])
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
