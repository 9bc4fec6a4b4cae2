import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { answers } from '../../http/describe.ts'
import { shared } from '../../accounts/access/shared.ts'
import { readDashboardShown } from './anonymous.ts'
import { dashboardSchema, readDashboard } from './dashboard.ts'

export const dashboardRoutes = new Hono<AppEnv>().get(
  '/',
  shared('dashboard', z.strictObject({}), readDashboardShown),
  requirePermission('dashboard', 'read'),
  inTurn('read'),
  answers('The state of the mesh and of this service at a glance', { 200: dashboardSchema }),
  async (c) => c.json(await readDashboard(c.var.ctx)),
)
