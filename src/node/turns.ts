import type { Turns } from '../app/base/pacing/next-turn.ts'

/**
 * Of all jobs that wait for their next turn, one goes on in each round of the event loop. Timers of several jobs would
 * run one after another, without looking for requests between them.
 */
export function oneEachRound(): Turns {
  const waiting: (() => void)[] = []
  const letNextGo = (): void => {
    waiting.shift()?.()
    if (waiting.length > 0) setImmediate(letNextGo)
  }
  return (go) => {
    if (waiting.push(go) === 1) setImmediate(letNextGo)
  }
}
