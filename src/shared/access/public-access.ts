/** The areas that anonymous callers may see. */
export const PUBLIC_RESOURCES = ['dashboard', 'nodes', 'messages', 'info'] as const
export type PublicResource = (typeof PUBLIC_RESOURCES)[number]

/** Bits of a coordinate; a position of 10 bits lies somewhere in a cell of 47 km, one of 32 bits is exact. */
export const MIN_PRECISION_BITS = 10
export const MAX_PRECISION_BITS = 32

/** Anonymous callers never change anything. */
type Shown = { readonly read: boolean; readonly write: false }

/** What anonymous callers see while it is enabled. */
export type PublicAccess = {
  readonly enabled: boolean
  readonly permissions: Readonly<Record<PublicResource, Shown>>
  /** Channels whose contents are shown, with numbers as in GET /api/channels. */
  readonly channels: readonly number[]
  /** Null: positions are shown as sent. */
  readonly positionPrecisionBits: number | null
  /** Hides nodes that were silent for longer; null: none. */
  readonly hideSilentAfterDays: number | null
}

const READ: Shown = { read: true, write: false }
const NOTHING: Shown = { read: false, write: false }

/** The default: off, with a coarse map once it is switched on. */
export const DEFAULT_PUBLIC_ACCESS: PublicAccess = {
  enabled: false,
  permissions: { dashboard: NOTHING, nodes: READ, messages: NOTHING, info: NOTHING },
  channels: [],
  positionPrecisionBits: 13,
  hideSilentAfterDays: 30,
}

/** Whether `a` shows anonymous callers something that `b` does not. */
export function showsMore(a: PublicAccess, b: PublicAccess): boolean {
  if (!a.enabled || !b.enabled) return a.enabled
  return (
    PUBLIC_RESOURCES.some((name) => a.permissions[name].read && !b.permissions[name].read) ||
    a.channels.some((channel) => !b.channels.includes(channel)) ||
    (a.positionPrecisionBits ?? MAX_PRECISION_BITS) > (b.positionPrecisionBits ?? MAX_PRECISION_BITS) ||
    (a.hideSilentAfterDays ?? Infinity) > (b.hideSilentAfterDays ?? Infinity)
  )
}
