import { setImmediate } from 'node:timers/promises'
import type { Ports } from '../app/context.ts'
import { rollUp } from '../app/mesh/roll-up.ts'

const INTERVAL_MS = 60_000

/** Rolls measurements up each minute. `stop` waits for the slice that is under way. */
export function startRollUps({ store, log }: Pick<Ports, 'store' | 'log'>): { stop(): Promise<void> } {
  let isStopping = false
  let running: Promise<void> | null = null
  const pause = async () => {
    await setImmediate()
    return !isStopping
  }
  const run = async () => {
    try {
      const hours = await rollUp(store, pause)
      if (hours > 0) log.debug('Measurements rolled up', { hours })
    } catch (error) {
      log.error('Rolling measurements up failed', { error })
    }
    running = null
  }
  const interval = setInterval(() => {
    running ??= run()
  }, INTERVAL_MS)
  return {
    async stop() {
      isStopping = true
      clearInterval(interval)
      await running
    },
  }
}
