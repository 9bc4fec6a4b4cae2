import { and, eq, or, sql } from 'drizzle-orm'
import { providerClaims, providerRoles, users } from '../../../db/schema.ts'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { ProviderSettings } from '../../config/providers.ts'
import { isSame, unionOf } from '../../config/group-permissions.ts'
import type { Ctx } from '../../base/context.ts'
import { readPermissions } from '../users/grants.ts'
import { storedPermissionsJson, writePermissions } from '../users/permissions.ts'
import { hasRealAdmin } from '../users/way-in.ts'
import { ALL_PERMISSIONS, DEFAULT_PERMISSIONS, type Permissions } from '../../../shared/access/resources.ts'
import { type Claims, claimAt } from './protocol/claims.ts'
import { OidcFailure } from './failure.ts'
import { endInvitationsBy } from '../users/invitation-ends.ts'
import type { ProviderGroups } from './provider.ts'

/** The groups in the claim at `path`. `isWhole`: all claims were read, those of UserInfo too. */
export function readGroups(claims: Claims, path: string, isWhole = true): ProviderGroups {
  const found = claimAt(claims, path) ?? null
  if (found === null) {
    if (isOverage(claims, path)) return 'overage'
    if (isBlocked(claims, path)) return 'malformed'
    return isWhole ? 'missing' : 'unavailable'
  }
  if (typeof found === 'string') return [found]
  if (!Array.isArray(found)) return 'malformed'
  const groups: string[] = found.filter((group) => typeof group === 'string')
  return groups.length === found.length ? groups : 'malformed'
}

/**
 * Whether the provider says that the groups are elsewhere because there are too many: OpenID Connect Core 1.0, 5.6.2,
 * as Microsoft Entra ID does above 200 groups; `hasgroups` is its form for short tokens.
 */
function isOverage(claims: Claims, path: string): boolean {
  const [name = path] = path.split('.')
  const elsewhere = claims['_claim_names']
  if (typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, name)) return true
  return name === 'groups' && (claims['hasgroups'] === true || claims['hasgroups'] === 'true')
}

/** Whether something other than an object is on the path. */
function isBlocked(claims: Claims, path: string): boolean {
  return path.split('.').some((_, i, names) => {
    const on = i === 0 ? null : (claimAt(claims, names.slice(0, i).join('.')) ?? null)
    return on !== null && (typeof on !== 'object' || Array.isArray(on))
  })
}

/** The effect of the groups of a sign-in. */
export type GroupVerdict =
  /** The user is in these groups; `why`: the reason they count as none although the provider sent no list. */
  | { readonly kind: 'apply'; readonly groups: readonly string[]; readonly why: 'missing' | null }
  /** The groups change nothing, because they are unreadable or have no effect here (null). */
  | { readonly kind: 'keep'; readonly why: Extract<ProviderGroups, string> | null }
  /** `isCertain`: the user is in none of the allowed groups; otherwise that is unknown. */
  | { readonly kind: 'refuse'; readonly failure: OidcFailure; readonly isCertain: boolean }

/** Decides by OIDC_ALLOWED_GROUPS and OIDC_GROUPS_MISSING. An unreadable claim never grants or removes anything. */
export async function judgeGroups(ctx: Ctx, settings: ProviderSettings, found: ProviderGroups): Promise<GroupVerdict> {
  const { allowedGroups: allowed, issuer, groupsClaim } = settings
  if (!decidesByGroups(settings)) return { kind: 'keep', why: null }
  const refuse = (isCertain: boolean): GroupVerdict => {
    const details = typeof found === 'string' ? { groups: found } : {}
    return { kind: 'refuse', failure: new OidcFailure('group_missing', details), isCertain }
  }
  if (typeof found === 'object') {
    const isMember = allowed.length === 0 || found.some((group) => allowed.includes(group))
    return isMember ? { kind: 'apply', groups: found, why: null } : refuse(true)
  }
  const missing = settings.groupsMissing ?? ((await hasSent(ctx, issuer, groupsClaim)) ? 'none' : 'keep')
  const isNone = found === 'missing' && missing === 'none'
  if (found === 'missing' && missing === 'refuse') return refuse(true)
  if (allowed.length > 0) return refuse(isNone)
  return isNone ? { kind: 'apply', groups: [], why: 'missing' } : { kind: 'keep', why: found }
}

async function hasSent({ store }: Ctx, issuer: string, path: string | null): Promise<boolean> {
  const sent = and(eq(providerClaims.issuer, issuer), eq(providerClaims.path, path ?? ''))
  return (await store.db.select({ at: providerClaims.seenAt }).from(providerClaims).where(sent).get()) !== undefined
}

/** Statements that record that the provider sends the claim. */
export function sentStatements({ store, now }: Ctx, settings: ProviderSettings, found: ProviderGroups): Statement[] {
  const { issuer, groupsClaim: path } = settings
  if (path === null || typeof found === 'string') return []
  return [store.db.insert(providerClaims).values({ issuer, path, seenAt: now() }).onConflictDoNothing()]
}

/** The role and permissions that the groups give a user; null: the groups do not decide it. */
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

/** Whether groups at this provider decide who may sign in, or what users may do. */
export function decidesByGroups(settings: ProviderSettings): boolean {
  return settings.allowedGroups.length > 0 || hasRoles(settings)
}

type Account = { readonly id: number; readonly username: string; readonly isAdmin: boolean }

const UNREADABLE = {
  missing: 'The OpenID provider sends no readable groups: the role is unchanged',
  malformed: 'The OpenID provider sends no readable groups: the role is unchanged',
  overage: 'The user is in too many groups for a token of the OpenID provider, which names none: the role is unchanged',
  unavailable: 'No UserInfo, and no groups in the ID token: the role is unchanged',
} as const

/**
 * The statements that apply and record a user's groups; none if groups have no effect here or cannot be read. The last
 * administrator keeps the role.
 */
export async function roleStatements(
  ctx: Ctx,
  settings: ProviderSettings,
  account: Account,
  verdict: Exclude<GroupVerdict, { kind: 'refuse' }>,
): Promise<Statement[]> {
  const { why } = verdict
  const about = { provider: settings.id, requestId: ctx.requestId, userId: account.id, claim: why }
  if (verdict.kind === 'keep') {
    if (why !== null) ctx.log.warn(UNREADABLE[why], about)
    return []
  }
  if (!hasRoles(settings)) return []
  if (why !== null) ctx.log.warn('The OpenID provider names no groups: the user counts as in none', about)
  const { groups } = verdict
  const role = roleOf(settings, groups)
  const isAdmin = role.isAdmin ?? account.isAdmin
  if (account.isAdmin && !isAdmin && !(await hasOtherAdmin(ctx, account.id))) {
    ctx.log.warn('The last administrator is in no group of administrators, but keeps the role', about)
  }
  const values = {
    issuer: settings.issuer,
    isAdmin: role.isAdmin,
    permissions: role.permissions === null ? null : JSON.stringify(role.permissions),
    appliedAt: ctx.now(),
  }
  return [
    ...(isAdmin === account.isAdmin ? [] : adminStatements(ctx, settings, account, isAdmin, role.permissions)),
    ...(await permissionStatements(ctx, settings, account, isAdmin, role.permissions)),
    ctx.store.db
      .insert(providerRoles)
      .values({ userId: account.id, ...values })
      .onConflictDoUpdate({ target: providerRoles.userId, set: values }),
  ]
}

/** Whether other administrators can sign in: without one, this user keeps the role. */
async function hasOtherAdmin({ store, config }: Ctx, id: number): Promise<boolean> {
  const found = await store.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, id), hasRealAdmin(config, id)))
    .get()
  return found !== undefined
}

function adminStatements(
  ctx: Ctx,
  { id: providerId }: ProviderSettings,
  account: Account,
  isAdmin: boolean,
  given: Permissions | null,
): Statement[] {
  const { id, username } = account
  const still = and(eq(users.id, id), eq(users.isAdmin, !isAdmin), isAdmin ? undefined : hasRealAdmin(ctx.config, id))
  const permissions = isAdmin ? ALL_PERMISSIONS : (given ?? DEFAULT_PERMISSIONS)
  const held = isAdmin ? storedPermissionsJson(id) : sql`${JSON.stringify(ALL_PERMISSIONS)}`
  const details = {
    userId: id,
    username,
    by: 'groups at the provider',
    providerId,
    before: sql`json_object('isAdmin', json(${String(!isAdmin)}), 'permissions', json(${held}))`,
    after: { isAdmin, permissions },
  }
  const actor = { id, username }
  return [
    audit(ctx, 'admin_status_changed', details, { actor, onlyIf: sql`exists (select 1 from ${users} where ${still})` }),
    ...(isAdmin
      ? []
      : endInvitationsBy(ctx, account, 'maker_demoted', {
          actor,
          onlyIf: sql`exists (select 1 from ${users} where ${still})`,
        })),
    writePermissions(ctx.store, still, permissions, { at: ctx.now(), by: null }),
    ctx.store.db.update(users).set({ isAdmin }).where(still),
  ]
}

async function permissionStatements(
  ctx: Ctx,
  { id: providerId }: ProviderSettings,
  account: Account,
  isAdmin: boolean,
  permissions: Permissions | null,
): Promise<Statement[]> {
  if (permissions === null || isAdmin || account.isAdmin) return []
  const { id, username } = account
  const { permissions: before } = await readPermissions(ctx.store, id)
  if (isSame(before, permissions)) return []
  const regular = and(eq(users.id, id), eq(users.isAdmin, false))
  const details = { userId: id, username, by: 'groups at the provider', providerId, before, after: permissions }
  return [
    audit(ctx, 'permissions_updated', details, {
      actor: { id, username },
      onlyIf: or(sql`exists (select 1 from ${users} where ${regular})`),
    }),
    writePermissions(ctx.store, regular, permissions, { at: ctx.now(), by: null }),
  ]
}
