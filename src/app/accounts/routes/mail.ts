import { Hono } from 'hono'
import * as z from 'zod'
import { LINK_PURPOSES } from '../../../shared/access/letters.ts'
import { MAX_EMAIL, MAX_TYPED_PASSWORD } from '../../../shared/limits.ts'
import type { AppEnv } from '../../base/context.ts'
import { requireLocalAuth, requireSession } from '../access/require.ts'
import { answers, anyone } from '../../http/describe.ts'
import { timeField } from '../../http/fields.ts'
import { validate } from '../../http/validate.ts'
import { userSchema } from '../users/user.ts'
import { emailSchema } from '../users/users.ts'
import { requireFreshProof } from '../fresh-proof.ts'
import { knownUsers } from '../sessions/known-browser.ts'
import { changeOwnEmail, confirmEmail, sendLinkAgain } from '../mail/email.ts'
import { acceptByMail } from '../mail/local-invitations.ts'
import { lookAtLink } from '../mail/look.ts'
import { requestReset, resetByLink } from '../mail/password-reset.ts'

const token = z
  .string()
  .regex(/^[\w-]{43}$/)
  .describe('What follows # in the link of the e-mail')
const password = z.string().max(MAX_TYPED_PASSWORD).describe('The new password')
const sent = z.object({ sent: z.boolean().describe('Always true, whoever was named') })

/** Routes below /api/auth: links in e-mails. Following a link by GET changes nothing, because mail scanners do so. */
export const mailRoutes = new Hono<AppEnv>()
  .post(
    '/password-reset',
    anyone,
    requireLocalAuth,
    answers(
      'Ask for an e-mail with a link to a new password. It goes to the verified address of that user, if there is one; the answer never says so',
      { 202: sent },
      ['account_mail_disabled', 'local_auth_disabled', 'rate_limited'],
    ),
    validate('json', z.strictObject({ username: z.string().min(1).max(MAX_EMAIL).describe('Or the e-mail address') })),
    async (c) => {
      const { ctx } = c.var
      await requestReset(ctx, c.req.valid('json').username, await knownUsers(c, ctx))
      return c.json({ sent: true }, 202)
    },
  )
  .post(
    '/password-reset/confirm',
    anyone,
    requireLocalAuth,
    answers(
      'Choose a new password with the link of an e-mail. All sessions of the user end; second factors stay. Does not sign in',
      { 204: null },
      ['link_invalid', 'weak_password', 'local_auth_disabled', 'rate_limited'],
    ),
    validate('json', z.strictObject({ token, password })),
    async (c) => {
      await resetByLink(c.var.ctx, c.req.valid('json'))
      return c.body(null, 204)
    },
  )
  .put(
    '/email',
    requireSession,
    requireFreshProof,
    requireLocalAuth,
    answers(
      'Change your e-mail address. It is not verified until you follow the link sent to it',
      {
        200: z.object({ user: userSchema }),
      },
      ['not_a_local_user', 'account_mail_disabled', 'local_auth_disabled'],
    ),
    validate('json', z.strictObject({ email: emailSchema.nullable() })),
    async (c) => c.json({ user: await changeOwnEmail(c.var.ctx, c.req.valid('json').email) }),
  )
  .post(
    '/email/link',
    requireSession,
    requireLocalAuth,
    answers('Send the link that verifies your e-mail address once more. Earlier ones become invalid', { 204: null }, [
      'not_a_local_user',
      'nothing_to_confirm',
      'account_mail_disabled',
      'local_auth_disabled',
      'rate_limited',
    ]),
    async (c) => {
      await sendLinkAgain(c.var.ctx)
      return c.body(null, 204)
    },
  )
  .post(
    '/email/confirm',
    anyone,
    requireLocalAuth,
    answers('Verify an e-mail address with the link that was sent to it', { 204: null }, [
      'link_invalid',
      'local_auth_disabled',
      'rate_limited',
    ]),
    validate('json', z.strictObject({ token })),
    async (c) => {
      await confirmEmail(c.var.ctx, c.req.valid('json').token)
      return c.body(null, 204)
    },
  )
  .post(
    '/invitation',
    anyone,
    requireLocalAuth,
    answers('Choose the password of an account to which an e-mail invites. Does not sign in', { 204: null }, [
      'link_invalid',
      'weak_password',
      'local_auth_disabled',
      'rate_limited',
    ]),
    validate('json', z.strictObject({ token, password })),
    async (c) => {
      await acceptByMail(c.var.ctx, c.req.valid('json'))
      return c.body(null, 204)
    },
  )
  .post(
    '/links',
    anyone,
    requireLocalAuth,
    answers(
      'What the link of an e-mail is for. Changes nothing',
      {
        200: z.object({
          purpose: z.enum(LINK_PURPOSES),
          username: z.string(),
          email: z.string(),
          expiresAt: timeField,
        }),
      },
      ['link_invalid', 'local_auth_disabled', 'rate_limited'],
    ),
    validate('json', z.strictObject({ token })),
    async (c) => c.json(await lookAtLink(c.var.ctx, c.req.valid('json').token)),
  )
