import { type Grant, NONE } from './resources.ts'

/** The channels that may be read and those on which may be sent, with numbers as in GET /api/channels. */
export type Channels = 'all' | { readonly read: readonly number[]; readonly write: readonly number[] }

/** Which contents of the mesh a viewer may see. It narrows permissions and never adds to them. */
export type Scope = { readonly channels: Channels; readonly direct: Grant }

/** The maximum number of channels in a scope. */
export const MAX_SCOPE_CHANNELS = 64

/** Everything that the permissions allow: the scope of administrators. */
export const WHOLE_SCOPE: Scope = { channels: 'all', direct: { read: true, write: true } }

/** The default for a new regular user: no direct messages until an administrator allows them. */
export const NEW_SCOPE: Scope = { channels: 'all', direct: NONE }

/** Nothing: the scope of anonymous callers. */
export const NO_SCOPE: Scope = { channels: { read: [], write: [] }, direct: NONE }

/**
 * Whether the contents of a channel may be read; null: what one of our radios reported about itself, without a channel.
 */
export function canReadChannel({ channels }: Scope, channel: number | null): boolean {
  return channels === 'all' || channel === null || channels.read.includes(channel)
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
