import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { expect, test } from 'vitest'
import { JSON_COLUMNS } from '../../../src/db/json-columns.ts'
import * as schema from '../../../src/db/schema.ts'
import { columnRules } from '../../../src/node/backup/tables/column-rules.ts'
import { forge } from '../../support/backup/backup.ts'
import { integrity, useVictim } from '../../support/backup/damaged-backup.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

const { backup, file, inspect, expectRefused } = useVictim()

/** Replaces a cell in the first row of a table with this JSON; all hashes match again. */
function forgeCell(table: string, column: string, json: string): void {
  forge(backup, (manifest) => {
    const lines = readFileSync(file(`${table}.json`), 'utf8').split('\n')
    const row: unknown[] = JSON.parse(String(lines[1]).replace(/,$/, ''))
    const { columns } = Object(Object(manifest['tables']).find(({ name }: { name: string }) => name === table))
    const cells = row.map((value, i) => (columns[i] === column ? json : JSON.stringify(value)))
    expect(columns).toContain(column)
    lines[1] = `[${cells.join(',')}]${lines[1]?.endsWith(',') === true ? ',' : ''}`
    writeFileSync(file(`${table}.json`), lines.join('\n'))
  })
}

const BLOB = '{"$base64":"AAE="}'
const big = (value: bigint) => `{"$int":"${value}"}`

const FORGERIES: [table: string, column: string, json: string, problem: string][] = [
  ['nodes', 'node_num', '"abc"', 'contains a text, not an integer'],
  // SQLite would convert it to an integer.
  ['nodes', 'node_num', '"5"', 'contains a text, not an integer'],
  ['nodes', 'node_num', '1.5', 'contains a real number, not an integer'],
  ['nodes', 'node_num', '1e300', 'contains a real number, not an integer'],
  ['nodes', 'node_num', '9007199254740993', 'contains a real number, not an integer'],
  ['nodes', 'node_num', BLOB, 'contains a blob, not an integer'],
  ['nodes', 'node_num', 'null', 'is null, but must not be'],
  ['nodes', 'id', big(2n ** 63n - 1n), 'contains an integer that is out of range'],
  ['audit_log', 'id', '9007199254740991', 'contains an integer that is out of range'],
  ['nodes', 'first_heard', '8640000000000001', 'contains an integer that is out of range'],
  ['nodes', 'last_heard', big(-(2n ** 60n)), 'contains an integer that is out of range'],
  ['telemetry', 't', '-8640000000000001', 'contains an integer that is out of range'],
  ['nodes', 'is_favorite', '2', 'contains an integer, not 0 or 1'],
  ['nodes', 'is_favorite', '-1', 'contains an integer, not 0 or 1'],
  ['nodes', 'is_favorite', big(1n), 'contains an integer, not 0 or 1'],
  ['users', 'is_admin', '0.5', 'contains a real number, not 0 or 1'],
  ['users', 'is_active', '"1"', 'contains a text, not 0 or 1'],
  ['nodes', 'latitude', '"52"', 'contains a text, not a number'],
  ['nodes', 'latitude', big(5n), 'contains an integer, not a number'],
  ['telemetry', 'v', BLOB, 'contains a blob, not a number'],
  ['telemetry', 'v', 'null', 'is null, but must not be'],
  ['nodes', 'long_name', '5', 'contains an integer, not a text'],
  ['nodes', 'long_name', '5.5', 'contains a real number, not a text'],
  ['nodes', 'long_name', BLOB, 'contains a blob, not a text'],
  ['nodes', 'notes', 'null', 'is null, but must not be'],
  ['nodes', 'notes', '"a \\ud800 b"', 'contains a text that is not valid Unicode'],
  ['nodes', 'notes', '"\\udc00"', 'contains a text that is not valid Unicode'],
  [
    'nodes',
    'notes',
    `"${'x'.repeat(4 * 1024 * 1024 + 1)}"`,
    'contains a text of 4194305 characters, more than 4194304',
  ],
  ['users', 'password_hash', BLOB, 'contains a blob, not a text'],
  ['users', 'auth_provider', '"root"', 'contains a text that is not a permitted value'],
  ['sources', 'kind', '""', 'contains a text that is not a permitted value'],
  ['channels', 'role', '"Primary"', 'contains a text that is not a permitted value'],
  ['messages', 'direction', '"up"', 'contains a text that is not a permitted value'],
  ['messages', 'delivery_state', '"gone"', 'contains a text that is not a permitted value'],
  ['settings', 'value', '"{"', 'contains a text that is not JSON'],
  ['settings', 'value', '""', 'contains a text that is not JSON'],
  ['audit_log', 'details', `"${'['.repeat(1000)}"`, 'contains a text that is not JSON'],
  ['api_tokens', 'scopes', '"backup"', 'contains a text that is not JSON'],
  ['user_permissions', 'can_write', 'null', 'is null, but must not be'],
]

test.each(FORGERIES.map((forgery) => [forgery[0], forgery[1], forgery[2].slice(0, 40), forgery] as const))(
  'a forged cell is refused: %s.%s = %s',
  async (_table, _column, _json, [table, column, json, problem]) => {
    forgeCell(table, column, json)
    const said = `table ${table} row 1 column ${column} ${problem}`
    expect(inspect()).toMatchObject({ ok: false, problems: [said] })
    await expectRefused(integrity(said))
  },
)

test.each([
  ['nodes', 'uptime_seconds', big(2n ** 62n)],
  ['nodes', 'last_heard', '-8640000000000000'],
  ['nodes', 'latitude', '9.0e+999'],
  ['nodes', 'latitude', '5'],
  ['nodes', 'long_name', 'null'],
  ['nodes', 'notes', '"\\ud83d\\ude00\\u0000"'],
  ['nodes', 'notes', `"${'x'.repeat(4 * 1024 * 1024)}"`],
  ['messages', 'delivery_state', 'null'],
  ['messages', 'delivery_state', '"queued"'],
  ['settings', 'value', '"[null]"'],
])('a valid database value is not taken for a forgery: %s.%s', (table, column, json) => {
  forgeCell(table, column, json)
  expect(inspect()).toMatchObject({ ok: true, problems: [] })
})

const HUGE = 20 * 1024 * 1024
test.each([
  ['brackets', '['.repeat(HUGE), 'settings.json contains a line with too many values'],
  ['lists', '[],'.repeat(HUGE / 3), 'settings.json contains a line with too many values'],
  ['keys', `[{${'"a":1,'.repeat(HUGE / 6)}`, 'settings.json contains a line with too many values'],
  ['an endless text', `["${'\\"[{,:'.repeat(HUGE / 6)}`, 'settings.json contains a line that is not JSON'],
  ['a text longer than a line', `["${'x'.repeat(2 * HUGE)}`, 'settings.json contains a line that is too long'],
])('a line is read only up to the longest possible one: %s', async (_what, line, problem) => {
  forge(backup, () => {
    const [head] = readFileSync(file('settings.json'), 'utf8').split('\n')
    writeFileSync(file('settings.json'), `${head}\n${line}\n]}\n`)
  })
  expect(inspect()).toMatchObject({ ok: false, problems: [problem] })
  await expectRefused(integrity(problem))
})

test('rows are counted from the first one, and each table reports its own problem', () => {
  forge(backup, () => {
    const lines = readFileSync(file('telemetry.json'), 'utf8').split('\n')
    lines[1234] = '[1,"x",1,1,0],'
    writeFileSync(file('telemetry.json'), lines.join('\n'))
  })
  forgeCell('nodes', 'notes', '1')
  expect(inspect().problems).toStrictEqual([
    'table nodes row 1 column notes contains an integer, not a text',
    'table telemetry row 1234 column metric contains a text, not an integer',
  ])
})

test('a verification reports the problems in tables that a restore would refuse', () => {
  forge(backup, (manifest) => {
    manifest['schema'] = '0999_future'
  })
  expect(inspect().problems).toStrictEqual([
    'Restore failed: there is no migration 0999_future; upgrade the service first',
  ])
})

test('every column has a rule, and each JSON column of the schema is checked as JSON', () => {
  const database = openMemoryStore()
  const rules = columnRules(database.sqlite)
  database.close()
  const tables = Object.values(schema).filter((value) => is(value, SQLiteTable))
  const columns = tables.flatMap((table) => {
    const { name, columns } = getTableConfig(table)
    return columns.map((column) => ({ name: `${name}.${column.name}`, type: column.getSQLType() }))
  })
  expect(columns.length).toBeGreaterThan(100)
  for (const { name, type } of columns) {
    const [table = '', column = ''] = name.split('.')
    expect([name, rules.get(table)?.get(column)?.(Buffer.of(1))]).toStrictEqual([name, expect.stringContaining('blob')])
    expect([name, type]).toStrictEqual([name, expect.stringMatching(/^(?:integer|real|text)$/)])
  }
  const folder = new URL('../../../src/db/schema/', import.meta.url)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const sources = files.map((name) => readFileSync(new URL(name, folder), 'utf8'))
  const called = sources.flatMap((source) => [
    ...source.matchAll(/\/\*\* JSON[^*]*\*\/\s+\w+: text\('(\w+)'/g),
    ...source.matchAll(/text\('(\w+)', \{ mode: 'json' \}/g),
  ])
  const named = [...JSON_COLUMNS].map((name) => String(name.split('.')[1]))
  const inOrder = (names: readonly string[]) => names.toSorted((a, b) => (a < b ? -1 : 1))
  expect(inOrder(called.map(([, column]) => String(column)))).toStrictEqual(inOrder(named))
  for (const name of JSON_COLUMNS) expect(columns.map((column) => column.name)).toContain(name)
})
