import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { createRows } from '../rows.ts'

export const NO_SUMMARY = { nodeId: 0, metric: 0, t: 0, n: 0, min: 0, max: 0, sum: 0, last: 0, channel: 0 }
export type Summary = Readonly<Record<keyof typeof NO_SUMMARY, number>>

/** More than the ids of metrics: a series is the node times this, and its metric. */
export const METRICS = 2 ** 20

/** The summaries of one span after the other, by series. Parts must come in the order of time. */
export function createSummaries(spanMs: number) {
  const places = new Map<number, number>()
  const rows = createRows(NO_SUMMARY)
  let begun = 0
  let open: number[] = []
  return {
    /** The span of `endedBefore` must have been taken out. */
    add(part: Summary) {
      begun = part.t - (part.t % spanMs)
      const series = part.nodeId * METRICS + part.metric
      const place = places.get(series)
      const known = place === undefined ? NO_SUMMARY : rows.get(place)
      if (place === undefined || known.n === 0) {
        const first = { ...part, t: begun }
        if (place === undefined) places.set(series, rows.push(first))
        else rows.set(place, first)
        open.push(place ?? rows.length - 1)
        return
      }
      rows.set(place, {
        ...known,
        n: known.n + part.n,
        min: Math.min(known.min, part.min),
        max: Math.max(known.max, part.max),
        sum: known.sum + part.sum,
        last: part.last,
        channel: known.channel === part.channel ? known.channel : UNKNOWN_CHANNEL,
      })
    },
    /** Takes out the summaries of the span if it ended before this time. */
    *endedBefore(before: number) {
      if (begun + spanMs > before) return
      for (const place of open) {
        yield rows.get(place)
        rows.set(place, NO_SUMMARY)
      }
      open = []
    },
  }
}
