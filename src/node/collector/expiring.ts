import type { Ports } from '../../app/base/context.ts'
import { expireCommands } from '../../app/mesh/downlink/commands.ts'
import { type Clock, createTimer, systemClock } from '../clock.ts'

const EVERY_MS = 5000

/** Tells what collectors did not take in time as not sent. */
export function startExpiring(
  ports: Pick<Ports, 'store' | 'events' | 'log'>,
  clock: Clock = systemClock,
): { stop(): Promise<void> } {
  const timer = createTimer(clock)
  let isStopped = false
  let last = Promise.resolve()
  const tick = () => {
    last = expireCommands({ ...ports, now: clock.now })
      .catch((error: unknown) => ports.log.error('Commands for collectors could not be ended', { error }))
      .finally(() => {
        if (!isStopped) timer.start(EVERY_MS, tick)
      })
  }
  timer.start(EVERY_MS, tick)
  return {
    async stop() {
      isStopped = true
      timer.stop()
      await last
    },
  }
}
