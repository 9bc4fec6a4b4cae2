import type { Ports } from '../../app/base/context.ts'
import { checkRelease } from '../../app/system/status/release.ts'
import { sampleStorage } from '../../app/system/status/storage.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'
import { startJob } from './upkeep.ts'

/** Measures the storage, and asks for newer releases if the operator wants that. Both look here whether it is time. */
export function startWatching(ports: Pick<Ports, 'config' | 'store' | 'disk' | 'outbound' | 'log' | 'now'>): {
  stop(): Promise<void>
} {
  const jobs = [
    startJob(ports, { name: 'Measuring the storage', job: () => sampleStorage(ports), everyMs: 10 * MINUTE_MS }),
    startJob(ports, { name: 'Asking for newer releases', job: () => checkRelease(ports), everyMs: HOUR_MS }),
  ]
  return {
    async stop() {
      await Promise.all(jobs.map((job) => job.stop()))
    },
  }
}
