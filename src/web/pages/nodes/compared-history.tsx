import { MAX_CHART_LINES, MAX_CHART_METRICS } from '../../../shared/mesh/boards.ts'
import { LinesBox } from '../../parts/charts/lines-box.tsx'
import { MetricPicker, USUAL_METRICS, useMetrics } from '../../parts/charts/metric-picker.tsx'
import { SaveChart } from '../../parts/charts/save-chart.tsx'
import { chartMetric, SNR, type Source, useLines } from '../../parts/charts/series.ts'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { place, setQuery } from '../../router.ts'
import { readRange } from '../../state/range.ts'
import { isAnonymous } from '../../state/session.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { compareTexts } from '../../strings/mesh/compare.ts'

const USUAL = '24h'
const [BATTERY = ''] = USUAL_METRICS

/** Measurements of several nodes in one chart. The address names them. */
export function ComparedHistory({ compared }: { compared: readonly Source[] }) {
  const { query } = place.value
  const offered = [...useMetrics(compared.map(({ nodeId }) => nodeId)), ...(isAnonymous.value ? [] : [SNR])]
  const metrics = metricsIn(query.get('metric') ?? '', compared.length)
  const { range } = readRange(query, USUAL)
  const { lines, error, reload } = useLines(compared, metrics, range)
  const isEmpty = lines?.every(({ series }) => series.series.length === 0) ?? false
  return (
    <Card
      title={nodeTexts.charts}
      actions={
        lines !== null && (
          <SaveChart
            title={metrics.map((metric) => chartMetric(metric, metrics)).join(', ')}
            lines={lines}
            range={range}
          />
        )
      }
    >
      <div class="toolbar">
        <MetricPicker
          chosen={metrics}
          offered={offered}
          nodes={compared.length}
          onChange={(chosen) => setQuery({ metric: chosen.join() === BATTERY ? '' : chosen.join() })}
        />
        <RangeControl fallback={USUAL} />
      </div>
      <Failure error={error.value} retry={reload} />
      {lines === null && error.value === null && <div class="chart-awaited" />}
      {isEmpty && <p class="faint">{nodeTexts.noHistory}</p>}
      {lines !== null && !isEmpty && <LinesBox lines={lines} range={range} />}
      {metrics.includes(SNR) && <p class="about">{compareTexts.snrHelp}</p>}
    </Card>
  )
}

/** The measurements in an address, as many as a chart of these nodes can have. */
function metricsIn(text: string, nodes: number): readonly string[] {
  const named = [...new Set(text.split(','))].filter((name) => /^[A-Za-z][\w.]{0,99}$/.test(name))
  const found = named.filter((name) => name !== SNR || !isAnonymous.value)
  const most = Math.min(MAX_CHART_METRICS, Math.floor(MAX_CHART_LINES / Math.max(1, nodes)))
  return found.length === 0 ? [BATTERY] : found.slice(0, most)
}
