import type { Log } from '../../app/base/log.ts'
import type { Clock } from '../clock.ts'

const RETRY_MS = 30_000

/** Writes that must come one after the other. */
export type RecordQueue = {
  add(write: () => Promise<void>): void
  /** As above, but repeats a failed write every 30 s until it works, because the information will not come again. */
  keep(write: () => Promise<void>): void
  /** Resolves when everything added has been tried; nothing is retried after that. */
  done(): Promise<void>
}

export function createRecordQueue(log: Log, clock: Clock): RecordQueue {
  const cancels = new Set<() => void>()
  let isDone = false
  let last = Promise.resolve()
  const add = (write: () => Promise<void>) => {
    last = last.then(write).catch((error: unknown) => log.error('Data from a radio could not be stored', { error }))
  }
  const keep = (write: () => Promise<void>) =>
    add(async () => {
      try {
        await write()
      } catch (error) {
        if (!isDone) retry(write)
        throw error
      }
    })
  const retry = (write: () => Promise<void>) => {
    const cancel = clock.after(RETRY_MS, () => {
      cancels.delete(cancel)
      keep(write)
    })
    cancels.add(cancel)
  }
  return {
    add,
    keep,
    done() {
      isDone = true
      for (const cancel of cancels) cancel()
      return last
    },
  }
}
