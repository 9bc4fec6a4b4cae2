import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../accounts/access/require.ts'
import type { AppEnv } from '../base/context.ts'
import { answers, describing } from '../http/describe.ts'
import { readKeyed, takesIdempotencyKey } from '../http/idempotency.ts'
import { readIfMatch, revisionTag, takesIfMatch } from '../http/preconditions.ts'
import { basePath } from '../config/config.ts'
import { inTurn } from '../http/limits/in-turn.ts'
import { idParam, idSchema, integerQuery, validate, validateOptionalBody } from '../http/validate.ts'
import {
  createAutomation,
  deleteAutomation,
  getAutomation,
  replaceAutomation,
  requireAutomation,
} from './automations.ts'
import { dryRun, dryRunSchema, sampleSchema } from './dry-run.ts'
import { automationListSchema, automationSchema, showAutomation, showAutomations } from './overview.ts'
import { newRuleSchema } from './rules.ts'
import { listRuns, runPageSchema } from './runs.ts'

const shown = z.object({ automation: automationSchema })
const hasEtag = describing({ headers: { ETag: 'Version of the rule, for If-Match' } })

export const automationRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requirePermission('automation', 'read'),
    inTurn('read'),
    answers('All rules of automation, oldest first', { 200: automationListSchema }),
    async (c) => c.json(await showAutomations(c.var.ctx)),
  )
  .post(
    '/',
    requirePermission('automation', 'write'),
    answers('Create a rule. It is off unless `enabled` says otherwise', { 201: shown }, [
      'automation_name_taken',
      'too_many_automations',
      'automation_not_found',
      'automation_unreadable',
    ]),
    takesIdempotencyKey,
    validate('json', newRuleSchema),
    async (c) => {
      const { ctx } = c.var
      const input = c.req.valid('json')
      const automation = await showAutomation(ctx, await createAutomation(ctx, input, await readKeyed(c, input)))
      const location = `${basePath(ctx.config)}/api/automation/${automation.id}`
      return c.json({ automation }, 201, { Location: location })
    },
  )
  .post(
    '/dry-run',
    requirePermission('automation', 'write'),
    inTurn('read'),
    answers('Dry run of an unsaved rule. Nothing is sent or stored', { 200: dryRunSchema }),
    validate('json', z.strictObject({ rule: newRuleSchema, sample: sampleSchema.optional() })),
    async (c) => {
      const { rule, sample = null } = c.req.valid('json')
      return c.json(await dryRun(c.var.ctx, { rule, anchorAt: c.var.ctx.now() }, sample))
    },
  )
  .get(
    '/:id',
    requirePermission('automation', 'read'),
    answers('One rule of automation', { 200: shown }, ['automation_not_found', 'automation_unreadable']),
    hasEtag,
    validate('param', idParam),
    async (c) => {
      const { ctx } = c.var
      const automation = await showAutomation(ctx, await getAutomation(ctx, c.req.valid('param').id))
      return c.json({ automation }, 200, { ETag: revisionTag(automation.revision) })
    },
  )
  .put(
    '/:id',
    requirePermission('automation', 'write'),
    answers('Replace a rule. Its queued packets are withdrawn', { 200: shown }, [
      'automation_not_found',
      'automation_name_taken',
      'automation_unreadable',
      'automation_changed',
    ]),
    takesIfMatch,
    validate('param', idParam),
    validate('json', newRuleSchema),
    async (c) => {
      const { ctx } = c.var
      const wanted = readIfMatch(c.req.header('if-match'))
      const replaced = await replaceAutomation(ctx, c.req.valid('param').id, c.req.valid('json'), wanted)
      return c.json({ automation: await showAutomation(ctx, replaced) })
    },
  )
  .delete(
    '/:id',
    requirePermission('automation', 'write'),
    answers('Delete a rule. Its queued packets are withdrawn', { 204: null }, [
      'automation_not_found',
      'automation_changed',
    ]),
    takesIfMatch,
    validate('param', idParam),
    async (c) => {
      const wanted = readIfMatch(c.req.header('if-match'))
      await deleteAutomation(c.var.ctx, c.req.valid('param').id, wanted)
      return c.body(null, 204)
    },
  )
  .get(
    '/:id/runs',
    requirePermission('automation', 'read'),
    inTurn('read'),
    answers('The runs of a rule, newest first, with the reasons for skipping', { 200: runPageSchema }, [
      'automation_not_found',
    ]),
    validate('param', idParam),
    validate(
      'query',
      z.object({
        limit: integerQuery(1, 500).default(100).describe('Maximum number of entries in the response'),
        before: idSchema.optional().describe('ID of a run: returns earlier ones'),
      }),
    ),
    async (c) => {
      const { store } = c.var.ctx
      const { id } = c.req.valid('param')
      await requireAutomation(store, id)
      return c.json(await listRuns(c.var.ctx, id, c.req.valid('query')))
    },
  )
  .post(
    '/:id/dry-run',
    requirePermission('automation', 'read'),
    inTurn('read'),
    answers('Dry run of a saved rule. Nothing is sent or stored', { 200: dryRunSchema }, [
      'automation_not_found',
      'automation_unreadable',
    ]),
    validate('param', idParam),
    validateOptionalBody(z.strictObject({ sample: sampleSchema.optional() }), { sample: undefined }),
    async (c) => {
      const { ctx } = c.var
      const automation = await getAutomation(ctx, c.req.valid('param').id)
      return c.json(await dryRun(ctx, automation, c.req.valid('json').sample ?? null))
    },
  )
