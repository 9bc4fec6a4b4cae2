import { Hono } from 'hono'
import { requireAdminOrScope } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { formatMetrics, METRICS_TYPE } from './exposition.ts'
import { collectMetrics } from './metrics.ts'

export const metricsRoutes = new Hono<AppEnv>().get(
  '/',
  requireAdminOrScope('metrics'),
  inTurn('read'),
  answers('Measurements for Prometheus', { 200: { mediaType: 'text/plain' } }),
  async (c) => c.body(formatMetrics(await collectMetrics(c.var.ctx)), 200, { 'Content-Type': METRICS_TYPE }),
)
