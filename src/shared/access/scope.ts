import { FIRST_DIRECT, MIXED_WITH_DIRECT, WITHHELD } from '../mesh/channels.ts'
import { type Grant, NONE } from './resources.ts'

/**
 * The channels that the viewer may read and those on which the viewer may send, with numbers as in GET /api/channels.
 */
export type Channels = 'all' | { readonly read: readonly number[]; readonly write: readonly number[] }

/** Which contents of the mesh a viewer may see. It limits permissions and never adds to them. */
export type Scope = { readonly channels: Channels; readonly direct: Grant }

/** A scope with further limits. */
export type Sight = Scope & {
  /** The scope of anonymous callers, who do not see content that its sender withholds from the public. */
  readonly isPublic?: true
  /** Numbers of the nodes that are hidden from the viewer, including their earlier numbers. */
  readonly hidden?: ReadonlySet<number>
}

/** The maximum number of channels in a scope. */
export const MAX_SCOPE_CHANNELS = 64

/** Everything that the permissions allow: the scope of administrators. */
export const WHOLE_SCOPE: Scope = { channels: 'all', direct: { read: true, write: true } }

/** The default for a new regular user: no direct messages until an administrator allows them. */
export const NEW_SCOPE: Scope = { channels: 'all', direct: NONE }

/** Nothing: the scope of anonymous callers. */
export const NO_SCOPE: Scope = { channels: { read: [], write: [] }, direct: NONE }

/**
 * Whether the contents of a channel may be read. `channel` may also be one of the special numbers in `channels.ts`;
 * null: one of our radios reported the content about itself, without a channel.
 */
export function canReadChannel(sight: Sight, channel: number | null): boolean {
  const { channels, direct, isPublic, hidden } = sight
  if (channel === null) return true
  if (channel >= FIRST_DIRECT) return direct.read && hidden?.has(channel - FIRST_DIRECT) !== true
  if (channel === MIXED_WITH_DIRECT) return readsEverything(sight)
  if (channel >= WITHHELD && isPublic === true) return false
  return channels === 'all' || channels.read.includes(channel >= WITHHELD ? channel - WITHHELD : channel)
}

/** Whether no content at all is left out. */
export function readsEverything({ channels, direct, hidden }: Sight): boolean {
  return channels === 'all' && direct.read && (hidden === undefined || hidden.size === 0)
}

/** The numbers of channels that may be read, unless all may be. */
export function readableChannels({ channels, isPublic }: Sight): number[] {
  const numbers = channels === 'all' ? [] : channels.read
  return isPublic === true ? [...numbers] : [...numbers, ...numbers.map((number) => number + WITHHELD)]
}

/** Whether sending on a channel is allowed. */
export function canWriteChannel({ channels }: Scope, channel: number): boolean {
  return channels === 'all' || channels.write.includes(channel)
}

/** Whether both are the same. */
export function isSameScope(a: Scope, b: Scope): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** Whether `a` includes something that `b` does not. */
export function isWiderScope(a: Scope, b: Scope): boolean {
  const isMore = (has: Grant, had: Grant) => (has.read && !had.read) || (has.write && !had.write)
  if (isMore(a.direct, b.direct)) return true
  if (a.channels === 'all' || b.channels === 'all') return b.channels !== 'all'
  const { read, write } = b.channels
  return a.channels.read.some((one) => !read.includes(one)) || a.channels.write.some((one) => !write.includes(one))
}
