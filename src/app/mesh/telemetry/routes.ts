import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../http/access.ts'
import type { AppEnv } from '../../context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { listMetrics, metricsSchema, readSeries, seriesSchema } from './telemetry.ts'

const querySchema = z
  .object({
    nodeId: nodeNumSchema.optional().describe('Node number or !hex'),
    metric: z
      .string()
      .regex(/^[A-Za-z][\w.]{0,99}$/, 'a metric such as deviceMetrics.voltage')
      .optional()
      .describe('Without it: the list of metrics, of the node or of all nodes'),
    from: timeQuery.optional().describe('ms, inclusive; default: a day before `to`'),
    to: timeQuery.optional().describe('ms, inclusive; default: now'),
    points: integerQuery(10, 5000).default(2000).describe('Maximum number of points'),
  })
  .refine(({ nodeId, metric }) => metric === undefined || nodeId !== undefined, {
    path: ['nodeId'],
    message: 'a metric needs a node',
  })
  .refine(({ from, to }) => from === undefined || to === undefined || from <= to, {
    path: ['from'],
    message: 'not after to',
  })

export const telemetryRoutes = new Hono<AppEnv>().get(
  '/',
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
    const to = given.to ?? Math.max(ctx.now(), given.from ?? 0)
    const from = given.from ?? Math.max(0, to - DAY_MS)
    return c.json(await readSeries(ctx, { nodeNum: nodeId, metric, from, to, points }))
  },
)
