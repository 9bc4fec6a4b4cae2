import type { Ports } from '../app/context.ts'
import { deleteOld } from '../app/upkeep.ts'
import { createPace } from './pace.ts'

const FIRST_RUN_MS = 60_000
const INTERVAL_MS = 60 * 60_000

type Needs = Pick<Ports, 'store' | 'log' | 'now'>

/** Deletes what the settings no longer keep, each hour. `stop` waits for the slice that is under way. */
export function startRetention(ports: Needs): { stop(): Promise<void> } {
  let isStopping = false
  let running = Promise.resolve()
  const run = () => {
    running = applyRetention(ports, () => !isStopping)
  }
  const first = setTimeout(run, FIRST_RUN_MS)
  const interval = setInterval(run, INTERVAL_MS)
  return {
    async stop() {
      isStopping = true
      clearTimeout(first)
      clearInterval(interval)
      await running
    },
  }
}

/** One run; requests are served between its slices. Never throws: the next hour tries again. */
async function applyRetention(ports: Needs, goesOn: () => boolean): Promise<void> {
  try {
    const { pause, share } = createPace(goesOn)
    await deleteOld(ports, pause, share)
  } catch (error) {
    ports.log.error('Deleting old data failed', { error })
  }
}
