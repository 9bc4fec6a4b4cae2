import { Hono } from 'hono'
import { requireAdmin } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { systemSchema } from './schema.ts'
import { readSystem } from './system.ts'

export const systemRoutes = new Hono<AppEnv>().get(
  '/',
  requireAdmin,
  inTurn('read'),
  answers('The state of the service itself: storage, backups, links, queues, and what is wrong', { 200: systemSchema }),
  async (c) => c.json(await readSystem(c.var.ctx)),
)
