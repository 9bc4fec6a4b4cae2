import { mkdirSync, writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { beforeEach, afterEach, describe, expect, test } from 'vitest'
import { RESTORED_ACCESS_KEYS } from '../../../src/app/system/backup/settings.ts'
import { diskFiles } from '../../../src/node/backup/folder/files.ts'
import { signingKey } from '../../../src/app/system/backup/format/manifest.ts'
import { writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { isEphemeral } from '../../../src/app/system/backup/format/tables.ts'
import { tablesOf } from '../../../src/node/backup/tables/tables-of.ts'
import { MIGRATIONS_DIR, openDatabase } from '../../../src/node/database.ts'
import { migrationTags, openEmpty } from '../../../src/node/migrations.ts'
import { MADE_AT, MADE_NAME, makeDataDir, SECRET, tryRestore } from '../../support/backup/backup.ts'

let here: ReturnType<typeof makeDataDir>
beforeEach(() => {
  here = makeDataDir()
})
afterEach(() => here.remove())

const HOME = 'https://id.example.org'
const tags = migrationTags(MIGRATIONS_DIR)
const first = tags.indexOf('0001_authentication')
const last = tags.findIndex((tag) => tag.endsWith('_identities'))

/** A backup as the version with `tag` as its newest migration made it. */
function makeOldBackup(tag: string): void {
  const database = openEmpty(MIGRATIONS_DIR, tag)
  const user = database.prepare(
    'insert into users (id, username, auth_provider, oidc_issuer, oidc_subject, created_at) values (?, ?, ?, ?, ?, 7)',
  )
  user.run(1, 'local', 'local', null, null)
  user.run(2, 'made', 'oidc', HOME, 'made | there')
  user.run(3, 'linked', 'local', HOME, 'linked')
  user.run(4, 'ruled', 'local', HOME, 'ruled')
  user.run(5, 'prepared', 'oidc', HOME, null)
  user.run(6, 'anybody', 'oidc', null, null)
  database
    .prepare(
      "insert into audit_log (timestamp, user_id, username, action, resource, details) values (?, ?, ?, 'account_linked', 'auth', '{}')",
    )
    .run(9, 3, 'linked')
  const tables = tablesOf(database)
  if (tables.has('provider_roles')) {
    database.prepare('insert into provider_roles (user_id, issuer, applied_at) values (4, ?, 1)').run(HOME)
    // Of a provider that the account is no longer linked with.
    database
      .prepare("insert into provider_roles (user_id, issuer, applied_at) values (3, 'https://former.example', 1)")
      .run()
  }
  writeFileSync(here.database, database.serialize())
  database.close()
  mkdirSync(here.backups)
  writeSnapshot(
    {
      database: here.database,
      directory: here.backups,
      name: MADE_NAME,
      createdAt: MADE_AT,
      kind: 'manual',
      appVersion: '0.1.0',
      schema: tag,
      tables: [...tables].filter(([name]) => !isEphemeral(name)).map(([name, columns]) => ({ name, columns })),
      signingKey: signingKey(SECRET),
    },
    diskFiles,
    () => {},
  )
}

describe.each(tags.slice(first, last))('a backup of %s', (tag) => {
  test('keeps who signs in by which account at a provider, and whose groups rule', async () => {
    makeOldBackup(tag)
    expect((await tryRestore(here.dataDir, MADE_NAME)).at(-1)).toMatch(/^info Restore completed: /)
    const store = openDatabase(here.database)
    try {
      const rows = (sql: string) => store.sqlite.prepare(sql).raw().all()
      expect(rows('select user_id, issuer, subject, created_at from identities order by user_id')).toStrictEqual([
        [2, HOME, 'made | there', 7],
        [3, HOME, 'linked', 9],
        [4, HOME, 'ruled', 7],
      ])
      expect(rows('select username, oidc_issuer from users order by id')).toStrictEqual([
        ['local', null],
        ['made', HOME],
        ['linked', null],
        ['ruled', tags.indexOf(tag) >= tags.indexOf('0023_accounts') ? HOME : null],
        ['prepared', HOME],
        ['anybody', null],
      ])
    } finally {
      store.close()
    }
  })
})

test('a link that was cut in a database of an earlier version is named as restoredAccess', async () => {
  makeOldBackup('0046_node_status')
  const replaced = new Database(here.database)
  replaced.exec('update users set oidc_issuer = null, oidc_subject = null where id = 3')
  replaced.close()
  await tryRestore(here.dataDir, MADE_NAME)
  const store = openDatabase(here.database)
  try {
    const values = store.sqlite.prepare('select value from settings where key like ?').pluck().all(RESTORED_ACCESS_KEYS)
    expect(values.map((value) => Object(JSON.parse(String(value))))).toMatchObject([
      { action: 'account_unlinked', userId: 3, undone: { repeat: 'cut_link', issuer: HOME, subject: 'linked' } },
    ])
  } finally {
    store.close()
  }
})
