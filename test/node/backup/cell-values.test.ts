import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeCell, rowJson } from '../../../src/app/system/backup/format/cells.ts'

const TYPES = ['integer', 'real', 'text', 'blob', ''] as const
const COLUMNS = TYPES.map((type, index) => ({ name: `c${index}`, type }))

const value = fc.oneof(
  fc.constant(null),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.integer().map(BigInt),
  // To SQLite, minus zero is zero.
  fc.double({ noNaN: true }).map((n) => n + 0),
  fc.constantFrom(5, 2 ** 53, 2 ** 63, 1e300, 5e-324, Infinity, -Infinity, 2n ** 53n, -(2n ** 53n) - 1n),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('5', '5.0', '1e3', '{"$int": "1"}', '\u0000', 'a\u0000b'),
  fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
)

it('any value of any column returns from its JSON unchanged, with its type', () => {
  const database = new Database(':memory:')
  database.function('to_base64', (bytes: unknown) => Buffer.from(Object(bytes)).toString('base64'))
  database.defaultSafeIntegers()
  for (const table of ['kept', 'restored']) {
    database.exec(`create table ${table} (${COLUMNS.map(({ name, type }) => `${name} ${type}`).join(', ')})`)
  }
  const places = COLUMNS.map(() => '?').join(', ')
  const rowsOf = (table: string) =>
    database
      .prepare(`select ${COLUMNS.map(({ name }) => `typeof(${name}), ${name}`).join(', ')} from ${table}`)
      .raw()
      .all()
  fc.assert(
    fc.property(fc.tuple(value, value, value, value, value), (cells) => {
      database.exec('delete from kept; delete from restored')
      database.prepare(`insert into kept values (${places})`).run(cells)
      const line = String(
        database
          .prepare(`select ${rowJson(COLUMNS)} from kept`)
          .pluck()
          .get(),
      )
      database.prepare(`insert into restored values (${places})`).run(Object(JSON.parse(line)).map(decodeCell))
      expect(rowsOf('restored')).toStrictEqual(rowsOf('kept'))
    }),
    { numRuns: 300 },
  )
  database.close()
})
