/** All in milliseconds. */
export const LINK_TIMINGS = {
  /** The time limit for opening the stream. */
  connectMs: 10_000,
  /** A handshake that stalls for this long is requested again, and abandoned after the limit. */
  handshakeRetryMs: 30_000,
  handshakeLimitMs: 60_000,
  /** Radios close a connection on which they received nothing for 900 s. */
  heartbeatMs: 60_000,
  /** Each heartbeat is answered, so two and a half without any frame mean a dead link. */
  silenceMs: 150_000,
  backoffFirstMs: 1000,
  backoffMaxMs: 60_000,
  /** A connection that lasted this long resets the back-off. */
  stableMs: 60_000,
  /** Two losses within this time, without a sign of a restart, mean that another client takes over the radio. */
  kickWindowMs: 30_000,
  /** The next attempt then waits this long, twice as long after each further loss, up to the maximum. */
  busyFirstMs: 15_000,
  busyMaxMs: 60_000,
  /** How long a radio may take to restart after its settings were saved. */
  restartMs: 180_000,
} as const satisfies Record<string, number>

export type LinkTimings = { readonly [Name in keyof typeof LINK_TIMINGS]: number }
