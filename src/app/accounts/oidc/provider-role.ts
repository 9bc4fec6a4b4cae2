import { eq } from 'drizzle-orm'
import * as z from 'zod'
import { providerRoles } from '../../../db/schema.ts'
import type { Ctx } from '../../base/context.ts'
import { hasRoles } from './groups.ts'
import { timeField } from '../../http/fields.ts'
import { permissionsSchema } from '../users/permissions.ts'
import { getUser } from '../users/users.ts'

export const providerRoleSchema = z
  .object({
    issuer: z.string(),
    isAdmin: z.boolean().nullable().describe('null: the groups say nothing about it'),
    permissions: permissionsSchema.nullable().describe('null: the groups say nothing about them'),
    appliedAt: timeField,
    isInForce: z.boolean().describe('Whether the next sign-in applies the groups again'),
  })
  .meta({
    id: 'ProviderRole',
    description: 'The role and permissions that groups at the OpenID provider gave a user at the latest sign-in',
  })

/** The role and permissions that a user has because of groups at the provider; null: none. Throws `user_not_found`. */
export async function readProviderRole(ctx: Ctx, userId: number): Promise<z.infer<typeof providerRoleSchema> | null> {
  await getUser(ctx.store, userId)
  const row = await ctx.store.db.select().from(providerRoles).where(eq(providerRoles.userId, userId)).get()
  if (row === undefined) return null
  const { issuer, isAdmin, permissions, appliedAt } = row
  const settings = ctx.providers.find((provider) => provider.issuer === issuer)?.settings
  return {
    issuer,
    isAdmin,
    permissions: permissions === null ? null : permissionsSchema.parse(JSON.parse(permissions)),
    appliedAt,
    isInForce: settings !== undefined && hasRoles(settings),
  }
}
