import { Hono } from 'hono'
import * as z from 'zod'
import { requireSession } from '../access/require.ts'
import type { AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { readKeyed, secretShownField, takesIdempotencyKey } from '../../http/idempotency.ts'
import { idParam, validate } from '../../http/validate.ts'
import { requireFreshProof } from '../fresh-proof.ts'
import { createToken, listTokens, newTokenSchema, revokeToken, tokenSchema } from '../tokens/tokens.ts'

export const tokenRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireSession,
    answers('Your API tokens', { 200: z.object({ tokens: z.array(tokenSchema) }) }),
    async (c) => c.json({ tokens: await listTokens(c.var.ctx, c.var.ctx.viewer.user.id) }),
  )
  .post(
    '/',
    requireSession,
    requireFreshProof,
    answers(
      'Create an API token. Its text is shown once. It expires after 90 days unless expiresInDays says otherwise',
      {
        201: tokenSchema
          .extend({
            token: z
              .string()
              .nullable()
              .describe('The text to send as Authorization: Bearer; null: it was in the first response to this key'),
            secretShown: secretShownField,
          })
          .meta({ id: 'NewToken', description: 'A token with its text, which is shown once' }),
      },
      ['admin_required', 'too_many_tokens', 'token_not_found'],
    ),
    takesIdempotencyKey,
    validate('json', newTokenSchema),
    async (c) => {
      const input = c.req.valid('json')
      const token = await createToken(c.var.ctx, input, await readKeyed(c, input))
      return c.json({ ...token, secretShown: token.token !== null }, 201)
    },
  )
  .delete(
    '/:id',
    requireSession,
    answers('Revoke one of your API tokens', { 204: null }, ['token_not_found']),
    validate('param', idParam),
    async (c) => {
      await revokeToken(c.var.ctx, c.var.ctx.viewer.user.id, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
