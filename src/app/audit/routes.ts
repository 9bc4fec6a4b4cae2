import { Hono } from 'hono'
import * as z from 'zod'
import { requireAdmin } from '../http/access.ts'
import type { AppEnv } from '../context.ts'
import { answers } from '../http/describe.ts'
import { inTurn } from '../http/in-turn.ts'
import { idSchema, integerQuery, timeQuery, validate } from '../http/validate.ts'
import { auditEntrySchema, listAudit } from './audit.ts'
import { sealRecent } from './chain.ts'
import { EXPORT_FORMATS, exportAudit } from './export.ts'
import { chainPartSchema, verifyChain } from './verify.ts'

const filters = z.object({
  userId: idSchema.optional(),
  action: z.string().max(100).optional(),
  resource: z.string().max(100).optional(),
  from: timeQuery.optional(),
  to: timeQuery.optional(),
  q: z.string().min(1).max(200).optional(),
})

export const auditRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireAdmin,
    inTurn('read'),
    answers('The audit log, newest first', {
      200: z.object({ entries: z.array(auditEntrySchema), nextCursor: z.int().nullable() }),
    }),
    validate('query', filters.extend({ limit: integerQuery(1, 500).default(100), cursor: idSchema.optional() })),
    async (c) => {
      const { limit, cursor, ...by } = c.req.valid('query')
      await sealRecent(c.var.ctx.store)
      return c.json(await listAudit(c.var.ctx.store, by, { limit, cursor }))
    },
  )
  .get(
    '/export',
    requireAdmin,
    inTurn('stream'),
    answers('All matching entries as a file', { 200: { mediaType: ['text/csv', 'application/x-ndjson'] } }),
    validate('query', filters.extend({ format: z.enum(EXPORT_FORMATS) })),
    async (c) => {
      const { format, ...by } = c.req.valid('query')
      await sealRecent(c.var.ctx.store)
      return exportAudit(c.var.ctx.store, by, format)
    },
  )
  .get(
    '/verify',
    requireAdmin,
    answers('Whether the audit log is as it was written: a part of it, oldest first', { 200: chainPartSchema }),
    validate('query', z.object({ after: idSchema.optional(), limit: integerQuery(1, 10_000).default(10_000) })),
    async (c) => {
      const { after = 0, limit } = c.req.valid('query')
      await sealRecent(c.var.ctx.store)
      return c.json(await verifyChain(c.var.ctx.store, { after, limit }))
    },
  )
