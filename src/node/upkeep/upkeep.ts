import type { ClockWatch } from '../../app/upkeep/clock.ts'
import type { Ports } from '../../app/context.ts'
import { buildTextIndexes } from '../../app/search/text-index.ts'
import { deleteOld, keepBounds, keepUp } from '../../app/upkeep/upkeep.ts'
import type { DiskReserve } from './disk.ts'
import { createPace } from './pace.ts'
import { createTimer, type Clock, systemClock } from '../clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'now'>
type Watched = Needs & { readonly clockWatch: ClockWatch; readonly disk: DiskReserve }
type Upkeep = { stop(): Promise<void> }

/**
 * Updates derived data each minute, deletes what exceeds a limit every ten minutes, and applies the retention settings
 * each hour.
 */
export function startUpkeep(ports: Watched): Upkeep {
  const { clockWatch, disk } = ports
  const withRoom =
    (job: typeof keepUp): typeof keepUp =>
    (...given) => {
      disk.makeRoom()
      return job(...given)
    }
  const jobs = [
    startJob(ports, { name: 'Keeping a reserve', job: () => disk.keep(), everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Watching the clock', job: () => clockWatch.keep(), everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Rolling measurements up', job: keepUp, everyMs: MINUTE_MS }),
    startJob(
      { ...ports, now: clockWatch.trusted },
      { name: 'Deleting old data', job: withRoom(deleteOld), everyMs: HOUR_MS },
    ),
    startJob(ports, { name: 'Indexing texts', job: buildTextIndexes, everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Keeping bounds', job: withRoom(keepBounds), everyMs: 10 * MINUTE_MS }),
  ]
  return {
    async stop() {
      await Promise.all(jobs.map((job) => job.stop()))
    },
  }
}

type Job = {
  readonly name: string
  readonly job: typeof keepUp
  readonly everyMs: number
  readonly clock?: Clock
}

/**
 * Runs a job a minute after the start, and again at this interval after it ended. Requests are served between its
 * slices; a failed run is repeated next time. `stop` waits for the slice under way.
 */
export function startJob(ports: Needs, { name, job, everyMs, clock = systemClock }: Job): Upkeep {
  const due = createTimer(clock)
  let isStopping = false
  let running = Promise.resolve()
  const runOnce = async () => {
    try {
      const { pause, share } = createPace(() => !isStopping)
      await job(ports, pause, share)
    } catch (error) {
      ports.log.error(`${name} failed`, { error })
    }
    if (!isStopping) due.start(everyMs, run)
  }
  const run = () => {
    running = runOnce()
  }
  due.start(MINUTE_MS, run)
  return {
    async stop() {
      isStopping = true
      due.stop()
      await running
    },
  }
}
