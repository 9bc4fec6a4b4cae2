/**
 * Lets all other pending work run first. A loop over a synchronous store never leaves the microtask queue by itself, so
 * no other request would be answered until it ends.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}
