import { and, asc, eq, or, sql, type SQL } from 'drizzle-orm'
import { userPermissions, users } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import {
  packedPermissions,
  type PermissionChanges,
  type StoredGrant,
  unpackPermissions,
  writePermissions,
} from './permissions.ts'
import { holdsOtherScope, scopeColumns, scopeOf, scopeRow } from './scope.ts'
import { isSameScope, type Scope } from '../../../shared/access/scope.ts'
import { stillAdmin } from './still-admin.ts'
import { getUser } from './users.ts'
import {
  ALL_PERMISSIONS,
  type Grant,
  isResource,
  type Permissions,
  type Resource,
  RESOURCE_NAMES,
} from '../../../shared/access/resources.ts'

/** The permissions and scope of a user, and the grants behind them. */
export type HeldPermissions = {
  readonly permissions: Permissions
  readonly scope: Scope
  readonly grants: readonly StoredGrant[]
}

/** The permissions of a user, and who granted them and when. Throws `user_not_found`. */
export async function readPermissions(store: Store, userId: number): Promise<HeldPermissions> {
  const row = await store.db
    .select({ isAdmin: users.isAdmin, packed: packedPermissions, ...scopeColumns })
    .from(users)
    .where(eq(users.id, userId))
    .get()
  if (row === undefined) throw new AppError('user_not_found')
  return {
    permissions: row.isAdmin ? ALL_PERMISSIONS : unpackPermissions(row.packed),
    scope: scopeOf(row),
    grants: await listGrants(store, userId),
  }
}

async function listGrants(store: Store, userId: number): Promise<StoredGrant[]> {
  const rows = await store.db
    .select()
    .from(userPermissions)
    .where(eq(userPermissions.userId, userId))
    .orderBy(asc(userPermissions.id))
    .all()
  return rows.flatMap(({ resource, ...rest }) => (isResource(resource) ? [{ resource, ...rest }] : []))
}

/**
 * Sets the named resources, and the scope if given, and leaves the others. `repeated` are grants that a client sends
 * back unchanged. Throws `user_not_found`, and `invalid_request` for changed ones. An administrator's permissions
 * cannot be reduced.
 */
export async function replacePermissions(
  ctx: Ctx,
  userId: number,
  { permissions: changes, scope: wanted, grants: repeated = [] }: GrantedChanges,
): Promise<HeldPermissions> {
  const user = await getUser(ctx.store, userId)
  const { permissions: before, scope: seen, grants } = await readPermissions(ctx.store, userId)
  refuseOtherGrants(grants, repeated)
  const changed = RESOURCE_NAMES.filter((resource) => {
    const grant = changes[resource]
    return grant !== undefined && (grant.read !== before[resource].read || grant.write !== before[resource].write)
  })
  const scope = wanted === undefined || isSameScope(wanted, seen) ? null : wanted
  if (changed.length === 0 && scope === null) return { permissions: before, scope: seen, grants }
  if (user.isAdmin) throw adminHoldsAll()
  const pick = (from: PermissionChanges) => Object.fromEntries(changed.map((resource) => [resource, from[resource]]))
  // A simultaneous promotion wins: an administrator's permissions cannot be reduced.
  const regular = and(eq(users.id, userId), eq(users.isAdmin, false))
  await ctx.store.atomic([
    audit(
      ctx,
      'permissions_updated',
      {
        userId,
        username: user.username,
        before: { ...pick(before), ...(scope !== null && { scope: seen }) },
        after: { ...pick(changes), ...(scope !== null && { scope }) },
      },
      // Somebody else may have made the same change since it was read.
      {
        onlyIf: and(
          sql`exists (select 1 from ${users} where ${regular})`,
          or(
            ...changed.map((resource) => isOther(userId, resource, changes[resource])),
            scope === null
              ? undefined
              : sql`exists (select 1 from ${users} where ${regular} and ${holdsOtherScope(scope)})`,
          ),
        ),
      },
    ),
    writePermissions(ctx.store, regular, changes, { at: ctx.now(), by: ctx.viewer?.user.id ?? null }),
    ...(scope === null ? [] : [ctx.store.db.update(users).set(scopeRow(scope)).where(regular)]),
    ...stillAdmin(ctx),
  ])
  if ((await getUser(ctx.store, userId)).isAdmin) throw adminHoldsAll()
  return readPermissions(ctx.store, userId)
}

type GrantedChanges = {
  readonly permissions: PermissionChanges
  readonly scope?: Scope | undefined
  readonly grants?: readonly StoredGrant[] | undefined
}

function refuseOtherGrants(grants: readonly StoredGrant[], repeated: readonly StoredGrant[]): void {
  const keys = ['id', 'userId', 'resource', 'canRead', 'canWrite', 'grantedAt', 'grantedBy'] as const
  const isKept = (one: StoredGrant) => grants.some((grant) => keys.every((key) => grant[key] === one[key]))
  if (repeated.every(isKept)) return
  const message = 'differs from the present grants; put changes into permissions'
  throw new AppError('invalid_request', `grants: ${message}`, { issues: [{ path: 'grants', message }] })
}

function adminHoldsAll(): AppError {
  return new AppError('invalid_request', 'An administrator has every permission')
}

function isOther(userId: number, resource: Resource, grant: Grant | undefined): SQL {
  const { read = false, write = false } = grant ?? {}
  const same = and(
    eq(userPermissions.userId, userId),
    eq(userPermissions.resource, resource),
    eq(userPermissions.canRead, read),
    eq(userPermissions.canWrite, write),
  )
  return sql`not exists (select 1 from ${userPermissions} where ${same})`
}
