import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseConfig } from '../../src/app/config/config.ts'
import { edgeBackups } from '../../src/edge/backup/backups.ts'
import { beginBackup, endings, goOn } from '../../src/edge/backup/making.ts'
import { d1Store } from '../../src/edge/d1.ts'
import { findNewerMigration, latestMigration } from '../../src/edge/migrations.ts'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import { openDatabase } from '../../src/node/database.ts'
import { ADMIN_PASSWORD, type Client, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { keptLog, tryRestore } from '../support/backup/backup.ts'
import { comparable, type Rows, rowsBy } from '../support/backup/rows.ts'
import { packet, position, store as storePackets, telemetry, text, user } from '../support/mesh/mesh.ts'
import { countTrips } from './counting.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

/** Queries of one run of a worker: developers.cloudflare.com/d1/platform/limits. */
const MAX_QUERIES = 1000
const BACKUPS = '1-59/2 * * * *'
const MINUTE = 60_000

let workerd: Workerd
let admin: Client
let dir: string
beforeAll(async () => {
  workerd = await openWorkerd(SCENARIO_ENV)
  admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
  dir = mkdtempSync(join(tmpdir(), 'mesh-edge-backup-'))
})
afterAll(async () => {
  await workerd.close()
  rmSync(dir, { recursive: true })
})

const rowsOfD1 = () => rowsBy((sql) => workerd.sql(sql))

/** Restores an archive on Node; returns its rows, without what the restore itself writes. */
async function restoreOnNode(archive: Uint8Array, name: string): Promise<Rows> {
  const dataDir = mkdtempSync(join(dir, 'node-'))
  mkdirSync(join(dataDir, 'system-backups'))
  writeFileSync(join(dataDir, 'a.tar.gz'), archive)
  execFileSync('tar', ['-xzf', 'a.tar.gz', '-C', 'system-backups'], { cwd: dataDir })
  const { SESSION_SECRET: secret } = SCENARIO_ENV
  expect(await tryRestore(dataDir, name, { secrets: [secret], requireSignature: true })).toStrictEqual([
    expect.stringMatching(/^info Restore completed: \d+ tables, \d+ rows restored from /),
  ])
  const store = openDatabase(join(dataDir, 'mesh.db'))
  try {
    return await rowsBy((sql) => store.sqlite.prepare(sql).all())
  } finally {
    store.close()
  }
}

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

test('a backup that is made while packets arrive is that of its moment, and restores on Node', async () => {
  const counted = countTrips(workerd.database, { reads: false })
  const store = d1Store(counted.database)
  const { log } = keptLog()
  const now = Date.now
  const parsed = parseConfig({ ...SCENARIO_ENV, TZ: 'UTC' })
  if (!parsed.ok) throw new Error('no configuration')
  const needs = {
    store,
    log,
    now,
    version: '1.0.0',
    config: parsed.config,
    bucket: workerd.bucket,
    schema: () => latestMigration(store.db),
  }
  // Their statements are not the backup's.
  const ingest = createIngest(d1Store(workerd.database))
  let id = 1
  /** A second of a mesh. */
  const deliver = () =>
    storePackets(
      ingest,
      Array.from({ length: 20 }, (_, i) => {
        const kinds = [text(`hello ${id}`), position({ latitudeI: id, longitudeI: 6 }), user({ longName: `n${id}` })]
        const measured = telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: id % 100 } } })
        return packet(kinds[i % 4] ?? measured, { id: id++, from: 100 + (id % 50) })
      }),
      { at: now() },
    )
  for (let n = 0; n < 10; n++) await deliver()
  counted.takeQueries()
  const asked = { name: '2026-01-15_120000', createdAt: now(), kind: 'manual', appVersion: '1.0.0' } as const
  const claim = await beginBackup(needs, { ...asked, by: { id: null, username: null, ip: null, requestId: null } })
  if (claim === null) throw new Error('not begun')
  const expected = await rowsOfD1()
  let runs = 0
  for (let most = counted.takeQueries(); ; runs++) {
    await deliver()
    await workerd.sql('delete from telemetry_runs where node_id % 3 = 0')
    await workerd.sql('delete from messages where id % 5 = 0')
    await workerd.sql("update messages set delivery_state = 'failed'")
    const made = await goOn(needs, claim, 12)
    most = Math.max(most, counted.takeQueries())
    if (made === null) continue
    const [first, ...others] = await endings(needs, claim)
    if (first !== undefined) await store.atomic([first, ...others])
    expect(Math.max(most, counted.takeQueries())).toBeLessThanOrEqual(MAX_QUERIES / 2)
    break
  }
  expect(runs).toBeGreaterThan(3)
  expect(
    await workerd.sql("select name from sqlite_master where name like 'backup\\_%' escape '\\' and type = 'trigger'"),
  ).toEqual([])
  const backups = edgeBackups(needs)
  const { name } = claim.state
  expect(await backups.verify(name)).toMatchObject({ ok: true, signature: 'own', problems: [] })
  const restored = await restoreOnNode(await bytesOf(await backups.download(name)), name)
  expect(comparable(restored)).toStrictEqual(comparable(expected))
  expect(expected['telemetry_runs']?.length).toBeGreaterThan(20)
  await backups.remove(name, async () => {})
})

test('a backup by a request, in one invocation, listed, verified, downloaded and deleted', async () => {
  const before = await rowsOfD1()
  const made = await admin.send('POST', '/api/system/backup')
  expect(made.status).toBe(201)
  const { name } = Object(made.body).backup
  expect(Object((await admin.send('GET', '/api/system/backup')).body)).toMatchObject({
    backups: [{ name }],
    running: null,
  })
  const verified = await admin.send('POST', `/api/system/backup/${name}/verify`)
  expect(verified.body).toMatchObject({ ok: true, signature: 'own' })
  const cookie = admin.cookie ?? ''
  const download = () => fetch(new URL(`/api/system/backup/download/${name}`, workerd.url), { headers: { cookie } })
  const archive = new Uint8Array(await (await download()).arrayBuffer())
  const restored = await restoreOnNode(archive, name)
  expect(restored['messages']).toStrictEqual(before['messages'])
  expect((await admin.send('DELETE', `/api/system/backup/${name}`)).status).toBe(204)
  expect((await download()).status).toBe(404)
  expect((await workerd.bucket.list()).objects).toEqual([])
  const entries = await workerd.sql("select action from audit_log where action like 'backup%' order by id")
  expect(entries.map(({ action }) => action)).toEqual(['backup_created', 'backup_downloaded', 'backup_deleted'])
})

test('the trigger makes the backups of the schedule', async () => {
  const settings = { enabled: true, maxBackups: 1, backupTime: '00:00' }
  expect((await admin.send('PUT', '/api/system/backup/settings', settings)).status).toBe(200)
  // As if it had been on since the day before.
  await workerd.sql("update settings set value = json_set(value, '$.since', 1) where key = 'backup.settings'")
  await workerd.runSchedule(new Date(), BACKUPS)
  const { body } = await admin.send('GET', '/api/system/backup')
  expect(body).toMatchObject({ backups: [{ kind: 'scheduled' }], running: null })
  const { body: after } = await admin.send('GET', '/api/system/backup/settings')
  expect(after).toMatchObject({ lastRun: { ok: true, error: null } })
  await workerd.runSchedule(new Date(Date.now() + MINUTE), BACKUPS)
  expect(Object((await admin.send('GET', '/api/system/backup')).body).backups.length).toBe(1)
})

test('a database whose restore is not complete is refused', async () => {
  await workerd.sql('create table restore_under_way (begun integer)')
  await expect(workerd.runSchedule()).rejects.toThrow()
  await expect(findNewerMigration(d1Store(workerd.database).db)).rejects.toThrow('a restore that is not complete')
  await workerd.sql('drop table restore_under_way')
  await workerd.runSchedule()
})
