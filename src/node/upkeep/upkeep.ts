import type { ClockWatch } from '../../app/base/pacing/clock.ts'
import type { Ports } from '../../app/base/context.ts'
import type { Share } from '../../app/base/pacing/slice-share.ts'
import type { Pause } from '../../app/base/pacing/slices.ts'
import { find, forgetOldSurveys, summarise, surveyMesh } from '../../app/upkeep/surveying.ts'
import { buildTextIndexes } from '../../app/search/build.ts'
import { deleteOld, keepBounds, keepUp, warnOfRetention } from '../../app/upkeep/upkeep.ts'
import type { DiskReserve } from '../disk/reserve.ts'
import { createPace } from './pace.ts'
import { nextTurn } from '../../app/base/pacing/next-turn.ts'
import { createTimer, type Clock, systemClock } from '../clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'now'>
type Watched = Needs & {
  readonly clockWatch: ClockWatch
  readonly disk: DiskReserve
  /** Whether a backup is being made. */
  readonly isBackingUp: () => boolean
}
type Upkeep = { stop(): Promise<void> }

/** Works in slices. */
type Work = (ports: Needs, pause: Pause, share: Share) => Promise<void>

/**
 * Updates derived data each minute, deletes what exceeds a limit every ten minutes, and applies the retention settings
 * each hour.
 */
export function startUpkeep(ports: Watched): Upkeep {
  const { clockWatch, disk, isBackingUp } = ports
  const withRoom =
    (job: Work): Work =>
    (...given) => {
      disk.makeRoom()
      return job(...given)
    }
  const jobs = [
    startJob(ports, { name: 'Keeping a reserve', job: () => disk.keep(), everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Watching the clock', job: () => clockWatch.keep(), everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Rolling measurements up', job: keepUp, everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Summarising who was heard', job: summarise, everyMs: MINUTE_MS }),
    startJob(ports, { name: 'Surveying the mesh', job: surveyMesh, everyMs: MINUTE_MS }),
    startJob(
      { ...ports, now: clockWatch.trusted },
      {
        name: 'Forgetting old surveys',
        job: (needs, ...given) => forgetOldSurveys({ ...needs, clockWatch }, ...given),
        everyMs: HOUR_MS,
      },
    ),
    startJob(ports, { name: 'Looking for findings', job: find, everyMs: HOUR_MS }),
    startJob(
      { ...ports, now: clockWatch.trusted },
      { name: 'Deleting old data', job: withRoom(deleteInTurns), everyMs: HOUR_MS, isHeld: isBackingUp },
    ),
    startJob(
      { ...ports, now: clockWatch.trusted },
      { name: 'Watching retention', job: warnOfRetention, everyMs: HOUR_MS },
    ),
    startJob(ports, { name: 'Indexing texts', job: buildTextIndexes, everyMs: MINUTE_MS, isHeld: isBackingUp }),
    startJob(ports, { name: 'Keeping bounds', job: withRoom(keepBounds), everyMs: 10 * MINUTE_MS }),
  ]
  return {
    async stop() {
      await Promise.all(jobs.map((job) => job.stop()))
    },
  }
}

/** How long one table is worked on before the next one gets its turn, in milliseconds. */
const TURN_MS = 10_000
/** A table that was worked through rests, so that a long run does not begin it again and again. */
const REST_MS = 30 * MINUTE_MS

/**
 * Deletes old data by turns: on a slow card one table may take hours, and the others must not wait for it. `clock` is in
 * milliseconds.
 */
export async function deleteInTurns(
  ports: Needs,
  pause: Pause,
  share: Share,
  clock: () => number = systemClock.monotonic,
): Promise<void> {
  let goesOn = true
  const watched = async () => (goesOn = goesOn && (await pause()))
  const each = (): Pause => {
    const until = clock() + TURN_MS
    return async () => (await watched()) && clock() < until
  }
  for (;;) {
    const isDone = await deleteOld(ports, watched, share, { each, restMs: REST_MS })
    if (isDone || !goesOn) return
  }
}

/** The maximum time that a job is held: a backup may hang, and old data must still be deleted. */
const MAX_HELD_MS = HOUR_MS

type Job = {
  readonly name: string
  readonly job: Work
  readonly everyMs: number
  /**
   * While it returns true the job pauses, even in the middle. A backup reads one snapshot, and SQLite's log grows with
   * every change meanwhile, so writes that can wait should wait.
   */
  readonly isHeld?: () => boolean
  readonly clock?: Clock
}

/**
 * Runs a job a minute after the start, and again at this interval after it ended. Requests are served between its
 * slices; a failed run is repeated next time. `stop` waits for the current slice.
 */
export function startJob(ports: Needs, { name, job, everyMs, isHeld = () => false, clock = systemClock }: Job): Upkeep {
  const due = createTimer(clock)
  let heldMs = 0
  let isStopping = false
  let running = Promise.resolve()
  const runOnce = async () => {
    const mustRest = () => heldMs < MAX_HELD_MS && isHeld()
    // All jobs are due in the same moment: each begins in a turn of its own.
    await nextTurn()
    let hasRested = mustRest()
    const goesOn = () => {
      hasRested ||= mustRest()
      return !isStopping && !hasRested
    }
    try {
      const { pause, share } = createPace(goesOn)
      if (!hasRested && !isStopping) await job(ports, pause, share)
    } catch (error) {
      ports.log.error(`${name} failed`, { error })
    }
    heldMs = hasRested ? heldMs + MINUTE_MS : 0
    if (!isStopping) due.start(hasRested ? MINUTE_MS : everyMs, run)
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
