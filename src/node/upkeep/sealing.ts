import { sealAudit } from '../../app/audit/chain.ts'
import type { Ports } from '../../app/base/context.ts'
import { createPace } from './pace.ts'
import { createTimer, type Clock, systemClock } from '../clock.ts'
import { SECOND_MS } from '../../shared/time.ts'

/**
 * Seals new audit entries each second, outside of the requests that wrote them, so that no request waits for it or for
 * the disk. `stop` seals the last ones.
 */
export function startSealing(
  { store, log }: Pick<Ports, 'store' | 'log'>,
  clock: Clock = systemClock,
): { stop(): Promise<void> } {
  const due = createTimer(clock)
  let isStopping = false
  let hasFailed = false
  let running = Promise.resolve()
  const seal = async () => {
    try {
      await sealAudit(store, createPace(() => !isStopping).pause)
      hasFailed = false
    } catch (error) {
      // Logged once and not each second, because most likely the disk is full.
      if (!hasFailed) log.error('Sealing the audit log failed; retrying', { error })
      hasFailed = true
    }
    if (!isStopping) due.start(SECOND_MS, run)
  }
  const run = () => {
    running = seal()
  }
  run()
  return {
    async stop() {
      isStopping = true
      due.stop()
      await running
      await seal()
    },
  }
}
