import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import { wholeSlices } from '../../src/app/base/pacing/slice-share.ts'
import { find, summarise, surveyMesh } from '../../src/app/upkeep/surveying.ts'
import { openDatabase } from '../../src/node/database.ts'
import { listOperations } from '../../src/app/http/openapi/document.ts'
import { walkAccounts } from '../contract/operations/account-walk.ts'
import { walkMesh } from '../contract/operations/mesh-walk.ts'
import { walkSystem } from '../contract/operations/system-walk.ts'
import { type Called, createWalker, differences, VISITORS } from '../contract/operations/walker.ts'
import { ADMIN_PASSWORD, SCENARIO_ENV, type Service, signIn } from '../contract/service.ts'
import { buildService, startService } from '../support/built/built-service.ts'
import { keptLog } from '../support/backup/backup.ts'
import { fillPast } from '../support/mesh/past.ts'
import { openWorkerd } from './workerd.ts'

const ENV = { ...SCENARIO_ENV, WRITE_BURST: '1000', LOGIN_MAX_FAILURES: '20' }
const RECORDING = new URL('../meshtastic/fixtures/fromradio.jsonl', import.meta.url)

const HOUR = 3_600_000
const NOW = Math.floor(Date.now() / HOUR) * HOUR
const NODES = 20

type Surveyed = Service & { survey(): Promise<void> }

async function openNode(): Promise<Surveyed> {
  const dataDir = mkdtempSync(join(tmpdir(), 'mesh-operations-'))
  const env = {
    ...ENV,
    DATA_DIR: dataDir,
    TRUSTED_PROXIES: '127.0.0.1',
    RESTART_BY: 'hand',
    MAP_ARCHIVE_URL: 'http://127.0.0.1:9/',
  }
  const service = await startService(buildService(), env)
  const store = openDatabase(join(dataDir, 'mesh.db'))
  return {
    url: new URL(service.url),
    addressHeader: 'x-forwarded-for',
    sql: async (query) => {
      const statement = store.sqlite.prepare(query)
      return statement.reader ? statement.all().map((row) => ({ ...Object(row) })) : (statement.run(), [])
    },
    async survey() {
      const ports = { store, ...keptLog(), now: () => NOW }
      const goesOn = async () => true
      await summarise(ports, goesOn, wholeSlices)
      await surveyMesh(ports, goesOn, wholeSlices)
      await find(ports, goesOn)
    },
    close: async () => {
      store.close()
      await service.stop('SIGTERM')
      rmSync(dataDir, { recursive: true })
    },
  }
}

async function openEdge(): Promise<Surveyed> {
  const workerd = await openWorkerd(ENV)
  return {
    ...workerd,
    async survey() {
      for (const minute of [58, 8]) await workerd.runSchedule(new Date(NOW + minute * 60_000), '8-58/10 * * * *')
    },
  }
}

/** A day of a mesh, and what is known of it then. */
async function live({ sql, survey }: Surveyed): Promise<void> {
  const told: string[] = []
  fillPast(Object({ sqlite: { exec: (statements: string) => told.push(statements) } }), NODES, NOW)
  for (const statement of told.join('').split(';')) if (statement.trim() !== '') await sql(statement)
  await survey()
}

async function walked(service: Surveyed): Promise<readonly Called[]> {
  // Passkeys need a host name.
  const named = { ...service, url: Object.assign(new URL(service.url), { hostname: 'localhost' }) }
  await live(service)
  const walker = createWalker(named, await signIn(named, 'admin', ADMIN_PASSWORD))
  const recording = readFileSync(RECORDING, 'utf8').trim().split('\n').slice(0, 200)
  await walkMesh(
    walker,
    recording.map((line) => Buffer.from(JSON.parse(line).hex, 'hex').toString('base64')),
  )
  await walkAccounts(walker)
  await walkSystem(walker, folder)
  return walker.called
}

let folder: string
let node: Surveyed
let edge: Surveyed
let onEdge: readonly Called[]
let calls: { operation: string; onNode: Called; onEdge: Called }[]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mesh-copies-'))
  node = await openNode()
  edge = await openEdge()
})
beforeAll(async () => {
  onEdge = await walked(edge)
})
beforeAll(async () => {
  const onNode = await walked(node)
  calls = onNode.map((here, index) => {
    const there = onEdge[index]
    if (there?.operation !== here.operation) throw new Error(`other calls than on the edge: ${here.operation}`)
    return { operation: here.operation, onNode: here, onEdge: there }
  })
})
afterAll(async () => {
  await node.close()
  await edge.close()
  rmSync(folder, { recursive: true })
})

/** Why operations answer 501 on the edge, in the words of docs/edge.md. Nothing comes to these lists but a decision. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'because no radio is connected': [
    'POST /api/traceroutes/direct',
    'POST /api/waypoints',
    'PUT /api/waypoints/:id',
    'DELETE /api/waypoints/:id',
    'POST /api/configuration/transfer/channels/share',
    'POST /api/configuration/transfer/channels/preview',
    'PUT /api/configuration/transfer/channels',
    'GET /api/configuration/transfer/file',
    'PUT /api/configuration/transfer/file',
    'POST /api/configuration/transfer/file/export',
    'POST /api/configuration/transfer/file/preview',
    'POST /api/connections',
    'GET /api/connections/candidates',
    'POST /api/connections/test',
    'PUT /api/connections/:id',
    'DELETE /api/connections/:id',
    'GET /api/remote',
    'GET /api/remote/:id',
    'PUT /api/remote/:id',
    'POST /api/remote/:id',
    'GET /api/remote/:id/:section',
    'PUT /api/remote/:id/:section',
  ],
  'because a database is not replaced under those who use it': [
    'GET /api/system/backup/:name/restore',
    'POST /api/system/backup/:name/restore',
    'GET /api/system/restore',
    'DELETE /api/system/restore',
    'DELETE /api/system/restore/outcome',
  ],
  'because they need files and threads': [
    'GET /api/system/copies',
    'PUT /api/system/copies',
    'POST /api/system/copies',
    'POST /api/system/copies/drill',
    'POST /api/system/copies/test',
    'PUT /api/system/copies/:id',
    'DELETE /api/system/copies/:id',
  ],
  'because their answers are shared and cached': [VISITORS],
  'because they lie on a disk': [
    'GET /api/map/archive',
    'GET /api/map/region',
    'POST /api/map/region',
    'DELETE /api/map/region',
    'GET /api/map/region.pmtiles',
    'POST /api/map/region/preview',
  ],
}

/** What succeeds nowhere here, and is refused alike: other tests have a provider, a mail server, a damaged log. */
const NEEDS_MORE: ReadonlySet<string> = new Set([
  'GET /api/auth/oidc/login',
  'GET /api/auth/oidc/callback',
  'GET /api/auth/oidc/callback/:provider',
  'POST /api/auth/oidc/providers/:provider/test',
  'POST /api/auth/oidc/link',
  'DELETE /api/auth/oidc/link',
  'POST /api/auth/oidc/backchannel-logout',
  'GET /api/auth/proxy/login',
  'POST /api/users/prepared',
  'POST /api/users/:id/invitation',
  'DELETE /api/users/:id/invitation',
  'DELETE /api/users/:id/link',
  'POST /api/auth/password-reset',
  'POST /api/auth/password-reset/confirm',
  'PUT /api/auth/email',
  'POST /api/auth/email/link',
  'POST /api/auth/email/confirm',
  'POST /api/auth/links',
  'POST /api/auth/invitation',
  'POST /api/audit/damage/confirm',
  'POST /api/alerts/destinations/:id/confirm',
  'POST /api/system/restore/reapply',
])

/** What each runtime says of itself: the clock of its machine, and jobs that began by themselves. */
const OWN = ['GET /api/info .clock', 'GET /api/system .storage.samples[]', 'GET /api/system .runs[]']

const refused = Object.values(REFUSED).flat()

test('every operation of the API document is called on both runtimes', () => {
  const { routes } = createApp(() => {
    throw new Error('only its routes are needed')
  })
  const documented = listOperations(routes).map(({ method, path }) => `${method} ${path}`)
  const called = new Set(calls.map(({ operation }) => operation))
  called.delete(VISITORS)
  expect([...called].toSorted(), 'call it in test/contract/operations').toStrictEqual(documented.toSorted())
})

test('each answers on the edge as on Node, or is refused for a reason that docs/edge.md names', () => {
  const found = calls.flatMap(({ operation, onNode, onEdge }) => {
    if (refused.includes(operation)) return []
    if (onNode.status !== onEdge.status) return [`${operation}: ${onNode.status} on Node, ${onEdge.status} on the edge`]
    return differences(onNode.body, onEdge.body).map((each) => `${operation} ${each}`)
  })
  expect(found.filter((one) => !OWN.some((own) => one.startsWith(`${own}:`)))).toStrictEqual([])
  const refusals = calls.filter(({ onEdge }) => onEdge.status === 501).map(({ operation }) => operation)
  expect([...new Set(refusals)].toSorted()).toStrictEqual(refused.toSorted())
  const docs = readFileSync(new URL('../../docs/edge.md', import.meta.url), 'utf8')
  for (const reason of Object.keys(REFUSED)) expect(docs).toContain(reason)
})

test('the calls are good ones: Node does what was asked, but where something is missing', () => {
  const done = new Set(calls.filter(({ onNode }) => onNode.status < 400).map(({ operation }) => operation))
  const undone = calls.map(({ operation }) => operation).filter((one) => !done.has(one) && !refused.includes(one))
  expect([...new Set(undone)].toSorted()).toStrictEqual([...NEEDS_MORE].toSorted())
  // Those that the edge refuses for want of a radio find none on Node.
  const failed = calls.filter(({ operation, onNode, onEdge }) =>
    refused.includes(operation)
      ? onEdge.status !== 501 || (onNode.status >= 500 && onNode.status !== 503)
      : onNode.status >= 500 || onEdge.status >= 500,
  )
  expect(failed.map(({ operation, onNode, onEdge }) => [operation, onNode.status, onEdge.status])).toStrictEqual([])
})
