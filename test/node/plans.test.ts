import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { sweepSessions } from '../../src/app/accounts/sessions/sessions.ts'
import { sealAudit } from '../../src/app/audit/chain.ts'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import { loseUnfinished } from '../../src/app/mesh/messages/delivery-records.ts'
import { buildTextIndexes } from '../../src/app/search/build.ts'
import { deleteOld, keepBounds, keepUp } from '../../src/app/upkeep/upkeep.ts'
import { createLog } from '../../src/app/base/log.ts'
import { applyMigrations, MIGRATIONS_DIR, sqliteStore } from '../../src/node/database.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { FAR, heard, LOCAL, myInfo, nodeInfo, packet, position, telemetry, text, user } from '../support/mesh/mesh.ts'

/** Tables that grow with use, to thousands or millions of rows. */
const LARGE = [
  'messages',
  'receptions',
  'packets',
  'proven_packets',
  'positions',
  'telemetry',
  'telemetry_hourly',
  'telemetry_daily',
  'audit_log',
  'sessions',
  'rate_limits',
  'idempotency_keys',
  'automation_runs',
  'forgotten_nodes',
  'nodes',
  'users',
  'api_tokens',
  'row_counts',
]

/** Indexes of a few rows only. */
const SMALL = /USING (COVERING )?INDEX (messages_unfinished|nodes_local|nodes_suspected)$/

/** Statements that may scan such a table, identified by a part of their text, and why. */
const ALLOWED: Readonly<Record<string, string>> = {
  // From one end of the table, a bounded number of rows.
  'order by "messages"."id" desc limit': 'the newest page',
  'order by "packets"."id" desc limit': 'the newest page, and when each source was last heard',
  'order by "packets"."id" limit': 'the oldest one',
  'from audit_log  order by id desc limit': 'the newest page',
  'from "proven_packets" limit': 'whether there is one',
  'order by "forgotten_nodes"."node_id" limit': 'that many nodes with rows left',
  // At most 20,000 nodes, as many rows of an index, or the list itself.
  'from "nodes" order by': 'the list of all nodes',
  'select count(*) from "nodes"': 'how many nodes',
  'lower("nodes"."long_name")': 'a part too short for the text index',
  'from nodes where public_key is not null group by public_key': 'nodes that continue under another number',
  'from "users"': 'the list of users: a few hundred',
  'from "automation_runs" group by': 'an index of the runs of rules, 10,000 of each at most',
}

let app: TestApp
/** Each statement that ran, with its bound values. */
const ran = new Set<string>()

beforeAll(async () => {
  const sqlite = new Database(':memory:', { verbose: (statement) => void ran.add(String(statement)) })
  applyMigrations(sqlite, MIGRATIONS_DIR)
  sqlite.pragma('foreign_keys = ON')
  const store = sqliteStore(sqlite)
  app = await createTestApp({ store, ports: { sessions: databaseSessions(store) } })
})
afterAll(() => app.close())

/** What SQLite scans from its first row on, one line each. */
function scans(statement: string): string[] {
  const plan = app.store.sqlite.prepare<[], { detail: string }>(`explain query plan ${statement}`).all()
  const isLarge = (step: string) => LARGE.some((table) => new RegExp(`^SCAN ${table}\\b`).test(step))
  return plan.map(({ detail }) => detail).filter((step) => isLarge(step) && !SMALL.test(step))
}

test('no statement of a route or a timer scans a growing table', async () => {
  const admin = await app.admin()
  const ingest = createIngest(app.store)
  const others = [
    packet(user({ id: 'x', longName: 'Far' })),
    packet(position({ latitudeI: 1, longitudeI: 2 })),
    packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } })),
    nodeInfo({ num: 7 }),
    packet(text('hello'), { to: LOCAL }),
  ]
  await ingest.store([myInfo, ...others].map((each) => heard(each)))
  ran.clear()
  await app.admin()
  const paths = [
    'health',
    'auth/status',
    'auth/sessions',
    'tokens',
    'users',
    'users?q=ann',
    'users/1',
    'users/1/permissions',
    'users/1/sessions',
    'users/1/tokens',
    'audit',
    'audit?cursor=5',
    'audit?userId=1',
    'audit?action=logout',
    'audit?action=login_failed',
    'audit?resource=users',
    'audit?from=1&to=2',
    'audit?q=text',
    'audit?q=x&resource=users',
    'audit/export?format=csv',
    'audit/export?format=ndjson&q=text',
    'audit/verify',
    'nodes',
    'nodes?q=far',
    'nodes?q=f',
    'nodes?since=5',
    'nodes?activeWithin=60',
    'nodes?ids=5,6',
    `nodes/${LOCAL}`,
    `nodes/${LOCAL}/positions?from=0&to=5`,
    'messages',
    'messages?before=5',
    'messages?channel=0',
    'messages?channel=0&before=5',
    'messages?since=5',
    'messages?since=99999999999999',
    `messages?with=${LOCAL}`,
    `messages?with=${LOCAL}&q=hello`,
    'messages?q=hello',
    'messages?q=h',
    'messages?q=hello&channel=0',
    'messages?signed=true',
    'messages?signed=true&channel=0',
    'messages/1/receptions',
    'info',
    'traceroutes',
    `traceroutes?node=${LOCAL}`,
    'neighbors',
    'packets',
    `packets?from=${LOCAL}`,
    'packets?port=1',
    'packets?to=!ffffffff',
    'packets?since=5',
    'waypoints',
    'channels',
    `telemetry?nodeId=${LOCAL}`,
    `telemetry?nodeId=${LOCAL}&metric=deviceMetrics.voltage&from=0&to=9000000000`,
    'metrics',
    'dashboard',
    'automation',
    'settings',
    'map',
    'configuration',
  ]
  const permissions = { nodes: { read: true, write: false } }
  const changes = [
    ['PUT', `nodes/${FAR}`, { isFavorite: true, notes: 'on the hill' }],
    ['DELETE', `nodes/${FAR}`],
    ['POST', 'users', { username: 'berta', permissions }],
    ['PUT', 'users/2', { displayName: 'Berta' }],
    ['PUT', 'users/2/permissions', { permissions }],
    ['POST', 'users/2/reset-password'],
    ['DELETE', 'users/2/sessions'],
    ['DELETE', 'users/2/tokens'],
    ['DELETE', 'users/2'],
    ['POST', 'tokens', { name: 'one', scopes: ['nodes:read'] }],
    ['DELETE', 'tokens/1'],
    ['PUT', 'settings', { nodeActiveSeconds: 3600 }],
  ] as const
  for (const path of paths) {
    const answer = await admin.send('GET', `/api/${path}`)
    await answer.text()
    expect([path, answer.status]).toStrictEqual([path, expect.toSatisfy((status) => [200, 404].includes(status))])
  }
  for (const [method, path, body] of changes) {
    expect([path, (await admin.send(method, `/api/${path}`, body)).status]).toStrictEqual([
      path,
      expect.toSatisfy((status) => status < 300),
    ])
  }
  const ports = { ...app.ports, log: createLog({ level: 'error', format: 'json', now: () => 0, write: () => {} }) }
  app.store.sqlite.exec('insert into proven_packets values (5, 6, 7, 1)')
  const onwards = async () => true
  await keepUp(ports, onwards)
  await deleteOld(ports, onwards)
  await keepBounds(ports, onwards)
  await buildTextIndexes(ports, onwards)
  await sealAudit(app.store)
  await sweepSessions(ports)
  await loseUnfinished(app.store)
  const statements = [...ran].filter((statement) => /^\s*(select|with|insert|update|delete)\b/i.test(statement))
  expect(statements.length).toBeGreaterThan(120)
  const found: Record<string, string[]> = {}
  for (const statement of statements) {
    const isAllowed = Object.keys(ALLOWED).some((part) => statement.includes(part))
    const steps = isAllowed ? [] : scans(statement)
    if (steps.length > 0) found[statement] = steps
  }
  expect(found).toStrictEqual({})
})
