import { useMemo } from 'preact/hooks'
import { api, askAs } from '../../../api.ts'
import type { Line, Series } from '../../../parts/charts/chart.ts'
import { LinesBox, measured } from '../../../parts/charts/lines-box.tsx'
import { SaveChart } from '../../../parts/charts/save-chart.tsx'
import { metricName } from '../../../parts/mesh/metric-name.ts'
import { isPower } from '../../../parts/mesh/power.ts'
import { useLoad } from '../../../state/load.ts'
import { rangeKey, readRange, spanOf } from '../../../state/range.ts'
import { type Node, nodeName, shortNameOf } from '../../../state/mesh/nodes.ts'
import { Select } from '../../../parts/form/field.tsx'
import { RangeControl } from '../../../parts/form/range-control.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { place, setQuery } from '../../../router.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'

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
  const series = data.value
  const lines = useMemo(
    (): readonly Line[] => (series === null ? [] : [{ name: metricName(series.metric), series }]),
    [series],
  )
  // What measures nothing has no chart, and what may measure keeps the place of one.
  if (metrics.length === 0 && (known.data.value !== null || node.deviceMetrics === null)) return null
  return (
    <Card
      title={nodeTexts.charts}
      actions={
        series !== null && (
          <SaveChart
            title={`${nodeName(node)} · ${metricName(series.metric)}`}
            lines={lines}
            range={range}
            file={`${shortNameOf(node)}-${series.metric}`}
          />
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
      {series !== null && series.series.length > 0 && <LinesBox lines={lines} range={range} label={summary(series)} />}
    </Card>
  )
}

/** The chart in words, for those who can't see it. */
function summary(found: Series): string {
  const { metric, series } = found
  const least = series.map(([, value]) => value)
  const greatest = series.map(([, value, max = value]) => max)
  const last = measured(series.at(-1)?.at(-1) ?? 0, found)
  if (series.length === 1) return nodeTexts.chartOne(metricName(metric), last)
  return nodeTexts.chartSummary(
    metricName(metric),
    measured(Math.min(...least), found),
    measured(Math.max(...greatest), found),
    last,
  )
}
