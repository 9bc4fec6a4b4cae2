import { Hono } from 'hono'
import * as z from 'zod'
import { requireAdmin } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { importReportSchema, readImportReport } from './report.ts'

export const movingInRoutes = new Hono<AppEnv>().get(
  '/',
  requireAdmin,
  answers('The latest import from another program, with everything that it left out', {
    200: z.object({ report: importReportSchema.nullable() }),
  }),
  async (c) => c.json({ report: await readImportReport(c.var.ctx.store) }),
)
