// Bytes from memory behind the product's own session check: what a list that many clients poll can reach at best.
import { serve } from '@hono/node-server'
import { requirePermission } from '../src/app/http/access.ts'
import { createApp } from '../src/app/app.ts'
import { databaseSessions } from '../src/app/auth/sessions/database-sessions.ts'
import { memoryBuckets } from '../src/app/http/limits/buckets.ts'
import { parseConfig } from '../src/app/config/config.ts'
import { answers } from '../src/app/http/describe.ts'
import { createAddressing } from '../src/node/http/client-address.ts'
import { openDatabase } from '../src/node/database.ts'
import { keptSessionSecret } from '../src/node/start/secret.ts'

const [dataDir = ''] = process.argv.slice(2)

async function bytesBehindSession() {
  const parsed = parseConfig({ DATA_DIR: dataDir, SESSION_SECRET: keptSessionSecret(dataDir) })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const store = openDatabase(`${dataDir}/mesh.db`)
  const unused = async () => Promise.reject(new Error('not measured'))
  const log = () => {}
  const app = createApp(() => ({
    config: parsed.config,
    store,
    sessions: databaseSessions(store),
    buckets: memoryBuckets(),
    passwords: { hash: unused, verify: unused },
    log: { debug: log, info: log, warn: log, error: console.error },
    oidc: null,
    backups: null,
    radio: null,
    events: null,
    meter: null,
    compressor: null,
    mapArchive: null,
    clockWatch: null,
    version: '1.2.3',
    disk: null,
    startedAt: 0,
    now: Date.now,
    ...createAddressing([], { warn: log }),
  }))
  const bytes = await (
    await fetch(process.env['BODY_OF'] ?? '', { headers: { cookie: process.env['COOKIE'] ?? '' } })
  ).text()
  return app.get('/bytes', requirePermission('nodes', 'read'), answers('', {}), (c) =>
    c.body(bytes, 200, { 'content-type': 'application/json' }),
  )
}

const app = await bytesBehindSession()
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }))
