import type { Grant } from './resources.ts'

/** The areas that anonymous callers may be shown, and no others. */
export const PUBLIC_RESOURCES = ['dashboard', 'nodes', 'messages', 'info'] as const
export type PublicResource = (typeof PUBLIC_RESOURCES)[number]

/** Bits of a coordinate; a position of 10 bits lies somewhere in a cell of 47 km, one of 32 bits is exact. */
export const LEAST_PRECISION_BITS = 10
export const MOST_PRECISION_BITS = 32

/** What anonymous callers see while it is enabled. */
export type PublicAccess = {
  readonly enabled: boolean
  readonly permissions: Readonly<Record<PublicResource, Grant>>
  /** Channels whose contents are shown, with numbers as in GET /api/channels. */
  readonly channels: readonly number[]
  /** Null: positions are shown as sent. */
  readonly positionPrecisionBits: number | null
  /** Nodes that were silent for longer are hidden; null: none are. */
  readonly hideSilentAfterDays: number | null
}

const READ: Grant = { read: true, write: false }
const NOTHING: Grant = { read: false, write: false }

/** The default: off, and a coarse map once it is switched on. */
export const DEFAULT_PUBLIC_ACCESS: PublicAccess = {
  enabled: false,
  permissions: { dashboard: NOTHING, nodes: READ, messages: NOTHING, info: NOTHING },
  channels: [],
  positionPrecisionBits: 13,
  hideSilentAfterDays: 30,
}
