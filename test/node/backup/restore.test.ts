import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sealAudit } from '../../../src/app/audit/chain.ts'
import { verifyChain } from '../../../src/app/audit/verify.ts'
import { databaseLockFile, lockShared } from '../../../src/node/backup/folder/lock.ts'
import { recoverRestore, restoreAtStart, safetyCopyOf } from '../../../src/node/backup/restore/restore.ts'
import { WHOLE_VIEW } from '../../../src/app/accounts/access/visible.ts'
import { listMessages } from '../../../src/app/mesh/messages/messages.ts'
import { buildTextIndexes } from '../../../src/app/search/build.ts'
import { MIGRATIONS_DIR, openDatabase } from '../../../src/node/database.ts'
import { copyMigrations, migrationTags } from '../../../src/node/migrations.ts'
import {
  contentOf,
  fingerprint,
  forge,
  keptLog,
  MADE_AT,
  makeBackup,
  makeDataDir,
  restoreOptions,
  seedDatabase,
  tryRestore,
} from '../../support/backup/backup.ts'

let here: ReturnType<typeof makeDataDir>
beforeEach(() => {
  here = makeDataDir()
  seedDatabase(here.database)
})
afterEach(() => here.remove())

const completed = expect.stringMatching(
  /^info Restore completed: \d+ tables, \d+ rows restored from 2026-01-15_120000$/,
)

function rows(sql: string, file = here.database): unknown[] {
  const sqlite = new Database(file)
  try {
    return sqlite.prepare(sql).raw().all()
  } finally {
    sqlite.close()
  }
}

function change(sql: string): void {
  const store = openDatabase(here.database)
  store.sqlite.exec(sql)
  store.close()
}

async function start(name: string, at = MADE_AT + 60_000): Promise<string[]> {
  const { log, lines } = keptLog()
  await restoreAtStart(restoreOptions(here.dataDir, { log, now: () => at }), name)
  return lines
}

test('a restore happens once; again without its marker; another name is another restore', async () => {
  const name = await makeBackup(here.dataDir)
  const other = await makeBackup(here.dataDir, { now: () => MADE_AT + 1000 })
  change("update settings set value = '99'")
  expect(await start(name)).toStrictEqual([completed])
  expect(rows('select value from settings')).toStrictEqual([['30']])
  const marker = join(here.dataDir, '.restore-completed')
  expect(JSON.parse(readFileSync(marker, 'utf8'))).toStrictEqual({ name, restoredAt: MADE_AT + 60_000 })
  expect(statSync(marker).mode & 0o777).toBe(0o600)
  change("update settings set value = '99'")
  expect(await start(name)).toStrictEqual([
    `warn Restore already completed: ${name} (delete ${here.dataDir}/.restore-completed to restore it again)`,
  ])
  expect(rows('select value from settings')).toStrictEqual([['99']])
  expect(await start(other)).toHaveLength(1)
  expect(rows('select value from settings')).toStrictEqual([['30']])
  change("update settings set value = '99'")
  rmSync(marker)
  expect(await start(other)).toHaveLength(1)
  expect(rows('select value from settings')).toStrictEqual([['30']])
})

test.each(['2026-01-15_120001', '../system-backups/2026-01-15_120000', '/etc', '2026-02-30_000000', '.', 'x\ny'])(
  'nothing is changed if there is no backup %j',
  async (name) => {
    await makeBackup(here.dataDir)
    const before = fingerprint(here.dataDir)
    const directory = `${here.dataDir}/system-backups`
    expect(await tryRestore(here.dataDir, name)).toStrictEqual([
      `refused Backup directory not found: ${directory}/${name}; use a directory name listed in ${directory}`,
    ])
    expect(fingerprint(here.dataDir)).toStrictEqual(before)
  },
)

test('a restore without our own signature logs a warning, and is refused if so configured', async () => {
  const name = await makeBackup(here.dataDir)
  const completedAnd = (why: string) => [
    completed,
    `warn Restored a backup that this service did not sign: ${name} ${why}; anybody with access to its files may have changed them`,
  ]
  const foreign = completedAnd('is signed with a secret that this service does not have')
  expect(await tryRestore(here.dataDir, name, { secrets: ['another secret of this machine'] })).toStrictEqual(foreign)
  forge(join(here.backups, name), () => {})
  expect(await tryRestore(here.dataDir, name)).toStrictEqual(completedAnd('is not signed'))
  const [[details]] = Object(rows('select details from audit_log order by id desc limit 1'))
  expect(JSON.parse(details)).toMatchObject({ name, signature: 'none' })
  const before = fingerprint(here.dataDir)
  expect(await tryRestore(here.dataDir, name, { requireSignature: true })).toStrictEqual([
    expect.stringMatching(/^refused Restore failed: .* is not signed, and RESTORE_REQUIRE_SIGNATURE is true/),
  ])
  expect(fingerprint(here.dataDir)).toStrictEqual(before)
})

test('beside backups of our own, one without our signature is refused unless that is allowed', async () => {
  const [forged, own] = [await makeBackup(here.dataDir), await makeBackup(here.dataDir, { now: () => MADE_AT + 1000 })]
  forge(join(here.backups, forged), () => {})
  const before = fingerprint(here.dataDir)
  const refused = (why: string) => [
    `refused Restore failed: ${forged} ${why}, while this service signed others in the same directory; add the secret that signed it to SESSION_SECRET, or set RESTORE_UNSIGNED=yes if you know who made it`,
  ]
  expect(await tryRestore(here.dataDir, forged)).toStrictEqual(refused('is not signed'))
  expect(fingerprint(here.dataDir)).toStrictEqual(before)
  const strict = await tryRestore(here.dataDir, forged, { requireSignature: true, allowUnsigned: true })
  expect(strict).toStrictEqual([expect.stringMatching(/^refused .* RESTORE_REQUIRE_SIGNATURE is true/)])
  expect(await tryRestore(here.dataDir, forged, { allowUnsigned: true })).toStrictEqual([
    completed,
    expect.stringMatching(/^warn Restored a backup that this service did not sign: .* is not signed/),
  ])
  // A signature by any other secret is as easy to make.
  rmSync(join(here.backups, forged), { recursive: true })
  const foreign = await makeBackup(here.dataDir, { secrets: ['a secret that only the forger knows'] })
  expect(foreign).toBe(forged)
  const why = 'is signed with a secret that this service does not have'
  expect(await tryRestore(here.dataDir, foreign)).toStrictEqual(refused(why))
  expect(await tryRestore(here.dataDir, own)).toStrictEqual([expect.stringMatching(/^info Restore completed: /)])
})

test('an unreadable marker stops the restore', async () => {
  const name = await makeBackup(here.dataDir)
  writeFileSync(join(here.dataDir, '.restore-completed'), 'half a mark')
  const before = fingerprint(here.dataDir)
  await expect(start(name)).rejects.toThrow(/^Restore failed: .*\.restore-completed cannot be read; delete it/)
  expect(fingerprint(here.dataDir)).toStrictEqual(before)
})

test('the latest replaced database is kept, including its write-ahead log', async () => {
  const name = await makeBackup(here.dataDir)
  const store = openDatabase(here.database)
  store.sqlite.exec("update settings set value = '1'")
  // As a crash leaves it: the change is only in the write-ahead log.
  const crashed = { db: readFileSync(here.database), wal: readFileSync(`${here.database}-wal`) }
  store.close()
  writeFileSync(here.database, crashed.db)
  writeFileSync(`${here.database}-wal`, crashed.wal)
  await tryRestore(here.dataDir, name)
  expect(rows('select value from settings', safetyCopyOf(here.database))).toStrictEqual([['1']])
  change("update settings set value = '2'")
  await tryRestore(here.dataDir, name)
  expect(rows('select value from settings', safetyCopyOf(here.database))).toStrictEqual([['2']])
  expect(rows('select value from settings')).toStrictEqual([['30']])
  const files = readdirSync(here.dataDir).filter((file) => !file.includes('-lock'))
  expect(files).toStrictEqual(['.restore-completed', 'mesh.db', 'mesh.db.before-restore', 'system-backups'])
})

test('all sessions end, in any session store, and no later one is mistaken for them', async () => {
  change('update users set session_epoch = 9000000000000000')
  const name = await makeBackup(here.dataDir)
  await tryRestore(here.dataDir, name)
  expect(rows('select session_epoch from users')).toStrictEqual([[9000000000000001]])
  expect(rows('select * from sessions')).toStrictEqual([])
  change('update users set session_epoch = 5')
  await makeBackup(here.dataDir, { now: () => MADE_AT + 1000 })
  await tryRestore(here.dataDir, '2026-01-15_120001')
  expect(rows('select session_epoch from users')).toStrictEqual([[MADE_AT + 60_000]])
})

test('newer audit entries are carried over once, and the restore is one of them', async () => {
  const name = await makeBackup(here.dataDir)
  const entry = (user: string, at: number) =>
    change(`insert into audit_log (timestamp, username, action, resource, details)
      values (${at}, '${user}', 'login_success', 'auth', '{}')`)
  // A clock that was set back makes no entry older than the backup.
  entry('early', MADE_AT - 1)
  entry('late', MADE_AT + 1)
  await tryRestore(here.dataDir, name)
  await tryRestore(here.dataDir, name)
  const entries = 'select id, username, action from audit_log order by id'
  expect(rows(entries)).toStrictEqual([
    [1, 'system', 'admin_bootstrapped'],
    [2, 'root', 'login_success'],
    [3, 'early', 'login_success'],
    [4, 'late', 'login_success'],
    [5, 'system', 'system_restored'],
    [6, 'system', 'system_restored'],
  ])
  const [[details]] = Object(rows('select details from audit_log where id = 5'))
  expect(JSON.parse(details)).toMatchObject({ name, createdAt: MADE_AT, carriedAuditEntries: 2 })
  expect(() => change('delete from audit_log')).toThrow('append-only')
})

/** Seals the log as the service does, and verifies it. */
async function verifyLog() {
  const store = openDatabase(here.database)
  await sealAudit(store)
  const found = await verifyChain(store, { after: 0, limit: 1000 })
  store.close()
  return found
}

test('the seals of the audit log are carried over, also of an entry that was tampered with', async () => {
  await verifyLog()
  change(`insert into audit_log (timestamp, username, action, resource, details) values (1, 'x', 'x', 'auth', '{}')`)
  const name = await makeBackup(here.dataDir)
  change(`insert into audit_log (timestamp, username, action, resource, details)
    values (2, 'late', 'x', 'auth', '{}'), (3, 'later', 'x', 'auth', '{}')`)
  const { until } = await verifyLog()
  change(`insert into audit_log (timestamp, username, action, resource, details) values (4, 'last', 'x', 'auth', '{}')`)
  await tryRestore(here.dataDir, name)
  expect(rows('select hash from audit_log where id = 5')).toStrictEqual([[until?.hash]])
  expect(await verifyLog()).toMatchObject({ entries: 7, until: { id: 7 }, broken: null, unsealed: 0 })
  const sqlite = new Database(here.database)
  const update = sqlite
    .prepare<[], string>("select sql from sqlite_schema where name = 'audit_log_no_update'")
    .pluck()
    .get()
  sqlite.exec(`drop trigger audit_log_no_update; update audit_log set username = 'who' where id = 4; ${update}`)
  sqlite.close()
  await tryRestore(here.dataDir, name)
  expect(await verifyLog()).toMatchObject({ until: { id: 3 }, broken: { id: 4, reason: 'changed' } })
})

test('the audit log of another history is carried over from the time of the backup', async () => {
  const name = await makeBackup(here.dataDir)
  rmSync(here.database)
  openDatabase(here.database).close()
  change(`insert into audit_log (timestamp, username, action, resource, details)
    values (${MADE_AT - 1}, 'before', 'x', 'auth', '{}'), (${MADE_AT + 1}, 'after', 'x', 'auth', '{}')`)
  await tryRestore(here.dataDir, name)
  expect(rows('select id, username from audit_log order by id')).toStrictEqual([
    [1, 'system'],
    [2, 'root'],
    [3, 'after'],
    [4, 'system'],
  ])
})

/** What a restore says that cannot read the replaced database. */
const unread = [
  'warn The replaced database cannot be read; its audit entries are not copied',
  completed,
  'warn The restore undid this change, made after the backup',
]

test.each([
  ['no database', () => rmSync(here.database), false, [completed]],
  ['an invalid database', () => writeFileSync(here.database, 'not a database at all'.repeat(1000)), true, unread],
  ['an empty file', () => writeFileSync(here.database, ''), true, [completed]],
  ['a database from before users existed', () => downgrade(), true, [completed]],
  [
    'a database with a broken page',
    () => {
      const bytes = readFileSync(here.database)
      writeFileSync(here.database, bytes.fill(0x5a, 100, 8192))
    },
    true,
    unread,
  ],
])('%s is replaced', async (_what, ruin, isKept, lines) => {
  const name = await makeBackup(here.dataDir)
  const content = contentOf(here.database)
  ruin()
  writeFileSync(`${here.database}-journal`, 'left over')
  const bytes = existsSync(here.database) ? readFileSync(here.database) : null
  expect(await tryRestore(here.dataDir, name)).toStrictEqual(lines)
  const sqlite = new Database(here.database)
  // Of a database that cannot be read, it is not known what the restore undid: one entry says so.
  const { changes } = sqlite.prepare("delete from settings where key like 'backup.restoredAccess.%'").run()
  sqlite.close()
  expect(changes).toBe(lines === unread ? 1 : 0)
  expect(contentOf(here.database)).toStrictEqual(content)
  expect(existsSync(safetyCopyOf(here.database))).toBe(isKept)
  if (bytes !== null && bytes.subarray(0, 3).toString() === 'not') {
    expect(readFileSync(safetyCopyOf(here.database)).equals(bytes)).toBe(true)
  }
})

function downgrade(): void {
  rmSync(here.database)
  const folder = join(here.dataDir, 'old')
  copyMigrations(MIGRATIONS_DIR, '0000_monitoring', folder)
  const sqlite = new Database(here.database)
  for (const sql of readFileSync(join(folder, '0000_monitoring.sql'), 'utf8').split('--> statement-breakpoint')) {
    sqlite.exec(sql)
  }
  sqlite.close()
}

test('the database of a running service is not replaced', async () => {
  const name = await makeBackup(here.dataDir)
  const before = readFileSync(here.database)
  const lock = lockShared(databaseLockFile(here.dataDir), 0)
  expect(await tryRestore(here.dataDir, name)).toStrictEqual([
    expect.stringMatching(/^refused Restore failed: .* is in use/),
  ])
  lock?.release()
  const store = openDatabase(here.database)
  store.sqlite.prepare('select count(*) from users').get()
  expect(await tryRestore(here.dataDir, name)).toStrictEqual([
    expect.stringMatching(/^refused Restore failed: .* is in use/),
  ])
  store.close()
  expect(readFileSync(here.database).equals(before)).toBe(true)
  expect(await tryRestore(here.dataDir, name)).toStrictEqual([completed])
})

test('an older backup runs through the real migrations; a failing one leaves everything unchanged', async () => {
  const name = await makeBackup(here.dataDir)
  const latest = migrationTags(MIGRATIONS_DIR).at(-1)
  const next = join(here.dataDir, 'next')
  const addMigration = (sql: string) => {
    rmSync(next, { recursive: true, force: true })
    copyMigrations(MIGRATIONS_DIR, String(latest), next)
    const file = join(next, 'meta/_journal.json')
    const journal = Object(JSON.parse(readFileSync(file, 'utf8')))
    const { when, ...more } = journal.entries.at(-1)
    journal.entries.push({ ...more, idx: 99, when: when + 1, tag: '0099_next' })
    writeFileSync(file, JSON.stringify(journal))
    writeFileSync(join(next, '0099_next.sql'), sql)
  }
  addMigration('ALTER TABLE `metrics` RENAME COLUMN `name` TO `title`;--> statement-breakpoint\nnonsense;')
  const before = fingerprint(here.dataDir)
  expect(await tryRestore(here.dataDir, name, { migrations: next })).toStrictEqual([
    `info Schema migration required: ${latest} -> 0099_next`,
    expect.stringMatching(/^refused .*nonsense/s),
  ])
  expect(fingerprint(here.dataDir)).toStrictEqual(before)
  addMigration('ALTER TABLE `metrics` RENAME COLUMN `name` TO `title`;')
  expect(await tryRestore(here.dataDir, name, { migrations: next })).toStrictEqual([
    `info Schema migration required: ${latest} -> 0099_next`,
    completed,
  ])
  expect(rows('select title from metrics')).toStrictEqual([['deviceMetrics.batteryLevel']])
})

test('the remains of an interrupted restore are completed or discarded, and only by a single process', () => {
  const scratch = join(here.dataDir, '.restoring')
  const options = restoreOptions(here.dataDir)
  mkdirSync(scratch)
  writeFileSync(join(scratch, 'mesh.db'), 'half')
  writeFileSync(join(scratch, 'marker'), '{}')
  linkSync(here.database, safetyCopyOf(here.database))
  const bytes = readFileSync(here.database)
  const lock = lockShared(databaseLockFile(here.dataDir), 0)
  recoverRestore(options)
  expect(existsSync(scratch)).toBe(true)
  lock?.release()
  recoverRestore(options)
  expect(readdirSync(here.dataDir).filter((file) => !file.includes('-lock'))).toStrictEqual(['mesh.db'])
  expect(readFileSync(here.database).equals(bytes)).toBe(true)
  mkdirSync(scratch)
  writeFileSync(join(scratch, 'marker'), 'done')
  recoverRestore(options)
  expect(readFileSync(join(here.dataDir, '.restore-completed'), 'utf8')).toBe('done')
  expect(existsSync(scratch)).toBe(false)
})

test('texts are found after a restore, both before and after their indexes are built', async () => {
  change(`insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    values (9001, 5, 4294967295, 0, 'the Tower is up', 1, 'in')`)
  await tryRestore(here.dataDir, await makeBackup(here.dataDir))
  const store = openDatabase(here.database)
  try {
    const find = async () =>
      Object(JSON.parse(await listMessages(store, { limit: 10, q: 'tower' }, WHOLE_VIEW))).messages
    // The oldest part has the months before this one.
    const part = () => String(store.sqlite.prepare('select name from text_parts order by before limit 1').pluck().get())
    const entries = () => store.sqlite.prepare(`select count(*) from ${part()} where ${part()} match 'tow'`)
    const found = [expect.objectContaining({ text: 'the Tower is up' })]
    expect([await find(), entries().pluck().get()]).toStrictEqual([found, 0])
    await buildTextIndexes({ store, log: keptLog().log, now: Date.now }, async () => true)
    expect([await find(), entries().pluck().get()]).toStrictEqual([found, 1])
  } finally {
    store.close()
  }
})
