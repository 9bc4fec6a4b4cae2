import { sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { userPermissions } from '../../db/schema.ts'
import type { Statement, Store } from '../../db/store.ts'

export const ACTIONS = ['read', 'write'] as const
export type Action = (typeof ACTIONS)[number]
export type Grant = Readonly<Record<Action, boolean>>

const READ = { read: true, write: false } as const
const NONE = { read: false, write: false } as const

/** The resources and what a new regular user may do with each. */
export const RESOURCES = {
  dashboard: READ,
  nodes: READ,
  messages: READ,
  settings: NONE,
  configuration: NONE,
  info: READ,
  automation: NONE,
} as const satisfies Record<string, Grant>

export type Resource = keyof typeof RESOURCES
/** Always all resources. */
export type Permissions = Readonly<Record<Resource, Grant>>

/** Some resources; those that are missing or undefined stay as they are. */
export type PermissionChanges = { readonly [R in Resource]?: Grant | undefined }

export const RESOURCE_NAMES = Object.keys(RESOURCES).filter(isResource)

function isResource(name: string): name is Resource {
  return Object.hasOwn(RESOURCES, name)
}

/** Permissions built resource by resource. */
export function permissionsFrom(grant: (resource: Resource) => Grant): Permissions {
  return {
    dashboard: grant('dashboard'),
    nodes: grant('nodes'),
    messages: grant('messages'),
    settings: grant('settings'),
    configuration: grant('configuration'),
    info: grant('info'),
    automation: grant('automation'),
  }
}

export const NO_PERMISSIONS: Permissions = permissionsFrom(() => NONE)
export const ALL_PERMISSIONS: Permissions = permissionsFrom(() => ({ read: true, write: true }))
export const DEFAULT_PERMISSIONS: Permissions = permissionsFrom((resource) => RESOURCES[resource])

export const grantSchema = z
  .strictObject({ read: z.boolean(), write: z.boolean() })
  .refine((grant) => grant.read || !grant.write, { message: 'write needs read' })

export const permissionsSchema = z.strictObject({
  dashboard: grantSchema,
  nodes: grantSchema,
  messages: grantSchema,
  settings: grantSchema,
  configuration: grantSchema,
  info: grantSchema,
  automation: grantSchema,
})

/** As an SQL look-up packs them: `{"nodes":3}` with bit 0 read and bit 1 write; null when there are none. */
export function unpackPermissions(packed: string | null): Permissions {
  const bits: Partial<Record<string, number>> = packed === null ? {} : JSON.parse(packed)
  return permissionsFrom((resource) => {
    const value = bits[resource] ?? 0
    return { read: (value & 1) !== 0, write: (value & 2) !== 0 }
  })
}

/** The packed permissions of the row of `users` that a query is at. */
export const packedPermissions = sql<string | null>`(select json_group_object("resource", "can_read" + 2 * "can_write")
  from "user_permissions" where "user_permissions"."user_id" = "users"."id")`

/** Statements that give a user these permissions; resources not named stay. */
export function writePermissions(store: Store, userId: number | SQL, permissions: PermissionChanges): Statement[] {
  return RESOURCE_NAMES.flatMap((resource) => {
    const grant = permissions[resource]
    if (grant === undefined) return []
    const values = { userId, resource, canRead: grant.read, canWrite: grant.write }
    return [
      store.db
        .insert(userPermissions)
        .values(values)
        .onConflictDoUpdate({
          target: [userPermissions.userId, userPermissions.resource],
          set: { canRead: grant.read, canWrite: grant.write },
        }),
    ]
  })
}
