import { MAX_CHART_LINES, MAX_CHART_METRICS, MAX_CHART_UNITS } from '../../../shared/mesh/boards.ts'
import { unitOf } from '../../../shared/mesh/metric-units.ts'
import { api, ApiError, askAs } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { chartTexts } from '../../strings/mesh/charts.ts'
import { t } from '../../strings.ts'
import { Select } from '../form/field.tsx'
import { Icon } from '../icon.tsx'
import { chartMetric, SNR } from './series.ts'

/** The route has two kinds of answers: with a metric, and without. */
type Metrics = { readonly metrics: readonly { readonly metric: string }[] }

/** What everybody measures. */
export const USUAL_METRICS: readonly string[] = [
  'deviceMetrics.batteryLevel',
  'deviceMetrics.voltage',
  'deviceMetrics.channelUtilization',
  'deviceMetrics.airUtilTx',
]

/** The measurements of these nodes, after the usual ones. */
export function useMetrics(nodeIds: readonly string[]): readonly string[] {
  const { data } = useLoad(async () => {
    const found = await Promise.all(nodeIds.map(readMetrics))
    return [...new Set(found.flat())].toSorted()
  }, [nodeIds.join()])
  return [...new Set([...USUAL_METRICS, ...(data.value ?? [])])]
}

async function readMetrics(nodeId: string): Promise<readonly string[]> {
  try {
    const { metrics } = await askAs<Metrics>(api.telemetry.$get({ query: { nodeId } }))
    return metrics.map(({ metric }) => metric)
  } catch (error) {
    // The chart itself says what is wrong.
    if (error instanceof ApiError) return []
    throw error
  }
}

const unitIn = (metric: string) => (metric === SNR ? 'dB' : unitOf(metric))

/** Whether a chart of this many nodes can have the measurement, too. */
function isPossible(chosen: readonly string[], metric: string, nodes: number): boolean {
  const all = [...chosen, metric]
  const units = new Set(all.map(unitIn))
  return all.length <= MAX_CHART_METRICS && units.size <= MAX_CHART_UNITS && all.length * nodes <= MAX_CHART_LINES
}

type Props = {
  chosen: readonly string[]
  offered: readonly string[]
  /** Number of nodes in the chart. */
  nodes: number
  onChange(chosen: readonly string[]): void
}

/** Chosen measurements, each with a button to remove it, and those that the chart can have besides. */
export function MetricPicker({ chosen, offered, nodes, onChange }: Props) {
  const others = offered.filter((metric) => !chosen.includes(metric))
  const possible = others.filter((metric) => isPossible(chosen, metric, nodes))
  return (
    <div class="metric-picker">
      {chosen.length > 0 && (
        <ul class="picked" aria-label={chartTexts.metrics}>
          {chosen.map((metric) => (
            <li key={metric}>
              {chartMetric(metric, offered)}
              {chosen.length > 1 && (
                <button
                  type="button"
                  class="icon-button"
                  aria-label={t.nodes.takeOut(chartMetric(metric, offered))}
                  onClick={() => onChange(chosen.filter((one) => one !== metric))}
                >
                  <Icon name="close" />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {possible.length > 0 && (
        <Select<string>
          label={chartTexts.addMetric}
          value=""
          options={[
            ['', chartTexts.choose],
            ...possible.map((metric) => [metric, chartMetric(metric, offered)] as const),
          ]}
          onChange={(metric) => {
            if (metric !== '') onChange([...chosen, metric])
          }}
        />
      )}
      {possible.length < others.length && <p class="about">{chartTexts.bounds(MAX_CHART_LINES)}</p>}
    </div>
  )
}
