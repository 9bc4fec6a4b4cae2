import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../http/access.ts'
import type { AppEnv } from '../context.ts'
import { inTurn } from '../http/limits/in-turn.ts'
import { answers } from '../http/describe.ts'
import { shared } from '../sharing/shared.ts'
import { readDashboardShown } from '../sharing/strangers/dashboard.ts'
import { dashboardSchema, readDashboard } from './dashboard.ts'

export const dashboardRoutes = new Hono<AppEnv>().get(
  '/',
  shared('dashboard', z.strictObject({}), readDashboardShown),
  requirePermission('dashboard', 'read'),
  inTurn('read'),
  answers('The state of the mesh and of this service at a glance', { 200: dashboardSchema }),
  async (c) => c.json(await readDashboard(c.var.ctx)),
)
