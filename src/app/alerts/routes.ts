import { Hono } from 'hono'
import * as z from 'zod'
import { ALERT_STATES } from '../../shared/alerts/alert-kinds.ts'
import { ALERT_DELIVERY_STATES } from '../../shared/alerts/destination-kinds.ts'
import { basePath } from '../config/config.ts'
import type { AppEnv, SignedInCtx } from '../base/context.ts'
import { requireFreshProof } from '../accounts/fresh-proof.ts'
import { requireSession } from '../accounts/access/require.ts'
import { answers, describing } from '../http/describe.ts'
import { AppError } from '../http/errors.ts'
import { inTurn } from '../http/limits/in-turn.ts'
import { readKeyed, secretShownField, takesIdempotencyKey } from '../http/idempotency.ts'
import { readIfMatch, revisionTag, takesIfMatch } from '../http/preconditions.ts'
import { idParam, idSchema, integerQuery, validate } from '../http/validate.ts'
import { acknowledge, alertPageSchema, alertSchema, deliveryPageSchema, listAlerts, listDeliveries } from './alerts.ts'
import {
  changeDestination,
  confirmDestination,
  createDestination,
  deleteDestination,
  destinationChangesSchema,
  destinationSchema,
  listDestinations,
  newDestinationSchema,
  releaseDestination,
  testDestination,
} from './destinations/destinations.ts'
import { readPushKeys } from './destinations/push-keys.ts'
import { preview, previewSchema } from './preview.ts'
import { getQuietHours, keepQuietHours, keptQuietHoursSchema, ownQuietHoursSchema } from './quiet/own-hours.ts'
import { newAlertRuleSchema } from './rules/rule.ts'
import {
  createRule,
  deleteRule,
  getRule,
  listRules,
  replaceRule,
  ruleListSchema,
  shownRuleSchema,
} from './rules/rules.ts'
import { listWatched, watchedPageSchema } from './rules/watched-states.ts'

const shownRule = z.object({ rule: shownRuleSchema })
const shownDestination = z.object({ destination: destinationSchema })
const hasEtag = describing({ headers: { ETag: 'Version of the rule, for If-Match' } })
const allQuery = z.object({
  all: z.enum(['true', 'false']).optional().describe('true: those of all users (administrators only)'),
})
const pageQuery = {
  limit: integerQuery(1, 500).default(100).describe('Maximum number of entries in the response'),
  before: idSchema.optional().describe('`nextBefore` of the previous page'),
}

/** Throws `admin_required`. */
function wantsAll({ viewer }: SignedInCtx, { all }: z.infer<typeof allQuery>): boolean {
  if (all !== 'true') return false
  if (!viewer.user.isAdmin) throw new AppError('admin_required')
  return true
}

export const alertRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireSession,
    answers('Your alerts, newest first; with `all` those of all users', { 200: alertPageSchema }, ['admin_required']),
    validate(
      'query',
      allQuery.extend({
        ...pageQuery,
        state: z.enum(ALERT_STATES).optional().describe('Only alerts in this state'),
        node: idSchema.optional().describe('Only alerts about the node with this number'),
      }),
    ),
    async (c) => {
      const query = c.req.valid('query')
      return c.json(await listAlerts(c.var.ctx, wantsAll(c.var.ctx, query), query))
    },
  )
  .get(
    '/rules',
    requireSession,
    answers('Your alert rules, oldest first; with `all` those of all users', { 200: ruleListSchema }, [
      'admin_required',
    ]),
    validate('query', allQuery),
    async (c) => c.json(await listRules(c.var.ctx, wantsAll(c.var.ctx, c.req.valid('query')))),
  )
  .post(
    '/rules',
    requireSession,
    answers('Create a rule. It watches only what its owner may see', { 201: shownRule }, [
      'too_many_alert_rules',
      'forbidden',
      'admin_required',
      'alert_rule_not_found',
      'alert_rule_unreadable',
    ]),
    takesIdempotencyKey,
    validate('json', newAlertRuleSchema),
    async (c) => {
      const { ctx } = c.var
      const input = c.req.valid('json')
      const rule = await createRule(ctx, input, await readKeyed(c, input))
      return c.json({ rule }, 201, { Location: `${basePath(ctx.config)}/api/alerts/rules/${rule.id}` })
    },
  )
  .post(
    '/rules/preview',
    requireSession,
    inTurn('preview'),
    answers(
      'When a rule would have fired in the last 7 days, or in the last 30 for findings, according to stored data. Nothing is sent',
      { 200: previewSchema },
      ['forbidden', 'admin_required'],
    ),
    validate('json', newAlertRuleSchema),
    async (c) => c.json(await preview(c.var.ctx, c.req.valid('json'), c.req.raw.signal)),
  )
  .get(
    '/rules/:id',
    requireSession,
    answers('One alert rule', { 200: shownRule }, ['alert_rule_not_found', 'alert_rule_unreadable']),
    hasEtag,
    validate('param', idParam),
    async (c) => {
      const rule = await getRule(c.var.ctx, c.req.valid('param').id)
      return c.json({ rule }, 200, { ETag: revisionTag(rule.revision) })
    },
  )
  .put(
    '/rules/:id',
    requireSession,
    answers('Replace one of your rules', { 200: shownRule }, [
      'alert_rule_not_found',
      'alert_rule_unreadable',
      'alert_rule_changed',
      'forbidden',
      'admin_required',
    ]),
    takesIfMatch,
    validate('param', idParam),
    validate('json', newAlertRuleSchema),
    async (c) => {
      const wanted = readIfMatch(c.req.header('if-match'))
      return c.json({ rule: await replaceRule(c.var.ctx, c.req.valid('param').id, c.req.valid('json'), wanted) })
    },
  )
  .delete(
    '/rules/:id',
    requireSession,
    answers('Delete one of your rules, or as an administrator any rule', { 204: null }, [
      'alert_rule_not_found',
      'alert_rule_changed',
    ]),
    takesIfMatch,
    validate('param', idParam),
    async (c) => {
      await deleteRule(c.var.ctx, c.req.valid('param').id, readIfMatch(c.req.header('if-match')))
      return c.body(null, 204)
    },
  )
  .get(
    '/watched',
    requireSession,
    answers('The nodes that your rules watch now, and the state of each', { 200: watchedPageSchema }),
    validate(
      'query',
      z.object({
        limit: integerQuery(1, 200).default(40).describe('Maximum number of nodes in the response'),
        offset: integerQuery(0, 1_000_000).default(0).describe('Number of nodes to leave out'),
      }),
    ),
    async (c) => c.json(await listWatched(c.var.ctx, c.req.valid('query'))),
  )
  .get(
    '/destinations',
    requireSession,
    answers(
      'Your destinations of alerts; with `all` those of all users. Secrets are never returned',
      { 200: z.object({ destinations: z.array(destinationSchema), maxDestinations: z.int() }) },
      ['admin_required'],
    ),
    validate('query', allQuery),
    async (c) => c.json(await listDestinations(c.var.ctx, wantsAll(c.var.ctx, c.req.valid('query')))),
  )
  .post(
    '/destinations',
    requireSession,
    requireFreshProof,
    answers(
      'Create a destination. Your other destinations are told about it. An e-mail address must be confirmed by a link before it is used',
      {
        201: shownDestination.extend({
          secret: z.string().nullable().describe('Secret of a webhook that was created without one; shown once'),
          secretShown: secretShownField,
        }),
      },
      ['too_many_destinations', 'email_disabled', 'rate_limited', 'destination_not_found'],
    ),
    takesIdempotencyKey,
    validate('json', newDestinationSchema),
    async (c) => {
      const input = c.req.valid('json')
      const { destination, secret } = await createDestination(c.var.ctx, input, await readKeyed(c, input))
      return c.json({ destination, secret, secretShown: secret !== null }, 201)
    },
  )
  .put(
    '/destinations/:id',
    requireSession,
    answers(
      'Change one of your destinations. Other settings need a fresh proof, and your other destinations are told',
      { 200: shownDestination },
      ['destination_not_found', 'reauthentication_required', 'rate_limited'],
    ),
    validate('param', idParam),
    validate('json', destinationChangesSchema),
    async (c) => {
      const { ctx } = c.var
      return c.json({ destination: await changeDestination(ctx, c.req.valid('param').id, c.req.valid('json')) })
    },
  )
  .delete(
    '/destinations/:id',
    requireSession,
    answers('Delete one of your destinations, or as an administrator any destination', { 204: null }, [
      'destination_not_found',
      'reauthentication_required',
    ]),
    validate('param', idParam),
    async (c) => {
      await deleteDestination(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .post(
    '/destinations/:id/release',
    requireSession,
    requireFreshProof,
    answers(
      'You have looked at one of your destinations: it is no longer held, and no longer listed as new',
      { 200: shownDestination },
      ['destination_not_found', 'rate_limited'],
    ),
    validate('param', idParam),
    async (c) => c.json({ destination: await releaseDestination(c.var.ctx, c.req.valid('param').id) }),
  )
  .post(
    '/destinations/:id/test',
    requireSession,
    inTurn('read'),
    answers(
      'Send a test message now',
      { 200: z.object({ ok: z.boolean(), result: z.string().describe('The result, in a few words') }) },
      ['destination_not_found', 'destination_unconfirmed', 'destination_held', 'rate_limited'],
    ),
    validate('param', idParam),
    async (c) => c.json(await testDestination(c.var.ctx, c.req.valid('param').id)),
  )
  .post(
    '/destinations/:id/confirm',
    requireSession,
    answers('Confirm an e-mail address with the token of the link that was sent to it', { 200: shownDestination }, [
      'destination_not_found',
    ]),
    validate('param', idParam),
    validate(
      'json',
      z.strictObject({
        token: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .describe('Token of the link'),
      }),
    ),
    async (c) => {
      const { ctx } = c.var
      return c.json({ destination: await confirmDestination(ctx, c.req.valid('param').id, c.req.valid('json').token) })
    },
  )
  .get(
    '/quiet-hours',
    requireSession,
    answers('When you want no messages about alerts', { 200: ownQuietHoursSchema }),
    async (c) => c.json(await getQuietHours(c.var.ctx)),
  )
  .put(
    '/quiet-hours',
    requireSession,
    answers(
      'Choose when you want no messages about alerts: what happens then is told in one message when they end. Rules that are `urgent`, those of the kind `sign_in`, and news about destinations are told at once',
      { 200: ownQuietHoursSchema },
    ),
    validate('json', keptQuietHoursSchema),
    async (c) => c.json(await keepQuietHours(c.var.ctx, c.req.valid('json'))),
  )
  .get(
    '/push-key',
    requireSession,
    answers('The key that identifies this service to push services (VAPID), for subscribing a browser', {
      200: z.object({
        publicKey: z.string().describe('base64url'),
        email: z.boolean().describe('Whether this service can send e-mail'),
      }),
    }),
    async (c) => c.json({ publicKey: (await readPushKeys(c.var.ctx)).publicKey, email: c.var.ctx.mail !== null }),
  )
  .get(
    '/deliveries',
    requireSession,
    answers('Messages of your alerts, newest first', { 200: deliveryPageSchema }),
    validate(
      'query',
      z.object({
        ...pageQuery,
        state: z.enum(ALERT_DELIVERY_STATES).optional().describe('Only messages in this state'),
      }),
    ),
    async (c) => c.json(await listDeliveries(c.var.ctx, c.req.valid('query'))),
  )
  .post(
    '/:id/acknowledge',
    requireSession,
    answers('Acknowledge one of your alerts: it is not repeated', { 200: z.object({ alert: alertSchema }) }, [
      'alert_not_found',
    ]),
    validate('param', idParam),
    async (c) => c.json({ alert: await acknowledge(c.var.ctx, c.req.valid('param').id) }),
  )
