import { forEachName, isNameOf, namesOf } from '../names.ts'

export const ACTIONS = ['read', 'write'] as const
export type Action = (typeof ACTIONS)[number]
export type Grant = Readonly<Record<Action, boolean>>

export const NONE: Grant = { read: false, write: false }
const READ: Grant = { read: true, write: false }
const WRITE: Grant = { read: true, write: true }

/** The resources, and the action that each preset permits on them. */
const RESOURCES = {
  dashboard: { viewer: READ, operator: READ },
  nodes: { viewer: READ, operator: WRITE },
  messages: { viewer: READ, operator: WRITE },
  settings: { viewer: NONE, operator: READ },
  configuration: { viewer: NONE, operator: READ },
  info: { viewer: READ, operator: WRITE },
  automation: { viewer: NONE, operator: WRITE },
} as const satisfies Record<string, { viewer: Grant; operator: Grant }>

export type Resource = keyof typeof RESOURCES
export const RESOURCE_NAMES = namesOf(RESOURCES)

/** Whether there is such a resource. */
export function isResource(name: string): name is Resource {
  return isNameOf(RESOURCES, name)
}

/** Always contains all resources. */
export type Permissions = Readonly<Record<Resource, Grant>>

/** A value for each resource. */
export function forEachResource<T>(make: (resource: Resource) => T): Readonly<Record<Resource, T>> {
  return forEachName(RESOURCES, make)
}

/** Builds permissions, resource by resource. */
export function permissionsFrom(grant: (resource: Resource) => Grant): Permissions {
  return forEachResource(grant)
}

/** Sets of permissions that a single click assigns. */
export const PRESETS = {
  viewer: permissionsFrom((resource) => RESOURCES[resource].viewer),
  operator: permissionsFrom((resource) => RESOURCES[resource].operator),
  everything: permissionsFrom(() => WRITE),
} as const satisfies Record<string, Permissions>

export type Preset = keyof typeof PRESETS
export const PRESET_NAMES = namesOf(PRESETS)

/** The permissions of a new regular user by default. */
export const DEFAULT_PERMISSIONS: Permissions = PRESETS.viewer
export const NO_PERMISSIONS: Permissions = permissionsFrom(() => NONE)
export const ALL_PERMISSIONS: Permissions = PRESETS.everything

/** The preset with exactly these permissions; null for none. */
export function presetOf(permissions: Permissions): Preset | null {
  const isSame = (name: Preset) =>
    RESOURCE_NAMES.every((resource) =>
      ACTIONS.every((action) => PRESETS[name][resource][action] === permissions[resource][action]),
    )
  return PRESET_NAMES.find(isSame) ?? null
}
