/**
 * Where a position or measurement has no channel of the mesh. `null`: one of our radios told it of itself. This number:
 * nobody knows, or several channels are in one sum; only those who may read every channel see it.
 */
export const UNKNOWN_CHANNEL = -1

/** Of a channel, as Meshtastic names them. */
export const CHANNEL_ROLES = ['DISABLED', 'PRIMARY', 'SECONDARY'] as const
