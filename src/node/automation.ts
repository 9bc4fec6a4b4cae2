import type { HearBatch } from '../app/mesh/heard/heard.ts'
import type { Ports } from '../app/base/context.ts'
import { createEngine } from '../app/automation/engine.ts'
import { settleInterrupted } from '../app/automation/runs.ts'
import { findSender } from '../app/mesh/radios/choose-radio.ts'
import { createTimer, type Clock, systemClock } from './clock.ts'

/** After a start, radios connect first. */
const FIRST_MS = 30_000
/** The longest timer, so that a saved rule or a corrected clock is noticed soon. */
const MAX_TIMER_MS = 10_000
/** The shortest timer, because a run that cannot be recorded as missed is due again immediately. */
const MIN_TIMER_MS = 1000

export type Automatons = {
  /** Accepts a stored batch of events. */
  readonly hear: HearBatch
  /** Waits for work in progress. */
  stop(): Promise<void>
}

/**
 * Runs the automation rules, on schedule and on received messages: one task at a time, in order. A process without
 * radios leaves the rules to the instance on the same database that has them.
 */
export function startAutomation(
  ports: Pick<Ports, 'store' | 'radio' | 'events' | 'log' | 'now'> & {
    readonly meter?: Ports['meter']
    /** Whether this process still has the radios. Checked before each piece of work. */
    readonly mayWrite?: () => boolean
  },
  clock: Clock = systemClock,
): Automatons {
  if (findSender(ports.radio) === null) return { hear() {}, stop: () => Promise.resolve() }
  const { mayWrite = () => true } = ports
  const engine = createEngine(ports)
  const timer = createTimer(clock)
  let isStopped = false
  let last = Promise.resolve()
  const enqueue = (work: () => Promise<void>) => {
    last = last
      .then(() => (isStopped || !mayWrite() ? undefined : work()))
      .catch((error: unknown) => ports.log.error('Automation failed', { error }))
  }
  const arm = (ms: number) => {
    if (!isStopped) timer.start(Math.min(Math.max(ms, MIN_TIMER_MS), MAX_TIMER_MS), tick)
  }
  const tick = () =>
    enqueue(async () => {
      arm(MAX_TIMER_MS)
      const next = await engine.runDue()
      if (next !== null) arm(next - clock.now())
    })
  enqueue(() => settleInterrupted(ports.store))
  timer.start(FIRST_MS, tick)
  return {
    hear(batch, suspected) {
      const texts = batch.filter(({ event }) => event.type === 'packet' && event.packet.payload.kind === 'text')
      if (texts.length > 0) enqueue(() => engine.hear(texts, suspected))
    },
    async stop() {
      isStopped = true
      timer.stop()
      await last
    },
  }
}
