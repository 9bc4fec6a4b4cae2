import { Hono } from 'hono'
import * as z from 'zod'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import { requirePermission } from '../../accounts/access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answerBody } from '../../http/compression.ts'
import { answers } from '../../http/describe.ts'
import { whereTheRadioIs } from '../../http/radio-process.ts'
import { readKeyed, takesIdempotencyKey } from '../../http/idempotency.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { integerQuery, timeQuery, validate } from '../../http/validate.ts'
import { readTimely } from '../downlink/timely.ts'
import {
  listMessages,
  MAX_MESSAGES,
  mentionsWaiting,
  messagePageSchema,
  messageSchema,
  newestMessages,
} from '../messages/messages.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { listReceptions, receptionSchema } from '../messages/receptions.ts'
import { sharedList } from '../../accounts/access/shared.ts'
import { listMessagesShown, messagesAsked, messagesForm } from '../messages/anonymous.ts'
import { newMessageSchema, sendMessage } from '../sending/send.ts'
import { MAX_PARTS, MAX_SEARCH } from '../../../shared/limits.ts'
import { MESSAGE_TRAITS } from '../../../shared/mesh/message-traits.ts'

const part = z.string().min(1).max(MAX_SEARCH)
const isTrue = z
  .literal('true')
  .transform(() => true as const)
  .optional()
/** A parameter that may be given several times. */
const several = <Item extends z.ZodType<string, string>>(item: Item) =>
  z.union([item.transform((one) => [one]), z.array(item).max(MAX_PARTS)])

/** As `idSchema`; imported messages come before the first one, below 0, and a page may end at 0. */
const messageId = z
  .string()
  .regex(/^(?:0|-?[1-9]\d{0,14})$/, 'an integer')
  .transform(Number)
  .meta({ description: 'ID from a list', examples: ['1'] })

export const messageRoutes = new Hono<AppEnv>()
  .get(
    '/',
    sharedList('messages', messagesAsked, messagesForm, listMessagesShown),
    requirePermission('messages', 'read'),
    inTurn('read'),
    answers('Messages, newest first. The first page without filters has an ETag', {
      200: messagePageSchema,
      304: null,
    }),
    validate(
      'query',
      z.object({
        limit: integerQuery(1, MAX_MESSAGES).default(100).describe('Maximum number of entries in the response'),
        before: messageId.optional().describe('ID of a message: returns those that arrived before it'),
        since: timeQuery.optional().describe('Messages of that time or later'),
        until: timeQuery.optional().describe('Messages before that time'),
        channel: integerQuery(0, MAX_NUMBER).optional().describe('Number as in GET /api/channels'),
        with: nodeNumSchema.optional().describe('Node number or !hex: direct messages from and to this node'),
        from: nodeNumSchema.optional().describe('Node number or !hex: messages from this node'),
        q: part.optional().describe('Part of the text'),
        also: several(part).optional().describe('Further parts of the text, all of them'),
        without: several(part).optional().describe('None of these is a part of the text'),
        has: several(z.enum(MESSAGE_TRAITS))
          .optional()
          .describe(
            '`position`: coordinates in the text; `reaction`: somebody reacted to it; `error`: it was not delivered',
          ),
        direct: isTrue.describe('Only direct messages'),
        signed: isTrue.describe('Only messages whose signature was verified'),
      }),
    ),
    async (c) => {
      const { ctx } = c.var
      const { store, compressor, viewer } = ctx
      const { limit, ...filters } = c.req.valid('query')
      if (Object.values(filters).every((filter) => filter === undefined)) {
        const first = () => newestMessages(ctx, limit, viewer.view)
        return answerBody(c, compressor, await readTimely(ctx, first, ({ isWaiting }) => isWaiting))
      }
      const read = () => listMessages(store, { limit, ...filters, signal: c.req.raw.signal }, viewer.view)
      const page = await readTimely(ctx, read, mentionsWaiting)
      return c.body(page, 200, { 'Content-Type': 'application/json' })
    },
  )
  .post(
    '/',
    requirePermission('messages', 'write'),
    answers(
      'Send a text. Repeating the Idempotency-Key within a day sends nothing and returns the first message',
      { 202: z.object({ message: messageSchema }) },
      ['text_too_long', 'message_not_found', 'queue_full', 'unsupported_on_this_runtime', 'radio_unavailable'],
    ),
    takesIdempotencyKey,
    validate('json', newMessageSchema),
    whereTheRadioIs,
    async (c) => {
      const input = c.req.valid('json')
      return c.json({ message: await sendMessage(c.get('ctx'), input, await readKeyed(c, input)) }, 202)
    },
  )
  .get(
    '/:id/receptions',
    requirePermission('messages', 'read'),
    inTurn('read'),
    answers('The receptions of a message', { 200: z.object({ receptions: z.array(receptionSchema) }) }, [
      'message_not_found',
    ]),
    validate('param', z.object({ id: messageId })),
    async (c) =>
      c.json({
        receptions: await listReceptions(c.get('ctx').store, c.req.valid('param').id, c.get('ctx').viewer.view),
      }),
  )
