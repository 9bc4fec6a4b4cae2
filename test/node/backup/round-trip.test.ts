import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { diskFiles } from '../../../src/node/backup/folder/files.ts'
import { readManifest } from '../../../src/node/backup/folder/read-manifest.ts'
import { type SnapshotJob, writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { readTableFile } from '../../../src/node/backup/tables/file.ts'
import { backupTables, isEphemeral } from '../../../src/app/system/backup/format/tables.ts'
import { tablesOf } from '../../../src/node/backup/tables/tables-of.ts'
import { openDatabase } from '../../../src/node/database.ts'
import {
  contentOf,
  forge,
  MADE_AT,
  MADE_NAME,
  makeBackup,
  makeDataDir,
  seedDatabase,
  seedTelemetry,
  tryRestore,
} from '../../support/backup/backup.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

let here: ReturnType<typeof makeDataDir>
beforeEach(() => {
  here = makeDataDir()
})
afterEach(() => here.remove())

test('a backup contains every table of the database except the ephemeral ones', () => {
  const store = openMemoryStore()
  const all = [...tablesOf(store.sqlite)]
    .filter(([name]) => !isEphemeral(name))
    .map(([name, columns]) => ({ name, columns: columns.toSorted() }))
  const kept = backupTables().map(({ name, columns }) => ({ name, columns: columns.toSorted() }))
  expect(kept).toStrictEqual(all)
  store.close()
})

test('every table comes back unchanged, and a backup of it is identical byte for byte', async () => {
  seedDatabase(here.database)
  const before = contentOf(here.database)
  const first = await makeBackup(here.dataDir)
  const other = makeDataDir()
  try {
    mkdirSync(other.backups)
    cpSync(join(here.backups, first), join(other.backups, first), { recursive: true })
    expect(await tryRestore(other.dataDir, first)).toStrictEqual([
      expect.stringMatching(/^info Restore completed: \d+ tables, \d+ rows restored from 2026-01-15_120000$/),
    ])
    expect(contentOf(other.database)).toStrictEqual(before)
    const second = await makeBackup(other.dataDir, { now: () => MADE_AT + 1000 })
    // The restore itself changes two things: sessions end, and an entry records it.
    const written = ['users.json', 'audit_log.json', 'manifest.json']
    const tables = readdirSync(join(here.backups, first)).filter((file) => !written.includes(file))
    for (const file of tables) {
      const bytes = (backups: string, name: string) => readFileSync(join(backups, name, file), 'utf8')
      expect(bytes(other.backups, second)).toBe(bytes(here.backups, first))
    }
    expect(tables.length).toBeGreaterThan(10)
  } finally {
    other.remove()
  }
})

test('the number of nodes is counted again', async () => {
  seedDatabase(here.database)
  await tryRestore(here.dataDir, await makeBackup(here.dataDir))
  const store = openDatabase(here.database)
  const counted = store.sqlite.prepare("select row_count from revisions where name = 'nodes'").pluck()
  expect(counted.get()).toBe(1)
  store.sqlite.exec('insert into nodes (node_num, first_heard) values (77, 1), (78, 1); delete from nodes where id = 1')
  expect(counted.get()).toBe(2)
  store.close()
})

test('ids of deleted rows are not reused', async () => {
  seedDatabase(here.database)
  const name = await makeBackup(here.dataDir)
  await tryRestore(here.dataDir, name)
  const store = openDatabase(here.database)
  const { sqlite } = store
  sqlite.exec('insert into nodes (node_num, first_heard) values (77, 1)')
  expect(sqlite.prepare('select id from nodes where node_num = 77').pluck().get()).toBe(3)
  store.close()
})

const VALUES = [
  null,
  0,
  5,
  5.5,
  -0.1,
  0.1 + 0.2,
  Math.fround(3.3),
  5e-324,
  1.7976931348623157e308,
  Infinity,
  -Infinity,
  0n,
  7n,
  2n ** 53n - 1n,
  2n ** 53n,
  -(2n ** 53n),
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  '',
  'text',
  '12',
  '😀\n\r\t"\\\u0000\u001f\u007f\u2028\u2029\ufeff',
  '{"$int":"1"}',
  Buffer.alloc(0),
  Buffer.from([0, 255, 10, 34]),
]

test.each(['integer', 'real', 'text', 'blob', 'numeric', '', 'varchar(10)', 'boolean'])(
  'any value in a column of type "%s" comes back with its type',
  (type) => {
    const source = new Database(here.database)
    const create = `create table t (k text not null, v ${type}, primary key (k)) without rowid`
    source.exec(create)
    const insert = source.prepare('insert into t values (?, ?)')
    for (const [i, value] of VALUES.entries()) insert.run(`key ${i} 😀\n`, value)
    source.close()
    const job = { ...snapshotJob(), tables: [{ name: 't', columns: ['k', 'v'] }] }
    const { tables } = writeSnapshot(job, diskFiles, () => {})
    const restored = new Database(':memory:')
    restored.exec(create)
    for (const table of tables) {
      readTableFile(join(here.backups, MADE_NAME), table, (rows) => {
        for (const row of rows) restored.prepare('insert into t values (?, ?)').run(...row)
      })
    }
    const dump = (database: Database.Database) =>
      database.prepare('select k, typeof(v), v from t').raw().safeIntegers().all()
    const reopened = new Database(here.database)
    expect(dump(restored)).toStrictEqual(dump(reopened))
    expect(dump(restored)).toHaveLength(VALUES.length)
    reopened.close()
  },
)

test('each file is valid JSON, one row per line, private to the service', async () => {
  seedDatabase(here.database, 2500)
  const backup = join(here.backups, await makeBackup(here.dataDir))
  const manifest = readManifest(backup)
  for (const { file, rows, columns, name } of manifest.tables) {
    const text = readFileSync(join(backup, file), 'utf8')
    const parsed = Object(JSON.parse(text))
    expect(Object.keys(parsed)).toStrictEqual(['table', 'columns', 'rows'])
    expect(parsed).toMatchObject({ table: name, columns })
    expect(parsed.rows).toHaveLength(rows)
    expect(text.split('\n')).toHaveLength(rows + 3)
    expect(statSync(join(backup, file)).mode & 0o777).toBe(0o600)
  }
  expect(manifest.tables.find(({ name }) => name === 'telemetry')?.rows).toBe(2502)
  expect(statSync(backup).mode & 0o777).toBe(0o700)
  expect(statSync(here.backups).mode & 0o777).toBe(0o700)
})

test('rows wider than a chunk and more rows than a chunk are complete', async () => {
  seedDatabase(here.database)
  const store = openDatabase(here.database)
  const { sqlite } = store
  sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 3000)
    insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    select n + 10, 5, 6, 0, 'm' || n, n, 'in' from i`)
  const insert = sqlite.prepare('insert into settings values (?, ?, 1)')
  for (let i = 0; i < 12; i++) insert.run(`wide.${i}`, JSON.stringify('ö'.repeat(600_000)))
  store.close()
  const before = contentOf(here.database)
  expect(await tryRestore(here.dataDir, await makeBackup(here.dataDir))).toHaveLength(1)
  expect(contentOf(here.database)).toStrictEqual(before)
})

test('all of a million rows come back', async () => {
  seedDatabase(here.database)
  const store = openDatabase(here.database)
  seedTelemetry(store, 1_000_000)
  const sum = (database: string) => {
    const sqlite = new Database(database)
    const row = sqlite.prepare('select count(*), sum(v), sum(t), sum(node_id * metric) from telemetry').raw().get()
    sqlite.close()
    return row
  }
  store.close()
  const before = sum(here.database)
  const name = await makeBackup(here.dataDir)
  expect(await tryRestore(here.dataDir, name)).toHaveLength(1)
  expect(sum(here.database)).toStrictEqual(before)
  const again = await makeBackup(here.dataDir, { now: () => MADE_AT + 1000 })
  const bytes = (backup: string) => readFileSync(join(here.backups, backup, 'telemetry.json'))
  expect(bytes(again).equals(bytes(name))).toBe(true)
})

function snapshotJob(): SnapshotJob {
  mkdirSync(here.backups)
  return {
    database: here.database,
    directory: here.backups,
    name: MADE_NAME,
    createdAt: MADE_AT,
    kind: 'manual',
    appVersion: '0',
    schema: '0000_test',
    tables: backupTables(),
    signingKey: null,
  }
}

test('a backup is one snapshot, whatever is written meanwhile', async () => {
  seedDatabase(here.database, 20_000)
  const store = openDatabase(here.database)
  const manifest = writeSnapshot(snapshotJob(), diskFiles, () => {
    store.sqlite.exec("delete from telemetry; delete from user_permissions; update settings set value = 'changed'")
  })
  const rows = new Map(manifest.tables.map(({ name, rows }) => [name, rows]))
  expect(rows.get('telemetry')).toBe(20_002)
  expect(rows.get('user_permissions')).toBe(1)
  expect(readFileSync(join(here.backups, MADE_NAME, 'settings.json'), 'utf8')).not.toContain('changed')
  expect(store.sqlite.prepare('select count(*) from telemetry').pluck().get()).toBe(0)
  store.close()
})

/** The backup that the first version made; it must never be deleted. */
function takeFixture(): string {
  mkdirSync(here.backups, { recursive: true })
  cpSync(new URL('../fixtures/backup-0001/', import.meta.url).pathname, here.backups, { recursive: true })
  return '2026-01-15_130000'
}

test('rows that no migration can convert count as damage of the backup', async () => {
  const name = takeFixture()
  const channels = join(here.backups, name, 'channels.json')
  forge(join(here.backups, name), (manifest) => {
    const [head = ''] = readFileSync(channels, 'utf8').split('\n')
    writeFileSync(channels, `${head}\n[1,10,"a","PRIMARY"],\n[1,266,"b","SECONDARY"]\n]}\n`)
    Object(manifest['tables']).find((table: { name: string }) => table.name === 'channels').rows = 2
  })
  expect(await tryRestore(here.dataDir, name)).toStrictEqual([
    expect.stringMatching(/^info Schema migration required: /),
    expect.stringMatching(
      /^refused Integrity validation failed: a row cannot be upgraded to this version: UNIQUE constraint failed: channels\..*; use an earlier backup or download the archive again$/,
    ),
  ])
})

test('the fixture of the first version restores into this one', async () => {
  const name = takeFixture()
  const [migration, completed, ...more] = await tryRestore(here.dataDir, name)
  expect(migration).toMatch(/^info Schema migration required: 0001_authentication -> \d{4}_\w+$/)
  expect(completed).toBe(`info Restore completed: 12 tables, 73 rows restored from ${name}`)
  expect(more).toStrictEqual([expect.stringMatching(/^warn Restored a backup that this service did not sign: /)])
  const store = openDatabase(here.database)
  const { sqlite } = store
  const one = (sql: string) => sqlite.prepare(sql).raw().get()
  const counted = sqlite.prepare('select t, counts from message_hours order by t').all()
  expect(counted).toStrictEqual(
    sqlite
      .prepare(`select t, json_group_object(place, n) counts from (
    select timestamp - timestamp % 3600000 t, iif(to_node_num = 4294967295, channel || '', 'direct') place, count(*) n
    from messages group by 1, 2) group by t order by t`)
      .all(),
  )
  expect(counted.length).toBeGreaterThan(0)
  expect(one("select row_count from revisions where name = 'nodes'")).toStrictEqual(one('select count(*) from nodes'))
  expect(
    one('select long_name, voltage, channel_utilization, battery_level, notes from nodes where id = 1'),
  ).toStrictEqual([
    'Hill ⛰️ “north”',
    Math.fround(4.123),
    0.1 + 0.2,
    101,
    'line one\nline two\t"quoted" \\ back\u0000nul \u2028 ',
  ])
  expect(one('select battery_level, voltage from nodes where id = 7')).toStrictEqual([Infinity, -Infinity])
  expect(one('select count(*), sum(v) from telemetry')).toStrictEqual([50, expect.closeTo(2489.2857, 3)])
  expect(one('select text from messages where id = 1')).toStrictEqual(['Grüße 😀 from the hill'])
  expect(one('select username, is_active, oidc_issuer from users where id = 2')).toStrictEqual([
    'ola',
    0,
    'https://id.example.org',
  ])
  expect(one('select count(*) from user_permissions')).toStrictEqual([7])
  expect(one('select scopes from api_tokens')).toStrictEqual(['["backup"]'])
  store.close()
})
