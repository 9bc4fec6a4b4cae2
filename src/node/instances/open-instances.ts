import type { Events } from '../../app/mesh/live/event.ts'
import type { Radio } from '../../app/mesh/radios/radio.ts'
import type { Config } from '../../app/config/config.ts'
import type { Log } from '../../app/base/log.ts'
import { createEvents } from '../../app/mesh/live/events.ts'
import type { systemClock } from '../clock.ts'
import { hasLinks } from '../radio/configured.ts'
import { openInstancesFile } from './file.ts'
import { type Fetch, openHandOver } from './hand-over.ts'
import { type Duties, hasOthers, type Instance, joinInstances, type Membership } from './instance.ts'
import { createLease } from './lease.ts'
import { shareNews } from './news.ts'
import { sharedRadio, shareState } from './shared-radio.ts'

/** How often the state of the radios is stored for the other instances. */
const STATE_MS = 1000

/** This instance among all on the same DATA_DIR. */
export type Instances = {
  /** The radios, even if another instance has them. */
  readonly radio: Radio
  /** The live events of all instances. */
  readonly events: Events
  list: Instance['list']
  /** Whether this instance has the duties, read from the file. */
  isOnDuty(): boolean
  /** Joins the other instances: `begin` starts the duties, `fetch` answers requests that they forward. */
  start(tasks: { readonly begin: () => Duties; readonly fetch: Fetch }): void
  leave(): Promise<void>
  close(): Promise<void>
}

export function openInstances({
  config,
  log,
  clock,
}: {
  readonly config: Config
  readonly log: Log
  readonly clock: typeof systemClock
}): Instances {
  const { now, monotonic } = clock
  const file = openInstancesFile(config.DATA_DIR)
  const lease = createLease(file, hasLinks(config), now)
  const own = createEvents(clock, file.id.slice(0, 8))
  const state = shareState(file, lease)
  const handOver = openHandOver({ file, lease, secrets: config.SESSION_SECRET, log, now })
  const membership: Membership = { duties: null, waiting: 0 }
  const news = shareNews({
    file,
    own,
    hasOthers: () => hasOthers(membership),
    onForgetNode: (nodeNum) => membership.duties?.radio.forgetNode?.(nodeNum),
    onMarkNode: (nodeNum) => membership.duties?.radio.markNode?.(nodeNum),
    onError: (error) => log.error('Events could not be passed to the other instances', { error }),
  })
  const instance = joinInstances({ file, lease, log, now, membership })
  let stateAt = 0
  const radio = sharedRadio({
    own: () => membership.duties?.radio ?? null,
    isOnDuty: lease.isHeld,
    state,
    handOver,
    forgetNode: news.forgetNode,
    markNode: news.markNode,
  })
  return {
    radio,
    events: news.events,
    list: instance.list,
    isOnDuty: lease.isHeld,
    start({ begin, fetch }) {
      instance.start({
        begin,
        onNews(duties) {
          news.take()
          handOver.settle()
          if (duties === null) state.read()
          else handOver.serve(fetch)
        },
        onLook(duties) {
          if (duties === null || !hasOthers(membership) || Math.abs(monotonic() - stateAt) < STATE_MS) return
          stateAt = monotonic()
          state.write(duties.radio)
        },
      })
    },
    leave: instance.leave,
    async close() {
      await handOver.idle()
      instance.close()
      file.close()
    },
  }
}
