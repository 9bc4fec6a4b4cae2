import { and, eq, ne, or, type SQL, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/sqlite-core'
import { providerRoles, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Config } from '../../config/config.ts'
import { isSame, unionOf } from '../../config/group-permissions.ts'
import type { Ctx } from '../../context.ts'
import { readPermissions } from '../../users/grants.ts'
import { storedPermissionsJson, writePermissions } from '../../users/permissions.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS, type Permissions } from '../../../shared/access/resources.ts'
import type { Claims } from './claims.ts'
import { OidcFailure } from './failure.ts'
import type { ProviderGroups } from './provider.ts'

/**
 * The groups that the claim at `path` names: its own name first, then as a path of names with dots between. Nothing that
 * an object inherits counts.
 */
export function readGroups(claims: Claims, path: string): ProviderGroups {
  const names = Object.hasOwn(claims, path) ? [path] : path.split('.')
  let found: unknown = claims
  for (const name of names) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return 'missing'
    found = Object.entries(found).find(([key]) => key === name)?.[1]
  }
  if (typeof found === 'string') return [found]
  if (!Array.isArray(found)) return 'malformed'
  const groups: string[] = found.filter((group) => typeof group === 'string')
  return groups.length === found.length ? groups : 'malformed'
}

/** Throws an `OidcFailure` where only members of some groups may enter, and this user is in none of them. */
export function refuseStrangerToGroups({ OIDC_ALLOWED_GROUPS: allowed }: Config, groups: ProviderGroups): void {
  if (allowed.length === 0) return
  const isMember = typeof groups === 'object' && groups.some((group) => allowed.includes(group))
  if (!isMember) throw new OidcFailure('group_missing')
}

/** What the groups make of a user; null: they say nothing about it. */
type Role = { readonly isAdmin: boolean | null; readonly permissions: Permissions | null }

function roleOf(config: Config, groups: readonly string[]): Role {
  const { OIDC_ADMIN_GROUPS: admins, OIDC_GROUP_PERMISSIONS: mapped } = config
  const isMember = new Set(groups)
  return {
    isAdmin: admins.length === 0 ? null : admins.some((group) => isMember.has(group)),
    permissions:
      mapped.length === 0
        ? null
        : unionOf(mapped.flatMap(({ group, permissions }) => (isMember.has(group) ? [permissions] : []))),
  }
}

type Account = { readonly id: number; readonly username: string; readonly isAdmin: boolean }

/**
 * The statements that give a user what their groups say, and record it; none where groups mean nothing here, or can't be
 * read. The last administrator stays one.
 */
export async function roleStatements(ctx: Ctx, account: Account, groups: ProviderGroups): Promise<Statement[]> {
  const { OIDC_ADMIN_GROUPS, OIDC_GROUP_PERMISSIONS, OIDC_ISSUER } = ctx.config
  if (OIDC_ADMIN_GROUPS.length === 0 && OIDC_GROUP_PERMISSIONS.length === 0) return []
  if (typeof groups === 'string') {
    ctx.log.warn('The OpenID provider names no groups that can be read: the role stays', {
      requestId: ctx.requestId,
      userId: account.id,
      claim: groups,
    })
    return []
  }
  const role = roleOf(ctx.config, groups)
  const isAdmin = role.isAdmin ?? account.isAdmin
  if (account.isAdmin && !isAdmin && !(await hasOtherAdmin(ctx, account.id))) {
    ctx.log.warn('The last administrator is in no group of administrators, and stays one', { userId: account.id })
  }
  const values = {
    issuer: OIDC_ISSUER ?? '',
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
