import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, askAs } from '../api.ts'
import { humanize } from '../format.ts'
import { useLoad } from '../load.ts'
import { type Node, nodeName } from '../mesh.ts'
import { Segments, Select } from '../parts/field.tsx'
import { Failure } from '../parts/notice.tsx'
import { Card } from '../parts/page.tsx'
import { t } from '../strings.ts'
import type { Chart, Series } from './chart.ts'

/** The route has two answers: with a metric asked for, and without. */
type Metrics = { readonly metrics: readonly { readonly metric: string }[] }

const RANGES = ['3600000', '86400000', '604800000', '2592000000'] as const
const POLL_MS = 60_000
const POINTS = '1000'
/** What most people look for first. */
const PREFERRED = 'deviceMetrics.batteryLevel'

/** What a node measured, as a line: one metric at a time. */
export function NodeHistory({ node }: { node: Node }) {
  const chosen = useSignal<string | null>(null)
  const range = useSignal<(typeof RANGES)[number]>('86400000')
  const { nodeId } = node
  const known = useLoad(async () => {
    const { metrics } = await askAs<Metrics>(api.telemetry.$get({ query: { nodeId } }))
    return metrics.map(({ metric }) => metric)
  }, [nodeId])
  const metrics = known.data.value ?? []
  const metric = chosen.value ?? metrics.find((name) => name === PREFERRED) ?? metrics[0] ?? null
  const { data, error, reload } = useLoad<Series | null>(
    async () => {
      if (metric === null) return null
      const to = Date.now()
      const query = { nodeId, metric, from: String(to - Number(range.value)), to: String(to), points: POINTS }
      return askAs<Series>(api.telemetry.$get({ query }))
    },
    [nodeId, metric, range.value],
    POLL_MS,
  )
  if (known.data.value !== null && metrics.length === 0) return null
  const series = data.value
  return (
    <Card
      title={t.nodes.charts}
      actions={
        series !== null &&
        series.series.length > 0 && (
          <button type="button" class="button small" onClick={() => saveCsv(series, node)}>
            {t.audit.csv}
          </button>
        )
      }
    >
      <div class="toolbar">
        {metric !== null && (
          <Select
            label={t.nodes.metric}
            value={metric}
            options={metrics.map((name) => [name, metricName(name)] as const)}
            onChange={(name) => (chosen.value = name)}
          />
        )}
        <Segments
          label={t.nodes.chartRange}
          value={range.value}
          options={RANGES.map((ms) => [ms, t.nodes.ranges[ms]] as const)}
          onChange={(ms) => (range.value = ms)}
        />
      </div>
      <Failure error={error.value ?? known.error.value} retry={reload} />
      {series?.series.length === 0 && <p class="faint">{t.nodes.noHistory}</p>}
      {series !== null && series.series.length > 0 && <ChartBox series={series} rangeMs={Number(range.value)} />}
    </Card>
  )
}

/** `deviceMetrics.batteryLevel` as `Battery level`. */
function metricName(metric: string): string {
  const name = metric.slice(metric.indexOf('.') + 1)
  return humanize(name.replaceAll(/([A-Z])/g, ' $1'))
}

function ChartBox({ series, rangeMs }: { series: Series; rangeMs: number }) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useSignal<Chart | null>(null)
  const hasFailed = useSignal(false)
  useEffect(() => {
    let drawn: Chart | null = null
    let isGone = false
    const draw = async () => {
      const { createChart } = await import('./chart.ts')
      if (isGone || box.current === null) return
      drawn = createChart(box.current)
      chart.value = drawn
    }
    draw().catch((cause: unknown) => {
      console.error(cause)
      hasFailed.value = true
    })
    return () => {
      isGone = true
      drawn?.destroy()
    }
  }, [])
  useEffect(() => chart.value?.show(series, metricName(series.metric), rangeMs), [chart.value, series, rangeMs])
  return (
    <>
      {hasFailed.value && <p class="bad">{t.nodes.chartFailed}</p>}
      <div class="chart" ref={box} role="img" aria-label={summary(series)} />
    </>
  )
}

/** The chart in words, for those who can't see it. */
function summary({ metric, unit, series }: Series): string {
  const values = series.map((point) => point.at(-1) ?? 0)
  const number = (value: number) => `${Number(value.toPrecision(4))}${unit === null ? '' : ` ${unit}`}`
  return t.nodes.chartSummary(
    metricName(metric),
    number(Math.min(...values)),
    number(Math.max(...values)),
    number(values.at(-1) ?? 0),
  )
}

function saveCsv({ metric, unit, series }: Series, node: Node): void {
  const isBand = series.some((point) => point.length === 4)
  const head = isBand ? 'time,min,max,average' : `time,${metric}${unit === null ? '' : ` (${unit})`}`
  const rows = series.map(([time, ...values]) => {
    const [value] = values
    const cells = isBand && values.length === 1 ? [value, value, value] : values
    return [new Date(time).toISOString(), ...cells].join(',')
  })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([[head, ...rows, ''].join('\r\n')], { type: 'text/csv' }))
  link.download = `${node.shortName ?? nodeName(node)}-${metric}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
}
