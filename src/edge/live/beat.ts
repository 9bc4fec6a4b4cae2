/**
 * Timers of which those of `everyMs` fire together, so that what they need is read at once: the first time after at most
 * that long. `onBeat` is called after them. Nothing runs while nobody waits.
 */
export function createBeat(everyMs: number, onBeat: () => void) {
  const due = new Set<() => void>()
  let timer: ReturnType<typeof setTimeout> | null = null
  const beat = () => {
    timer = null
    const all = [...due]
    due.clear()
    for (const run of all) run()
    onBeat()
  }
  return {
    after(delayMs: number, run: () => void): () => void {
      if (delayMs !== everyMs) {
        const single = setTimeout(run, delayMs)
        return () => clearTimeout(single)
      }
      due.add(run)
      timer ??= setTimeout(beat, everyMs)
      return () => {
        due.delete(run)
        if (due.size > 0 || timer === null) return
        clearTimeout(timer)
        timer = null
      }
    },
  }
}
