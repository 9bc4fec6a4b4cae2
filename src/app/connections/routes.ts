import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../accounts/access/require.ts'
import type { AppEnv } from '../base/context.ts'
import { answers } from '../http/describe.ts'
import { timeField } from '../http/fields.ts'
import { preferWhereTheRadioIs } from '../http/radio-process.ts'
import { listSources } from '../mesh/radios/sources.ts'
import { connectionSchema, listConnections } from './connections.ts'

const listSchema = z.object({
  connections: z.array(connectionSchema),
  isDemo: z.boolean().describe('A simulated radio stands in for all connections: DEMO is set'),
  collectors: z
    .array(z.object({ name: z.string(), lastReceivedAt: timeField.nullable() }))
    .describe('Radios beside which a collector runs, which delivers here. They are connected and changed there'),
})

export const connectionRoutes = new Hono<AppEnv>().get(
  '/',
  requirePermission('configuration', 'read'),
  answers('The radios and brokers that this service connects to, in their order. Never with secrets', {
    200: listSchema,
  }),
  preferWhereTheRadioIs,
  async (c) => {
    const { ctx } = c.var
    const sources = await listSources(ctx.store, { withTokens: false })
    const collectors = sources
      .filter(({ kind }) => kind === 'ingest')
      .map(({ name, lastReceivedAt }) => ({ name, lastReceivedAt }))
    return c.json({ connections: await listConnections(ctx), isDemo: ctx.config.DEMO, collectors })
  },
)
