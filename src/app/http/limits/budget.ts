/** A store of milliseconds that is full at `burstMs` and refills by `msPerSecond`. */
export type BudgetSize = { readonly burstMs: number; readonly msPerSecond: number }

/** Milliseconds of processor time that unknown callers may use, each and together, in this process. */
export type Budget = {
  /**
   * Takes an amount for one caller; null: a caller without an address. Returns 0, or how long to wait if nothing was
   * taken.
   */
  take(who: string | null, ms: number, now: number): number
  /** Charges a caller more, or gives some back. It refuses nothing, because the time is already used. */
  settle(who: string | null, ms: number, now: number): void
}

/** Beyond this number of callers, the one idle for the longest time is forgotten. */
const MAX_CALLERS = 20_000
/** A caller who has used less than this share of their own store is a newcomer. */
const NEWCOMER_SHARE = 1 / 8

/**
 * `all` is shared by all callers. When it is empty, callers who have used little can still take from `newcomers`, so
 * that many greedy callers together keep nobody out.
 */
export function createBudget(sizes: {
  readonly each: BudgetSize
  readonly all: BudgetSize
  readonly newcomers: BudgetSize
}): Budget {
  const { each, newcomers } = sizes
  const used = new Map<string, Level>()
  const ofAll = createLevel()
  const ofNewcomers = createLevel()
  const levelOf = (who: string, now: number): Level => {
    const level = used.get(who) ?? createLevel()
    // Moved to the end: the first one is the least recently used.
    used.delete(who)
    used.set(who, level)
    const [first] = used.keys()
    if (used.size > MAX_CALLERS && first !== undefined) used.delete(first)
    drain(level, each, now)
    return level
  }
  return {
    take(who, ms, now) {
      const own = who === null ? null : levelOf(who, now)
      drain(ofAll, sizes.all, now)
      drain(ofNewcomers, newcomers, now)
      const ownWait = own === null ? 0 : waitFor(own, each, ms)
      if (ownWait > 0) return ownWait
      const isNewcomer = own !== null && own.usedMs < each.burstMs * NEWCOMER_SHARE
      const wait = waitFor(ofAll, sizes.all, ms)
      if (wait > 0 && !(isNewcomer && waitFor(ofNewcomers, newcomers, ms) === 0)) return wait
      if (wait > 0) ofNewcomers.usedMs += ms
      else ofAll.usedMs += ms
      if (own !== null) own.usedMs += ms
      return 0
    },
    settle(who, ms, now) {
      drain(ofAll, sizes.all, now)
      for (const level of who === null ? [ofAll] : [ofAll, levelOf(who, now)]) {
        level.usedMs = Math.max(0, level.usedMs + ms)
      }
    },
  }
}

type Level = { usedMs: number; at: number }

const createLevel = (): Level => ({ usedMs: 0, at: 0 })

/** If the clock was set back, nothing is refilled and nobody is locked out. */
function drain(level: Level, { msPerSecond }: BudgetSize, now: number): void {
  const passedMs = Math.max(0, now - level.at)
  level.usedMs = Math.max(0, level.usedMs - (passedMs * msPerSecond) / 1000)
  level.at = now
}

/** A request for more than a full store passes when the store is full. */
function waitFor({ usedMs }: Level, { burstMs, msPerSecond }: BudgetSize, ms: number): number {
  const missing = usedMs + Math.min(ms, burstMs) - burstMs
  return missing <= 0 ? 0 : Math.ceil((missing * 1000) / msPerSecond)
}
