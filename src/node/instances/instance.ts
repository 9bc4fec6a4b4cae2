import type { Log } from '../../app/log.ts'
import type { NodeRadio } from '../radio/radio.ts'
import type { Lease } from './lease.ts'

/** How often an instance says that it lives, or looks whether the one with the lease still does. */
const BEAT_MS = 4000

/** What one instance does for all: the radios, the schedules, the upkeep. */
export type Duties = {
  readonly radio: NodeRadio
  /** Ends what is under way. `lost`: another instance has the duties already. */
  stop(why?: 'lost'): Promise<void>
}

export type Instance = {
  /** Takes the duties when nobody has them, and from then on whenever nobody has. */
  start(): void
  /** The duties of this instance; null while another one has them. */
  duties(): Duties | null
  /** Gives the duties up, for another instance to take at once. */
  leave(): Promise<void>
}

type Needs = {
  readonly lease: Lease
  readonly log: Log
  /** Takes the duties up. */
  readonly begin: () => Duties
}

/** Takes the duties up with the lease, and lays them down when another instance has it. */
export function joinInstances({ lease, log, begin }: Needs): Instance {
  let duties: Duties | null = null
  let ending: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  let isFailing = false

  const layDown = async (held: Duties, why?: 'lost'): Promise<void> => {
    try {
      await held.stop(why)
    } catch (error) {
      log.error('Giving up the radios failed', { error })
    } finally {
      ending = null
    }
  }
  const endDuties = (why?: 'lost') => {
    if (duties === null) return
    const held = duties
    duties = null
    ending = layDown(held, why)
  }
  const work = () => {
    if (duties !== null) {
      if (lease.renew()) return
      log.warn('Another instance has taken over the radios, since this one was silent for too long')
      endDuties('lost')
    } else if (ending === null && lease.acquire()) {
      log.info('This instance has the radios and the schedules')
      duties = begin()
    }
  }
  const beat = () => {
    try {
      work()
      isFailing = false
    } catch (error) {
      if (!isFailing) log.error('The lease of the radios can not be read or written', { error })
      isFailing = true
    }
  }
  return {
    start() {
      beat()
      if (duties === null) log.info('Another instance has the radios and the schedules')
      timer = setInterval(beat, BEAT_MS)
    },
    duties: () => duties,
    async leave() {
      clearInterval(timer)
      endDuties()
      await ending
      lease.release()
    },
  }
}
