import type { Events } from '../../app/mesh/live/event.ts'
import type { Radio } from '../../app/mesh/radios/radio.ts'
import type { Config } from '../../app/config/config.ts'
import type { Log } from '../../app/log.ts'
import { createEvents } from '../../app/mesh/live/events.ts'
import { systemClock } from '../radio/connection.ts'
import { openInstancesFile } from './file.ts'
import { openHandOver } from './hand-over.ts'
import { type Duties, joinInstances } from './instance.ts'
import { createLease } from './lease.ts'
import { shareNews } from './news.ts'
import { sharedRadio, shareState } from './shared-radio.ts'

/** How often the state of the radios is written down for the others. */
const STATE_MS = 1000

/** This instance among all on the same DATA_DIR. */
export type Instances = {
  /** The radios, whoever has them. */
  readonly radio: Radio
  /** The live events of all. */
  readonly events: Events
  /** Whether this instance has the duties, read from the file. */
  isOnDuty(): boolean
  start(): void
  leave(): Promise<void>
  close(): Promise<void>
}

export function openInstances(needs: {
  readonly config: Config
  readonly log: Log
  readonly fetch: (request: Request, env: unknown) => Response | Promise<Response>
  readonly begin: (instances: Instances) => Duties
}): Instances {
  const { config, log, fetch, begin } = needs
  const now = Date.now
  const file = openInstancesFile(config.DATA_DIR)
  const lease = createLease(file, hasRadios(config), now)
  const own = createEvents(systemClock, file.id.slice(0, 8))
  const state = shareState(file, lease)
  const handOver = openHandOver({ file, lease, secrets: config.SESSION_SECRET, fetch, log, now })
  const news = shareNews({
    file,
    own,
    hasOthers: () => instance.hasOthers(),
    onForgetNode: (nodeNum) => instance.duties()?.radio.forgetNode?.(nodeNum),
    onError: (error) => log.error('Events could not be passed to the other instances', { error }),
  })
  let stateAt = 0
  const instance = joinInstances({
    file,
    lease,
    log,
    now,
    begin: () => begin(instances),
    onNews(duties) {
      news.take()
      handOver.settle()
      if (duties === null) state.read()
      else handOver.serve()
    },
    onLook(duties) {
      if (duties === null || !instance.hasOthers() || Math.abs(performance.now() - stateAt) < STATE_MS) return
      stateAt = performance.now()
      state.write(duties.radio)
    },
  })
  const radio = sharedRadio({
    own: () => instance.duties()?.radio ?? null,
    isOnDuty: lease.isHeld,
    state,
    handOver,
    forgetNode: news.forgetNode,
  })
  const instances: Instances = {
    radio,
    events: news.events,
    isOnDuty: lease.isHeld,
    start: instance.start,
    leave: instance.leave,
    async close() {
      await handOver.idle()
      instance.close()
      file.close()
    },
  }
  return instances
}

function hasRadios({ DEMO, MESHTASTIC_TCP, MESHTASTIC_MQTT_URL }: Config): boolean {
  return DEMO || MESHTASTIC_TCP.length > 0 || MESHTASTIC_MQTT_URL !== null
}
