/** A burst of `most`, and one more every `everyMs`, which may be a fraction. */
export type BucketSize = { readonly most: number; readonly everyMs: number }

/** Limits frequent actions of each client. `test/contract/buckets.ts` tests every implementation. */
export interface Buckets {
  /** Takes one token out of the bucket `key`, atomically. Returns 0, or the milliseconds until one is available. */
  take(key: string, size: BucketSize, now: number): Promise<number>
  /** Puts back a token that was not used. */
  giveBack(key: string, size: BucketSize): Promise<void>
}

/** Beyond this number of keys, the least recently used one is dropped. */
const MAX_KEYS = 20_000

/** Buckets of one process. */
export function memoryBuckets(): Buckets {
  /** When each bucket is full again. */
  const fullAt = new Map<string, number>()
  const keep = (key: string, at: number) => {
    // Moved to the end: the first one is the least recently used.
    fullAt.delete(key)
    fullAt.set(key, at)
    const [first] = fullAt.keys()
    if (fullAt.size > MAX_KEYS && first !== undefined) fullAt.delete(first)
  }
  return {
    take: async (key, { most, everyMs }, now) => {
      // Never later than for an empty bucket, so that a clock that was ahead locks nobody out.
      const known = fullAt.get(key) ?? 0
      const from = Math.min(Math.max(known, now), now + most * everyMs)
      const waitMs = from + everyMs - (now + most * everyMs)
      if (waitMs > 0) {
        // Otherwise a clock that was years ahead would lock clients out for years.
        if (from < known) keep(key, from)
        return waitMs
      }
      keep(key, from + everyMs)
      return 0
    },
    giveBack: async (key, { everyMs }) => {
      const at = fullAt.get(key)
      if (at !== undefined) fullAt.set(key, at - everyMs)
    },
  }
}
