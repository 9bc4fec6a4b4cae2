import { and, eq, or, sql, type SQL } from 'drizzle-orm'
import { userPermissions, users } from '../../db/schema.ts'
import type { Store } from '../../db/store.ts'
import { audit } from '../audit/audit.ts'
import type { SignedInCtx } from '../context.ts'
import { AppError } from '../http/errors.ts'
import {
  ALL_PERMISSIONS,
  type Grant,
  packedPermissions,
  type PermissionChanges,
  type Permissions,
  type Resource,
  RESOURCE_NAMES,
  unpackPermissions,
  writePermissions,
} from './permissions.ts'
import { getUser } from './users.ts'

/** What a user may do. Throws `user_not_found`. */
export async function readPermissions(store: Store, userId: number): Promise<Permissions> {
  const row = await store.db
    .select({ isAdmin: users.isAdmin, packed: packedPermissions })
    .from(users)
    .where(eq(users.id, userId))
    .get()
  if (row === undefined) throw new AppError('user_not_found')
  return row.isAdmin ? ALL_PERMISSIONS : unpackPermissions(row.packed)
}

/** Sets the named resources and leaves the others. Throws `user_not_found`; an administrator's can't be narrowed. */
export async function replacePermissions(
  ctx: SignedInCtx,
  userId: number,
  changes: PermissionChanges,
): Promise<Permissions> {
  const user = await getUser(ctx.store, userId)
  const before = await readPermissions(ctx.store, userId)
  const changed = RESOURCE_NAMES.filter((resource) => {
    const grant = changes[resource]
    return grant !== undefined && (grant.read !== before[resource].read || grant.write !== before[resource].write)
  })
  if (changed.length === 0) return before
  if (user.isAdmin) throw new AppError('invalid_request', 'An administrator holds every permission')
  const pick = (from: PermissionChanges) => Object.fromEntries(changed.map((resource) => [resource, from[resource]]))
  await ctx.store.atomic([
    audit(
      ctx,
      'permissions_updated',
      { userId, username: user.username, before: pick(before), after: pick(changes) },
      // Somebody else may have made the same change since it was read.
      { onlyIf: or(...changed.map((resource) => isOther(userId, resource, changes[resource]))) },
    ),
    ...writePermissions(ctx.store, userId, changes),
  ])
  return readPermissions(ctx.store, userId)
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
