import { performance } from 'node:perf_hooks'
import type { Pause } from '../../app/base/pacing/slices.ts'
import { nextTurn } from '../../app/base/pacing/next-turn.ts'
import { FIRST_SHARE, nextShare, type Share } from '../../app/base/pacing/slice-share.ts'

export type Pace = { readonly pause: Pause; readonly share: Share }

/**
 * How long the event loop has not been waiting, in milliseconds. A slice holds nobody while its commit waits for the
 * disk, and would not wait shorter if it had fewer rows.
 */
const busyMs = (): number => performance.eventLoopUtilization().active

/**
 * Makes slices that this machine completes in a few milliseconds; requests are served between them. `clock` is in
 * milliseconds.
 */
export function createPace(goesOn: () => boolean, clock: () => number = busyMs): Pace {
  let share = FIRST_SHARE
  let begun = clock()
  return {
    share: () => share,
    async pause() {
      share = nextShare(share, clock() - begun)
      await nextTurn()
      begun = clock()
      return goesOn()
    },
  }
}
