import { type Context, Hono } from 'hono'
import * as z from 'zod'
import { basePath } from '../../config/config.ts'
import type { AppEnv, SignedIn } from '../../base/context.ts'
import { requireAdmin } from '../access/require.ts'
import { answers } from '../../http/describe.ts'
import { timeField } from '../../http/fields.ts'
import { readKeyed, secretShownField, takesIdempotencyKey } from '../../http/idempotency.ts'
import { idParam, validate } from '../../http/validate.ts'
import { listedUserSchema } from '../users/user.ts'
import { inviteAgain, isInvitable } from '../mail/local-invitations.ts'
import { requireFreshProof } from '../fresh-proof.ts'
import { linkQuery, unlinkUser } from '../oidc/links.ts'
import { providerRoleSchema, readProviderRole, rulerBody, rulerSchema, setRuler } from '../oidc/provider-role.ts'
import {
  type Invitation,
  invitationBody,
  invitationSchema,
  prepareUser,
  preparedUserSchema,
  readInvitation,
  withdrawInvitation,
} from '../oidc/invitations.ts'

const openInvitation = z
  .object({ createdAt: timeField, expiresAt: timeField, sentTo: z.string().nullable() })
  .nullable()

const providerRoleAnswer = z.object({ role: providerRoleSchema.nullable(), groupsOf: rulerSchema })

/** The public address of this service. */
function siteOf(c: Context<SignedIn>): string {
  return c.var.ctx.config.PUBLIC_URL ?? c.var.ctx.origin(c)
}

function hasLink(invitation: Invitation | null): boolean {
  return invitation !== null && invitation.url !== null
}

/** Routes below /api/users: accounts that a user of a provider takes over. */
export const invitationRoutes = new Hono<AppEnv>()
  .post(
    '/prepared',
    requireAdmin,
    requireFreshProof,
    answers(
      'Create an account for a user of an OpenID provider: for a subject, or for the first user of the link in the answer',
      {
        201: z.object({
          user: listedUserSchema,
          invitation: invitationSchema.nullable(),
          secretShown: secretShownField,
        }),
      },
      ['username_taken', 'identity_taken', 'oidc_disabled'],
    ),
    takesIdempotencyKey,
    validate('json', preparedUserSchema),
    async (c) => {
      const input = c.req.valid('json')
      const keyed = await readKeyed(c, input)
      const { user, invitation } = await prepareUser(c.var.ctx, input, { site: siteOf(c), keyed })
      const location = `${basePath(c.var.ctx.config)}/api/users/${user.id}`
      return c.json({ user, invitation, secretShown: hasLink(invitation) }, 201, { Location: location })
    },
  )
  .get(
    '/:id/invitation',
    requireAdmin,
    answers(
      'Whether a prepared account has an open link, without the link itself',
      {
        200: z.object({
          invitation: openInvitation,
          byMail: z.boolean().describe('Whether the user can be invited by e-mail: local, without a password'),
        }),
      },
      ['user_not_found'],
    ),
    validate('param', idParam),
    async (c) => {
      const { ctx } = c.var
      const { id } = c.req.valid('param')
      return c.json({ invitation: await readInvitation(ctx, id), byMail: await isInvitable(ctx, id) })
    },
  )
  .post(
    '/:id/invitation',
    requireAdmin,
    requireFreshProof,
    answers(
      'Create a new link to a prepared account that nobody has taken over, or send one to a local user who has no password yet. It works once, and replaces an earlier one',
      { 200: z.object({ invitation: invitationSchema, secretShown: secretShownField }) },
      [
        'user_not_found',
        'not_found',
        'user_inactive',
        'identity_taken',
        'oidc_disabled',
        'has_signed_in',
        'email_required',
        'account_mail_disabled',
        'rate_limited',
      ],
    ),
    validate('param', idParam),
    takesIdempotencyKey,
    validate('json', invitationBody),
    async (c) => {
      const input = c.req.valid('json')
      const where = { site: siteOf(c), keyed: await readKeyed(c, input) }
      const invitation = await inviteAgain(c.var.ctx, c.req.valid('param').id, input, where)
      return c.json({ invitation, secretShown: hasLink(invitation) })
    },
  )
  .delete(
    '/:id/invitation',
    requireAdmin,
    answers('Withdraw the link to a prepared account', { 204: null }, ['user_not_found', 'not_found']),
    validate('param', idParam),
    async (c) => {
      await withdrawInvitation(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .get(
    '/:id/provider-role',
    requireAdmin,
    answers(
      'The role and permissions that groups at the OpenID provider gave a user; the next sign-in there sets them again. Null: none',
      { 200: providerRoleAnswer },
      ['user_not_found'],
    ),
    validate('param', idParam),
    async (c) => c.json(await readProviderRole(c.var.ctx, c.req.valid('param').id)),
  )
  .put(
    '/:id/provider-role',
    requireAdmin,
    requireFreshProof,
    answers(
      'Decide whose groups have an effect on a user: one linked provider, or none. Without this it is the provider at which the account was made; linking another one gives it no say',
      { 200: providerRoleAnswer },
      ['user_not_found', 'not_found', 'oidc_disabled'],
    ),
    validate('param', idParam),
    validate('json', rulerBody),
    async (c) => c.json(await setRuler(c.var.ctx, c.req.valid('param').id, c.req.valid('json').provider)),
  )
  .delete(
    '/:id/link',
    requireAdmin,
    requireFreshProof,
    answers(
      'Unlink a user from an account at an OpenID provider, for example if somebody else linked it. Sessions that began there end. The last way to sign in stays',
      { 204: null },
      ['user_not_found', 'not_found', 'last_way_in'],
    ),
    validate('param', idParam),
    validate('query', linkQuery),
    async (c) => {
      await unlinkUser(c.var.ctx, c.req.valid('param').id, c.req.valid('query'))
      return c.body(null, 204)
    },
  )
