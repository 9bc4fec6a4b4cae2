import { setImmediate } from 'node:timers/promises'
import type { Ports } from '../app/context.ts'
import { deleteOldRuns } from '../app/automation/runs.ts'
import { deleteExpired, retentionCutoffs } from '../app/mesh/retention.ts'
import { rollUp } from '../app/mesh/roll-up.ts'
import { deleteOldTraffic } from '../app/mesh/traffic-retention.ts'
import { readSettings } from '../app/settings/settings.ts'

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
  const { store, log } = ports
  try {
    const settings = await readSettings(store)
    const pause = async () => {
      await setImmediate()
      return goesOn()
    }
    // What is deleted is in its hour by then.
    await rollUp(store, pause)
    const deleted = {
      ...(await deleteExpired(store, retentionCutoffs(settings, ports.now()), pause)),
      ...(await deleteOldTraffic(store, settings, ports.now(), pause)),
      automationRuns: await deleteOldRuns(store, ports.now(), pause),
    }
    if (Object.values(deleted).some((rows) => rows > 0)) log.info('Old data deleted', deleted)
  } catch (error) {
    log.error('Deleting old data failed', { error })
  }
}
