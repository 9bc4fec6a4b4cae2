import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readMeshFindings } from '../../../src/app/alerts/world/mesh-findings.ts'
import { readKnownNodes } from '../../../src/app/alerts/world/read-world.ts'
import { unseal } from '../../../src/app/base/sealing.ts'
import { lookForFindings } from '../../../src/app/mesh/findings/look.ts'
import { knownMetrics } from '../../../src/meshtastic/payload/telemetry.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { isDerived, METRIC_NAMES, PLACE_NAMES } from '../../../src/node/moving-in/parts/metric-names.ts'
import { makeScratch, removeLeftScratch } from '../../../src/node/moving-in/source/scratch.ts'
import { nativePasswordHasher } from '../../../src/node/passwords.ts'
import { createTestApp } from '../../support/app.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { AFTER, change, contentsOf, makeTheirs, runImport, SECRET } from '../../support/moving-in/meshmonitor.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

let theirs: ReturnType<typeof makeTheirs>
let dataDir: string
let whole: SqliteStore

beforeAll(async () => {
  theirs = makeTheirs()
  dataDir = mkdtempSync(join(tmpdir(), 'import-data-'))
  whole = openMemoryStore()
  await runImport(whole, dataDir, { file: theirs.file })
})

afterAll(() => {
  theirs.remove()
  whole.close()
  rmSync(dataDir, { recursive: true, force: true })
})

/** Counts in the file by plain SQL. */
function ask(sql: string): number {
  const sqlite = new Database(theirs.file, { readonly: true })
  const n = Number(sqlite.prepare(sql).pluck().get())
  sqlite.close()
  return n
}

const rows = (store: SqliteStore, table: string, where = 'true') =>
  Number(store.sqlite.prepare(`select count(*) from ${table} where ${where}`).pluck().get())

test('everything in the file is here once', () => {
  const measured = Array.from(METRIC_NAMES.keys(), (name) => `'${name}'`).join()
  expect({
    nodes: rows(whole, 'nodes'),
    messages: rows(whole, 'messages'),
    direct: rows(whole, 'messages', 'to_node_num <> 4294967295'),
    measurements: rows(whole, 'telemetry'),
    positions: rows(whole, 'positions'),
    traceroutes: rows(whole, 'traceroutes'),
    neighbors: rows(whole, 'neighbors'),
    waypoints: rows(whole, 'waypoints'),
    users: rows(whole, 'users'),
    outbox: rows(whole, 'collector_outbox'),
    audited: rows(whole, 'audit_log'),
  }).toStrictEqual({
    nodes: ask('select count(distinct nodeNum) from nodes where nodeNum <> 4294967295'),
    messages: ask('select count(*) from messages where portnum = 1'),
    direct: ask('select count(*) from messages where portnum = 1 and channel = -1'),
    measurements: ask(
      `select count(*) from (select distinct nodeNum, telemetryType, timestamp from telemetry where telemetryType in (${measured}))`,
    ),
    positions: ask(
      "select count(*) from (select distinct nodeNum, timestamp from telemetry where telemetryType = 'latitude')",
    ),
    traceroutes: ask('select count(*) from (select distinct fromNodeNum, packetId from traceroutes)'),
    neighbors: ask('select count(*) from neighbor_info'),
    waypoints: ask('select count(distinct waypoint_id) from waypoints where not is_virtual'),
    users: 4,
    outbox: 0,
    audited: 5,
  })
  // Seconds there, milliseconds here; and the requester comes first.
  const heard = 'select max(lastHeard) from nodes'
  expect(whole.sqlite.prepare('select max(last_heard) from nodes').pluck().get()).toBe(ask(heard) * 1000)
  const routes = whole.sqlite.prepare<[], { route: string }>("select route from traceroutes where route like '%null%'")
  expect(routes.all().length).toBeGreaterThan(0)
  const [one] = new Database(theirs.file, { readonly: true })
    .prepare<[], Record<string, number | string>>("select * from traceroutes where route like '[%,%' limit 1")
    .all()
  const here = whole.sqlite
    .prepare('select route from traceroutes where from_node_num = ? and to_node_num = ? and request_id = ?')
    .pluck()
    .get(one?.['toNodeNum'], one?.['fromNodeNum'], one?.['packetId'])
  const towards: number[] = JSON.parse(String(one?.['snrTowards']))
  expect(JSON.parse(String(here)).snrTowards).toStrictEqual(towards.map((snr) => (snr === -128 ? null : snr / 4)))
})

test('every kind of measurement is taken, or left out by name', () => {
  const sqlite = new Database(theirs.file, { readonly: true })
  const types = sqlite.prepare<[], string>('select distinct telemetryType from telemetry').pluck().all()
  sqlite.close()
  expect(types.filter((type) => !METRIC_NAMES.has(type) && !PLACE_NAMES.has(type) && !isDerived(type))).toStrictEqual(
    [],
  )
  const known = new Set(knownMetrics())
  expect(
    [...METRIC_NAMES.values()].filter((name) => !known.has(name) && !name.startsWith('paxcounter.')),
  ).toStrictEqual([])
})

test('users sign in with their old passwords and see what the rules give them', async () => {
  const app = await createTestApp({ store: whole, passwords: nativePasswordHasher(), ports: { now: () => AFTER } })
  const anna = await app.signIn('anna', 'a bench under the oak')
  expect(whole.sqlite.prepare("select password_hash from users where username = 'anna'").pluck().get()).toMatch(
    /^\$2[aby]\$12\$/,
  )
  const { permissions, scope } = Object(await (await anna.send('GET', '/api/auth/status')).json())
  const read = { read: true, write: false }
  const none = { read: false, write: false }
  expect(permissions).toStrictEqual({
    dashboard: read,
    nodes: read,
    messages: read,
    settings: none,
    configuration: none,
    info: read,
    automation: none,
  })
  expect(scope).toStrictEqual({ channels: { read: [], write: [] }, direct: read })
  const { messages } = Object(await (await anna.send('GET', '/api/messages?limit=1000')).json())
  expect(messages).toHaveLength(ask('select count(*) from messages where portnum = 1 and channel = -1'))
  const clara = await app.signIn('clara', 'a bench under the oak')
  expect((await clara.send('GET', '/api/nodes')).status).toBe(403)
  expect((await clara.send('GET', '/api/system/import')).status).toBe(403)
  const bert = await app.signIn('bert', 'a bench under the oak')
  const { report } = Object(await (await bert.send('GET', '/api/system/import')).json())
  expect(report.users.map(({ username, outcome }: Record<string, string>) => [username, outcome])).toStrictEqual([
    ['anonymous', 'proposal'],
    ['admin', 'added'],
    ['anna', 'added'],
    ['bert', 'added'],
    ['clara', 'added'],
  ])
  expect(report.losses).toContainEqual({ what: 'api_tokens', n: 1, names: ['admin: API Token'] })
  expect(JSON.stringify(report)).not.toMatch(/\$2[aby]\$|AQ==|mm_v1|I51qL3/)
  // Everybody knows the first password of MeshMonitor, so it opens nothing, until an administrator gives another one.
  expect(
    report.losses.find(({ what }: Record<string, string>) => what === 'users_without_password').names,
  ).toStrictEqual(['admin'])
  const stranger = app.client()
  for (const password of ['changeme', '']) {
    expect((await stranger.send('POST', '/api/auth/login', { username: 'admin', password })).status).not.toBe(200)
  }
  const { id } = Object(whole.sqlite.prepare("select id from users where username = 'admin'").get())
  const { password } = Object(await (await bert.send('POST', `/api/users/${id}/reset-password`)).json())
  await app.signIn('admin', password)
  // The audit log is kept whole.
  const [entry] = whole.sqlite
    .prepare<[], string>("select details from audit_log where action = 'audit_imported'")
    .pluck()
    .all()
  const { auditFile, sha256 } = Object(JSON.parse(String(entry)))
  const kept = readFileSync(join(dataDir, 'system-backups', auditFile))
  expect(createHash('sha256').update(kept).digest('hex')).toBe(sha256)
  expect(kept.toString().trim().split('\n')).toHaveLength(ask('select count(*) from audit_log'))
  // No rule may fire for what was not heard here.
  expect(await readKnownNodes(whole, async () => true)).toStrictEqual([])
  expect(await lookForFindings(whole, AFTER, async () => true)).toBeGreaterThan(0)
  expect(await readMeshFindings(whole)).toStrictEqual([])
})

test('a second run adds nothing, and a dry run nothing at all', async () => {
  const store = openMemoryStore()
  const dry = await runImport(store, dataDir, { file: theirs.file, isDryRun: true })
  expect([rows(store, 'nodes'), rows(store, 'users'), rows(store, 'audit_log'), rows(store, 'sources')]).toStrictEqual([
    0, 0, 0, 0,
  ])
  const first = await runImport(store, dataDir, { file: theirs.file })
  expect(dry.losses).toStrictEqual(first.losses)
  expect(dry.counts.map(({ found }) => found)).toStrictEqual(first.counts.map(({ found }) => found))
  const before = contentsOf(store)
  const second = await runImport(store, dataDir, { file: theirs.file })
  expect(second.counts.filter(({ added }) => added > 0)).toStrictEqual([])
  expect(contentsOf(store)).toStrictEqual(before)
  expect(rows(store, 'audit_log')).toBe(5)
  store.close()
})

test('killed in any phase and started again, it ends with the same rows', async () => {
  const expected = contentsOf(whole)
  const child = join(import.meta.dirname, '../../support/moving-in/killed-import.ts')
  for (const phase of ['channels', 'users', 'nodes', 'messages', 'telemetry', 'topology']) {
    const dir = mkdtempSync(join(tmpdir(), 'import-killed-'))
    const killed = await promisify(execFile)(process.execPath, [child, dir, theirs.file, phase]).catch(
      (error: unknown) => error,
    )
    expect(Object(killed).signal, phase).toBe('SIGKILL')
    const store = openDatabase(join(dir, 'mesh.db'))
    // Nobody is here of whom the audit log does not tell.
    const isTold = `exists (select 1 from audit_log where action = 'user_created' and details ->> 'username' = users.username
      and details ->> 'isAdmin' = is_admin and details ->> 'from' = 'meshmonitor')`
    expect(rows(store, 'users', isTold), phase).toBe({ channels: 0, users: 1 }[phase] ?? 4)
    expect(rows(store, 'users', `not ${isTold}`), phase).toBe(0)
    await runImport(store, dir, { file: theirs.file })
    const { users: _users, ...content } = contentsOf(store)
    const { users: _expected, ...rest } = expected
    expect(content, phase).toStrictEqual(rest)
    expect([rows(store, 'users'), rows(store, 'audit_log')]).toStrictEqual([4, 5])
    store.close()
    rmSync(dir, { recursive: true, force: true })
  }
})

test('in a living mesh nothing comes twice and nothing newer is replaced', async () => {
  const store = openMemoryStore()
  const sqlite = new Database(theirs.file, { readonly: true })
  const [message] = sqlite
    .prepare<[], { id: string; fromNodeNum: number }>('select id, fromNodeNum from messages where portnum = 1 limit 1')
    .all()
  const nums = sqlite
    .prepare<[], number>('select nodeNum from nodes where publicKey is not null order by nodeNum limit 2')
    .pluck()
    .all()
  sqlite.close()
  const [fresh = 0, stale = 0] = nums
  const node = store.sqlite.prepare(
    `insert into nodes (node_num, long_name, short_name, public_key, last_heard, first_heard, latitude, longitude,
      position_time, days_heard, revision) values (?, 'Ours', 'US', 'ours', ?, 1, 1, 1, ?, 3, 1)`,
  )
  node.run(fresh, AFTER, AFTER)
  node.run(stale, AFTER - 90 * DAY, AFTER - 90 * DAY)
  const packetId = Number(message?.id.split('_').at(-1))
  store.sqlite
    .prepare(
      "insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction) values (?, ?, 4294967295, 0, 'ours', ?, 'in')",
    )
    .run(packetId, message?.fromNodeNum, AFTER)
  await runImport(store, dataDir, { file: theirs.file })
  const named = store.sqlite.prepare<[number], Record<string, unknown>>(
    'select long_name, latitude, public_key, key_mismatch from nodes where node_num = ?',
  )
  expect(named.get(fresh)).toStrictEqual({ long_name: 'Ours', latitude: 1, public_key: 'ours', key_mismatch: 0 })
  expect(named.get(stale)).toMatchObject({ public_key: 'ours', key_mismatch: 0 })
  expect(named.get(stale)?.['long_name']).not.toBe('Ours')
  expect(rows(store, 'nodes')).toBe(rows(whole, 'nodes'))
  expect(rows(store, 'messages')).toBe(rows(whole, 'messages'))
  // What is imported is history: it comes before the first message that was heard here, in the order of time.
  const all = store.sqlite
    .prepare<[], { text: string; timestamp: number }>('select text, timestamp from messages order by id')
    .all()
  expect(all.at(-1)?.text).toBe('ours')
  const times = all.map(({ timestamp }) => timestamp)
  expect(times).toStrictEqual(times.toSorted((a, b) => a - b))
  // A page of history, whose ids are below 0.
  const app = await createTestApp({ store, passwords: nativePasswordHasher(), ports: { now: () => AFTER } })
  const bert = await app.signIn('bert', 'a bench under the oak')
  const { messages, nextBefore } = Object(await (await bert.send('GET', '/api/messages?limit=10')).json())
  expect(messages[0].text).toBe('ours')
  const next = Object(await (await bert.send('GET', `/api/messages?limit=10&before=${nextBefore}`)).json())
  expect(next.messages).toHaveLength(10)
  expect(next.messages[0].id).toBe(nextBefore - 1)
  // Where a search that goes on with another page may have stopped.
  const imported = Object(await (await bert.send('GET', '/api/messages?limit=10&before=0')).json())
  expect(imported.messages[0].id).toBeLessThan(0)
  store.close()
})

test('imported messages are below the index of texts, so that they are not added to it one by one', async () => {
  const latest = (store: SqliteStore) => store.sqlite.prepare('select max(id) from messages').pluck().get()
  expect(latest(whole)).toBe(-1)
  const received = `insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    values (1, 1, 4294967295, 0, 'received', 1, 'in')`
  const store = openMemoryStore()
  // As when all messages of an earlier import have been deleted.
  store.sqlite.exec("update text_indexes set indexed_from = -500 where table_name = 'messages'")
  await runImport(store, dataDir, { file: theirs.file })
  expect(latest(store)).toBe(-501)
  store.sqlite.exec(received)
  expect(latest(store)).toBe(1)
  store.close()
})

test('old rows become hours and days, and what is too old is counted', async () => {
  const file = join(theirs.dir, 'old.db')
  copyFileSync(theirs.file, file)
  const old = (days: number) => `timestamp = timestamp - ${days * DAY}, packetId = null`
  change(
    file,
    `update telemetry set ${old(60)} where nodeNum % 2 = 0; update telemetry set ${old(500)} where nodeNum % 10 = 1`,
  )
  change(file, `update messages set timestamp = timestamp - ${400 * DAY} where portnum = 1 and channel = 1`)
  change(
    file,
    `update messages set timestamp = ${AFTER + DAY}, createdAt = ${AFTER + DAY} where portnum = 1 and channel = -1`,
  )
  const store = openMemoryStore()
  const report = await runImport(store, dataDir, { file })
  const measured = Array.from(METRIC_NAMES.keys(), (name) => `'${name}'`).join()
  const sqlite = new Database(file, { readonly: true })
  const before = Math.ceil((AFTER - 30 * DAY) / DAY) * DAY
  const asked = (where: string) =>
    Number(
      sqlite.prepare(`select count(*) from telemetry where telemetryType in (${measured}) and ${where}`).pluck().get(),
    )
  expect(store.sqlite.prepare('select sum(n) from telemetry_daily').pluck().get()).toBe(asked(`timestamp < ${before}`))
  expect(store.sqlite.prepare('select sum(n) from telemetry_hourly').pluck().get()).toBe(
    asked(`timestamp < ${before} and timestamp >= ${AFTER - 400 * DAY}`),
  )
  const lost = new Map(report.losses.map(({ what, n }) => [what, n]))
  expect(lost.get('messages_old')).toBe(66)
  expect(lost.get('messages_future')).toBe(27)
  expect(lost.get('positions_old')).toBeGreaterThan(0)
  const again = await runImport(store, dataDir, { file })
  expect(again.counts.filter(({ added }) => added > 0)).toStrictEqual([])
  sqlite.close()
  store.close()
})

test('keys, second factors, providers and hidden nodes come along as the rules say', async () => {
  const file = join(theirs.dir, 'more.db')
  copyFileSync(theirs.file, file)
  change(
    file,
    `update users set mfa_enabled = 1, mfa_secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' where username = 'clara';
     update users set password_hash = (select password_hash from users where username = 'admin') where username = 'anna';
     insert into users (username, auth_provider, password_hash, created_at)
       select name, 'local', start || substr(password_hash, 8), 1795470193939 from users,
         (select 'erik' as name, '$2b$15$' as start union all select 'frida', '$2b$03$' union all select 'greta', '$2b$04$')
       where username = 'bert';
     insert into users (username, auth_provider, oidc_subject, is_admin, created_at) values ('dora', 'oidc', 'sub-1', 0, 1795470193939);
     insert into automations (id, name, enabled, createdAt, updatedAt) values ('a', 'Greeter', 1, 1, 1);
     insert into channel_database (name, psk, psk_length, created_at, updated_at) values ('Far', 'AQ==', 1, 1, 1);
     update nodes set hideFromMap = 1 where nodeNum = 42738376;
     update waypoints set is_virtual = 1 where waypoint_id = 1004584427`,
  )
  const store = openMemoryStore()
  const without = await runImport(store, dataDir, { file })
  expect(without.losses.find(({ what }) => what === 'users_without_issuer')?.names).toStrictEqual(['dora'])
  const lockedOut = without.losses.find(({ what }) => what === 'users_without_password')
  expect(lockedOut?.names).toStrictEqual(['admin', 'anna', 'erik', 'frida'])
  expect(rows(store, 'users', 'password_hash is null')).toBe(4)
  expect(without.losses.find(({ what }) => what === 'automations')?.names).toStrictEqual(['Greeter'])
  expect(without.losses.find(({ what }) => what === 'waypoints_virtual')?.n).toBe(1)
  expect(rows(store, 'connections')).toBe(0)
  expect(rows(store, 'automations')).toBe(0)
  expect(rows(store, 'nodes', 'is_hidden and node_num = 42738376')).toBe(1)
  // In a later import too, a node that is hidden there is never seen here, whenever it is killed.
  store.sqlite.exec('delete from nodes where node_num = 42738376')
  const seen = new Set<number>()
  const onSlice = () => seen.add(rows(store, 'nodes', 'not is_hidden and node_num = 42738376'))
  await runImport(store, dataDir, { file, withKeys: true, oidcIssuer: 'https://id.example.org', onSlice })
  expect(seen).toStrictEqual(new Set([0]))
  expect(rows(store, 'nodes', 'is_hidden and node_num = 42738376')).toBe(1)
  const [dora] = store.sqlite
    .prepare<[], { issuer: string; subject: string }>('select issuer, subject from identities')
    .all()
  expect(dora).toStrictEqual({ issuer: 'https://id.example.org', subject: 'sub-1' })
  const [factor] = store.sqlite
    .prepare<[], { user_id: number; seed: string }>('select user_id, seed from totp_factors')
    .all()
  expect(await unseal([SECRET], `totp-seed:${factor?.user_id}`, factor?.seed ?? '')).toBe(
    '48656c6c6f21deadbeef48656c6c6f21deadbeef',
  )
  const [kept] = store.sqlite
    .prepare<[], { name: string; enabled: number; sealed: string }>('select name, enabled, sealed from connections')
    .all()
  expect(kept?.enabled).toBe(0)
  expect(kept?.sealed).not.toContain('AQ==')
  expect(await unseal([SECRET], `connection:${kept?.name}`, kept?.sealed ?? '')).toContain('Admins=I51qL3')
  store.close()
})

test('earlier versions, JSON lines and a log of writes are read as well, and nothing is written there', async () => {
  const older = join(theirs.dir, 'older.db')
  copyFileSync(theirs.file, older)
  const dropped = ['hideFromMap', 'isLicensed', 'notes', 'transportLastRf', 'nodeStatus', 'isUnmessagable']
  change(
    older,
    `${dropped.map((column) => `alter table nodes drop column ${column}`).join(';')};
     drop table waypoints; drop table automations; drop table channel_database_permissions; drop table channel_database;
     alter table traceroutes drop column packetId; alter table channels drop column scope;
     delete from settings where key glob 'migration_*' and cast(substr(key, 11, 3) as integer) > 48`,
  )
  const store = openMemoryStore()
  const report = await runImport(store, dataDir, { file: older })
  expect([report.migration, rows(store, 'nodes'), rows(store, 'messages')]).toStrictEqual([48, 99, 264])
  store.close()

  const lines = join(theirs.dir, 'rows.jsonl')
  const sqlite = new Database(theirs.file, { readonly: true })
  const tables = sqlite
    .prepare<[], string>("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    .pluck()
    .all()
  const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const text = tables.flatMap((t) =>
    sqlite
      .prepare<[], Record<string, unknown>>(`select * from "${t}"`)
      .all()
      .map((row) => {
        const isAuth = ['users', 'permissions', 'audit_log', 'api_tokens'].includes(t)
        const named = Object.entries(row).map(([name, value]) => [
          name === 'auth_provider' ? 'authMethod' : camel(name),
          value,
        ])
        return `${JSON.stringify({ t, r: isAuth ? Object.fromEntries(named) : row })}\n`
      }),
  )
  sqlite.close()
  const dora = { id: 90, username: 'dora', authMethod: 'oidc', oidcSubject: 'sub-1', isActive: true, createdAt: 1 }
  writeFileSync(lines, `${text.join('')}${JSON.stringify({ t: 'users', r: dora })}\n`)
  const fromLines = openMemoryStore()
  const { losses } = await runImport(fromLines, dataDir, { file: lines })
  expect(losses.find(({ what }) => what === 'users_without_issuer')?.names).toStrictEqual(['dora'])
  const { users: _a, ...expected } = contentsOf(whole)
  const { users: _b, ...content } = contentsOf(fromLines)
  expect(content).toStrictEqual(expected)
  fromLines.close()

  // A copy of a running MeshMonitor, in a directory that nobody may write to.
  const dir = mkdtempSync(join(tmpdir(), 'import-wal-'))
  const live = join(theirs.dir, 'live.db')
  copyFileSync(theirs.file, live)
  const writing = new Database(live)
  writing.pragma('journal_mode = WAL')
  writing.exec("update users set username = 'annabel' where username = 'anna'")
  copyFileSync(live, join(dir, 'live.db'))
  copyFileSync(`${live}-wal`, join(dir, 'live.db-wal'))
  writing.close()
  chmodSync(dir, 0o500)
  const fromLog = openMemoryStore()
  const before = readdirSync(dir)
  await runImport(fromLog, dataDir, { file: join(dir, 'live.db') })
  expect(rows(fromLog, 'users', "username = 'annabel'")).toBe(1)
  expect(readdirSync(dir)).toStrictEqual(before)
  const copies = (at = dataDir) => readdirSync(at).filter((name) => name.startsWith('.import-'))
  expect(copies()).toStrictEqual([])
  fromLog.close()
  // The copy goes with its import: at once if it is told to end, by the next one if it is killed.
  const child = join(import.meta.dirname, '../../support/moving-in/killed-import.ts')
  const ended = mkdtempSync(join(tmpdir(), 'import-ended-'))
  for (const [signal, left] of Object.entries({ SIGTERM: 0, SIGINT: 0, SIGKILL: 1 })) {
    const given = [child, ended, join(dir, 'live.db'), 'channels', signal]
    const killed = await promisify(execFile)(process.execPath, given).catch((error: unknown) => error)
    expect([Object(killed).signal, copies(ended).length]).toStrictEqual([signal, left])
  }
  const living = makeScratch(ended)
  removeLeftScratch(ended)
  expect(copies(ended)).toHaveLength(2)
  living.remove()
  expect(copies(ended)).toHaveLength(1)
  await expect(runImport(whole, ended, { file: join(dir, 'nowhere.db') })).rejects.toThrow('does not exist')
  expect(copies(ended)).toStrictEqual([])
  rmSync(ended, { recursive: true, force: true })
  chmodSync(dir, 0o700)
  rmSync(dir, { recursive: true, force: true })
})

test('a broken file is refused with one sentence, and changes nothing', async () => {
  const at = (name: string) => join(theirs.dir, name)
  const copy = (name: string, sql?: string) => {
    copyFileSync(theirs.file, at(name))
    if (sql !== undefined) change(at(name), sql)
    return at(name)
  }
  const cut = copy('cut.db')
  truncateSync(cut, 5_000_000)
  const alien = at('alien.db')
  change(alien, 'create table notes (text)')
  const logless = copy('logless.db')
  writeFileSync(`${logless}-shm`, '')
  const empty = at('wal-only.db')
  const writing = new Database(empty)
  writing.pragma('journal_mode = WAL')
  writing.close()
  const scrambled = copy('scrambled.db')
  const bytes = readFileSync(scrambled)
  bytes.fill(0x5a, 40_960, 81_920)
  writeFileSync(scrambled, bytes)
  const cases: readonly (readonly [string, RegExp])[] = [
    [at('nowhere.db'), /does not exist$/],
    [theirs.dir, /is a directory: name the database/],
    [cut, /is cut off/],
    [alien, /is not a database of MeshMonitor/],
    [copy('old.db', 'drop table sources'), /before 4\.0/],
    [copy('new.db', "insert into settings values ('migration_160_more', 'completed', 1, 1)"), /after 4\.15/],
    [logless, /-wal is missing/],
    [empty, /-wal/],
    [scrambled, /is damaged/],
    [write('secret.db', Buffer.alloc(8192, 7)), /or it is encrypted$/],
    [write('packed.db', gzipSync(readFileSync(theirs.file))), /is compressed/],
    [write('void.db', Buffer.alloc(0)), /is empty$/],
    [write('lines.jsonl', Buffer.from('{"t":"nodes","r":{}}\n{"x":1}\n')), /line 2 is not a row/],
  ]
  function write(name: string, content: Buffer): string {
    writeFileSync(at(name), content)
    return at(name)
  }
  const store = openMemoryStore()
  for (const [file, sentence] of cases) {
    await expect(runImport(store, dataDir, { file }), file).rejects.toThrow(sentence)
  }
  expect([rows(store, 'sources'), rows(store, 'users'), rows(store, 'audit_log')]).toStrictEqual([0, 0, 0])
  expect(existsSync(`${alien}-wal`)).toBe(false)
  expect(readdirSync(dataDir).filter((name) => name.startsWith('.import-'))).toStrictEqual([])
  store.close()
})
