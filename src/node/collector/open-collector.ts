import type { ClockWatch } from '../../app/base/pacing/clock.ts'
import type { Ports } from '../../app/base/context.ts'
import { isSecureUrl } from '../../app/config/secure-url.ts'
import { createCollectorFilter } from '../../app/mesh/collector/filter.ts'
import type { Clock } from '../clock.ts'
import { type NodeCollector, startCollector } from './collector.ts'

type Needs = Pick<Ports, 'config' | 'store' | 'log'> & {
  readonly clock?: Clock
  readonly clockWatch?: ClockWatch
  readonly random?: () => number
}

/** The configured collector; null if there is none. */
export function openCollector({ config, store, log, clock, clockWatch, random }: Needs): NodeCollector | null {
  const { COLLECTOR_TARGET_URL: url, COLLECTOR_TOKEN: token, COLLECTOR_NAME: name } = config
  const { COLLECTOR_ONLY: only, COLLECTOR_SAMPLE_SECONDS: sampleSeconds } = config
  if (url === null || token === null) return null
  if (!isSecureUrl(url)) {
    log.warn('COLLECTOR_TARGET_URL is not https: anybody on the network path can read the token and the packets')
  }
  return startCollector({
    target: { url, token, name },
    filter: createCollectorFilter({ only, sampleSeconds }),
    store,
    log,
    ...(clock && { clock }),
    ...(clockWatch && { clockWatch }),
    ...(random && { random }),
  })
}
