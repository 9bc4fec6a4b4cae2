import type { Series } from '../../../app/mesh/telemetry/telemetry.ts'
import { DAY_MS, MINUTE_MS } from '../../../shared/time.ts'
import { api, askAs } from '../../api.ts'
import { decimal } from '../../format.ts'
import { useLoad } from '../../state/load.ts'
import { type Node, shortNameOf } from '../../state/mesh/nodes.ts'
import { t } from '../../strings.ts'
import { Line } from './trend.tsx'

const METRIC = 'deviceMetrics.channelUtilization'
const POLL_MS = 15 * MINUTE_MS
/** One an hour. */
const POINTS = '48'

/** How busy the own radio heard the channel in the last day, and how busy the day before. */
export function AirTrend({ own }: { own: Node }) {
  const { data } = useLoad(
    () => {
      const query = { nodeId: own.nodeId, metric: METRIC, from: String(Date.now() - 2 * DAY_MS), points: POINTS }
      return askAs<Series>(api.telemetry.$get({ query }))
    },
    [],
    POLL_MS,
  )
  if (data.value === null) return null
  const begin = Date.now() - DAY_MS
  const values = data.value.series.map((point) => [point[0], point.length === 2 ? point[1] : point[3]] as const)
  const today = values.flatMap(([at, value]) => (at >= begin ? value : []))
  const before = values.flatMap(([at, value]) => (at < begin ? value : []))
  if (today.length === 0) return null
  return (
    <>
      <Line values={today} />
      {t.dashboard.ownAir(shortNameOf(own), decimal(mean(today)), before.length === 0 ? null : decimal(mean(before)))}
    </>
  )
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
