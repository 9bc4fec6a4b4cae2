import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { inspectBackup } from '../../../src/node/backup/inspect.ts'
import { readManifest, signingKey } from '../../../src/node/backup/manifest.ts'
import {
  fingerprint,
  forge,
  MADE_NAME,
  makeBackup,
  makeDataDir,
  seedDatabase,
  SECRET,
  tryRestore,
} from '../../support/backup.ts'

let here: ReturnType<typeof makeDataDir>
let pristine: string
let backup: string
let database: Buffer

beforeAll(async () => {
  here = makeDataDir()
  seedDatabase(here.database, 1500)
  pristine = join(here.dataDir, 'pristine')
  renameSync(join(here.backups, await makeBackup(here.dataDir)), pristine)
  // The snapshot's reader leaves empty side files; a restore that gets so far would remove them.
  for (const suffix of ['-wal', '-shm']) rmSync(here.database + suffix, { force: true })
  database = readFileSync(here.database)
  backup = join(here.backups, MADE_NAME)
})
afterAll(() => here.remove())
beforeEach(() => {
  rmSync(here.backups, { recursive: true })
  mkdirSync(here.backups)
  cpSync(pristine, backup, { recursive: true })
})

const file = (name: string) => join(backup, name)
const edit = (name: string, change: (text: string) => string) =>
  writeFileSync(file(name), change(readFileSync(file(name), 'utf8')))

/** The restore is refused with this line, and nothing but the lock and the damaged backup is on the disk. */
async function expectRefused(line: RegExp | string): Promise<void> {
  const before = readdirSync(here.dataDir).filter((name) => !name.includes('-lock'))
  const lines = await tryRestore(here.dataDir, MADE_NAME)
  expect(lines).toStrictEqual([typeof line === 'string' ? `refused ${line}` : expect.stringMatching(line)])
  expect(readdirSync(here.dataDir).filter((name) => !name.includes('-lock'))).toStrictEqual(before)
  expect(readFileSync(here.database).equals(database)).toBe(true)
}

const integrity = (what: string) =>
  `Integrity validation failed: ${what}; use an earlier backup or download the archive again`

const inspect = () => inspectBackup(backup, [signingKey(SECRET)], () => {})

test('an undamaged backup has no problems', () => {
  expect(inspect()).toMatchObject({ ok: true, problems: [], signature: 'own' })
})

test('not one byte of the manifest changes unseen', () => {
  const bytes = readFileSync(file('manifest.json'))
  const unseen: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 0x01
    writeFileSync(file('manifest.json'), changed)
    try {
      readManifest(backup)
      unseen.push(at)
    } catch {
      // As it should.
    }
  }
  expect(bytes.length).toBeGreaterThan(5000)
  expect(unseen).toStrictEqual([])
})

test('in each file, a flipped bit at the head, in a row, at a line end and at the end is seen', async () => {
  for (const name of readdirSync(pristine)) {
    const bytes = readFileSync(file(name))
    const places = [0, 12, Math.floor(bytes.length / 2), bytes.lastIndexOf(10, -2), bytes.length - 1]
    for (const at of places) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 0x10
      writeFileSync(file(name), changed)
      await expectRefused(
        /^refused Integrity validation failed: .*; use an earlier backup or download the archive again$/,
      )
      expect(inspect()).toMatchObject({ ok: false, problems: [expect.stringContaining(name)] })
    }
    writeFileSync(file(name), bytes)
  }
})

test.each<[string, () => void, string]>([
  ['a table cut', () => truncateSync(file('telemetry.json'), 1000), 'telemetry.json has 1000 bytes, the manifest says'],
  ['a table emptied', () => truncateSync(file('users.json')), 'users.json has 0 bytes'],
  ['a table longer', () => appendFileSync(file('users.json'), ' '), 'users.json has'],
  ['a table removed', () => rmSync(file('nodes.json')), 'nodes.json is missing'],
  ['the manifest removed', () => rmSync(file('manifest.json')), 'manifest.json is missing'],
  ['the manifest emptied', () => truncateSync(file('manifest.json')), 'manifest.json is not JSON'],
  ['the manifest cut', () => truncateSync(file('manifest.json'), 3000), 'manifest.json is not JSON'],
  ['the manifest huge', () => truncateSync(file('manifest.json'), 2 ** 33), 'manifest.json has 8589934592 bytes'],
  ['the manifest a list', () => writeFileSync(file('manifest.json'), '[]'), 'manifest.json'],
  [
    'the manifest indented',
    () => edit('manifest.json', (text) => text.replace('  "kind"', '\t"kind"')),
    'manifest.json does not match',
  ],
  [
    'the manifest without an end of line',
    () => edit('manifest.json', (text) => text.trimEnd()),
    'manifest.json does not match',
  ],
  ['two tables swapped', () => swap('between', 'users.json', 'nodes.json'), '.json'],
  ['a file added', () => writeFileSync(file('more.json'), '{}'), '"more.json" does not belong to the backup'],
  ['a hidden file added', () => writeFileSync(file('.hidden'), ''), '".hidden" does not belong to the backup'],
  [
    'a directory for a table',
    () => replace('users.json', (path) => mkdirSync(path)),
    'users.json is not a regular file',
  ],
  [
    'a link for a table',
    () => replace('users.json', (path) => symlinkSync(join(pristine, 'users.json'), path)),
    'users.json is not a regular file',
  ],
  [
    'a link for the manifest',
    () => replace('manifest.json', (path) => symlinkSync(join(pristine, 'manifest.json'), path)),
    'manifest.json is not a regular file',
  ],
  [
    'a FIFO for a table',
    () => replace('users.json', (path) => execFileSync('mkfifo', [path])),
    'users.json is not a regular file',
  ],
  [
    'a FIFO for the manifest',
    () => replace('manifest.json', (path) => execFileSync('mkfifo', [path])),
    'manifest.json is not a regular file',
  ],
  [
    'a device for a table',
    () => replace('users.json', (path) => symlinkSync('/dev/zero', path)),
    'users.json is not a regular file',
  ],
])('%s is seen', async (_what, damage, problem) => {
  damage()
  await expectRefused(
    new RegExp(
      `^refused Integrity validation failed: .*${RegExp.escape(problem)}.*; use an earlier backup or download the archive again$`,
    ),
  )
  expect(inspect()).toMatchObject({ ok: false })
})

function replace(name: string, make: (path: string) => void): void {
  rmSync(file(name))
  make(file(name))
}

function swap(between: string, one: string, other: string): void {
  renameSync(file(one), file(between))
  renameSync(file(other), file(one))
  renameSync(file(between), file(other))
}

test('a socket for a table is seen', async () => {
  rmSync(file('users.json'))
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(file('users.json'), resolve))
  await expectRefused(integrity('users.json is not a regular file'))
  await new Promise((resolve) => server.close(resolve))
})

test('a link to a backup is no backup', async () => {
  rmSync(backup, { recursive: true })
  symlinkSync(pristine, backup)
  await expectRefused(/^refused Backup directory not found: /)
})

type Table = { name: string; file: string; columns: string[]; rows: number; bytes: number; sequence: number | null }
const tables = (manifest: Record<string, unknown>): Table[] => Object(manifest['tables'])
const table = (manifest: Record<string, unknown>, name: string): Table =>
  tables(manifest).find((one) => one.name === name) ?? expect.fail(name)

/** Gives a table another column, in its file and in the manifest. */
function addColumn(manifest: Record<string, unknown>, name: string, column: string, value = 'null'): void {
  table(manifest, name).columns.push(column)
  edit(`${name}.json`, (text) =>
    text.replace('],"rows"', `,${JSON.stringify(column)}],"rows"`).replaceAll(/\](,?)\n(?=[[\]])/g, `,${value}]$1\n`),
  )
}

function addTable(manifest: Record<string, unknown>, name: string, fileName = `${name}.json`): void {
  writeFileSync(
    join(backup, fileName.replaceAll('/', '_')),
    `{"table":${JSON.stringify(name)},"columns":["id"],"rows":[\n]}\n`,
  )
  tables(manifest).push({ ...table(manifest, 'nodes'), name, file: fileName, columns: ['id'], rows: 0, sequence: null })
}

const upgrade = (what: string) => `Restore failed: ${what}; upgrade the service first`

test.each<[string, (manifest: Record<string, unknown>) => void, string | RegExp]>([
  ['an unknown column', (m) => addColumn(m, 'users', 'shoe_size'), upgrade('table users has no column shoe_size')],
  ['an unknown table', (m) => addTable(m, 'gadgets'), upgrade('there is no table gadgets')],
  ['an unknown migration', (m) => (m['schema'] = '0999_future'), upgrade('there is no migration 0999_future')],
  [
    'an unknown migration and column',
    (m) => {
      m['schema'] = '0999_future'
      addColumn(m, 'nodes', 'altitude_msl')
    },
    upgrade('table nodes has no column altitude_msl'),
  ],
  ['a later format', (m) => (m['formatVersion'] = 2), upgrade('backup format 2 is not known')],
  ['the table of sessions', (m) => addTable(m, 'sessions'), integrity('table sessions is never part of a backup')],
  ['a table of SQLite', (m) => addTable(m, 'sqlite_sequence'), upgrade('there is no table sqlite_sequence')],
  [
    'the table of migrations',
    (m) => addTable(m, '__drizzle_migrations'),
    upgrade('there is no table __drizzle_migrations'),
  ],
  [
    'SQL for a table',
    (m) => addTable(m, 'users"; drop table users; --', 'x.json'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'SQL for a column',
    (m) => addColumn(m, 'users', 'x" = 1); drop table users; --'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a path for a file',
    (m) => (table(m, 'nodes').file = '../../mesh.db'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'another table’s file',
    (m) => (table(m, 'nodes').file = 'users.json'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a table twice',
    (m) => tables(m).push(table(m, 'nodes')),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a column twice',
    (m) => addColumn(m, 'nodes', 'notes'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a table in other letters',
    (m) => addTable(m, 'Nodes'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  ['an unknown field', (m) => (m['exec'] = 'rm'), /^refused Integrity validation failed: manifest\.json: /],
  [
    'a path for a migration',
    (m) => (m['schema'] = '../../x'),
    /^refused Integrity validation failed: manifest\.json: schema/,
  ],
  ['a huge size', (m) => (table(m, 'nodes').rows = -1), /^refused Integrity validation failed: manifest\.json: tables/],
  [
    'a table left out',
    (m) => {
      tables(m).splice(tables(m).indexOf(table(m, 'users')), 1)
      rmSync(file('users.json'))
    },
    integrity('table users is missing'),
  ],
  [
    'a column left out',
    (m) => {
      table(m, 'metrics').columns = ['id']
      writeFileSync(file('metrics.json'), '{"table":"metrics","columns":["id"],"rows":[\n[1]\n]}\n')
    },
    integrity('table metrics lacks its column name'),
  ],
  [
    'fewer rows than said',
    (m) => (table(m, 'nodes').rows = 5),
    integrity('nodes.json has 1 rows, the manifest says 5'),
  ],
])('forged with hashes that fit: %s is refused', async (_what, change, line) => {
  forge(backup, change)
  await expectRefused(line)
})

const METRICS = '{"table":"metrics","columns":["id","name"],"rows":['

test.each<[string, string, string, RegExp]>([
  ['a row too long', 'metrics', `${METRICS}\n[1,"a",2]\n]}\n`, /metrics\.json: row 1 does not have 2 values/],
  ['a row that is an object', 'metrics', `${METRICS}\n{"id":1,"name":"a"}\n]}\n`, /metrics\.json: row 1 does not have/],
  ['a value that is a list', 'metrics', `${METRICS}\n[1,["a"]]\n]}\n`, /row 1 holds a value that no table does/],
  ['a value that is true', 'metrics', `${METRICS}\n[1,true]\n]}\n`, /row 1 holds a value/],
  ['a strange object', 'metrics', `${METRICS}\n[1,{"$int":"1","x":"y"}]\n]}\n`, /row 1 holds a value/],
  ['a prototype', 'metrics', `${METRICS}\n[1,{"__proto__":"x"}]\n]}\n`, /row 1 holds a value/],
  ['an integer of 65 bits', 'metrics', `${METRICS}\n[{"$int":"9223372036854775808"},"a"]\n]}\n`, /row 1 holds a value/],
  ['no base64', 'metrics', `${METRICS}\n[1,{"$base64":"%%"}]\n]}\n`, /row 1 holds a value/],
  ['deep nesting', 'metrics', `${METRICS}\n[1,${'['.repeat(100_000)}${']'.repeat(100_000)}]\n]}\n`, /metrics\.json/],
  ['no JSON', 'metrics', `${METRICS}\n[1,'a']\n]}\n`, /metrics\.json holds a line that is not JSON/],
  ['no comma', 'metrics', `${METRICS}\n[1,"a"]\n[2,"b"]\n]}\n`, /metrics\.json holds a line that is not JSON/],
  ['a comma too many', 'metrics', `${METRICS}\n[1,"a"],\n]}\n`, /metrics\.json does not end as it should/],
  ['no end', 'metrics', `${METRICS}\n[1,"a"]\n`, /metrics\.json does not end as it should/],
  [
    'something after the end',
    'metrics',
    `${METRICS}\n[1,"a"]\n]}\n\n`,
    /metrics\.json (goes on after|does not end|holds a line)/,
  ],
  [
    'another head',
    'metrics',
    `{"table":"nodes","columns":["id","name"],"rows":[\n[1,"a"]\n]}\n`,
    /metrics\.json does not begin/,
  ],
  ['a null for what may be none', 'metrics', `${METRICS}\n[1,null]\n]}\n`, /metrics\.json: NOT NULL/],
  ['an id twice', 'metrics', `${METRICS}\n[1,"a"],\n[1,"b"]\n]}\n`, /metrics\.json: UNIQUE/],
  ['a name twice', 'metrics', `${METRICS}\n[1,"a"],\n[2,"a"]\n]}\n`, /the rows contradict each other: UNIQUE/],
  [
    'a row without the one it belongs to',
    'channels',
    '{"table":"channels","columns":["source_id","channel_index","name","role"],"rows":[\n[77,0,"","PRIMARY"]\n]}\n',
    /1 rows refer to rows that are not in the backup/,
  ],
])('forged rows: %s is refused', async (_what, name, text, problem) => {
  forge(backup, (manifest) => {
    writeFileSync(file(`${name}.json`), text)
    table(manifest, name).rows = Math.max(1, text.split('\n').length - 3)
  })
  await expectRefused(
    new RegExp(
      `^refused Integrity validation failed: .*${problem.source}.*; use an earlier backup or download the archive again$`,
    ),
  )
})

test('bytes that are no UTF-8 are refused', async () => {
  forge(backup, () => writeFileSync(file('metrics.json'), Buffer.from(`${METRICS}\n[1,"\xff"]\n]}\n`, 'latin1')))
  await expectRefused(integrity('metrics.json is not UTF-8'))
})

test('a password hash that would take hours is refused, a usual one is not', async () => {
  const withCost = (cost: string) =>
    forge(backup, () => edit('users.json', (text) => text.replace(/\$2[aby]\$\d+\$/, `$2a$${cost}$`)))
  withCost('15')
  await expectRefused(integrity('users.json: row 1 holds a bcrypt hash of cost 15, over 14'))
  expect(inspect().problems).toStrictEqual(['users.json: row 1 holds a bcrypt hash of cost 15, over 14'])
  withCost('31')
  await expectRefused(/of cost 31, over 14/)
})

test('a forged backup under our own signature is told from an accident', async () => {
  forge(backup, () => edit('settings.json', (text) => text.replace('30', '31')), true)
  await expectRefused(/^refused Integrity validation failed: manifest\.json does not match its signature/)
  expect(inspect()).toMatchObject({ ok: false, problems: [expect.stringContaining('signature')], signature: null })
})

test('who signed is told and never needed', async () => {
  expect(inspectBackup(backup, [], () => {})).toMatchObject({ ok: true, signature: 'foreign' })
  expect(inspectBackup(backup, [signingKey('a new one'), signingKey(SECRET)], () => {})).toMatchObject({
    signature: 'own',
  })
  forge(backup, () => {})
  expect(inspect()).toMatchObject({ ok: true, signature: 'none' })
})

test('all problems are told, not the first alone', () => {
  truncateSync(file('users.json'), 10)
  rmSync(file('nodes.json'))
  writeFileSync(file('added'), '')
  expect(inspect().problems.map((problem) => problem.split(' ')[0])).toStrictEqual([
    '"added"',
    'nodes.json',
    'users.json',
  ])
  expect(Object.keys(fingerprint(backup))).toContain('added')
})
