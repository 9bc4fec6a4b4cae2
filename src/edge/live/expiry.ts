import { COMMAND_MS } from '../../shared/mesh/downlink.ts'
import type { Note } from '../../app/mesh/live/event.ts'

/** After the time of a command, by whichever clock wrote it. */
const AFTER_MS = 300
const MOST_TIMERS = 100
const MAY_COMMAND: ReadonlySet<string> = new Set(['delivery', 'traceroute', 'configuration'])

/** Calls `end` when what is told now may have expired: no collector took it. */
export function watchExpiry(end: () => void) {
  const timers = new Set<ReturnType<typeof setTimeout>>()
  return {
    noteTold(notes: readonly Note[]) {
      const mayCommand = notes.some(
        (note) =>
          note.kind === 'nodes' || (note.kind === 'events' && note.events.some(({ kind }) => MAY_COMMAND.has(kind))),
      )
      if (!mayCommand || timers.size >= MOST_TIMERS) return
      const timer = setTimeout(() => {
        timers.delete(timer)
        end()
      }, COMMAND_MS + AFTER_MS)
      timers.add(timer)
    },
  }
}
