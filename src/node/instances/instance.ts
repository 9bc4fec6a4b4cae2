import type { Log } from '../../app/base/log.ts'
import type { InstanceInfo } from '../../app/system/status/instances.ts'
import type { NodeRadio } from '../radio/radio.ts'
import type { InstancesFile } from './file.ts'
import { LEASE_MS, type Lease } from './lease.ts'

/** How often an instance reports that it is running, or checks whether the holder of the lease still is. */
const KEEP_ALIVE_MS = 4000
/** How often it checks the change counter of a file for messages from others. */
const LOOK_MS = 200
/** An instance that is silent for this long no longer counts. */
const MEMBER_MS = 60_000
const MAX_LISTED = 100

/** The duties that one instance performs for all: the radios, the schedules, the upkeep. */
export type Duties = {
  readonly radio: NodeRadio
  /** Ends work in progress. `lost`: another instance already has the duties. */
  stop(why?: 'lost'): Promise<void>
}

/** The state of this instance and of the others. */
export type Membership = {
  /** The duties of this instance; null while another one has them. */
  duties: Duties | null
  /** Instances that are known to run without the duties. */
  waiting: number
}

/** Whether any other instance is known to run. */
export const hasOthers = ({ duties, waiting }: Membership): boolean => duties === null || waiting > 0

type Tasks = {
  /** Takes up the duties. */
  readonly begin: () => Duties
  /** Called when other instances have written something, or this one got the duties. */
  readonly onNews: (duties: Duties | null) => void
  /** Called at each check. */
  readonly onLook: (duties: Duties | null) => void
}

export type Instance = {
  /** All that are known to run, the one with the duties first. */
  list(): readonly InstanceInfo[]
  /** Takes the duties as soon as no instance has them. */
  start(tasks: Tasks): void
  /** Gives up the duties, so that another instance can take them at once. */
  leave(): Promise<void>
  /** Stops all checks. */
  close(): void
}

type Needs = {
  readonly file: InstancesFile
  readonly lease: Lease
  readonly log: Log
  readonly now: () => number
  /** This object is updated. */
  readonly membership: Membership
}

/** Takes up the duties together with the lease, and gives them up when another instance has it. */
export function joinInstances({ file, lease, log, now, membership }: Needs): Instance {
  const { sqlite, id } = file
  const join = sqlite.prepare('insert or replace into instances (id, alive_at) values (?, ?)')
  const part = sqlite.prepare('delete from instances where id = ?')
  const sweep = sqlite.prepare('delete from instances where alive_at not between ? and ?')
  const count = sqlite.prepare<[], number>('select count(*) from instances').pluck()
  const list = sqlite.prepare<[object], { id: string; hasLease: 0 | 1; seenAt: number }>(
    `select owner as id, 1 as hasLease, expires_at - ${LEASE_MS} as seenAt from lease
      where owner is not null and expires_at > @now
    union all select id, 0, alive_at from instances where alive_at between @now - ${MEMBER_MS} and @now + ${MEMBER_MS}
    limit ${MAX_LISTED}`,
  )
  let ending: Promise<void> | null = null
  const timers: NodeJS.Timeout[] = []
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
    const held = membership.duties
    if (held === null) return
    membership.duties = null
    ending = layDown(held, why)
  }
  const work = ({ begin, onNews }: Tasks) => {
    if (membership.duties !== null) {
      if (lease.renew()) {
        sweep.run(now() - MEMBER_MS, now() + MEMBER_MS)
        return
      }
      log.warn('Another instance has taken over the radios because this one was silent for too long')
      endDuties('lost')
    } else if (ending === null && lease.acquire()) {
      log.info('This instance has the radios and the schedules')
      part.run(id)
      membership.duties = begin()
      onNews(membership.duties)
      return
    }
    join.run(id, now())
  }
  const look = (tasks: Tasks) => {
    if (file.hasNews()) {
      membership.waiting = count.get() ?? 0
      tasks.onNews(membership.duties)
      // Another instance has just given it up.
      if (membership.duties === null && !isLeaving && lease.owner() === null) work(tasks)
    }
    tasks.onLook(membership.duties)
  }
  /** The disk may be full for a while; the next check tries again. */
  const trying = (run: () => void) => () => {
    try {
      run()
      isFailing = false
    } catch (error) {
      if (!isFailing) log.error('The file that the instances share cannot be read or written', { error })
      isFailing = true
    }
  }
  return {
    list: () =>
      list.all({ now: now() }).map((row) => ({
        id: row.id.slice(0, 8),
        isSelf: row.id === id,
        hasLease: row.hasLease === 1,
        seenAt: row.seenAt,
      })),
    start(tasks) {
      const keepAlive = trying(() => work(tasks))
      const watch = trying(() => look(tasks))
      keepAlive()
      if (membership.duties === null) log.info('Another instance has the radios and the schedules')
      timers.push(setInterval(keepAlive, KEEP_ALIVE_MS), setInterval(watch, LOOK_MS))
    },
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
