import { createSigner } from '../support/mesh/signer.ts'
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { eq } from 'drizzle-orm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { databaseSessions } from '../../src/app/accounts/sessions/database-sessions.ts'
import { settings } from '../../src/db/schema.ts'
import { rememberUnchanged } from '../../src/db/store.ts'
import { MIGRATIONS_DIR, openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { createTestApp } from '../support/app.ts'
import { programEnv } from '../support/built/built-service.ts'

let dir: string
const open: SqliteStore[] = []
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-database-'))
})
afterEach(() => {
  for (const store of open.splice(0)) store.close()
  rmSync(dir, { recursive: true })
})

const file = () => join(dir, 'mesh.db')
function opened(path = file()): SqliteStore {
  const store = openDatabase(path)
  open.push(store)
  return store
}

const JOURNAL = join(MIGRATIONS_DIR, 'meta', '_journal.json')
const journal: { entries: { when: number; tag: string }[] } = JSON.parse(readFileSync(JOURNAL, 'utf8'))

/** A database as left by the version that only had the first migration, with its collected data. */
async function oldDatabase(): Promise<void> {
  const sqlite = new Database(file())
  const [first] = journal.entries
  if (first === undefined) throw new Error('no migrations')
  const sql = readFileSync(join(MIGRATIONS_DIR, `${first.tag}.sql`), 'utf8')
  for (const statement of sql.split('--> statement-breakpoint')) sqlite.exec(statement)
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(sql))
  sqlite.exec(
    'create table "__drizzle_migrations" (id integer primary key autoincrement, hash text not null, created_at numeric)',
  )
  sqlite
    .prepare('insert into "__drizzle_migrations" (hash, created_at) values (?, ?)')
    .run(Buffer.from(digest).toString('hex'), first.when)
  sqlite.exec(`
    insert into sources (kind, name, created_at) values ('tcp', 'radio', 1);
    insert into metrics (name) values ('device.battery_level');
    insert into nodes (node_num, long_name, short_name, first_heard, notes) values
      (4294967295, 'Ünïcode 🦊', 'UF', 1, 'n''otes'), (1, null, null, 2, '');
    insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction) values
      (1, 4294967295, 4294967295, 1, 0, 'hello 🦊 ' || char(10) || 'second line', 1700000000000, 'in');
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
      insert into telemetry (node_id, metric, t, v) select 1, 1, 1700000000000 + i * 60000, i / 7.0 from n;`)
  sqlite.close()
}

/** As a later version leaves a database: with a migration that this version lacks. */
function makeNewer(): void {
  opened().close()
  open.length = 0
  const sqlite = new Database(file())
  const next = (journal.entries.at(-1)?.when ?? 0) + 1
  sqlite.exec(`create table of_tomorrow (id integer);
    insert into "__drizzle_migrations" (hash, created_at) values ('tomorrow', ${next})`)
  sqlite.close()
}

test('the database of a newer version is refused with one line and left unchanged', () => {
  makeNewer()
  const before = readFileSync(file())
  const why = `${file()}: found the database of a newer version, expected one of this version or an older one; start the newer version, or restore a backup that this one made`
  expect(() => openDatabase(file())).toThrow(why)
  expect(readFileSync(file())).toStrictEqual(before)
  expect(readdirSync(dir)).toStrictEqual(['mesh.db'])
})

test.each([
  ['cli.ts', ['list']],
  ['cli.ts', ['backup']],
  ['migrate.ts', []],
])('%s %s refuses it as well', (program, args) => {
  makeNewer()
  const path = new URL(`../../src/node/${program}`, import.meta.url).pathname
  const env = { ...programEnv(), DATA_DIR: dir }
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { env, encoding: 'utf8' })
  expect([status, stdout]).toStrictEqual([1, ''])
  expect(stderr).toMatch(/^\S*mesh\.db: found the database of a newer version, [^\n]*\n$/)
})

test('migrating a database by hand brings it to this version', () => {
  const path = new URL('../../src/node/migrate.ts', import.meta.url).pathname
  const env = { ...programEnv(), DATA_DIR: dir }
  expect(spawnSync(process.execPath, [path], { env, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  const count = opened().sqlite.prepare('select count(*) from "__drizzle_migrations"').pluck()
  expect(count.get()).toBe(journal.entries.length)
})

const TABLES = ['sources', 'metrics', 'nodes', 'messages', 'telemetry', 'positions', 'channels', 'settings']

/** The columns of the old version, from all rows. */
function oldRows(): unknown[] {
  const sqlite = new Database(file(), { readonly: true })
  const rows = TABLES.map((table) => [table, sqlite.prepare(`select * from "${table}"`).raw().all()])
  sqlite.close()
  return rows
}

describe('migrations', () => {
  test('bring a database of the first version up to date with all its data', async () => {
    await oldDatabase()
    const before = oldRows()
    const store = opened()
    const applied = store.sqlite.prepare('select created_at from "__drizzle_migrations" order by id').pluck().all()
    expect(applied).toStrictEqual(journal.entries.map(({ when }) => when))
    expect(store.sqlite.pragma('integrity_check')).toStrictEqual([{ integrity_check: 'ok' }])
    expect(store.sqlite.pragma('foreign_key_check')).toStrictEqual([])
    const known = Object(before)
    TABLES.forEach((table, i) => {
      const rows = store.sqlite.prepare(`select * from "${table}"`).raw().all()
      const [, old] = known[i]
      expect(
        rows.map((row) => Object(row).slice(0, old[0]?.length)),
        table,
      ).toStrictEqual(old)
    })
    expect(store.sqlite.prepare('select count(*) from telemetry').pluck().get()).toBe(5000)
    const counted = "select row_count from revisions where name = 'nodes'"
    expect(store.sqlite.prepare(counted).pluck().get()).toBe(2)
  })

  test('let the service run on the migrated database at once', async () => {
    await oldDatabase()
    const store = opened()
    const app = await createTestApp({ store, ports: { sessions: databaseSessions(store) } })
    const admin = await app.admin()
    expect((await admin.send('GET', '/api/users')).status).toBe(200)
  })

  test('lead to the same schema as a fresh database', async () => {
    await oldDatabase()
    const schema = (store: SqliteStore) =>
      store.sqlite
        .prepare("select type, name, sql from sqlite_master where name not like '%drizzle%' order by name")
        .all()
    expect(schema(opened())).toStrictEqual(schema(opened(':memory:')))
  })

  /** A database as the migrations before this one left it. */
  function databaseBefore(topic: string): Database.Database {
    const sqlite = new Database(file())
    const first = journal.entries.findIndex(({ tag }) => tag.endsWith(topic))
    const before = journal.entries.slice(0, first)
    for (const { tag } of before) {
      const sql = readFileSync(join(MIGRATIONS_DIR, `${tag}.sql`), 'utf8')
      for (const statement of sql.split('--> statement-breakpoint')) sqlite.exec(statement)
    }
    sqlite.exec(`
      create table "__drizzle_migrations" (id integer primary key autoincrement, hash text not null, created_at numeric);
      insert into "__drizzle_migrations" (hash, created_at) values ('', ${before.at(-1)?.when});`)
    return sqlite
  }

  test('take back what a key proved that does not belong to its node', () => {
    const sqlite = databaseBefore('trust')
    const [node, liar] = [createSigner(1), createSigner(2, 7)]
    const pinned = sqlite.prepare(`insert into nodes (node_num, public_key, key_signed, name_signed, position_signed,
      signed_at, first_heard, last_heard, heard_by_radio, via_mqtt) values (?, ?, 1, 1, 1, 5, 1, 9, ?, ?)`)
    pinned.run(node.nodeNum, node.base64, 1, 0)
    pinned.run(liar.nodeNum, liar.base64, 1, 1)
    sqlite.close()
    const { sqlite: after } = opened()
    const columns =
      'node_num, key_signed, name_signed, position_signed, signed_at, last_heard_by_radio, last_heard_by_broker'
    expect(after.prepare(`select ${columns} from nodes order by id`).raw().all()).toStrictEqual([
      [node.nodeNum, 1, 1, 1, 5, 9, null],
      [liar.nodeNum, 0, 0, 0, null, null, 9],
    ])
  })

  test('renumber the channels of brokers, and leave the channel indexes of radios', () => {
    const sqlite = databaseBefore('channel_identity')
    sqlite.exec(`
      insert into sources (kind, name, created_at) values
        ('tcp', 'radio', 1), ('mqtt', 'mqtt://broker', 1), ('ingest', 'hill/radio', 1), ('ingest', 'hill/mqtt://broker', 1);
      insert into channels (source_id, channel_index, name, role) values
        (1, 7, '', 'PRIMARY'), (2, 7, 'Low', 'SECONDARY'), (2, 8, 'LongFast', 'SECONDARY'), (3, 7, '', 'PRIMARY'),
        (4, 7, 'Low', 'SECONDARY'), (4, 255, 'High', 'SECONDARY');
      with recursive s(id) as (select 1 union all select id + 1 from s where id < 4), c(n) as (values (7), (8), (255))
        insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
          select s.id, s.id * 1000 + c.n, 5, 6, c.n, 'hi', 1, 'in' from s, c where s.id % 2 = 0 or c.n = 7;
      insert into messages
        (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction, pki_encrypted) values
        (2, 1, 5, 6, 0, 'direct', 1, 'in', 1);
      insert into nodes (node_num, first_heard, channel) values (5, 1, 8), (6, 1, 7), (7, 1, null);`)
    sqlite.close()
    const { sqlite: after } = opened()
    const rows = (sql: string) => after.prepare(sql).raw().all()
    expect(rows('select source_id, channel from messages order by source_id, channel')).toStrictEqual([
      [1, 7],
      ...[0, 263, 264, 511].map((channel) => [2, channel]),
      [3, 7],
      ...[263, 264, 511].map((channel) => [4, channel]),
    ])
    expect(rows('select source_id, channel_index, identity from channels')).toStrictEqual([
      [1, 7, null],
      [2, 263, '7:Low'],
      [2, 264, '8:LongFast'],
      [3, 7, null],
      [4, 263, '7:Low'],
      [4, 511, '255:High'],
    ])
    expect(rows('select node_num, channel from nodes')).toStrictEqual([
      [5, 264],
      [6, 7],
      [7, null],
    ])
  })

  test('keep the delivery right of tokens whose owner could create such a token today', () => {
    const sqlite = databaseBefore('token_sources')
    sqlite.exec(`
      insert into sources (kind, name, created_at) values ('ingest', 'hill', 1);
      insert into users (username, auth_provider, is_admin, created_at) values
        ('admin', 'local', 1, 1), ('keeper', 'local', 0, 1), ('reader', 'local', 0, 1);
      insert into user_permissions (user_id, resource, can_read, can_write) values
        (2, 'configuration', 1, 1), (3, 'configuration', 1, 0), (3, 'nodes', 1, 1);
      insert into api_tokens (user_id, name, prefix, token_hash, scopes, created_at, last_used_at) values
        (1, 'delivers', 'mm_1', '1', '["nodes:write"]', 1, 1), (1, 'never used', 'mm_2', '2', '["nodes:write"]', 1, null),
        (2, 'delivers too', 'mm_3', '3', '["nodes:read","nodes:write"]', 1, 1),
        (2, 'reads', 'mm_4', '4', '["nodes:read"]', 1, 1), (3, 'may not', 'mm_5', '5', '["nodes:write"]', 1, 1);`)
    sqlite.close()
    expect(opened().sqlite.prepare('select name, scopes from api_tokens order by id').raw().all()).toStrictEqual([
      ['delivers', '["nodes:write","ingest"]'],
      ['never used', '["nodes:write"]'],
      ['delivers too', '["nodes:read","nodes:write","ingest"]'],
      ['reads', '["nodes:read"]'],
      ['may not', '["nodes:write"]'],
    ])
  })

  test('keep the oldest of the made-up channels, and all channels of radios', () => {
    const sqlite = databaseBefore('token_sources')
    sqlite.exec(`
      insert into sources (kind, name, created_at) values ('mqtt', 'mqtt://broker', 1), ('tcp', 'radio', 1);
      with recursive n(i) as (select 300 union all select i - 1 from n where i > 0)
        insert into channels (source_id, channel_index, name, role) select 1, 1000 + i, 'c' || i, 'SECONDARY' from n;
      insert into channels (source_id, channel_index, name, role) values (2, 0, '', 'PRIMARY'), (2, 7, 'Hut', 'SECONDARY');`)
    sqlite.close()
    const kept = opened().sqlite.prepare(
      'select source_id, count(*), min(channel_index), max(channel_index), max(last_heard) > 1600000000000 from channels group by 1',
    )
    expect(kept.raw().all()).toStrictEqual([
      [1, 200, 1101, 1300, 1],
      [2, 2, 0, 7, null],
    ])
  })

  test('keep the Idempotency-Keys of messages: a repeat over an upgrade must not send again', () => {
    const sqlite = databaseBefore('keys_of_creations')
    sqlite.exec(`
      insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        values (1, 5, 6, 0, 'hi', 1, 'out');
      insert into idempotency_keys (user_id, key, request_hash, message_id, created_at) values (1, 'k', 'abc', 1, 7);`)
    sqlite.close()
    expect(opened().sqlite.prepare('select * from idempotency_keys').all()).toStrictEqual([
      { user_id: 1, key: 'k', route: 'POST /api/messages', request_hash: 'abc', created_id: 1, created_at: 7 },
    ])
  })

  test('are not applied twice', () => {
    const first = opened()
    first.sqlite.exec("insert into settings (key, value, updated_at) values ('a', '1', 1)")
    const again = opened()
    expect(again.sqlite.prepare('select key from settings').pluck().all()).toStrictEqual(['a'])
  })

  test('that fail leave the database unchanged', async () => {
    await oldDatabase()
    const sqlite = new Database(file())
    sqlite.exec('create table users (mine text)')
    sqlite.close()
    const before = oldRows()
    expect(() => openDatabase(file())).toThrow(/users/)
    expect(oldRows()).toStrictEqual(before)
    const after = new Database(file(), { readonly: true })
    expect(after.prepare("select count(*) from sqlite_master where name = 'api_tokens'").pluck().get()).toBe(0)
    expect(after.prepare('select count(*) from "__drizzle_migrations"').pluck().get()).toBe(1)
    after.close()
  })
})

test('the database and its directory are private to the service, and acknowledged writes are on the disk', () => {
  const store = opened(join(dir, 'data', 'mesh.db'))
  expect((statSync(join(dir, 'data')).mode & 0o777).toString(8)).toBe('700')
  expect(store.sqlite.pragma('journal_mode', { simple: true })).toBe('wal')
  expect(store.sqlite.pragma('synchronous', { simple: true })).toBe(2)
  expect(store.sqlite.pragma('foreign_keys', { simple: true })).toBe(1)
})

test('a file that is not a database gives an error that says so, and stays', () => {
  writeFileSync(file(), 'this is not a database, and it is longer than a header '.repeat(10))
  copyFileSync(file(), join(dir, 'copy'))
  expect(() => openDatabase(file())).toThrow(/mesh\.db: found a damaged database, .*\(SQLITE_NOTADB\)$/)
  expect(readFileSync(file())).toStrictEqual(readFileSync(join(dir, 'copy')))
  expect(readdirSync(dir).toSorted()).toStrictEqual(['copy', 'mesh.db'])
})

test('atomic runs all statements or none, and a later statement sees an earlier one', async () => {
  const app = await createTestApp({ store: opened(':memory:') })
  const { sqlite, db } = app.store
  const { settings } = await import('../../src/db/schema.ts')
  const row = (key: string) => db.insert(settings).values({ key, value: '1', updatedAt: 1 })
  await expect(app.store.atomic([row('a'), row('b'), row('a')])).rejects.toThrow(/UNIQUE/)
  expect(sqlite.prepare('select count(*) from settings').pluck().get()).toBe(0)
  await app.store.atomic([row('a'), row('b')])
  expect(sqlite.prepare('select count(*) from settings').pluck().get()).toBe(2)
})

describe('the version of the database', () => {
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
  const setting = (key: string) => ({ key, value: '1', updatedAt: 1 })

  test('stays while nobody writes, and changes at once with each of its own commits', async () => {
    const store = opened()
    const first = store.version()
    expect(store.version()).toBe(first)
    await nextTurn()
    expect(store.version()).toBe(first)
    await store.db.insert(settings).values(setting('a')).run()
    const second = store.version()
    expect(second).not.toBe(first)
    await store.atomic([store.db.update(settings).set({ value: '2' })])
    expect(store.version()).not.toBe(second)
  })

  test('changes after a write of another process, by the next turn of the event loop', async () => {
    const store = opened()
    const other = opened()
    const first = store.version()
    await other.db.insert(settings).values(setting('b')).run()
    await nextTurn()
    const second = store.version()
    expect(second).not.toBe(first)
    await nextTurn()
    expect(store.version()).toBe(second)
  })

  test('a cached value is reloaded after a change, and a deleted one stays deleted', async () => {
    const store = opened()
    let loads = 0
    const count = rememberUnchanged(2, async ({ db }, key: string) => {
      loads++
      return (await db.$count(settings, eq(settings.key, key))) === 1
    })
    expect([await count(store, 'a'), await count(store, 'a'), loads]).toEqual([false, false, 1])
    await store.db.insert(settings).values(setting('a')).run()
    expect([await count(store, 'a'), await count(store, 'b'), await count(store, 'c'), loads]).toEqual([
      true,
      false,
      false,
      4,
    ])
    // Only as many as requested are kept.
    expect([await count(store, 'a'), await count(store, 'c'), loads]).toEqual([true, false, 5])
  })
})

test('space: what is used without free pages, and the size that the file can reach on its disk', async () => {
  const store = openDatabase(file())
  open.push(store)
  const before = (await store.space())?.usedBytes ?? 0
  store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < 2000)
    insert into settings (key, value, updated_at) select 'k' || n, printf('%.1000c', 'x'), 1 from i`)
  const grown = (await store.space())?.usedBytes ?? 0
  expect(grown - before).toBeGreaterThan(2_000_000)
  store.sqlite.exec("delete from settings where key like 'k%'")
  const after = await store.space()
  expect(Number(after?.usedBytes) - before).toBeLessThan(100_000)
  const { bavail, bsize } = statfsSync(dir)
  const size = Number(await store.sizeBytes())
  expect(Math.abs(Number(after?.limitBytes) - size - bavail * bsize)).toBeLessThan(1e9)
  expect(Number(after?.limitBytes)).toBeGreaterThan(size)
})

test('a process that keeps a read transaction open keeps the log: it does not start over, and survives the service', () => {
  const store = opened()
  const size = () => statSync(`${file()}-wal`).size
  store.sqlite.exec('create table filling (content)')
  const fill = () => {
    // More than four times the pages at which SQLite writes the log back.
    for (let n = 0; n < 18; n++) store.sqlite.exec('insert into filling values (zeroblob(1000000))')
    return size()
  }
  expect(fill()).toBeLessThan(9_000_000)
  const reader = new Database(file(), { readonly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from filling').get()
  expect(fill()).toBeGreaterThan(18_000_000)
  store.close()
  expect(size()).toBeGreaterThan(18_000_000)
  reader.close()
  openDatabase(file()).close()
  expect(readdirSync(dir).toSorted()).toStrictEqual(['mesh.db'])
})
