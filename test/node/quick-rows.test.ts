import Database from 'better-sqlite3'
import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { integer, numeric, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { expect, it } from 'vitest'
import { readRowsQuickly } from '../../src/node/quick-rows.ts'

const things = sqliteTable('things', {
  id: integer().primaryKey(),
  isOn: integer('is_on', { mode: 'boolean' }),
  list: text({ mode: 'json' }),
  amount: numeric(),
  since: integer({ mode: 'timestamp_ms' }),
})

/** What a database answers to each kind of query. */
function answers(prepare: (db: object) => void): unknown[] {
  const sqlite = new Database(':memory:')
  const db = drizzle(sqlite)
  prepare(db)
  sqlite.exec('create table things (id integer primary key, is_on integer, list text, amount numeric, since integer)')
  const rows = [
    { id: 1, isOn: true, list: [1, 'two'], amount: '3.5', since: new Date(4000) },
    { id: 2, isOn: null, list: null, amount: null, since: null },
  ]
  const inserted = db.insert(things).values(rows).returning({ id: things.id, isOn: things.isOn }).all()
  const fields = { double: sql<number>`id * 2`, half: sql<string>`id / 2.0`.mapWith(String), of: sql`id`.as('of') }
  const nested = { thing: things, more: { flag: things.isOn } }
  const one = db
    .select()
    .from(things)
    .where(eq(things.id, sql.placeholder('id')))
    .prepare()
  const found = [
    inserted,
    db.select().from(things).all(),
    db.select(fields).from(things).all(),
    db.select(nested).from(things).all(),
    one.get({ id: 1 }),
    one.get({ id: 3 }),
    one.all({ id: 2 }),
    one.values({ id: 1 }),
    db.delete(things).returning().get(),
    db.all(sql`select id as n from things`),
  ]
  sqlite.close()
  return found
}

it('answers as Drizzle does', () => {
  const expected = answers(() => {})
  expect(answers(readRowsQuickly)).toStrictEqual(expected)
  expect(expected).toMatchObject({ 4: { isOn: true, list: [1, 'two'], since: new Date(4000) }, 5: undefined })
})

it('refuses a value that is missing, as Drizzle does', () => {
  const db = drizzle(new Database(':memory:'))
  readRowsQuickly(db)
  const query = db
    .select({ n: sql<number>`${sql.placeholder('n')}` })
    .from(sql`(select 1)`)
    .prepare()
  expect(query.get({ n: 1 })).toStrictEqual({ n: 1 })
  expect(() => query.get({})).toThrow('No value for placeholder "n"')
})
