import { memoryBuckets, type Buckets } from '../app/http/limits/buckets.ts'
import type { SessionStore } from '../app/accounts/sessions/store.ts'
import { databaseSessions } from '../app/accounts/sessions/database-sessions.ts'
import { memorySessions } from '../app/accounts/sessions/memory-sessions.ts'
import type { Config } from '../app/config/config.ts'
import type { Log } from '../app/base/log.ts'
import { openCounters } from './metrics/counters.ts'
import type { SqliteStore } from './database.ts'

export type OpenSessions = { readonly store: SessionStore; readonly buckets: Buckets; close(): Promise<void> }

/** Opens sessions, counters and buckets in the store that SESSION_STORE selects. Rejects if Redis cannot be reached. */
export async function openSessions(config: Config, store: SqliteStore, log: Log): Promise<OpenSessions> {
  switch (config.SESSION_STORE) {
    case 'database':
    case 'memory': {
      const { counters, close } = openCounters(config.DATA_DIR, log)
      const sessions = config.SESSION_STORE === 'memory' ? memorySessions(counters) : databaseSessions(store, counters)
      return { store: sessions, buckets: memoryBuckets(), close: async () => close() }
    }
    case 'redis': {
      const { redisSessions } = await import('./redis/sessions.ts')
      return redisSessions(config.REDIS_URL ?? '', config.REDIS_PREFIX, log)
    }
    default:
      return config.SESSION_STORE satisfies never
  }
}
