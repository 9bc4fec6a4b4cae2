import type { Backups } from '../../../src/app/system/backup/backup.ts'
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { type BackupOptions, type BackupStore, openBackups } from '../../../src/node/backup/backups.ts'
import { diskFiles } from '../../../src/node/backup/folder/files.ts'
import { backupLockFile, lockExclusively } from '../../../src/node/backup/folder/lock.ts'
import { createScheduler } from '../../../src/node/backup/schedule/scheduler.ts'
import { writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'
import { backupOptions, contentOf, fingerprint, keptLog, makeDataDir, tryRestore } from '../../support/backup/backup.ts'

let here: ReturnType<typeof makeDataDir>
let app: TestApp
let admin: Client
let backups: BackupStore

beforeEach(async () => {
  here = makeDataDir()
  await open()
})
afterEach(async () => {
  await backups.close()
  app.close()
  here.remove()
})

/** Writes a snapshot as the service does, but not in a thread: one from source takes ten times as long to start. */
const WITHOUT_THREAD: Partial<BackupOptions> = { snapshot: async (job) => writeSnapshot(job, diskFiles, () => {}) }

/** The real app on a database file; each wait advances the clock. */
async function open(more: Partial<BackupOptions> = WITHOUT_THREAD): Promise<void> {
  const store = openDatabase(here.database)
  const now = () => app.clock.now
  const wait = async (ms: number) => app.clock.advance(ms)
  backups = openBackups(backupOptions(here.dataDir, { now, wait, ...more }))
  const ports = { store, now, log: backupOptions(here.dataDir).log }
  const alarm = { set: () => {}, clear: () => {} }
  const scheduler = createScheduler({ backups, ports, timeZone: 'Europe/Berlin', alarm })
  const port: Backups = { ...backups, ...scheduler }
  app = await createTestApp({ store, ports: { backups: port, sessions: databaseSessions(store) } })
  admin = await app.admin()
}

async function reopen(more: Partial<BackupOptions>): Promise<void> {
  await backups.close()
  app.close()
  await open(more)
}

const body = async (answer: Response) => Object(await answer.json())
const newAudit = () => auditRows(app).filter(({ action }) => action.startsWith('backup_'))
const make = () => admin.send('POST', '/api/system/backup')

test('a backup is created, listed, verified, downloaded and deleted, and each change audited', async () => {
  await reopen({})
  const made = await make()
  expect(made.status).toBe(201)
  const { backup } = await body(made)
  expect(backup).toStrictEqual({
    name: '2026-01-15_120000',
    createdAt: START,
    kind: 'manual',
    appVersion: '0.1.0',
    schema: backupOptions('').schema,
    tables: expect.any(Number),
    rows: expect.any(Number),
    sizeBytes: expect.any(Number),
  })
  const directory = join(here.backups, backup.name)
  const sizes = readdirSync(directory).map((file) => readFileSync(join(directory, file)).length)
  expect(backup.sizeBytes).toBe(sizes.reduce((sum, size) => sum + size, 0))
  expect(await body(await admin.send('GET', '/api/system/backup'))).toStrictEqual({ backups: [backup], running: null })
  const verified = await admin.send('POST', `/api/system/backup/${backup.name}/verify`)
  expect([verified.status, await body(verified)]).toStrictEqual([
    200,
    { ok: true, tables: backup.tables, rows: backup.rows, signature: 'own', problems: [] },
  ])
  const download = await admin.send('GET', `/api/system/backup/download/${backup.name}`)
  expect(download.headers.get('content-type')).toBe('application/gzip')
  expect(download.headers.get('content-disposition')).toBe('attachment; filename="2026-01-15_120000.tar.gz"')
  expect(download.headers.get('cache-control')).toBe('no-store')
  await download.arrayBuffer()
  expect((await admin.send('DELETE', `/api/system/backup/${backup.name}`)).status).toBe(204)
  expect(existsSync(directory)).toBe(false)
  expect((await admin.send('DELETE', `/api/system/backup/${backup.name}`)).status).toBe(404)
  const { name, kind, schema, tables, rows, sizeBytes } = backup
  expect(newAudit()).toStrictEqual([
    { action: 'backup_created', username: 'admin', details: { name, kind, schema, tables, rows, sizeBytes } },
    { action: 'backup_downloaded', username: 'admin', details: { name } },
    { action: 'backup_deleted', username: 'admin', details: { name, reason: 'asked' } },
  ])
})

test('a token with the scope creates, lists, verifies and downloads, and can do no more', async () => {
  const { token } = await body(await admin.send('POST', '/api/tokens', { name: 'cron', scopes: ['backup'] }))
  const send = async (method: string, path: string, data?: unknown) =>
    (await app.client().send(method, `/api/system/backup${path}`, data, { authorization: `Bearer ${token}` })).status
  expect(await send('POST', '')).toBe(201)
  expect(await send('GET', '')).toBe(200)
  expect(await send('POST', '/2026-01-15_120000/verify')).toBe(200)
  expect(await send('GET', '/download/2026-01-15_120000')).toBe(200)
  expect(await send('DELETE', '/2026-01-15_120000')).toBe(403)
  expect(await send('GET', '/settings')).toBe(403)
  expect(newAudit().map(({ action, username }) => [action, username])).toStrictEqual([
    ['backup_created', 'admin'],
    ['backup_downloaded', 'admin'],
  ])
})

test('an archive extracted by tar is a backup again after a removal, also in another data directory', async () => {
  const { backup } = await body(await make())
  const before = contentOf(here.database)
  const prints = fingerprint(join(here.backups, backup.name))
  const archive = join(here.dataDir, 'archive.tar.gz')
  const download = await admin.send('GET', `/api/system/backup/download/${backup.name}`)
  writeFileSync(archive, new Uint8Array(await download.arrayBuffer()))
  await admin.send('DELETE', `/api/system/backup/${backup.name}`)
  expect(execFileSync('tar', ['-tzf', archive]).toString().split('\n')[0]).toBe(`${backup.name}/`)
  execFileSync('tar', ['-xzf', archive, '-C', here.backups])
  expect(fingerprint(join(here.backups, backup.name))).toStrictEqual(prints)
  expect((await body(await admin.send('GET', '/api/system/backup'))).backups).toStrictEqual([backup])
  const other = makeDataDir()
  try {
    mkdirSync(other.backups)
    execFileSync('tar', ['-xzf', archive, '-C', other.backups])
    expect(await tryRestore(other.dataDir, backup.name, { secrets: ['another secret altogether'] })).toHaveLength(2)
    expect(contentOf(other.database)).toStrictEqual(before)
  } finally {
    other.remove()
  }
})

test('impossible names are not looked up; links and foreign files are ignored', async () => {
  const { backup } = await body(await make())
  symlinkSync(join(here.backups, backup.name), join(here.backups, '2026-01-16_000000'))
  mkdirSync(join(here.backups, '2026-01-17_000000'))
  mkdirSync(join(here.backups, 'lost+found'))
  writeFileSync(join(here.backups, '2026-01-18_000000'), 'a file')
  cpSync(join(here.backups, backup.name), join(here.backups, '2026-02-30_000000'), { recursive: true })
  expect((await body(await admin.send('GET', '/api/system/backup'))).backups).toStrictEqual([backup])
  const names = [
    '..',
    '.',
    '%2e%2e%2f',
    '..%2F..%2Fetc',
    '2026-02-30_000000',
    '2026-01-15_240000',
    '2026-01-15_120000%00',
  ]
  for (const name of [...names, '2026-01-16_000000', '2026-01-18_000000', 'settings', 'x'.repeat(5000)]) {
    for (const [method, path] of [
      ['DELETE', name],
      ['GET', `download/${name}`],
      ['HEAD', `download/${name}`],
      ['POST', `${name}/verify`],
    ] as const) {
      const { status } = await admin.send(method, `/api/system/backup/${path}`)
      expect([method, path.slice(0, 40), status === 404 || status === 405]).toStrictEqual([
        method,
        path.slice(0, 40),
        true,
      ])
    }
  }
  const empty = await body(await admin.send('POST', '/api/system/backup/2026-01-17_000000/verify'))
  expect(empty).toStrictEqual({
    ok: false,
    tables: 0,
    rows: 0,
    signature: 'none',
    problems: ['manifest.json is missing'],
  })
  expect(newAudit()).toHaveLength(1)
})

test('HEAD of a download opens and audits nothing', async () => {
  const { backup } = await body(await make())
  const answer = await admin.send('HEAD', `/api/system/backup/download/${backup.name}`)
  expect([answer.status, answer.headers.get('content-type')]).toStrictEqual([200, 'application/gzip'])
  expect(newAudit()).toHaveLength(1)
})

test('a name in use waits for the next second', async () => {
  const names: string[] = []
  for (let i = 0; i < 3; i++) names.push((await body(await make())).backup.name)
  expect(names).toStrictEqual(['2026-01-15_120000', '2026-01-15_120001', '2026-01-15_120002'])
  const listed = (await body(await admin.send('GET', '/api/system/backup'))).backups
  expect(listed.map(({ name }: { name: string }) => name)).toStrictEqual(names.toReversed())
})

test('only one backup runs at a time across processes, and its progress is shown', async () => {
  let entered = () => {}
  let go = () => {}
  const isEntered = new Promise<void>((resolve) => (entered = resolve))
  const mayGo = new Promise<void>((resolve) => (go = resolve))
  const { log, lines } = keptLog()
  await reopen({
    log,
    snapshot: async (job, _signal, onProgress) => {
      onProgress({ tables: 2, rows: 39, table: 'messages' })
      app.clock.advance(10_000)
      onProgress({ tables: 2, rows: 40, table: 'messages' })
      entered()
      await mayGo
      return writeSnapshot(job, diskFiles, () => {})
    },
  })
  const first = make()
  await isEntered
  const second = await make()
  expect([second.status, (await body(second)).code]).toStrictEqual([409, 'backup_in_progress'])
  expect(await body(await admin.send('GET', '/api/system/backup'))).toStrictEqual({
    backups: [],
    running: { name: '2026-01-15_120000', tables: 2, rows: 40 },
  })
  const other = openBackups(backupOptions(here.dataDir))
  await expect(other.create('manual', async () => {})).rejects.toMatchObject({ code: 'backup_in_progress' })
  go()
  expect((await first).status).toBe(201)
  expect(lines).toStrictEqual(['info Backup started', 'info Backup under way', 'info Backup completed'])
  expect(newAudit()).toHaveLength(1)
  const lock = lockExclusively(backupLockFile(here.dataDir))
  expect((await make()).status).toBe(409)
  lock?.release()
  expect((await make()).status).toBe(201)
})

test('a full disk is reported, and nothing is left over or lost', async () => {
  await make()
  const before = fingerprint(here.backups)
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  let writes = 0
  const files = {
    ...diskFiles,
    write: (fd: number, bytes: Uint8Array) => {
      if (++writes === 5) throw full
      diskFiles.write(fd, bytes)
    },
  }
  await reopen({ snapshot: async (job) => writeSnapshot(job, files, () => {}) })
  app.clock.advance(1000)
  const answer = await make()
  expect([answer.status, await body(answer)]).toMatchObject([
    500,
    { code: 'internal', detail: expect.stringMatching(/no space/) },
  ])
  expect(fingerprint(here.backups)).toStrictEqual(before)
  expect(readdirSync(here.backups)).toStrictEqual(['2026-01-15_120000'])
  expect(newAudit()).toHaveLength(1)
})

test('without its audit entry no backup is created or deleted', async () => {
  const { backup } = await body(await make())
  app.store.sqlite.exec(`create trigger no_more before insert on audit_log begin select raise(abort, 'full'); end`)
  app.clock.advance(1000)
  expect((await make()).status).toBe(500)
  expect((await admin.send('DELETE', `/api/system/backup/${backup.name}`)).status).toBe(500)
  expect((await admin.send('GET', `/api/system/backup/download/${backup.name}`)).status).toBe(500)
  app.store.sqlite.exec('drop trigger no_more')
  expect(readdirSync(here.backups)).toStrictEqual([backup.name])
  expect((await body(await admin.send('GET', '/api/system/backup'))).backups).toStrictEqual([backup])
})

test('the next start removes the remains of a crash, and nothing else', async () => {
  await make()
  mkdirSync(join(here.backups, '.2026-01-15_110000.partial/deep'), { recursive: true })
  mkdirSync(join(here.backups, '.2026-01-14_110000.deleted'))
  mkdirSync(join(here.backups, '.mine.partial'))
  await reopen({})
  expect(readdirSync(here.backups)).toStrictEqual(['.mine.partial', '2026-01-15_120000'])
})

test('a stop aborts a backup under way and leaves nothing of it', async () => {
  await reopen({})
  const made = make()
  while (backups.running()?.name !== '2026-01-15_120000') await setImmediate()
  await backups.close()
  expect((await made).status).toBe(500)
  expect(existsSync(here.backups) ? readdirSync(here.backups) : []).toStrictEqual([])
  expect(newAudit()).toStrictEqual([])
})

test('the backup directory may be a link to another disk', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'mesh-elsewhere-'))
  try {
    symlinkSync(elsewhere, here.backups)
    expect((await make()).status).toBe(201)
    expect((await body(await admin.send('GET', '/api/system/backup'))).backups).toHaveLength(1)
  } finally {
    rmSync(elsewhere, { recursive: true })
  }
})

test('settings have defaults and bounds, and one audit entry for each change', async () => {
  const url = '/api/system/backup/settings'
  const weeks = { keepWeekly: 0, keepMonthly: 0 }
  const defaults = { enabled: false, maxBackups: 7, ...weeks, backupTime: '03:00', nextRunAt: null, lastRun: null }
  expect(await body(await admin.send('GET', url))).toStrictEqual(defaults)
  const next = { enabled: true, maxBackups: 3, backupTime: '23:59' }
  const changed = await admin.send('PUT', url, next)
  // 23:59 in Berlin.
  expect([changed.status, await body(changed)]).toStrictEqual([
    200,
    { ...next, ...weeks, nextRunAt: Date.UTC(2026, 0, 15, 22, 59), lastRun: null },
  ])
  for (const wrong of [
    {},
    { ...next, maxBackups: 0 },
    { ...next, maxBackups: 366 },
    { ...next, maxBackups: 1.5 },
    { ...next, keepWeekly: -1 },
    { ...next, keepMonthly: 241 },
    { ...next, keepMonthly: null },
    { ...next, backupTime: '24:00' },
    { ...next, backupTime: '3:00' },
    { ...next, backupTime: '03:60' },
    { ...next, enabled: 'true' },
    { ...next, extra: 1 },
  ]) {
    expect([wrong, (await admin.send('PUT', url, wrong)).status]).toStrictEqual([wrong, 400])
  }
  expect(await body(await admin.send('GET', url))).toMatchObject(next)
  const same = await admin.send('PUT', url, await body(await admin.send('GET', url)))
  expect([same.status, await body(same)]).toMatchObject([200, next])
  expect(newAudit()).toStrictEqual([
    {
      action: 'backup_settings_updated',
      username: 'admin',
      details: { before: { enabled: false, maxBackups: 7, backupTime: '03:00' }, after: next },
    },
  ])
  const long = { keepWeekly: 4, keepMonthly: 12 }
  expect(await body(await admin.send('PUT', url, { ...next, ...long }))).toMatchObject({ ...next, ...long })
  // A program from before weeks and months existed must not cause their backups to be deleted.
  expect(await body(await admin.send('PUT', url, { ...next, maxBackups: 5 }))).toMatchObject(long)
  expect(
    newAudit()
      .slice(1)
      .map(({ details }) => details),
  ).toStrictEqual([
    { before: weeks, after: long },
    { before: { maxBackups: 3 }, after: { maxBackups: 5 } },
  ])
})
