import { type Grant, NONE } from './resources.ts'

/** Channels of which the contents may be read, and on which may be sent, as GET /api/channels numbers them. */
export type Channels = 'all' | { readonly read: readonly number[]; readonly write: readonly number[] }

/** What of the contents of the mesh a viewer may see. It narrows permissions and never adds to them. */
export type Scope = { readonly channels: Channels; readonly direct: Grant }

/** The most channels that a scope names. */
export const MAX_SCOPE_CHANNELS = 64

/** Everything that the permissions allow: that of administrators. */
export const WHOLE_SCOPE: Scope = { channels: 'all', direct: { read: true, write: true } }

/** That of a new regular user by default. */
export const NEW_SCOPE: Scope = { channels: 'all', direct: { read: true, write: true } }

/** Nothing: that of somebody who is not signed in. */
export const NO_SCOPE: Scope = { channels: { read: [], write: [] }, direct: NONE }

/** Whether the contents of a channel may be read; null: what one of our radios told of itself, which is on none. */
export function canReadChannel({ channels }: Scope, channel: number | null): boolean {
  return channels === 'all' || channel === null || channels.read.includes(channel)
}

/** Whether may be sent on a channel. */
export function canWriteChannel({ channels }: Scope, channel: number): boolean {
  return channels === 'all' || channels.write.includes(channel)
}

/** Whether both say the same. */
export function isSameScope(a: Scope, b: Scope): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
