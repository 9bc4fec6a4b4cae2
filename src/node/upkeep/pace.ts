import type { Pause } from '../../app/base/pacing/slices.ts'
import { nextTurn } from '../../app/base/pacing/next-turn.ts'
import { FIRST_SHARE, nextShare, type Share } from '../../app/base/pacing/slice-share.ts'
import { systemClock } from '../clock.ts'

export type Pace = { readonly pause: Pause; readonly share: Share }

/**
 * Makes slices that this machine completes in a few milliseconds; requests are served between them. `clock` is in
 * milliseconds.
 */
export function createPace(goesOn: () => boolean, clock: () => number = systemClock.monotonic): Pace {
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
