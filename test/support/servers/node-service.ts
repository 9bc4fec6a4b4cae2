import { readTranslation } from '../../../src/node/translations.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../../../src/app/app.ts'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { NO_PORTS, type Ports } from '../../../src/app/base/context.ts'
import { createEvents } from '../../../src/app/mesh/live/events.ts'
import { memoryBuckets } from '../../../src/app/http/limits/buckets.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { makeFirstAdmin } from '../../../src/app/accounts/users/first-admin.ts'
import { systemClock } from '../../../src/node/clock.ts'
import { createAddressing } from '../../../src/node/http/client-address.ts'
import { zlibCompressor } from '../../../src/node/http/compressor.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { listen } from '../../../src/node/http/server.ts'
import type { Service } from '../../contract/service.ts'
import { fewRoundsHasher } from '../few-rounds.ts'

/** The service on Node with an empty database, in its own folder and on its own port; its sign-ins take no time. */
export async function openNodeService(env: Readonly<Record<string, string>>): Promise<Service> {
  const directory = mkdtempSync(join(tmpdir(), 'mesh-scenarios-'))
  const parsed = parseConfig({ ...env, TRUSTED_PROXIES: '127.0.0.1' })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const store = openDatabase(join(directory, 'mesh.db'))
  const log = createLog({ level: 'error', format: 'json', now: Date.now, write: () => {} })
  const events = createEvents(systemClock)
  const ports: Ports = {
    config: parsed.config,
    store,
    sessions: databaseSessions(store),
    buckets: memoryBuckets(),
    passwords: fewRoundsHasher(),
    log,
    ...NO_PORTS,
    events,
    translations: readTranslation,
    compressor: zlibCompressor(),
    version: '1.2.3',
    startedAt: Date.now(),
    now: Date.now,
    ...createAddressing(parsed.config.TRUSTED_PROXIES, log),
  }
  await makeFirstAdmin(ports)
  const server = await listen(createApp(() => ports).fetch, 0, '127.0.0.1')
  return {
    url: new URL(`http://127.0.0.1:${server.port}`),
    addressHeader: 'x-forwarded-for',
    sql: async (query) => {
      const statement = store.sqlite.prepare(query)
      return statement.reader ? statement.all().map((row) => ({ ...Object(row) })) : (statement.run(), [])
    },
    close: async () => {
      events.close()
      await server.close(1000)
      store.close()
      rmSync(directory, { recursive: true })
    },
  }
}
