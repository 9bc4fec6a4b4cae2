import { and, eq, ne, or, type SQL, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import { providerRoles, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { ProviderSettings } from '../../config/providers.ts'
import { isSame, unionOf } from '../../config/group-permissions.ts'
import type { Ctx } from '../../context.ts'
import { readPermissions } from '../../users/grants.ts'
import { storedPermissionsJson, writePermissions } from '../../users/permissions.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS, type Permissions } from '../../../shared/access/resources.ts'
import { type Claims, claimAt } from './protocol/claims.ts'
import { OidcFailure } from './failure.ts'
import type { ProviderGroups } from './provider.ts'

/** The groups in the claim at `path`. */
export function readGroups(claims: Claims, path: string): ProviderGroups {
  const found = claimAt(claims, path)
  if (found === undefined) return 'missing'
  if (typeof found === 'string') return [found]
  if (!Array.isArray(found)) return 'malformed'
  const groups: string[] = found.filter((group) => typeof group === 'string')
  return groups.length === found.length ? groups : 'malformed'
}

/** Throws an `OidcFailure` if only members of some groups may sign in, and this user is in none of them. */
export function refuseStrangerToGroups({ allowedGroups: allowed }: ProviderSettings, groups: ProviderGroups): void {
  if (allowed.length === 0) return
  const isMember = typeof groups === 'object' && groups.some((group) => allowed.includes(group))
  if (!isMember) throw new OidcFailure('group_missing')
}

/** The role and permissions that the groups give a user; null: they say nothing about it. */
type Role = { readonly isAdmin: boolean | null; readonly permissions: Permissions | null }

function roleOf(settings: ProviderSettings, groups: readonly string[]): Role {
  const { adminGroups: admins, groupPermissions: mapped } = settings
  const isMember = new Set(groups)
  return {
    isAdmin: admins.length === 0 ? null : admins.some((group) => isMember.has(group)),
    permissions:
      mapped.length === 0
        ? null
        : unionOf(mapped.flatMap(({ group, permissions }) => (isMember.has(group) ? [permissions] : []))),
  }
}

/** Whether groups at this provider have any effect. */
export function hasRoles({ adminGroups, groupPermissions }: ProviderSettings): boolean {
  return adminGroups.length > 0 || groupPermissions.length > 0
}

type Account = { readonly id: number; readonly username: string; readonly isAdmin: boolean }

/**
 * The statements that apply and record a user's groups; none if groups have no effect here or cannot be read. The last
 * administrator keeps the role.
 */
export async function roleStatements(
  ctx: Ctx,
  settings: ProviderSettings,
  account: Account,
  groups: ProviderGroups,
): Promise<Statement[]> {
  if (!hasRoles(settings)) return []
  if (typeof groups === 'string') {
    ctx.log.warn('The OpenID provider sends no readable groups: the role is unchanged', {
      requestId: ctx.requestId,
      userId: account.id,
      claim: groups,
    })
    return []
  }
  const role = roleOf(settings, groups)
  const isAdmin = role.isAdmin ?? account.isAdmin
  if (account.isAdmin && !isAdmin && !(await hasOtherAdmin(ctx, account.id))) {
    ctx.log.warn('The last administrator is in no group of administrators, but keeps the role', { userId: account.id })
  }
  const values = {
    issuer: settings.issuer,
    isAdmin: role.isAdmin,
    permissions: role.permissions === null ? null : JSON.stringify(role.permissions),
    appliedAt: ctx.now(),
  }
  return [
    ...(isAdmin === account.isAdmin ? [] : adminStatements(ctx, account, isAdmin, role.permissions)),
    ...(await permissionStatements(ctx, account, isAdmin, role.permissions)),
    ctx.store.db
      .insert(providerRoles)
      .values({ userId: account.id, ...values })
      .onConflictDoUpdate({ target: providerRoles.userId, set: values }),
  ]
}

const others = alias(users, 'others')

function otherAdmins(id: number): SQL {
  const other = and(ne(others.id, id), eq(others.isAdmin, true), eq(others.isActive, true))
  return sql`exists (select 1 from "users" as "others" where ${other})`
}

async function hasOtherAdmin({ store }: Ctx, id: number): Promise<boolean> {
  const found = await store.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, id), otherAdmins(id)))
    .get()
  return found !== undefined
}

function adminStatements(ctx: Ctx, account: Account, isAdmin: boolean, given: Permissions | null): Statement[] {
  const { id, username } = account
  const still = and(eq(users.id, id), eq(users.isAdmin, !isAdmin), isAdmin ? undefined : otherAdmins(id))
  const permissions = isAdmin ? ALL_PERMISSIONS : (given ?? DEFAULT_PERMISSIONS)
  const held = isAdmin ? storedPermissionsJson(id) : sql`${JSON.stringify(ALL_PERMISSIONS)}`
  const details = {
    userId: id,
    username,
    by: 'groups at the provider',
    before: sql`json_object('isAdmin', json(${String(!isAdmin)}), 'permissions', json(${held}))`,
    after: { isAdmin, permissions },
  }
  const actor = { id, username }
  return [
    audit(ctx, 'admin_status_changed', details, { actor, onlyIf: sql`exists (select 1 from ${users} where ${still})` }),
    writePermissions(ctx.store, still, permissions, { at: ctx.now(), by: null }),
    ctx.store.db.update(users).set({ isAdmin }).where(still),
  ]
}

async function permissionStatements(
  ctx: Ctx,
  account: Account,
  isAdmin: boolean,
  permissions: Permissions | null,
): Promise<Statement[]> {
  if (permissions === null || isAdmin || account.isAdmin) return []
  const { id, username } = account
  const { permissions: before } = await readPermissions(ctx.store, id)
  if (isSame(before, permissions)) return []
  const regular = and(eq(users.id, id), eq(users.isAdmin, false))
  const details = { userId: id, username, by: 'groups at the provider', before, after: permissions }
  return [
    audit(ctx, 'permissions_updated', details, {
      actor: { id, username },
      onlyIf: or(sql`exists (select 1 from ${users} where ${regular})`),
    }),
    writePermissions(ctx.store, regular, permissions, { at: ctx.now(), by: null }),
  ]
}
