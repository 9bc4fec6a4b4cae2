import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { validate } from '../../http/validate.ts'
import { shared } from '../../accounts/access/shared.ts'
import { readTelemetryShown, telemetryAsked } from '../telemetry/anonymous.ts'
import { isRange, rangeAsked, telemetryFields } from '../telemetry/asked.ts'
import { listMetrics, metricsSchema, readSeries, seriesSchema } from '../telemetry/telemetry.ts'

const querySchema = z
  .object(telemetryFields)
  .refine(({ nodeId, metric }) => metric === undefined || nodeId !== undefined, {
    path: ['nodeId'],
    message: 'a metric needs a node',
  })
  .refine(isRange, { path: ['from'], message: 'must not be after to' })

export const telemetryRoutes = new Hono<AppEnv>().get(
  '/',
  shared('info', telemetryAsked, readTelemetryShown),
  requirePermission('info', 'read'),
  inTurn('read'),
  answers(
    'A metric of a node over time, or the list of metrics. Up to 2 days: single measurements; up to 60 days: by hour; beyond: by day',
    { 200: z.union([seriesSchema, metricsSchema]).meta({ type: 'object' }) },
    ['node_not_found'],
  ),
  validate('query', querySchema),
  async (c) => {
    const { ctx } = c.var
    const { nodeId, metric, points, ...given } = c.req.valid('query')
    if (nodeId === undefined || metric === undefined) return c.json(await listMetrics(ctx, nodeId ?? null))
    return c.json(await readSeries(ctx, { nodeNum: nodeId, metric, points, ...rangeAsked(given, ctx.now()) }))
  },
)
