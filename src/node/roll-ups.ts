import type { Ports } from '../app/context.ts'
import { keepUp } from '../app/upkeep.ts'
import { createPace } from './pace.ts'

const INTERVAL_MS = 60_000

/** Brings what is derived up to date, each minute. `stop` waits for the slice that is under way. */
export function startRollUps(ports: Pick<Ports, 'store' | 'log' | 'now'>): { stop(): Promise<void> } {
  let isStopping = false
  let running: Promise<void> | null = null
  const run = async () => {
    try {
      const { pause, share } = createPace(() => !isStopping)
      await keepUp(ports, pause, share)
    } catch (error) {
      ports.log.error('Rolling measurements up failed', { error })
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
