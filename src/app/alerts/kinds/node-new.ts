import { HOUR_MS } from '../../../shared/time.ts'

/** So long after the first node was heard everything is new. */
const FILL_MS = HOUR_MS

/** Whether a node that nobody knew is news. `firstHeard`: of the node that is known longest; null: there is none. */
export function isNewsworthy(firstHeard: number | null, now: number): boolean {
  return firstHeard !== null && now - firstHeard >= FILL_MS
}
