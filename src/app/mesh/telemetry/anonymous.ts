import * as z from 'zod'
import { MINUTE_MS } from '../../../shared/time.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { timeQuery } from '../../http/validate.ts'
import { isRange, rangeAsked, telemetryFields } from './asked.ts'
import { listMetrics, type metricsSchema, readSeries, type Series } from './telemetry.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { readerFor } from '../../accounts/access/anonymous-reader.ts'

/**
 * The measurements that nodes send on the air. A radio reports its own statistics to its owner only, so they would show
 * which nodes are ours.
 */
const SHOWN = /^(?:deviceMetrics|environmentMetrics|airQualityMetrics|powerMetrics)\./

// Whole minutes, so that readers of the same chart share one cached body.
const minute = timeQuery.transform((ms) => ms - (ms % MINUTE_MS))

export const telemetryAsked = z
  .strictObject({
    ...telemetryFields,
    nodeId: telemetryFields.nodeId.unwrap(),
    from: minute.optional(),
    to: minute.optional(),
  })
  .refine(isRange, { path: ['from'], message: 'must not be after to' })

/**
 * A metric of a node over time, or the list of its metrics. Throws `node_not_found`, and `invalid_request` for a metric
 * that anonymous callers do not see.
 */
export async function readTelemetryShown(
  ctx: Ctx,
  view: PublicView,
  { nodeId: nodeNum, metric, points, ...given }: z.output<typeof telemetryAsked>,
): Promise<Series | z.infer<typeof metricsSchema>> {
  const reader = await readerFor(ctx, view)
  if (metric === undefined) {
    const { metrics } = await listMetrics(reader, nodeNum)
    return { metrics: metrics.filter((one) => SHOWN.test(one.metric)) }
  }
  if (!SHOWN.test(metric)) throw new AppError('invalid_request', 'metric: not shown without an account')
  const { from, to } = rangeAsked(given, ctx.now())
  // The last minute counts in full.
  return readSeries(reader, { nodeNum, metric, points, from, to: to + MINUTE_MS })
}
