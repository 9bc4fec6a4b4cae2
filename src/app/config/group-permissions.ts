import {
  isResource,
  NONE,
  type Permissions,
  permissionsFrom,
  PRESET_NAMES,
  PRESETS,
  RESOURCE_NAMES,
} from '../../shared/access/resources.ts'

/** The permissions of a group's members at the provider. */
export type GroupPermissions = { readonly group: string; readonly permissions: Permissions }

/** Reads `group=preset`, or `group=nodes:rw+messages:r`; null for anything else. */
export function parseGroupPermissions(text: string): GroupPermissions | null {
  const at = text.lastIndexOf('=')
  const group = text.slice(0, at).trim()
  const given = text.slice(at + 1).trim()
  if (at < 1 || group === '') return null
  const preset = PRESET_NAMES.find((name) => name === given)
  if (preset !== undefined) return { group, permissions: PRESETS[preset] }
  const grants = new Map<string, boolean>()
  for (const part of given.split('+')) {
    const [, resource = '', how] = /^(\w+):(r|rw)$/.exec(part.trim()) ?? []
    if (!isResource(resource) || grants.has(resource)) return null
    grants.set(resource, how === 'rw')
  }
  const permissions = permissionsFrom((resource) => {
    const write = grants.get(resource)
    return write === undefined ? NONE : { read: true, write }
  })
  return { group, permissions }
}

/** Everything that at least one of these allows. */
export function unionOf(all: readonly Permissions[]): Permissions {
  return permissionsFrom((resource) => ({
    read: all.some((one) => one[resource].read),
    write: all.some((one) => one[resource].write),
  }))
}

/** Whether two sets allow the same. */
export function isSame(one: Permissions, other: Permissions): boolean {
  return RESOURCE_NAMES.every((name) => one[name].read === other[name].read && one[name].write === other[name].write)
}
