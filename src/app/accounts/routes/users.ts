import { listedUserSchema } from '../users/user.ts'
import { Hono } from 'hono'
import * as z from 'zod'
import { demandFreshProof, requireFreshProof } from '../fresh-proof.ts'
import { resetSecondFactor } from '../factors/factors.ts'
import { changeUser } from '../mail/email.ts'
import { addUser } from '../mail/local-invitations.ts'
import { invitationSchema } from '../oidc/invitations.ts'
import { invitationRoutes } from './invitations.ts'
import { listSessions, revokeSession, revokeSessions, sessionSchema } from '../sessions/sessions.ts'
import { listTokens, revokeToken, revokeTokens, tokenSchema } from '../tokens/tokens.ts'
import { requireAdmin, requireLocalAuth } from '../access/require.ts'
import { basePath } from '../../config/config.ts'
import type { AppEnv } from '../../base/context.ts'
import { inTurn } from '../../http/limits/in-turn.ts'
import { answers } from '../../http/describe.ts'
import { readKeyed, secretShownField, takesIdempotencyKey } from '../../http/idempotency.ts'
import { idParam, idSchema, integerQuery, timeInput, validate, validateOptionalBody } from '../../http/validate.ts'
import { RESOURCE_NAMES } from '../../../shared/access/resources.ts'
import { readPermissions, replacePermissions } from '../users/grants.ts'
import { scopeSchema } from '../users/scope.ts'
import { beginSeeingAs, ticketAnswer } from '../access/see-as.ts'
import { permissionsSchema, storedGrantSchema } from '../users/permissions.ts'
import {
  deactivateUser,
  getListedUser,
  listUsers,
  newUserSchema,
  resetPassword,
  setAdmin,
  userChangesSchema,
} from '../users/users.ts'
import { MAX_SEARCH } from '../../../shared/limits.ts'

const userAnswer = z.object({ user: listedUserSchema })
const permissionsAnswer = z.object({
  permissions: permissionsSchema,
  scope: scopeSchema,
  grants: z.array(storedGrantSchema),
})

const sessionParam = z.object({ id: idSchema, sessionId: idSchema.describe('ID of the session') })
const tokenParam = z.object({ id: idSchema, tokenId: idSchema.describe('ID of the token') })

/** GET's answer is accepted as a body too. */
const changesBody = userChangesSchema
  .extend({ user: userChangesSchema.optional().describe('The same fields as in the response of GET') })
  .refine(({ user, ...beside }) => user === undefined || Object.keys(beside).length === 0, {
    path: ['user'],
    message: 'the fields may be here or beside it, but not in both places',
  })

/** GET's answer is accepted as a body too. Of its two fields with the same content, change `permissions`. */
const permissionsBody = z.strictObject({
  permissions: permissionsSchema.partial(),
  scope: scopeSchema.optional().describe('Which contents the user sees; unchanged if missing'),
  grants: z
    .array(storedGrantSchema.extend({ grantedAt: timeInput }))
    .max(RESOURCE_NAMES.length)
    .optional(),
})

export const userRoutes = new Hono<AppEnv>()
  .route('/', invitationRoutes)
  .get(
    '/',
    requireAdmin,
    inTurn('read'),
    answers('Users, sorted by name', { 200: z.object({ users: z.array(listedUserSchema), total: z.int() }) }),
    validate(
      'query',
      z.object({
        q: z.string().min(1).max(MAX_SEARCH).optional().describe('Part of the username, name or e-mail address'),
        limit: integerQuery(1, 500).default(100).describe('Maximum number of entries in the response'),
        offset: integerQuery(0, 1_000_000).default(0).describe('Number of entries to skip'),
      }),
    ),
    async (c) => c.json(await listUsers(c.var.ctx, c.req.valid('query'))),
  )
  .post(
    '/',
    requireAdmin,
    requireLocalAuth,
    answers(
      'Create a local user',
      {
        201: userAnswer.extend({
          password: z.string().optional().describe('A random one, shown once'),
          invitation: invitationSchema.optional(),
          secretShown: secretShownField,
        }),
      },
      [
        'account_mail_disabled',
        'email_required',
        'username_taken',
        'weak_password',
        'reauthentication_required',
        'local_auth_disabled',
        'rate_limited',
      ],
    ),
    takesIdempotencyKey,
    validate('json', newUserSchema),
    async (c) => {
      const input = c.req.valid('json')
      if (input.isAdmin === true || input.invite === true) await demandFreshProof(c.var.ctx)
      const { user, password, invitation } = await addUser(c.var.ctx, input, await readKeyed(c, input))
      const location = `${basePath(c.var.ctx.config)}/api/users/${user.id}`
      const secrets = { ...(password !== null && { password }), ...(invitation !== null && { invitation }) }
      return c.json({ user, ...secrets, secretShown: password !== null }, 201, { Location: location })
    },
  )
  .get(
    '/:id',
    requireAdmin,
    answers('One user', { 200: userAnswer }, ['user_not_found']),
    validate('param', idParam),
    async (c) => c.json({ user: await getListedUser(c.var.ctx, c.req.valid('param').id) }),
  )
  .put(
    '/:id',
    requireAdmin,
    answers(
      'Change username, email, displayName and isActive. The body may repeat the other fields of a user, but not change them; the same applies to e-mail and display name of an OpenID Connect user. Another e-mail address, and reactivating an administrator, need a sign-in within the last 15 minutes',
      { 200: userAnswer },
      ['user_not_found', 'username_taken', 'self_change_forbidden', 'last_admin', 'reauthentication_required'],
    ),
    validate('param', idParam),
    validate('json', changesBody),
    async (c) => {
      const { user, ...beside } = c.req.valid('json')
      const { id } = c.req.valid('param')
      await changeUser(c.var.ctx, id, user ?? beside)
      return c.json({ user: await getListedUser(c.var.ctx, id) })
    },
  )
  .delete(
    '/:id',
    requireAdmin,
    answers('Deactivate a user. Sessions and tokens end', { 204: null }, [
      'user_not_found',
      'self_change_forbidden',
      'last_admin',
    ]),
    validate('param', idParam),
    async (c) => {
      await deactivateUser(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .put(
    '/:id/admin',
    requireAdmin,
    requireFreshProof,
    answers(
      'Make a user an administrator or a regular user. An administrator has every permission, a demoted one gets those of a new user. Without isAdmin the role is toggled',
      { 200: userAnswer },
      ['user_not_found', 'self_change_forbidden', 'last_admin'],
    ),
    validate('param', idParam),
    validateOptionalBody(z.strictObject({ isAdmin: z.boolean().optional() }), { isAdmin: undefined }),
    async (c) => {
      const { id } = c.req.valid('param')
      await setAdmin(c.var.ctx, id, c.req.valid('json').isAdmin)
      return c.json({ user: await getListedUser(c.var.ctx, id) })
    },
  )
  .post(
    '/:id/reset-password',
    requireAdmin,
    requireFreshProof,
    requireLocalAuth,
    answers(
      "Give a local user a temporary password. It is shown once; the user's sessions and API tokens end, and the e-mail address must be confirmed again",
      { 200: z.object({ password: z.string() }) },
      ['user_not_found', 'not_a_local_user', 'user_inactive', 'local_auth_disabled', 'rate_limited'],
    ),
    validate('param', idParam),
    async (c) => c.json({ password: await resetPassword(c.var.ctx, c.req.valid('param').id) }),
  )
  .post(
    '/:id/reset-second-factor',
    requireAdmin,
    requireFreshProof,
    answers(
      "Remove the second factors and recovery codes of a user who lost them. The user's sessions end, and the user is notified",
      { 204: null },
      ['user_not_found', 'no_second_factor', 'self_change_forbidden'],
    ),
    validate('param', idParam),
    async (c) => {
      await resetSecondFactor(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .get(
    '/:id/permissions',
    requireAdmin,
    answers('The permissions of a user, and who granted them when', { 200: permissionsAnswer }, ['user_not_found']),
    validate('param', idParam),
    async (c) => c.json(await readPermissions(c.var.ctx.store, c.req.valid('param').id)),
  )
  .put(
    '/:id/permissions',
    requireAdmin,
    answers(
      'Set the named permissions. The others stay as they are. The body may repeat `grants` unchanged; different ones are refused',
      { 200: permissionsAnswer },
      ['user_not_found'],
    ),
    validate('param', idParam),
    validate('json', permissionsBody),
    async (c) => {
      return c.json(await replacePermissions(c.var.ctx, c.req.valid('param').id, c.req.valid('json')))
    },
  )
  .post(
    '/:id/see-as',
    requireAdmin,
    answers(
      'See what a user sees, without changing anything. Lasts half an hour, and is recorded',
      {
        200: ticketAnswer,
      },
      ['user_not_found', 'user_inactive'],
    ),
    validate('param', idParam),
    async (c) => c.json(await beginSeeingAs(c.var.ctx, c.req.valid('param').id)),
  )
  .get(
    '/:id/sessions',
    requireAdmin,
    answers('The active sessions of a user', { 200: z.object({ sessions: z.array(sessionSchema) }) }, [
      'user_not_found',
    ]),
    validate('param', idParam),
    async (c) => c.json({ sessions: await listSessions(c.var.ctx, c.req.valid('param').id) }),
  )
  .delete(
    '/:id/sessions',
    requireAdmin,
    answers('End all sessions of a user', { 204: null }, ['user_not_found']),
    validate('param', idParam),
    async (c) => {
      await revokeSessions(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .delete(
    '/:id/sessions/:sessionId',
    requireAdmin,
    answers('End one session of a user', { 204: null }, ['user_not_found', 'not_found']),
    validate('param', sessionParam),
    async (c) => {
      const { id, sessionId } = c.req.valid('param')
      await revokeSession(c.var.ctx, id, sessionId)
      return c.body(null, 204)
    },
  )
  .get(
    '/:id/tokens',
    requireAdmin,
    answers('The API tokens of a user', { 200: z.object({ tokens: z.array(tokenSchema) }) }, ['user_not_found']),
    validate('param', idParam),
    async (c) => c.json({ tokens: await listTokens(c.var.ctx, c.req.valid('param').id) }),
  )
  .delete(
    '/:id/tokens',
    requireAdmin,
    answers('Revoke all API tokens of a user', { 204: null }, ['user_not_found']),
    validate('param', idParam),
    async (c) => {
      await revokeTokens(c.var.ctx, c.req.valid('param').id)
      return c.body(null, 204)
    },
  )
  .delete(
    '/:id/tokens/:tokenId',
    requireAdmin,
    answers('Revoke one API token of a user', { 204: null }, ['user_not_found', 'token_not_found']),
    validate('param', tokenParam),
    async (c) => {
      const { id, tokenId } = c.req.valid('param')
      await revokeToken(c.var.ctx, id, tokenId)
      return c.body(null, 204)
    },
  )
