/** Limits how often something may be done. */
export type Allowance = {
  /** Uses one attempt; false if none is left. */
  readonly take: () => boolean
  /** Returns an attempt that did no harm. */
  readonly giveBack: () => void
}

/** A burst of `most`, and one more every `everyMs`. */
export function createAllowance(most: number, everyMs: number, now: () => number): Allowance {
  let left = most
  let at = now()
  return {
    take: () => {
      const gained = Math.max(0, Math.floor((now() - at) / everyMs))
      at = left + gained >= most ? now() : at + gained * everyMs
      left = Math.min(most, left + gained)
      if (left === 0) return false
      left -= 1
      return true
    },
    giveBack: () => {
      left = Math.min(most, left + 1)
    },
  }
}
