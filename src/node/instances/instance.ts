import type { Log } from '../../app/log.ts'
import type { NodeRadio } from '../radio/radio.ts'
import type { InstancesFile } from './file.ts'
import type { Lease } from './lease.ts'

/** How often an instance says that it lives, or looks whether the one with the lease still does. */
const BEAT_MS = 4000
/** How often it looks for what others wrote: one look at the change counter of a file. */
const LOOK_MS = 200
/** An instance that says nothing for so long is counted no more. */
const MEMBER_MS = 60_000

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
  /** Whether any other instance is known to run. */
  hasOthers(): boolean
  /** Gives the duties up, for another instance to take at once. */
  leave(): Promise<void>
  /** Looks for nothing any more. */
  close(): void
}

type Needs = {
  readonly file: InstancesFile
  readonly lease: Lease
  readonly log: Log
  readonly now: () => number
  /** Takes the duties up. */
  readonly begin: () => Duties
  /** Others have written something, or the duties have come here. */
  readonly onNews: (duties: Duties | null) => void
  /** Comes with each look. */
  readonly onLook: (duties: Duties | null) => void
}

/** Takes the duties up with the lease, and lays them down when another instance has it. */
export function joinInstances({ file, lease, log, now, begin, onNews, onLook }: Needs): Instance {
  const { sqlite, id } = file
  const join = sqlite.prepare('insert or replace into members (id, beat_at) values (?, ?)')
  const part = sqlite.prepare('delete from members where id = ?')
  const sweep = sqlite.prepare('delete from members where beat_at not between ? and ?')
  const count = sqlite.prepare<[], number>('select count(*) from members').pluck()
  let duties: Duties | null = null
  let ending: Promise<void> | null = null
  const timers: NodeJS.Timeout[] = []
  let others = 0
  let isLeaving = false
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
      if (lease.renew()) {
        sweep.run(now() - MEMBER_MS, now() + MEMBER_MS)
        return
      }
      log.warn('Another instance has taken over the radios because this one was silent for too long')
      endDuties('lost')
    } else if (ending === null && lease.acquire()) {
      log.info('This instance has the radios and the schedules')
      part.run(id)
      duties = begin()
      onNews(duties)
      return
    }
    join.run(id, now())
  }
  const look = () => {
    if (file.hasNews()) {
      others = count.get() ?? 0
      onNews(duties)
      // Somebody has just given it up.
      if (duties === null && !isLeaving && lease.owner() === null) work()
    }
    onLook(duties)
  }
  /** The disk may be full for a while: the next time may be better. */
  const trying = (run: () => void) => () => {
    try {
      run()
      isFailing = false
    } catch (error) {
      if (!isFailing) log.error('The file that the instances share cannot be read or written', { error })
      isFailing = true
    }
  }
  const beat = trying(work)
  return {
    start() {
      beat()
      if (duties === null) log.info('Another instance has the radios and the schedules')
      timers.push(setInterval(beat, BEAT_MS), setInterval(trying(look), LOOK_MS))
    },
    duties: () => duties,
    hasOthers: () => duties === null || others > 0,
    async leave() {
      isLeaving = true
      clearInterval(timers[0])
      endDuties()
      await ending
      lease.release()
      part.run(id)
    },
    close() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}
