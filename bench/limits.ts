// The limits of this machine, as servers: what no handler of this kind can beat.
import { serve } from '@hono/node-server'
import Database from 'better-sqlite3'
import { Hono } from 'hono'
import { requirePermission } from '../src/app/access.ts'
import { createApp } from '../src/app/app.ts'
import { databaseSessions } from '../src/app/auth/database-sessions.ts'
import { parseConfig } from '../src/app/config.ts'
import { answers } from '../src/app/describe.ts'
import { createAddressing } from '../src/node/client-address.ts'
import { openDatabase } from '../src/node/database.ts'
import { keptSessionSecret } from '../src/node/secret.ts'

const [kind, dataDir = ''] = process.argv.slice(2)

function bare() {
  const app = new Hono().get('/hello', (c) => c.text('Hello Hono!'))
  if (dataDir === '') return app
  const messages = new Database(`${dataDir}/mesh.db`).prepare('select * from messages order by id desc limit 100')
  return app.get('/messages', (c) =>
    c.body(JSON.stringify(messages.all()), 200, { 'content-type': 'application/json' }),
  )
}

/** The product's own session check before bytes from memory. */
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
    passwords: { hash: unused, verify: unused },
    log: { debug: log, info: log, warn: log, error: console.error },
    oidc: null,
    backups: null,
    radio: null,
    startedAt: 0,
    now: Date.now,
    ...createAddressing([]),
  }))
  const bytes = await (
    await fetch(process.env['BODY_OF'] ?? '', { headers: { cookie: process.env['COOKIE'] ?? '' } })
  ).text()
  return app.get('/bytes', requirePermission('nodes', 'read'), answers('', {}), (c) =>
    c.body(bytes, 200, { 'content-type': 'application/json' }),
  )
}

const app = kind === 'bytes' ? await bytesBehindSession() : bare()
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }))
