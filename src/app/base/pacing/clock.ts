export const CLOCK_STATES = ['confirmed', 'ahead', 'behind'] as const

/** Watches a clock that may be wrong, and keeps the time that has certainly passed. */
export interface ClockWatch {
  /** The time from which ages count when data is deleted: never later than the clock or the confirmed time. */
  trusted(): number
  /** `confirmed`: the time up to which the clock is confirmed. */
  state(): { readonly state: (typeof CLOCK_STATES)[number]; readonly confirmed: number }
  /** Reports another clock's current time, and its name. Our clock is confirmed once both agree. */
  agree(by: string, theirs: number): void
  /** Saves the known time for the next start, and corrects rows written while the clock was ahead. */
  keep(): Promise<void>
}

/** Whether the clock of this machine is trusted. A runtime without a clock watch always trusts it. */
export function isClockTrusted({ clockWatch }: { readonly clockWatch: ClockWatch | null }): boolean {
  return clockWatch === null || clockWatch.state().state === 'confirmed'
}
