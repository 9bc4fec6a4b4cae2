import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { EPHEMERAL_TABLES } from '../../../src/db/schema.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { nativePasswordHasher } from '../../../src/node/passwords.ts'
import { createTestApp } from '../../support/app.ts'
import { contentOf, makeDataDir, tryRestore } from '../../support/backup/backup.ts'

/**
 * Data of an earlier version, as `node scripts/try-upgrade.js COMMIT --keep FOLDER` leaves them: its database after
 * seven minutes with the simulated mesh, and the backup that it made just before. They must never be deleted.
 */
const FIXTURE = join(import.meta.dirname, '../fixtures/landed-0035')
const NAME = '2026-11-24_154344'

let here: ReturnType<typeof makeDataDir>
beforeEach(() => {
  here = makeDataDir()
})
afterEach(() => here.remove())

function takeDatabase(): void {
  writeFileSync(here.database, gunzipSync(readFileSync(join(FIXTURE, 'mesh.db.gz'))))
}

function takeBackup(): void {
  mkdirSync(here.backups, { recursive: true })
  execFileSync('tar', ['-xzf', join(FIXTURE, 'backup.tar.gz'), '-C', here.backups])
}

/** Tables, indexes and triggers in the words of their definitions, without white space. */
function schemaOf({ sqlite }: SqliteStore): string[] {
  return sqlite
    .prepare("select name || ': ' || sql from sqlite_master where sql is not null and name not like 'sqlite%'")
    .pluck()
    .all()
    .map((text) => String(text).replaceAll(/[\s`"]+/g, ' '))
    .toSorted()
}

test('its database is upgraded at the start: nobody and nothing is lost', async () => {
  takeDatabase()
  const store = openDatabase(here.database)
  const { sqlite } = store
  expect(sqlite.pragma('integrity_check', { simple: true })).toBe('ok')
  expect(sqlite.pragma('foreign_key_check')).toStrictEqual([])
  const app = await createTestApp({ store, passwords: nativePasswordHasher() })
  const admin = await app.signIn('admin', 'three radios on one hill')
  const shown = async (path: string) => Object(await (await admin.send('GET', path)).json())
  const { users } = await shown('/api/users')
  const named = users.map(({ username, authProvider, isAdmin }: Record<string, unknown>) => [
    username,
    authProvider,
    isAdmin,
  ])
  expect(named).toStrictEqual([
    ['admin', 'local', true],
    ['anna', 'local', false],
    ['carl', 'local', true],
    ['ola', 'oidc', false],
  ])
  expect((await shown('/api/messages?q=upgrade')).messages).toMatchObject([{ id: 1, text: 'Before the upgrade' }])
  expect((await shown('/api/settings')).packetRetentionDays).toBe(6)
  expect(await shown('/api/audit/verify')).toMatchObject({ broken: null, entries: expect.any(Number) })
  const anna = await app.signIn('anna', 'a bench under the oak')
  expect((await anna.send('GET', '/api/nodes')).status).toBe(200)
  expect((await anna.send('GET', '/api/configuration')).status).toBe(403)
  app.close()
})

test('an upgraded database has the schema of a new one', () => {
  takeDatabase()
  const upgraded = openDatabase(here.database)
  const fresh = openDatabase(':memory:')
  expect(schemaOf(upgraded)).toStrictEqual(schemaOf(fresh))
  upgraded.close()
  fresh.close()
})

/** What both ways must bring: a restore gives nodes new revisions, and begins marks and counters anew. */
function comparable(): Record<string, unknown> {
  const content = contentOf(here.database)
  const store = openDatabase(here.database)
  const revision = store.sqlite
    .prepare("select cid from pragma_table_info('nodes') where name = 'revision'")
    .pluck()
    .get()
  store.close()
  return {
    ...Object.fromEntries(Object.entries(content).filter(([name]) => !EPHEMERAL_TABLES.some((each) => each === name))),
    nodes: content['nodes']?.map((row) => Object(row).toSpliced(revision, 1)),
  }
}

test('its backup restores to what its upgraded database has', async () => {
  takeDatabase()
  const upgraded = comparable()
  takeBackup()
  const lines = await tryRestore(here.dataDir, NAME, { secrets: ['a secret that both versions of it know'] })
  expect(lines).toContainEqual(expect.stringMatching(/^info Schema migration required: 0035_text_parts -> \d{4}_/))
  expect(lines).toContainEqual(expect.stringMatching(/^info Restore completed: \d+ tables, \d+ rows restored/))
  expect(comparable()).toStrictEqual(upgraded)
})
