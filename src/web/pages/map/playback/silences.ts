import { DAY_MS, MINUTE_MS } from '../../../../shared/time.ts'

/** A node was not heard for much longer than usual. */
export type Silence = {
  /** When it was heard last. */
  readonly since: number
  /** From when on it counts as silent. */
  readonly noticed: number
  /** When it was heard again; null: not in the range. */
  readonly until: number | null
}

/** As many usual pauses are a silence, as on the page of a node. */
const PAUSES = 6
const [SHORTEST_MS, LONGEST_MS] = [10 * MINUTE_MS, DAY_MS]
/** Of fewer times, none is usual. */
const FEW = 4

/** The silences among the times at which a node was heard, ascending, up to the end of the range. `least`: ms that are none. */
export function silencesIn(heard: readonly number[], end: number, least: number): Silence[] {
  if (heard.length < FEW) return []
  const gaps = heard.slice(1).map((t, index) => t - (heard[index] ?? t))
  const usual = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? LONGEST_MS
  const limit = Math.max(least, PAUSES * Math.min(LONGEST_MS, Math.max(SHORTEST_MS, usual)))
  return heard.flatMap((since, index): Silence[] => {
    const until = heard[index + 1] ?? null
    return (until ?? end) - since > limit ? [{ since, noticed: since + limit, until }] : []
  })
}
