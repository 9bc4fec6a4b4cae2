import { databaseSessions } from '../app/accounts/sessions/database-sessions.ts'
import { type Ctx, NO_PORTS, type Ports } from '../app/base/context.ts'
import { memoryBuckets } from '../app/http/limits/buckets.ts'
import { readAppVersion } from './version.ts'
import { readTranslation } from './translations.ts'
import { systemClock } from './clock.ts'

/** Context of commands without HTTP. The user of the command line counts as the service itself. */
export function consoleContext({
  config,
  store,
  log,
  passwords,
}: Pick<Ports, 'config' | 'store' | 'log' | 'passwords'>): Ctx {
  return {
    config,
    store,
    sessions: databaseSessions(store),
    buckets: memoryBuckets(),
    passwords,
    log,
    ...NO_PORTS,
    translations: readTranslation,
    version: readAppVersion(),
    startedAt: systemClock.now(),
    now: systemClock.now,
    clientIp: () => null,
    proxyUser: () => null,
    origin: () => 'http://localhost',
    viewer: null,
    ip: null,
    requestId: 'console',
  }
}
