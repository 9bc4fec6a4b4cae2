import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../src/node/database.ts'
import { buildService, type Service, startService } from '../support/built/built-service.ts'
import { figure } from './figures.ts'
import { slowFlushes } from './slow-flushes.ts'

const DAY = 86_400_000
const NODES = 20_000
const FLUSH_MS = 60
/** The service waits for a minute before it begins. */
const MAX_SECONDS = 240
const TABLES = ['telemetry', 'positions', 'messages', 'packets', 'telemetry_hourly'] as const

let dir: string
let service: Service | null = null
let db: Database.Database

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-slow-deletion-'))
  const { sqlite, close } = openDatabase(join(dir, 'mesh.db'))
  const now = Date.now()
  const numbers = `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${NODES})`
  sqlite.pragma('synchronous = OFF')
  sqlite.exec(`begin;
    with recursive i(n) as (select 1 union all select n + 1 from i where n < 8) insert into metrics (id, name) select n, 'a.m' || n from i;
    ${numbers} insert into nodes (id, node_num, first_heard, last_heard) select n, n, ${now - 50 * DAY}, ${now} from i;
    ${numbers} insert into telemetry select i.n, m.id, ${now - 40 * DAY} + d.value, 1, 0 from i, metrics m, json_each('[1,2,3]') d;
    ${numbers} insert into telemetry_hourly select n, 1, ${now - 500 * DAY}, 1, 1, 1, 1, 1, 0 from i;
    ${numbers} insert into positions select n, ${now - 100 * DAY}, 1, 2, null, null, 0 from i;
    ${numbers} insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
      select n, 1 + n % 500, 4294967295, 0, 'old', ${now - 400 * DAY}, 'in' from i;
    ${numbers} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit, via_mqtt,
      pki_encrypted, replayed, payload) select 1, ${now - 8 * DAY}, n, 1 + n % 500, 1, 0, 3, 0, 0, 0, '{}' from i;
    commit`)
  close()
  db = new Database(join(dir, 'mesh.db'), { readonly: true })
})
afterAll(async () => {
  db.close()
  await service?.stop('SIGTERM')
  rmSync(dir, { recursive: true })
})

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const rowsLeft = () => TABLES.map((table) => Number(db.prepare(`select count(*) from ${table}`).pluck().get()))
const start = async () => {
  service = await startService(buildService(), { DATA_DIR: dir, ADMIN_PASSWORD: 'the first administrator' })
  return slowFlushes(service.process.pid, FLUSH_MS, join(dir, 'flushes'))
}

test(`with ${FLUSH_MS} ms a flush and 20,000 nodes a stop loses no place, and every table loses its old rows`, async () => {
  const before = rowsLeft()
  const slow = await start()
  const begun = performance.now()
  while (rowsLeft()[0] === before[0] && performance.now() - begun < MAX_SECONDS * 1000) await later(100)
  await service?.stop('SIGTERM')
  const stopped = rowsLeft()
  const reached = Number(db.prepare("select place ->> 'nodeId' from sweeps where name = 'telemetry'").pluck().get())
  const first = await slow.end()
  figure(
    'rows before, and at the stop: measurements, positions, messages, packets, hourly values',
    `${before.join()}; ${stopped.join()}`,
  )
  figure('node at which the deletion of measurements stopped', reached)
  expect(stopped[0]).toBeGreaterThan(0)
  expect(reached).toBeGreaterThan(0)
  // What it has passed is gone, what it has not is there.
  const oldest = Number(db.prepare('select min(node_id) from telemetry').pluck().get())
  expect(oldest).toBeGreaterThan(reached - 1)
  const again = await start()
  const restarted = performance.now()
  while (rowsLeft().some((rows) => rows > 0) && performance.now() - restarted < MAX_SECONDS * 1000) await later(500)
  figure(
    'seconds from the restart until all is deleted, the first minute of waiting included',
    Math.round((performance.now() - restarted) / 1000),
  )
  figure(`flushes of ${FLUSH_MS} ms in both runs`, first + (await again.end()))
  expect(rowsLeft()).toStrictEqual([0, 0, 0, 0, 0])
})
