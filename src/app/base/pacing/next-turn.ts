import { ownedBy } from '../owned.ts'

/** Of Node's event loop; undefined on the edge. */
declare const setImmediate: ((go: () => void) => unknown) | undefined

const waitingIn = ownedBy((_loop: typeof globalThis) => [] as (() => void)[])

/**
 * Lets all other pending work run first. A loop over a synchronous store never leaves the microtask queue by itself, so
 * no other request would be answered until it ends. On Node one loop goes on in each round of the event loop, in turn:
 * timers of several loops would run one after another, without looking for requests between them.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'undefined') setTimeout(resolve, 0)
    else if (waitingIn(globalThis).push(resolve) === 1) setImmediate(letNextGo)
  })
}

function letNextGo(): void {
  const waiting = waitingIn(globalThis)
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate?.(letNextGo)
}
