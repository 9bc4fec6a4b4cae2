/**
 * The channel of a position or measurement without one. `null`: one of our radios reported it about itself. This
 * number: unknown, or a summary of several channels; only users who may read every channel see it.
 */
export const UNKNOWN_CHANNEL = -1

/** A summary of several channels that contains data sent to one node. Only viewers who see everything see it. */
export const MIXED_WITH_DIRECT = -2

/**
 * Numbers from here on stand for data sent to one node. Viewers need to be allowed to read direct messages and to see
 * that node. Higher than the number of any channel.
 */
export const FIRST_DIRECT = 2 ** 33

/** The channel of data that was sent to this node alone. */
export function directChannel(to: number): number {
  return FIRST_DIRECT + to
}

/**
 * Added to the number of a channel if the sender does not allow its packets to be passed on (*OK to MQTT* is off).
 * Users who may read the channel see them, anonymous callers do not.
 */
export const WITHHELD = 2 ** 22

/** The roles of a channel, as Meshtastic names them. */
export const CHANNEL_ROLES = ['DISABLED', 'PRIMARY', 'SECONDARY'] as const
