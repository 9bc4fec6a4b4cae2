import { providerIdOf } from '../users/identities.ts'
import { and, eq, type SQL, sql } from 'drizzle-orm'
import * as z from 'zod'
import { identities, providerRoles, users } from '../../../db/schema.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { timeField } from '../../http/fields.ts'
import { permissionsSchema } from '../users/permissions.ts'
import { stillAdmin } from '../users/still-admin.ts'
import { getUser } from '../users/users.ts'
import { hasRoles } from './groups.ts'

export const providerRoleSchema = z
  .object({
    issuer: z.string(),
    isAdmin: z.boolean().nullable().describe('null: the groups say nothing about it'),
    permissions: permissionsSchema.nullable().describe('null: the groups say nothing about them'),
    appliedAt: timeField,
    isInForce: z.boolean().describe('Whether the next sign-in at this provider applies the groups again'),
  })
  .meta({
    id: 'ProviderRole',
    description: 'The role and permissions that groups at the OpenID provider gave a user at the latest sign-in there',
  })

export const rulerSchema = z
  .object({ provider: z.string().nullable().describe('null: no longer configured'), issuer: z.string() })
  .nullable()
  .describe('The only provider whose groups have an effect on this user; null: none')

export const rulerBody = z.strictObject({
  provider: z.string().max(64).nullable().describe('A provider to which the user is linked; null: none'),
})

export type ProviderRole = {
  readonly role: z.infer<typeof providerRoleSchema> | null
  readonly groupsOf: z.infer<typeof rulerSchema>
}

/**
 * The role and permissions that a user has because of groups at a provider, and the provider whose groups have an
 * effect. Throws `user_not_found`.
 */
export async function readProviderRole(ctx: Ctx, userId: number): Promise<ProviderRole> {
  const ruler = await readRuler(ctx, userId)
  const row = await ctx.store.db.select().from(providerRoles).where(eq(providerRoles.userId, userId)).get()
  return {
    role: row === undefined ? null : roleOf(ctx, row, ruler),
    groupsOf: ruler === null ? null : { provider: providerIdOf(ctx, ruler), issuer: ruler },
  }
}

function roleOf(ctx: Ctx, row: typeof providerRoles.$inferSelect, ruler: string | null): ProviderRole['role'] {
  const { issuer, isAdmin, permissions, appliedAt } = row
  const settings = ctx.providers.find((provider) => provider.issuer === issuer)?.settings
  return {
    issuer,
    isAdmin,
    permissions: permissions === null ? null : permissionsSchema.parse(JSON.parse(permissions)),
    appliedAt,
    isInForce: issuer === ruler && settings !== undefined && hasRoles(settings),
  }
}

async function readRuler({ store }: Ctx, userId: number): Promise<string | null> {
  const row = await store.db.select({ issuer: users.oidcIssuer }).from(users).where(eq(users.id, userId)).get()
  if (row === undefined) throw new AppError('user_not_found')
  return row.issuer
}

/**
 * Decides whose groups have an effect on a user from the next sign-in on. Nothing else makes groups rule an account that
 * was not made at that provider. Throws `user_not_found`, `oidc_disabled` for an unknown provider, `not_found` if the
 * user is not linked there, or to none.
 */
export async function setRuler(ctx: SignedInCtx, userId: number, id: string | null): Promise<ProviderRole> {
  const { username, authProvider } = await getUser(ctx.store, userId)
  const before = await readRuler(ctx, userId)
  const provider = ctx.providers.find(({ settings }) => settings.id === id)
  if (id !== null && provider === undefined) throw new AppError('oidc_disabled', 'No such provider')
  const issuer = provider?.issuer ?? null
  const linked = and(eq(identities.userId, userId), issuer === null ? undefined : eq(identities.issuer, issuer))
  const isLinked: SQL = sql`exists (select 1 from ${identities} where ${linked})`
  // In an account that nobody has taken over, the column says whose users may.
  const mayBeNone = issuer === null && authProvider === 'local'
  const which = and(eq(users.id, userId), mayBeNone ? undefined : isLinked)
  const changed = and(which, sql`${users.oidcIssuer} is not ${issuer}`)
  await ctx.store.atomic([
    audit(
      ctx,
      'groups_provider_changed',
      {
        userId,
        username,
        before: { groupsOf: before },
        after: { groupsOf: issuer },
        providerId: provider?.settings.id ?? null,
      },
      { onlyIf: sql`exists (select 1 from ${users} where ${changed})` },
    ),
    ctx.store.db.update(users).set({ oidcIssuer: issuer }).where(changed),
    ...stillAdmin(ctx),
  ])
  if ((await readRuler(ctx, userId)) !== issuer) throw new AppError('not_found', 'The user is not linked there')
  return readProviderRole(ctx, userId)
}
