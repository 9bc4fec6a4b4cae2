import { HOUR_MS } from '../../../shared/time.ts'

/** For this long after the first node was heard, all nodes are new. */
const FILL_MS = HOUR_MS

/** Whether an unknown node is news. `firstHeard`: of the node known longest; null: there is none. */
export function isNewsworthy(firstHeard: number | null, now: number): boolean {
  return firstHeard !== null && now - firstHeard >= FILL_MS
}
