/** Work between two frames, in milliseconds. */
const SLICE_MS = 12

/** Lets the page answer after each slice of work. */
export function createBreath(): () => Promise<void> {
  let begun = performance.now()
  return async () => {
    if (performance.now() - begun < SLICE_MS) return
    await new Promise((resolve) => setTimeout(resolve, 0))
    begun = performance.now()
  }
}
