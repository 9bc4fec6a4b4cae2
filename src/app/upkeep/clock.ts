export const CLOCK_STATES = ['confirmed', 'ahead', 'behind'] as const

/** A clock that may be wrong, beside the time that is certain to have come. */
export interface ClockWatch {
  /** The time from which ages count when something is deleted: never later than the clock, nor than what is confirmed. */
  trusted(): number
  /** `confirmed`: the time up to which the clock is confirmed. */
  state(): { readonly state: (typeof CLOCK_STATES)[number]; readonly confirmed: number }
  /** What another clock says just now, and whose it is: the clock is confirmed when both say the same. */
  agree(by: string, theirs: number): void
  /** Keeps what is known for the next start, and puts right what was written while the clock was ahead. */
  keep(): Promise<void>
}
