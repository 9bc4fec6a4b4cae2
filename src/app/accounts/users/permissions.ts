import { sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { userPermissions, users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import {
  forEachResource,
  type Grant,
  type Permissions,
  permissionsFrom,
  type Resource,
  RESOURCE_NAMES,
} from '../../../shared/access/resources.ts'
import { timeField } from '../../http/fields.ts'

/** Some resources; missing or undefined ones stay as they are. */
export type PermissionChanges = { readonly [R in Resource]?: Grant | undefined }

export const grantSchema = z
  .strictObject({ read: z.boolean(), write: z.boolean() })
  .refine((grant) => grant.read || !grant.write, { message: 'write needs read' })
  .meta({ id: 'Grant', description: 'What is allowed with a resource; `write` needs `read`' })

export const permissionsSchema = z
  .strictObject(forEachResource(() => grantSchema))
  .meta({ id: 'Permissions', description: 'The permissions of a user by resource' })

/** Whether every named resource is fully granted. */
export function isEverything(permissions: PermissionChanges): boolean {
  return RESOURCE_NAMES.every((resource) => permissions[resource]?.write !== false)
}

/**
 * Permissions packed by an SQL query: `{"nodes":3}` with bit 0 for read and bit 1 for write; null if there are none.
 */
export function unpackPermissions(packed: string | null): Permissions {
  const bits: Partial<Record<string, number>> = packed === null ? {} : JSON.parse(packed)
  return permissionsFrom((resource) => {
    const value = bits[resource] ?? 0
    return { read: (value & 1) !== 0, write: (value & 2) !== 0 }
  })
}

/** One grant as it is stored. */
export const storedGrantSchema = z
  .object({
    id: z.int(),
    userId: z.int(),
    resource: z.enum(RESOURCE_NAMES),
    canRead: z.boolean(),
    canWrite: z.boolean(),
    grantedAt: timeField,
    grantedBy: z.int().nullable().describe('null: the service itself, its console, or unknown'),
  })
  .meta({ id: 'StoredGrant', description: 'A permission, and who granted it when' })
export type StoredGrant = z.infer<typeof storedGrantSchema>

const ALL_NAMES = JSON.stringify(RESOURCE_NAMES)

/** The permissions of a regular user as JSON, in the shape of `Permissions`, evaluated when the statement runs. */
export function storedPermissionsJson(userId: number | SQL): SQL {
  const { resource, canRead, canWrite } = userPermissions
  const flag = (column: SQLiteColumn) => sql`json(iif(coalesce(${column}, 0), 'true', 'false'))`
  return sql`(select json_group_object(names.value, json_object('read', ${flag(canRead)}, 'write', ${flag(canWrite)}))
    from json_each(${ALL_NAMES}) as names
    left join ${userPermissions} on ${userPermissions.userId} = ${userId} and ${resource} = names.value)`
}

/** The packed permissions of the row of `users` in a query. */
export const packedPermissions = sql<string | null>`(select json_group_object("resource", "can_read" + 2 * "can_write")
  from "user_permissions" where "user_permissions"."user_id" = "users"."id")`

/** Who grants a permission, and when. `by` is null for the service itself and for the command line. */
export type Granting = { readonly at: number | SQL; readonly by: number | null }

/**
 * The statement that grants these permissions to the user who matches `whom`, a condition on `users`, when it runs.
 * Resources that are not named stay, and so do identical grants.
 */
export function writePermissions(
  store: Store,
  whom: SQL | undefined,
  permissions: PermissionChanges,
  { at, by }: Granting,
): Statement {
  const named = RESOURCE_NAMES.flatMap((resource) => {
    const grant = permissions[resource]
    return grant === undefined ? [] : [[resource, grant.read, grant.write]]
  })
  const field = (index: number) => sql.raw(`json_extract(named.value, '$[${index}]')`)
  const { userId, resource, canRead, canWrite } = userPermissions
  return insertSelect(
    store.db,
    userPermissions,
    {
      userId: sql`${users.id}`,
      resource: field(0),
      canRead: field(1),
      canWrite: field(2),
      grantedAt: at,
      grantedBy: by,
    },
    sql`from ${users}, json_each(${JSON.stringify(named)}) as named where ${whom}`,
  ).onConflictDoUpdate({
    target: [userId, resource],
    set: {
      canRead: sql`excluded.can_read`,
      canWrite: sql`excluded.can_write`,
      grantedAt: sql`excluded.granted_at`,
      grantedBy: sql`excluded.granted_by`,
    },
    setWhere: sql`${canRead} is not excluded.can_read or ${canWrite} is not excluded.can_write`,
  })
}
