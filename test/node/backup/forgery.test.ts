import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inspectBackup } from '../../../src/node/backup/inspect.ts'
import { signingKey } from '../../../src/app/system/backup/format/manifest.ts'
import { MIGRATIONS_DIR } from '../../../src/node/database.ts'
import { forge, MADE_NAME, SECRET } from '../../support/backup/backup.ts'
import { integrity, useVictim } from '../../support/backup/damaged-backup.ts'

const { backup, file, edit, inspect, expectRefused } = useVictim()

type Table = { name: string; file: string; columns: string[]; rows: number; bytes: number; sequence: number | null }
const tables = (manifest: Record<string, unknown>): Table[] => Object(manifest['tables'])
const table = (manifest: Record<string, unknown>, name: string): Table =>
  tables(manifest).find((one) => one.name === name) ?? expect.fail(name)

/** Adds a column to a table, in its file and in the manifest. */
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
  ['an internal table of SQLite', (m) => addTable(m, 'sqlite_sequence'), upgrade('there is no table sqlite_sequence')],
  [
    'the table of migrations',
    (m) => addTable(m, '__drizzle_migrations'),
    upgrade('there is no table __drizzle_migrations'),
  ],
  [
    'SQL as the name of a table',
    (m) => addTable(m, 'users"; drop table users; --', 'x.json'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'SQL as the name of a column',
    (m) => addColumn(m, 'users', 'x" = 1); drop table users; --'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a path as the name of a file',
    (m) => (table(m, 'nodes').file = '../../mesh.db'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'another table’s file',
    (m) => (table(m, 'nodes').file = 'users.json'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a repeated table',
    (m) => tables(m).push(table(m, 'nodes')),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a repeated column',
    (m) => addColumn(m, 'nodes', 'notes'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a table name in another case',
    (m) => addTable(m, 'Nodes'),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  ['an unknown field', (m) => (m['exec'] = 'rm'), /^refused Integrity validation failed: manifest\.json: /],
  [
    'a path as the name of a migration',
    (m) => (m['schema'] = '../../x'),
    /^refused Integrity validation failed: manifest\.json: schema/,
  ],
  [
    'a negative number of rows',
    (m) => (table(m, 'nodes').rows = -1),
    /^refused Integrity validation failed: manifest\.json: tables/,
  ],
  [
    'a missing table',
    (m) => {
      tables(m).splice(tables(m).indexOf(table(m, 'users')), 1)
      rmSync(file('users.json'))
    },
    integrity('table users is missing'),
  ],
  [
    'a missing column',
    (m) => {
      table(m, 'metrics').columns = ['id']
      writeFileSync(file('metrics.json'), '{"table":"metrics","columns":["id"],"rows":[\n[1]\n]}\n')
    },
    integrity('table metrics lacks its column name'),
  ],
  [
    'fewer rows than the manifest says',
    (m) => (table(m, 'nodes').rows = 5),
    integrity('nodes.json has 1 rows, the manifest says 5'),
  ],
])('forged with matching hashes: %s is refused', async (_what, change, line) => {
  forge(backup, change)
  await expectRefused(line)
})

const METRICS = '{"table":"metrics","columns":["id","name"],"rows":['

test.each<[string, string, string, RegExp]>([
  ['a row that is too long', 'metrics', `${METRICS}\n[1,"a",2]\n]}\n`, /metrics\.json: row 1 does not have 2 values/],
  ['a row that is an object', 'metrics', `${METRICS}\n{"id":1,"name":"a"}\n]}\n`, /metrics\.json: row 1 does not have/],
  ['a value that is a list', 'metrics', `${METRICS}\n[1,["a"]]\n]}\n`, /row 1 contains a value that no table can have/],
  ['a value that is true', 'metrics', `${METRICS}\n[1,true]\n]}\n`, /row 1 contains a value/],
  ['a strange object', 'metrics', `${METRICS}\n[1,{"$int":"1","x":"y"}]\n]}\n`, /row 1 contains a value/],
  ['a prototype', 'metrics', `${METRICS}\n[1,{"__proto__":"x"}]\n]}\n`, /row 1 contains a value/],
  [
    'an integer of 65 bits',
    'metrics',
    `${METRICS}\n[{"$int":"9223372036854775808"},"a"]\n]}\n`,
    /row 1 contains a value/,
  ],
  ['no base64', 'metrics', `${METRICS}\n[1,{"$base64":"%%"}]\n]}\n`, /row 1 contains a value/],
  ['deep nesting', 'metrics', `${METRICS}\n[1,${'['.repeat(100_000)}${']'.repeat(100_000)}]\n]}\n`, /metrics\.json/],
  ['no JSON', 'metrics', `${METRICS}\n[1,'a']\n]}\n`, /metrics\.json contains a line that is not JSON/],
  ['no comma', 'metrics', `${METRICS}\n[1,"a"]\n[2,"b"]\n]}\n`, /metrics\.json contains a line that is not JSON/],
  ['an extra comma', 'metrics', `${METRICS}\n[1,"a"],\n]}\n`, /metrics\.json does not end as it should/],
  ['no end', 'metrics', `${METRICS}\n[1,"a"]\n`, /metrics\.json does not end as it should/],
  [
    'something after the end',
    'metrics',
    `${METRICS}\n[1,"a"]\n]}\n\n`,
    /metrics\.json (continues after|does not end|contains a line)/,
  ],
  [
    'another head',
    'metrics',
    `{"table":"nodes","columns":["id","name"],"rows":[\n[1,"a"]\n]}\n`,
    /metrics\.json does not begin/,
  ],
  [
    'a text as a key',
    'metrics',
    `${METRICS}\n["x","a"]\n]}\n`,
    /table metrics row 1 column id contains a text, not an integer/,
  ],
  ['a null in a required column', 'metrics', `${METRICS}\n[1,null]\n]}\n`, /table metrics row 1 column name is null/],
  ['a repeated id', 'metrics', `${METRICS}\n[1,"a"],\n[1,"b"]\n]}\n`, /metrics\.json: UNIQUE/],
  ['a repeated name', 'metrics', `${METRICS}\n[1,"a"],\n[2,"a"]\n]}\n`, /the rows contradict each other: UNIQUE/],
  [
    'a row without its parent row',
    'channels',
    '{"table":"channels","columns":["source_id","channel_index","name","role","identity","first_heard","last_heard"],"rows":[\n[77,0,"","PRIMARY",null,null,null]\n]}\n',
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

test('bytes that are not UTF-8 are refused', async () => {
  forge(backup, () => writeFileSync(file('metrics.json'), Buffer.from(`${METRICS}\n[1,"\xff"]\n]}\n`, 'latin1')))
  await expectRefused(integrity('metrics.json is not UTF-8'))
})

test('a password hash that would take hours is refused, an ordinary one is not', async () => {
  const withCost = (cost: string) =>
    forge(backup, () => edit('users.json', (text) => text.replace(/\$2[aby]\$\d+\$/, `$2a$${cost}$`)))
  withCost('15')
  await expectRefused(integrity('users.json: row 1 contains a bcrypt hash of cost 15, over 14'))
  expect(inspect().problems).toStrictEqual(['users.json: row 1 contains a bcrypt hash of cost 15, over 14'])
  withCost('31')
  await expectRefused(/of cost 31, over 14/)
})

test('a manifest that was changed under our own signature is refused', async () => {
  forge(backup, () => edit('settings.json', (text) => text.replace('30', '31')), true)
  await expectRefused(/^refused Integrity validation failed: manifest\.json does not match its signature/)
  expect(inspect()).toMatchObject({ ok: false, problems: [expect.stringContaining('signature')], signature: 'foreign' })
})

test('a manifest whose signature was removed completely counts as unsigned', async () => {
  const file = join(backup, 'manifest.json')
  const { signature: _, sha256: _was, ...content } = JSON.parse(readFileSync(file, 'utf8'))
  const sha256 = createHash('sha256').update(JSON.stringify(content)).digest('hex')
  writeFileSync(file, `${JSON.stringify({ ...content, sha256 }, null, 2)}\n`)
  expect(inspect()).toMatchObject({ ok: true, problems: [], signature: 'none' })
  await expectRefused(/^refused Restore failed: .* is not signed, and RESTORE_REQUIRE_SIGNATURE is true/, {
    requireSignature: true,
  })
})

test('the signer is shown, and required only if configured', async () => {
  const signatureBy = (...secrets: string[]) =>
    inspectBackup(backup, { keys: secrets.map(signingKey), migrations: MIGRATIONS_DIR }, () => {})
  expect(signatureBy()).toMatchObject({ ok: true, signature: 'foreign' })
  expect(signatureBy('a new one', SECRET)).toMatchObject({ signature: 'own' })
  forge(backup, () => {})
  expect(inspect()).toMatchObject({ ok: true, signature: 'none' })
  await expectRefused(
    `Restore failed: ${MADE_NAME} is not signed, and RESTORE_REQUIRE_SIGNATURE is true; add the secret that signed it to SESSION_SECRET`,
    { requireSignature: true },
  )
})
