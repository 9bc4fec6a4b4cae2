import { auditEntrySchema } from '../../audit/entry.ts'
import { Hono } from 'hono'
import * as z from 'zod'
import { requireAdmin } from '../../accounts/access/require.ts'
import { requireFreshProof } from '../../accounts/fresh-proof.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { idSchema, integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { listAudit } from '../../audit/audit.ts'
import { confirmDamage, damageSchema, listDamage } from './damage.ts'
import { sealRecent } from '../../audit/chain.ts'
import { EXPORT_FORMATS } from '../../../shared/access/audit-actions.ts'
import { exportAudit } from '../../audit/export.ts'
import { chainPartSchema, verifyChain } from '../../audit/verify.ts'
import { MAX_SEARCH } from '../../../shared/limits.ts'

const filters = z.object({
  userId: idSchema.optional().describe('Username'),
  action: z.string().max(100).optional().describe('Such as `login_failed`'),
  resource: z.string().max(100).optional().describe('Such as `users`'),
  from: timeQuery.optional().describe('At this time or later'),
  to: timeQuery.optional().describe('At this time or earlier'),
  q: z.string().min(1).max(MAX_SEARCH).optional().describe('Part of the username or the details'),
})

export const auditRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireAdmin,
    inTurn('read'),
    answers('The audit log, newest first', {
      200: z.object({
        entries: z.array(auditEntrySchema),
        nextCursor: z
          .int()
          .nullable()
          .describe(
            '`cursor` of the next page; null: this is the last one. With a filter, a page may have fewer entries than `limit` although more follow: continue while this is not null',
          ),
      }),
    }),
    validate(
      'query',
      filters.extend({
        limit: integerQuery(1, 500).default(100).describe('Maximum number of entries in the response'),
        cursor: idSchema.optional().describe('`nextCursor` of the previous page'),
      }),
    ),
    async (c) => {
      const { limit, cursor, ...by } = c.req.valid('query')
      await sealRecent(c.var.ctx.store)
      return c.json(await listAudit(c.var.ctx.store, by, { limit, cursor, signal: c.req.raw.signal }))
    },
  )
  .get(
    '/export',
    requireAdmin,
    inTurn('stream'),
    answers('All matching entries of the audit log, as a file', {
      200: { mediaType: ['text/csv', 'application/x-ndjson'] },
    }),
    validate('query', filters.extend({ format: z.enum(EXPORT_FORMATS).describe('CSV, or one JSON object per line') })),
    async (c) => {
      const { format, ...by } = c.req.valid('query')
      await sealRecent(c.var.ctx.store)
      return exportAudit(c.var.ctx, by, format)
    },
  )
  .get(
    '/verify',
    requireAdmin,
    inTurn('read'),
    answers('Verify a part of the audit log, oldest entries first', { 200: chainPartSchema }),
    validate(
      'query',
      z.object({
        after: idSchema.optional().describe('`next` of the previous part'),
        limit: integerQuery(1, 10_000).default(10_000).describe('Maximum number of entries in the response'),
      }),
    ),
    async (c) => {
      const { after = 0, limit } = c.req.valid('query')
      await sealRecent(c.var.ctx.store)
      return c.json(await verifyChain(c.var.ctx.store, { after, limit }))
    },
  )
  .get(
    '/damage',
    requireAdmin,
    answers('Damage of the audit log that a start has found, newest first, until an administrator confirms it', {
      200: z.object({ damages: z.array(damageSchema) }),
    }),
    async (c) => c.json({ damages: await listDamage(c.var.ctx.store) }),
  )
  .post(
    '/damage/confirm',
    requireAdmin,
    requireFreshProof,
    answers('Confirm that you have seen an entry of the list and all before it. They stay in the log', { 204: null }, [
      'not_found',
    ]),
    validate('json', z.strictObject({ id: z.int().min(1).describe('ID from the list') })),
    async (c) => {
      await confirmDamage(c.var.ctx, c.req.valid('json').id)
      return c.body(null, 204)
    },
  )
