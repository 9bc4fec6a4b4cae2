type BackOff = {
  /** Milliseconds to wait after the first failure. */
  readonly firstMs: number
  /** The maximum, before jitter. */
  readonly mostMs: number
  /** The wait is multiplied by this, so that many clients do not retry at the same moment. */
  readonly jitter?: number
}

/** Milliseconds to wait before the next attempt, after this many failures before the latest one: doubles each time. */
export function backOff(failuresBefore: number, { firstMs, mostMs, jitter = 1 }: BackOff): number {
  return Math.min(mostMs, firstMs * 2 ** failuresBefore) * jitter
}
