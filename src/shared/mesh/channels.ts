/**
 * The channel of a position or measurement without one. `null`: one of our radios reported it about itself. This
 * number: unknown, or a summary of several channels; only users who may read every channel see it.
 */
export const UNKNOWN_CHANNEL = -1

/** A summary of several channels that contains something sent to one node: for those who see everything. */
export const MIXED_WITH_DIRECT = -2

/**
 * From here on, what was sent to one node: for those who may read direct messages and see that node. Higher than the
 * number of any channel.
 */
export const FIRST_DIRECT = 2 ** 33

/** The channel of what was sent to this node alone. */
export function directChannel(to: number): number {
  return FIRST_DIRECT + to
}

/**
 * Added to the number of a channel if the sender does not allow what it sends to be passed on (*OK to MQTT* is off):
 * those who may read the channel see it, anonymous callers do not.
 */
export const WITHHELD = 2 ** 22

/** The roles of a channel, as Meshtastic names them. */
export const CHANNEL_ROLES = ['DISABLED', 'PRIMARY', 'SECONDARY'] as const
