import { Hono } from 'hono'
import * as z from 'zod'
import { requireAdmin, requireLocalAuth } from '../http/access.ts'
import { basePath } from '../config/config.ts'
import type { AppEnv } from '../context.ts'
import { answers } from '../http/describe.ts'
import { idParam, integerQuery, validate, validateOptionalBody } from '../http/validate.ts'
import { readPermissions, replacePermissions } from './grants.ts'
import { permissionsSchema } from './permissions.ts'
import {
  createUser,
  deactivateUser,
  getUser,
  listUsers,
  newUserSchema,
  resetPassword,
  setAdmin,
  updateUser,
  userChangesSchema,
  userSchema,
} from './users.ts'

const userAnswer = z.object({ user: userSchema })
const permissionsAnswer = z.object({ permissions: permissionsSchema })

export const userRoutes = new Hono<AppEnv>()
  .get(
    '/',
    requireAdmin,
    answers('Users by name', { 200: z.object({ users: z.array(userSchema), total: z.int() }) }),
    validate(
      'query',
      z.object({
        q: z.string().min(1).max(200).optional(),
        limit: integerQuery(1, 500).default(100),
        offset: integerQuery(0, 1_000_000).default(0),
      }),
    ),
    async (c) => c.json(await listUsers(c.var.ctx.store, c.req.valid('query'))),
  )
  .post(
    '/',
    requireAdmin,
    requireLocalAuth,
    answers('Make a local user', { 201: userAnswer }, [
      'username_taken',
      'weak_password',
      'local_auth_disabled',
      'rate_limited',
    ]),
    validate('json', newUserSchema),
    async (c) => {
      const user = await createUser(c.var.ctx, c.req.valid('json'))
      return c.json({ user }, 201, { Location: `${basePath(c.var.ctx.config)}/api/users/${user.id}` })
    },
  )
  .get(
    '/:id',
    requireAdmin,
    answers('One user', { 200: userAnswer }, ['user_not_found']),
    validate('param', idParam),
    async (c) => c.json({ user: await getUser(c.var.ctx.store, c.req.valid('param').id) }),
  )
  .put(
    '/:id',
    requireAdmin,
    answers('Change a user; isActive: true reactivates', { 200: userAnswer }, ['user_not_found', 'username_taken']),
    validate('param', idParam),
    validate('json', userChangesSchema),
    async (c) => c.json({ user: await updateUser(c.var.ctx, c.req.valid('param').id, c.req.valid('json')) }),
  )
  .delete(
    '/:id',
    requireAdmin,
    answers('Deactivate a user; sessions and tokens end', { 204: null }, [
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
    answers('Make a user an administrator or a regular user; without a body, toggle', { 200: userAnswer }, [
      'user_not_found',
      'self_change_forbidden',
      'user_inactive',
      'last_admin',
    ]),
    validate('param', idParam),
    validateOptionalBody(z.strictObject({ isAdmin: z.boolean() }), { isAdmin: undefined }),
    async (c) => c.json({ user: await setAdmin(c.var.ctx, c.req.valid('param').id, c.req.valid('json').isAdmin) }),
  )
  .post(
    '/:id/reset-password',
    requireAdmin,
    requireLocalAuth,
    answers('Give a local user a temporary password, shown once', { 200: z.object({ password: z.string() }) }, [
      'user_not_found',
      'not_a_local_user',
      'user_inactive',
      'local_auth_disabled',
      'rate_limited',
    ]),
    validate('param', idParam),
    async (c) => c.json({ password: await resetPassword(c.var.ctx, c.req.valid('param').id) }),
  )
  .get(
    '/:id/permissions',
    requireAdmin,
    answers('What a user may do', { 200: permissionsAnswer }, ['user_not_found']),
    validate('param', idParam),
    async (c) => c.json({ permissions: await readPermissions(c.var.ctx.store, c.req.valid('param').id) }),
  )
  .put(
    '/:id/permissions',
    requireAdmin,
    answers('Set the named permissions; the others stay', { 200: permissionsAnswer }, ['user_not_found']),
    validate('param', idParam),
    validate('json', z.strictObject({ permissions: permissionsSchema.partial() })),
    async (c) => {
      const { permissions } = c.req.valid('json')
      return c.json({ permissions: await replacePermissions(c.var.ctx, c.req.valid('param').id, permissions) })
    },
  )
