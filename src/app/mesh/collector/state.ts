export const COLLECTOR_STATES = ['idle', 'delivering', 'waiting', 'refused', 'stopped'] as const

/** The state of the delivery to another service. */
export type CollectorInfo = {
  /** Host and port of that service. */
  readonly target: string
  /** `waiting`: failed and will be retried soon; `refused`: fails until somebody changes the configuration. */
  readonly state: (typeof COLLECTOR_STATES)[number]
  /** Messages that are not delivered yet. */
  readonly waiting: number
  readonly lastDeliveredAt: number | null
  /** Since the start. */
  readonly delivered: number
  /**
   * Dropped since the start: too many packets waited, they waited too long, or the other service did not understand
   * them.
   */
  readonly dropped: number
  /** Left out since the start because of COLLECTOR_ONLY and COLLECTOR_SAMPLE_SECONDS. */
  readonly filtered: number
  /** Why nothing is delivered, in words. */
  readonly reason: string | null
}
