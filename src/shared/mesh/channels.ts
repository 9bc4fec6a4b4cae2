/**
 * The channel of a position or measurement without one. `null`: one of our radios reported it about itself. This
 * number: unknown, or a summary of several channels; only users who may read every channel see it.
 */
export const UNKNOWN_CHANNEL = -1

/** The roles of a channel, as Meshtastic names them. */
export const CHANNEL_ROLES = ['DISABLED', 'PRIMARY', 'SECONDARY'] as const
