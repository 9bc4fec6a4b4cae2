import { nextTurn } from '../../base/pacing/next-turn.ts'

/** How long the work of one request holds the event loop, in milliseconds. */
const AIM_MS = 6

/** Awaited after each small query: lets other requests run once a few milliseconds are used. */
export function spareTurns(): () => Promise<void> {
  let begun = performance.now()
  return async () => {
    if (performance.now() - begun < AIM_MS) return
    await nextTurn()
    begun = performance.now()
  }
}
