import { readdirSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AuditContext } from '../../../src/app/audit/audit.ts'
import { readBackupSchedule, replaceBackupSettings } from '../../../src/app/system/backup/settings.ts'
import { type BackupStore, openBackups } from '../../../src/node/backup/backups.ts'
import { diskFiles } from '../../../src/node/backup/folder/files.ts'
import { backupLockFile, lockExclusively } from '../../../src/node/backup/folder/lock.ts'
import { createScheduler, type Scheduler } from '../../../src/node/backup/schedule/scheduler.ts'
import { writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { backupOptions, keptLog, makeDataDir } from '../../support/backup/backup.ts'

const MINUTE = 60_000
const DAY = 86_400_000
const START = Date.UTC(2026, 4, 10, 12)

let here: ReturnType<typeof makeDataDir>
let store: SqliteStore
let backups: BackupStore
let scheduler: Scheduler
let now: number
let armed: { at: number; ring: () => Promise<void> } | null
let failWith: Error | null
let logged: string[]

beforeEach(async () => {
  here = makeDataDir()
  store = openDatabase(here.database)
  now = START
  failWith = null
  await begin()
})
afterEach(() => {
  store.close()
  here.remove()
})

/** A service that starts now; its snapshots are written here, or fail as `failWith` says. */
async function begin(): Promise<void> {
  const { log, lines } = keptLog()
  logged = lines
  backups = openBackups(
    backupOptions(here.dataDir, {
      log,
      now: () => now,
      wait: async (ms) => (now += ms),
      snapshot: async (job) => {
        if (failWith !== null) throw failWith
        return writeSnapshot(job, diskFiles, () => {})
      },
    }),
  )
  armed = null
  const alarm = {
    set: (ms: number, ring: () => Promise<void>) => {
      armed = { at: now + ms, ring }
    },
    clear: () => {
      armed = null
    },
  }
  scheduler = createScheduler({ backups, ports: { store, log, now: () => now }, timeZone: 'UTC', alarm })
  await scheduler.start()
}

/** Advances time as timers do. */
async function passUntil(end: number): Promise<void> {
  for (let alarm = armed; alarm !== null && alarm.at <= end; alarm = armed) {
    now = Math.max(now, alarm.at)
    await alarm.ring()
  }
  now = Math.max(now, end)
}

const context = (): AuditContext => ({ store, now: () => now, ip: null, requestId: null, viewer: null })
async function configure(maxBackups = 3, backupTime = '03:00', enabled = true): Promise<void> {
  await replaceBackupSettings(context(), { enabled, maxBackups, backupTime })
  scheduler.reschedule()
}
const made = () => readdirSync(here.backups).toSorted()
const lastRun = async () => (await readBackupSchedule(store)).run
const audited = () =>
  store.sqlite.prepare("select action from audit_log where action like 'backup%' order by id").pluck().all()

test('nothing runs until it is switched on; then once a day, deleting only old scheduled backups', async () => {
  await passUntil(START + 2 * DAY)
  await backups.create('manual', async () => {})
  const manual = '2026-05-12_120000'
  expect(made()).toStrictEqual([manual])
  await configure(2)
  await passUntil(START + 6 * DAY)
  expect(made()).toStrictEqual([manual, '2026-05-15_030000', '2026-05-16_030000'])
  expect(await lastRun()).toMatchObject({ at: Date.UTC(2026, 4, 16, 3), ok: true, error: null })
  expect(scheduler.nextRun(await readBackupSchedule(store))).toBe(Date.UTC(2026, 4, 17, 3))
  const names = audited()
  expect(names.filter((action) => action === 'backup_created')).toHaveLength(4)
  expect(names.filter((action) => action === 'backup_deleted')).toHaveLength(2)
  await configure(2, '03:00', false)
  await passUntil(START + 9 * DAY)
  expect(made()).toHaveLength(3)
})

test('settings take effect at once', async () => {
  await configure(3, '03:00')
  await passUntil(START + MINUTE)
  await configure(3, '12:30')
  await passUntil(START + 31 * MINUTE)
  expect(made()).toStrictEqual(['2026-05-10_123000'])
  await configure(3, '12:45')
  await passUntil(START + 60 * MINUTE)
  expect(made()).toHaveLength(1)
})

test('a run missed while the service was down happens once after the next start, even if it restarts again', async () => {
  await configure()
  await passUntil(START + DAY)
  expect(made()).toStrictEqual(['2026-05-11_030000'])
  scheduler.stop()
  now = START + 4 * DAY
  await begin()
  await passUntil(now + 2 * MINUTE)
  expect(made()).toStrictEqual(['2026-05-11_030000', '2026-05-14_120000'])
  await begin()
  await passUntil(now + 2 * MINUTE)
  expect(made()).toHaveLength(2)
})

test('a failed run is logged, audited and retried, and no backup is deleted for it', async () => {
  await configure(1)
  await passUntil(START + DAY)
  failWith = Object.assign(new Error('write'), { code: 'ENOSPC' })
  await passUntil(Date.UTC(2026, 4, 12, 3, 1))
  expect(await lastRun()).toMatchObject({ at: Date.UTC(2026, 4, 12, 3), ok: false, failures: 1 })
  expect((await lastRun())?.error).toContain('no space is left')
  expect(logged).toContain('error The scheduled backup failed')
  expect(audited().at(-1)).toBe('backup_failed')
  expect(made()).toStrictEqual(['2026-05-11_030000'])
  failWith = null
  await passUntil(Date.UTC(2026, 4, 12, 3, 6))
  expect(await lastRun()).toMatchObject({ ok: true, error: null, failures: 0 })
  expect(made()).toStrictEqual(['2026-05-12_030500'])
})

test('a backup under way elsewhere is waited for without reporting a failure', async () => {
  await configure()
  const lock = lockExclusively(backupLockFile(here.dataDir))
  await passUntil(Date.UTC(2026, 4, 11, 3, 3))
  expect(await lastRun()).toBeNull()
  lock?.release()
  await passUntil(Date.UTC(2026, 4, 11, 3, 5))
  expect(made()).toStrictEqual(['2026-05-11_030400'])
})

test('a clock that jumps ahead and back loses at most a day, and the backup from that time is deleted first', async () => {
  await configure(2)
  await passUntil(START + DAY)
  now += 4000 * DAY
  await armed?.ring()
  expect(made()).toStrictEqual(['2026-05-11_030000', '2037-04-23_120000'])
  now -= 4000 * DAY
  await armed?.ring()
  await passUntil(now + 10 * MINUTE)
  expect(made()).toHaveLength(2)
  await passUntil(START + 3 * DAY)
  expect(made()).toStrictEqual(['2026-05-12_030000', '2026-05-13_030000'])
})

test('a restored database without today’s run does not repeat it', async () => {
  await configure()
  await passUntil(START + DAY)
  store.sqlite.exec("delete from settings where key = 'backup.lastRun'")
  await begin()
  await passUntil(now + 10 * MINUTE)
  expect(made()).toStrictEqual(['2026-05-11_030000'])
})
