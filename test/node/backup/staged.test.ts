import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Restores } from '../../../src/app/system/backup/backup.ts'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { recordFailedRestore } from '../../../src/app/system/restore/staging.ts'
import { openBackups } from '../../../src/node/backup/backups.ts'
import { diskFiles, type Files } from '../../../src/node/backup/folder/files.ts'
import { databaseLockFile, lockShared } from '../../../src/node/backup/folder/lock.ts'
import { inspectBackup } from '../../../src/node/backup/inspect.ts'
import { signingKey } from '../../../src/app/system/backup/format/manifest.ts'
import { recoverRestore } from '../../../src/node/backup/restore/restore.ts'
import { openRestores, type RestoresOptions } from '../../../src/node/backup/restore/restores.ts'
import { writeStage } from '../../../src/node/backup/restore/stage.ts'
import { performStaged } from '../../../src/node/backup/restore/staged.ts'
import { MIGRATIONS_DIR, openDatabase } from '../../../src/node/database.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../support/app.ts'
import {
  backupOptions,
  forge,
  keptLog,
  MADE_AT,
  MADE_NAME,
  makeBackup,
  makeDataDir,
  restoreOptions,
  SECRET,
  stageOf,
} from '../../support/backup/backup.ts'

let here: ReturnType<typeof makeDataDir>
let app: TestApp
let admin: Client
let restarts: number

beforeEach(async () => {
  here = makeDataDir()
  restarts = 0
  await open()
  await makeBackup(here.dataDir)
})
afterEach(() => {
  app.close()
  here.remove()
})

/** The real app on a database file, with restores that count restarts. */
async function open(more: Partial<RestoresOptions> = {}, ports: Partial<TestApp['ports']> = {}): Promise<void> {
  const store = openDatabase(here.database)
  const backups = { ...openBackups(backupOptions(here.dataDir)), nextRun: () => null, reschedule: () => {} }
  const restores: Restores = openRestores({
    ...restoreOptions(here.dataDir),
    // In this thread: one from source takes ten times as long to start.
    verify: async (name) =>
      inspectBackup(join(here.backups, name), { keys: [signingKey(SECRET)], migrations: MIGRATIONS_DIR }, () => {}),
    restartBy: 'supervisor',
    restart: () => restarts++,
    ...more,
  })
  app = await createTestApp({ store, ports: { backups, restores, sessions: databaseSessions(store), ...ports } })
  admin = await app.admin()
}

async function reopen(...options: Parameters<typeof open>): Promise<void> {
  app.close()
  await open(...options)
}

const body = async (answer: Response) => Object(await answer.json())
const stage = (name = MADE_NAME, client = admin) => client.send('POST', `/api/system/backup/${name}/restore`)
const state = async () => body(await admin.send('GET', '/api/system/restore'))
const newAudit = () => auditRows(app).filter(({ action }) => action.startsWith('backup_restore'))
const staged = () => existsSync(join(here.dataDir, '.restore-staged'))

test('a preview says what comes back and what is newer', async () => {
  app.store.sqlite.exec(`
    insert into nodes (id, node_num, first_heard) values (7, 7, ${MADE_AT + 1}), (8, 8, ${MADE_AT - 1});
    insert into sources (id, kind, name, created_at) values (1, 'tcp', 'radio.local', 1);
    insert into messages (id, source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
      values (1, 1, 1, 7, 2, 0, 'new', ${MADE_AT + 1}, 'in'), (2, 1, 2, 7, 2, 0, 'newer', ${MADE_AT + 2}, 'in');`)
  app.clock.advance(1000)
  await app.user('anna')
  const found = await body(await admin.send('GET', `/api/system/backup/${MADE_NAME}/restore`))
  expect(found).toMatchObject({
    backup: { name: MADE_NAME, createdAt: MADE_AT, appVersion: '0.1.0' },
    signature: 'own',
    brings: { users: 1, nodes: 0, messages: 0 },
    loses: { users: 1, nodes: 1, messages: 2 },
  })
  const changes = auditRows(app).filter(({ action }) => action === 'user_created')
  expect(found.loses.changes).toBeGreaterThanOrEqual(changes.length)
  expect(changes).toHaveLength(1)
})

test('staging verifies, is audited, restarts, and can be cancelled', async () => {
  const answer = await stage()
  const expected = { name: MADE_NAME, stagedAt: MADE_AT + 60_000, by: 'admin' }
  expect([answer.status, await body(answer)]).toStrictEqual([
    202,
    { staged: expected, restartBy: 'supervisor', instances: 1, outcome: null },
  ])
  expect(restarts).toBe(1)
  expect(await state()).toMatchObject({ staged: expected })
  expect((await admin.send('DELETE', '/api/system/restore')).status).toBe(204)
  expect(staged()).toBe(false)
  expect((await admin.send('DELETE', '/api/system/restore')).status).toBe(404)
  expect(newAudit()).toStrictEqual([
    { action: 'backup_restore_staged', username: 'admin', details: { name: MADE_NAME, createdAt: MADE_AT } },
    { action: 'backup_restore_cancelled', username: 'admin', details: { name: MADE_NAME } },
  ])
  expect(await performStaged(restoreOptions(here.dataDir), false)).toBeNull()
})

test('nothing restarts by itself if nobody starts it again, or while other instances run', async () => {
  await reopen({ restartBy: 'hand' })
  expect(await body(await stage())).toMatchObject({ restartBy: 'hand', staged: { name: MADE_NAME } })
  await admin.send('DELETE', '/api/system/restore')
  const two = [1, 2].map((id) => ({ id: String(id), isSelf: id === 1, hasLease: id === 1, seenAt: START }))
  await reopen({}, { instances: Object({ list: () => two }) })
  expect(await body(await stage())).toMatchObject({ restartBy: 'hand', instances: 2, staged: { name: MADE_NAME } })
  expect(restarts).toBe(0)
})

test('only administrators with a fresh proof stage, and no token does', async () => {
  const anna = await app.user('anna', { settings: { read: true, write: true } })
  for (const [method, path] of [
    ['POST', `/api/system/backup/${MADE_NAME}/restore`],
    ['GET', `/api/system/backup/${MADE_NAME}/restore`],
    ['GET', '/api/system/restore'],
    ['DELETE', '/api/system/restore'],
    ['DELETE', '/api/system/restore/outcome'],
  ] as const) {
    expect([path, (await anna.send(method, path)).status]).toStrictEqual([path, 403])
    expect([path, (await app.client().send(method, path)).status]).toStrictEqual([path, 401])
  }
  const { token } = await body(await admin.send('POST', '/api/tokens', { name: 'cron', scopes: ['backup'] }))
  const path = `/api/system/backup/${MADE_NAME}/restore`
  const byToken = await app.client().send('POST', path, undefined, { authorization: `Bearer ${token}` })
  expect(byToken.status).toBe(403)
  app.clock.advance(16 * 60_000)
  const stale = await stage()
  expect([stale.status, (await body(stale)).code]).toStrictEqual([403, 'reauthentication_required'])
  expect([staged(), restarts, newAudit()]).toStrictEqual([false, 0, []])
})

test.each(['..', '%2e%2e%2fsystem-backups%2F2026-01-15_120000', '2026-01-15_120001', '2026-02-30_000000', 'x%00', '.'])(
  'a name that is no backup is not staged: %s',
  async (name) => {
    expect((await stage(name)).status).toBeGreaterThanOrEqual(404)
    expect([staged(), restarts, newAudit()]).toStrictEqual([false, 0, []])
  },
)

test('a link to a backup, a damaged one, and one that nobody signed beside signed ones are not staged', async () => {
  const other = await makeBackup(here.dataDir, { now: () => MADE_AT + 1000 })
  symlinkSync(join(here.backups, MADE_NAME), join(here.backups, '2026-01-16_000000'))
  expect((await stage('2026-01-16_000000')).status).toBe(404)
  forge(join(here.backups, other), () => {})
  const unsigned = await body(await stage(other))
  expect([unsigned.code, unsigned.detail]).toStrictEqual([
    'backup_unusable',
    expect.stringMatching(/^The next start would refuse this backup: Restore failed: .* is not signed/),
  ])
  writeFileSync(join(here.backups, MADE_NAME, 'users.json'), '{}')
  const damaged = await body(await stage())
  expect([damaged.code, damaged.detail]).toStrictEqual(['backup_unusable', expect.stringContaining('users.json')])
  mkdirSync(join(here.backups, '2026-01-17_000000'))
  expect((await body(await stage('2026-01-17_000000'))).code).toBe('backup_unusable')
  expect([staged(), restarts, newAudit()]).toStrictEqual([false, 0, []])
})

test('of two administrators who stage at once, one does', async () => {
  const other = await makeBackup(here.dataDir, { now: () => MADE_AT + 1000 })
  const answers = await Promise.all([stage(), stage(other)])
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1)
  const refused = await Promise.all(answers.filter(({ status }) => status === 409).map(body))
  expect(refused).toMatchObject([{ code: 'restore_staged' }])
  expect(newAudit()).toHaveLength(1)
  expect([(await state()).staged.name]).toStrictEqual([newAudit()[0]?.details['name']])
  expect((await stage()).status).toBe(409)
})

const FULL = Object.assign(new Error('no space'), { code: 'ENOSPC' })
const fullAt = (step: keyof Files): Files => ({
  ...diskFiles,
  [step]: () => {
    throw FULL
  },
})

test.each(['create', 'write', 'finish', 'duplicate'] as const)(
  'a disk that is full at %s stages nothing and leaves nothing',
  async (step) => {
    await reopen({ files: fullAt(step) })
    const answer = await stage()
    expect([answer.status, (await body(answer)).code]).toStrictEqual([503, 'database_unavailable'])
    expect(readdirSync(here.dataDir).filter((name) => name.startsWith('.restore'))).toStrictEqual([])
    expect([restarts, newAudit()]).toStrictEqual([0, []])
  },
)

test('without its audit entry nothing is staged', async () => {
  app.store.sqlite.exec(
    `create trigger no_entry before insert on audit_log when new.action = 'backup_restore_staged'
      begin select raise(abort, 'refused'); end`,
  )
  expect((await stage()).status).toBe(500)
  expect([staged(), restarts]).toStrictEqual([false, 0])
})

test('while RESTORE_FROM_BACKUP is set nothing is staged; a staged restore gives way to it', async () => {
  const config = { ...app.ports.config, RESTORE_FROM_BACKUP: MADE_NAME }
  await reopen({}, { config })
  expect((await body(await stage())).detail).toMatch(/RESTORE_FROM_BACKUP/)
  writeStage(diskFiles, here.dataDir, stageOf(here.dataDir))
  app.close()
  const failed = await performStaged(restoreOptions(here.dataDir), true)
  expect(failed?.error).toMatch(/^RESTORE_FROM_BACKUP is set/)
  await open()
})

test('a backup that was changed after staging is refused, even with matching hashes', async () => {
  writeStage(diskFiles, here.dataDir, stageOf(here.dataDir))
  forge(join(here.backups, MADE_NAME), (manifest) => (manifest['appVersion'] = '9.9.9'))
  app.close()
  const failed = await performStaged(restoreOptions(here.dataDir), false)
  expect(failed).toMatchObject({
    name: MADE_NAME,
    stagedBy: 'root',
    error: expect.stringMatching(/was changed after its restore/),
  })
  await open()
})

test('a failed restore is recorded, told, a problem of the system, and forgotten when it was read', async () => {
  writeStage(diskFiles, here.dataDir, stageOf(here.dataDir))
  rmSync(join(here.backups, MADE_NAME, 'users.json'))
  app.close()
  const { log, lines } = keptLog()
  const failed = await performStaged(restoreOptions(here.dataDir, { log }), false)
  expect(lines).toStrictEqual([expect.stringMatching(/^error The staged restore was not done: Integrity validation/)])
  expect(staged()).toBe(false)
  await open()
  const context = { store: app.store, ip: null, requestId: null, viewer: null, now: () => START }
  await recordFailedRestore(context, Object(failed))
  expect((await state()).outcome).toStrictEqual({
    name: MADE_NAME,
    stagedBy: 'root',
    at: MADE_AT + 60_000,
    error: expect.stringMatching(/^Integrity validation failed: users\.json is missing/),
  })
  const problems = async () =>
    (await body(await admin.send('GET', '/api/system'))).problems.map(({ code }: { code: string }) => code)
  expect(await problems()).toContain('restore_failed')
  expect(newAudit()).toStrictEqual([expect.objectContaining({ action: 'backup_restore_failed', username: 'system' })])
  expect((await admin.send('DELETE', '/api/system/restore/outcome')).status).toBe(204)
  expect((await state()).outcome).toBeNull()
  expect(await problems()).not.toContain('restore_failed')
})

test('a restore that was forgotten is not done weeks later by some start', async () => {
  writeStage(diskFiles, here.dataDir, stageOf(here.dataDir))
  app.close()
  const { stagedAt } = stageOf(here.dataDir)
  const late = restoreOptions(here.dataDir, { now: () => stagedAt + 25 * 60 * 60_000 })
  expect((await performStaged(late, false))?.error).toMatch(/^it was staged more than a day ago/)
  expect([staged(), existsSync(join(here.dataDir, '.restore-completed'))]).toStrictEqual([false, false])
  await open()
})

test('it waits while another process has the database open', async () => {
  writeStage(diskFiles, here.dataDir, stageOf(here.dataDir))
  const lock = lockShared(databaseLockFile(here.dataDir), 0)
  const { log, lines } = keptLog()
  expect(await performStaged(restoreOptions(here.dataDir, { log }), false)).toBeNull()
  expect(lines).toStrictEqual([expect.stringMatching(/^warn A restore is staged, and waits/)])
  expect(staged()).toBe(true)
  lock?.release()
})

test('a file that is no stage restores nothing and is consumed', async () => {
  app.close()
  for (const text of ['', '{"name":"../x"}', 'no']) {
    writeFileSync(join(here.dataDir, '.restore-staged'), text)
    expect((await performStaged(restoreOptions(here.dataDir), false))?.error).toBe('its file cannot be read')
    expect(staged()).toBe(false)
    rmSync(join(here.dataDir, '.restore-begun'))
  }
  await open()
})

test('a restored database says that it was restored, who staged it, and lists its entry', async () => {
  await stage()
  app.close()
  expect(await performStaged(restoreOptions(here.dataDir), false)).toBeNull()
  expect(JSON.parse(readFileSync(join(here.dataDir, '.restore-completed'), 'utf8'))).toMatchObject({ name: MADE_NAME })
  await open()
  expect(await state()).toMatchObject({ staged: null, outcome: { name: MADE_NAME, stagedBy: 'admin', error: null } })
  const actions = auditRows(app).filter(({ action }) => /restore/.test(action))
  expect(actions).toMatchObject([
    { action: 'backup_restore_staged', username: 'admin' },
    { action: 'system_restored', details: { name: MADE_NAME, stagedBy: 'admin' } },
  ])
})

test.each(['sync', 'rename', 'remove'] as const)(
  'a disk that breaks after the new database took effect (%s) is no failed restore',
  async (broken) => {
    writeStage(diskFiles, here.dataDir, stageOf(here.dataDir))
    app.close()
    let isDone = false
    const failing = (path: string) => {
      if (isDone && (broken !== 'remove' || path.endsWith('.restore-begun'))) {
        isDone = false
        throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
      }
    }
    const files: Files = {
      ...diskFiles,
      sync: (path) => (broken === 'sync' && failing(path), diskFiles.sync(path)),
      rename: (from, to) => {
        if (broken === 'rename') failing(from)
        diskFiles.rename(from, to)
        if (to === here.database) isDone = true
      },
      remove: (path) => (broken === 'remove' && failing(path), diskFiles.remove(path)),
    }
    expect(await performStaged(restoreOptions(here.dataDir, { files }), false)).toBeNull()
    await open()
    expect((await state()).outcome).toMatchObject({ name: MADE_NAME, error: null })
    app.close()
    recoverRestore(restoreOptions(here.dataDir))
    expect(await performStaged(restoreOptions(here.dataDir), false)).toBeNull()
    expect(existsSync(join(here.dataDir, '.restore-begun'))).toBe(false)
    await open()
  },
)
