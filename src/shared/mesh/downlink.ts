/** What a collector may be allowed to do for the service that it delivers to: names of COLLECTOR_DOWNLINK. */
export const DOWNLINK_KINDS = ['texts', 'traceroutes', 'requests'] as const
export type DownlinkKind = (typeof DOWNLINK_KINDS)[number]

/** What a command makes a radio send. */
export const COMMAND_KINDS = ['text', 'traceroute', 'request'] as const
export type CommandKind = (typeof COMMAND_KINDS)[number]

/** What must be allowed for a command. */
export const KIND_OF_COMMAND = {
  text: 'texts',
  traceroute: 'traceroutes',
  request: 'requests',
} as const satisfies Record<CommandKind, DownlinkKind>

/** How long a command may wait for its collector. */
export const COMMAND_MS = 60_000
/** How long a collector's request for commands stays open. */
export const POLL_MS = 25_000
/** A collector that has not asked for this long is not there. */
export const LISTENING_MS = 40_000
