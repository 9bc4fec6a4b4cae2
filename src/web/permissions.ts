import type { Permissions, Resource } from './session.ts'

/** The areas in the order in which people read them. */
export const RESOURCES = [
  'dashboard',
  'nodes',
  'messages',
  'info',
  'automation',
  'configuration',
  'settings',
] as const satisfies readonly Resource[]

const NONE = { read: false, write: false }
const READ = { read: true, write: false }
const WRITE = { read: true, write: true }

export const PRESETS = {
  viewer: {
    dashboard: READ,
    nodes: READ,
    messages: READ,
    info: READ,
    automation: NONE,
    configuration: NONE,
    settings: NONE,
  },
  operator: {
    dashboard: READ,
    nodes: WRITE,
    messages: WRITE,
    info: WRITE,
    automation: WRITE,
    configuration: READ,
    settings: READ,
  },
  everything: {
    dashboard: WRITE,
    nodes: WRITE,
    messages: WRITE,
    info: WRITE,
    automation: WRITE,
    configuration: WRITE,
    settings: WRITE,
  },
} as const satisfies Record<string, Permissions>

export type Preset = keyof typeof PRESETS
export const PRESET_NAMES = ['viewer', 'operator', 'everything'] as const satisfies readonly Preset[]

/** The preset that these permissions are; null for none of them. */
export function presetOf(permissions: Permissions): Preset | null {
  const isSame = (name: Preset) =>
    RESOURCES.every(
      (resource) =>
        PRESETS[name][resource].read === permissions[resource].read &&
        PRESETS[name][resource].write === permissions[resource].write,
    )
  return PRESET_NAMES.find(isSame) ?? null
}
