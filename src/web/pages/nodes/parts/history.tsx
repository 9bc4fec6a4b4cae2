import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { api, askAs } from '../../../api.ts'
import { saveCsv } from '../../../csv.ts'
import { dateTime, zoneName } from '../../../format.ts'
import { metricName } from '../../../parts/mesh/metric-name.ts'
import { isPower } from '../../../parts/mesh/power.ts'
import { shownUnit } from '../../../measure.ts'
import { useLoad } from '../../../state/load.ts'
import { type Range, rangeKey, readRange, spanOf } from '../../../state/range.ts'
import { type Node, shortNameOf } from '../../../state/mesh/nodes.ts'
import { Select } from '../../../parts/form/field.tsx'
import { RangeControl } from '../../../parts/form/range-control.tsx'
import { useLazyDrawing } from '../../../parts/lazy-drawing.ts'
import { Failure } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { place, setQuery } from '../../../router.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { t } from '../../../strings.ts'
import '../lines.css'
import type { Series } from '../chart.ts'

/** The route has two kinds of answers: with a metric, and without. */
type Metrics = { readonly metrics: readonly { readonly metric: string }[] }

const USUAL = '24h'
const POLL_MS = 60_000
const POINTS = '1000'
const BATTERY = 'deviceMetrics.batteryLevel'
const CHANNEL_USE = 'deviceMetrics.channelUtilization'

/** The measurements of a node as a line chart, one metric at a time. */
export function NodeHistory({ node }: { node: Node }) {
  const { query } = place.value
  const { range } = readRange(query, USUAL)
  const { nodeId } = node
  // The first measurement of a node may arrive while the page is open.
  const known = useLoad(
    async () => {
      const { metrics } = await askAs<Metrics>(api.telemetry.$get({ query: { nodeId } }))
      return metrics.map(({ metric }) => metric)
    },
    [nodeId],
    POLL_MS,
    ['node'],
    null,
    nodeId,
  )
  const metrics = known.data.value ?? []
  // A battery that is never used has no story to tell.
  const isPowered = isPower(BATTERY, node.deviceMetrics?.batteryLevel ?? 0)
  const preferred = isPowered ? [CHANNEL_USE, BATTERY] : [BATTERY, CHANNEL_USE]
  const metric = [query.get('metric'), ...preferred].find((name) => metrics.includes(name ?? '')) ?? metrics[0] ?? null
  const { data, error, reload } = useLoad<Series | null>(
    async () => {
      if (metric === null) return null
      const { from, to } = spanOf(range, Date.now())
      const asked = { nodeId, metric, from: String(from), to: String(to), points: POINTS }
      return askAs<Series>(api.telemetry.$get({ query: asked }))
    },
    [nodeId, metric, rangeKey(range)],
    POLL_MS,
  )
  // What measures nothing has no chart, and what may measure keeps the place of one.
  if (metrics.length === 0 && (known.data.value !== null || node.deviceMetrics === null)) return null
  const series = data.value
  return (
    <Card
      title={nodeTexts.charts}
      actions={
        series !== null &&
        series.series.length > 0 && (
          <button type="button" class="button small" onClick={() => saveSeries(series, node)}>
            {t.common.exportAs} {t.common.csv}
          </button>
        )
      }
    >
      <div class="toolbar">
        <Select
          label={nodeTexts.metric}
          value={metric ?? ''}
          options={metrics.map((name) => [name, metricName(name, metrics)] as const)}
          onChange={(name) => setQuery({ metric: name })}
        />
        <RangeControl fallback={USUAL} />
      </div>
      <Failure error={error.value ?? known.error.value} retry={reload} />
      {series === null && error.value === null && <div class="chart-awaited" />}
      {series?.series.length === 0 && <p class="faint">{nodeTexts.noHistory}</p>}
      {series !== null && series.series.length > 0 && <ChartBox series={series} range={range} />}
    </Card>
  )
}

function ChartBox({ series, range }: { series: Series; range: Range }) {
  const box = useRef<HTMLDivElement>(null)
  const { drawing: chart, hasFailed } = useLazyDrawing(box, async () => (await import('../chart.ts')).createChart)
  useEffect(
    () => chart.value?.show([{ name: metricName(series.metric), series }], spanOf(range, Date.now())),
    [chart.value, series, rangeKey(range)],
  )
  const isBand = series.series.some((point) => point.length === 4)
  return (
    <>
      {hasFailed.value && <p class="bad">{nodeTexts.chartFailed}</p>}
      <ChartKeys series={series} onPoint={(time) => chart.value?.point(time)}>
        <div class="chart" ref={box} role="img" aria-label={summary(series)} />
      </ChartKeys>
      <p class="about">
        {isBand && `${nodeTexts.chartBand} `}
        {nodeTexts.chartZone(zoneName())}
      </p>
    </>
  )
}

type ChartKeysProps = { series: Series; onPoint(time: number): void; children: ComponentChildren }

/** Moves along the points of a chart by keys, and reads them out. */
function ChartKeys({ series, onPoint, children }: ChartKeysProps) {
  const at = useSignal<number | null>(null)
  useEffect(() => {
    at.value = null
  }, [series.metric, series.resolution])
  const last = series.series.length - 1
  const step = (event: KeyboardEvent) => {
    const now = Math.min(at.peek() ?? last + 1, last + 1)
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key]
    if (next === undefined) return
    event.preventDefault()
    at.value = Math.max(0, Math.min(last, next))
    const [time] = series.series[at.value] ?? []
    if (time !== undefined) onPoint(time)
  }
  const point = at.value === null ? undefined : series.series[at.value]
  return (
    <div class="chart-keys" tabIndex={0} role="group" aria-label={nodeTexts.chartKeys} onKeyDown={step}>
      {children}
      <p class="sr-only" role="status">
        {point !== undefined && pointText(point, series)}
      </p>
    </div>
  )
}

function pointText([time, ...values]: Series['series'][number], found: Series): string {
  const [least = 0, greatest, average] = values
  const text = (value: number) => measure(value, found)
  return greatest === undefined || average === undefined
    ? nodeTexts.chartPoint(dateTime(time), text(least))
    : nodeTexts.chartPointBand(dateTime(time), text(average), text(least), text(greatest))
}

function measure(value: number, { metric, unit }: Series): string {
  if (isPower(metric, value)) return t.nodes.powerHelp
  const shown = shownUnit(unit)
  return `${Number(shown.convert(value).toPrecision(4))}${shown.unit === null ? '' : ` ${shown.unit}`}`
}

/** The chart in words, for those who can't see it. */
function summary(found: Series): string {
  const { metric, series } = found
  const least = series.map(([, value]) => value)
  const greatest = series.map(([, value, max = value]) => max)
  const last = measure(series.at(-1)?.at(-1) ?? 0, found)
  if (series.length === 1) return nodeTexts.chartOne(metricName(metric), last)
  return nodeTexts.chartSummary(
    metricName(metric),
    measure(Math.min(...least), found),
    measure(Math.max(...greatest), found),
    last,
  )
}

function saveSeries({ metric, unit, series }: Series, node: Node): void {
  const isBand = series.some((point) => point.length === 4)
  const name = `${metric}${unit === null ? '' : ` (${unit})`}`
  const head = ['time', ...(isBand ? [`min ${name}`, `max ${name}`, `average ${name}`] : [name])]
  const rows = series.map(([time, ...values]) => {
    const [value = null] = values
    return [new Date(time).toISOString(), ...(isBand && values.length === 1 ? [value, value, value] : values)]
  })
  saveCsv(`${shortNameOf(node)}-${metric}`, [head, ...rows])
}
