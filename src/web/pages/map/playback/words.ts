import type { History } from './history.ts'

/** How long a text stands beside its sender, in time of the viewer and at least in time of the mesh. */
const STANDS_MS = 4000
const LEAST_MS = 60_000
/** Texts at once. */
const MAX_TEXTS = 5

/** The latest texts, and those who sent them. */
export function wordsAt(history: History, at: number, speed: number): Map<number, string> {
  const since = at - Math.max(LEAST_MS, STANDS_MS * speed)
  const found = new Map<number, string>()
  for (const happening of history.latest(at, 4 * MAX_TEXTS)) {
    if (happening.t < since || found.size === MAX_TEXTS) break
    if (happening.kind !== 'text' || found.has(happening.message.fromNodeNum)) continue
    if (history.placeOf(happening.message.fromNodeNum, at) === null) continue
    found.set(happening.message.fromNodeNum, happening.message.text)
  }
  return found
}
