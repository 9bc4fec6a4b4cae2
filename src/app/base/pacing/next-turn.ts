import { ownedBy } from '../owned.ts'

/** Calls `go` when all other pending work has had its turn. */
export type Turns = (go: () => void) => void

const turnsOf = ownedBy((_loop: typeof globalThis): { give: Turns } => ({ give: (go) => setTimeout(go, 0) }))

/**
 * Lets all other pending work run first. A loop over a synchronous store never leaves the microtask queue by itself, so
 * no other request would be answered until it ends.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => turnsOf(globalThis).give(resolve))
}

/** For a runtime that has a better way than a timer. */
export function giveTurnsBy(turns: Turns): void {
  turnsOf(globalThis).give = turns
}
