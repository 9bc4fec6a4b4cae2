import { sql } from 'drizzle-orm'
import { afterEach, expect, it } from 'vitest'
import { insertSelect } from '../../src/db/insert-select.ts'
import { resetRequests, users } from '../../src/db/schema.ts'
import { bind } from '../../src/db/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const store = openMemoryStore()
afterEach(() => store.sqlite.exec('delete from reset_requests; delete from users'))

const USER = { username: 'anna', authProvider: 'local', createdAt: 7 } as const

it('puts each value into its own column, in any order, with the defaults of the others', async () => {
  const values = { createdAt: 7, isAdmin: true, authProvider: 'local', username: 'anna', passwordHash: 'hash' } as const
  await insertSelect(store.db, users, values, sql`where true`)
  expect(await store.db.select().from(users)).toMatchObject([
    {
      username: 'anna',
      passwordHash: 'hash',
      isAdmin: true,
      isActive: true,
      sessionEpoch: 0,
      email: null,
      createdAt: 7,
    },
  ])
})

it('stores a value as its column does: JSON as JSON, a flag as 0 or 1', async () => {
  const request = { name: 'anna', knownTo: [3, 4], requestId: 'r', createdAt: 1 }
  await insertSelect(store.db, resetRequests, request, sql`where true`)
  await insertSelect(store.db, users, { ...USER, isActive: false, directRead: true }, sql`where true`)
  expect(store.sqlite.prepare('select known_to from reset_requests').pluck().get()).toBe('[3,4]')
  expect(store.sqlite.prepare('select is_active, direct_read from users').raw().get()).toStrictEqual([0, 1])
})

it('takes SQL and placeholders, and inserts one row for each that is selected', async () => {
  const copy = { ...USER, username: sql`username || n.value`, createdAt: sql.placeholder('at') }
  const prepared = insertSelect(store.db, users, copy, sql`from users, json_each('["a","b"]') n where true`).prepare()
  await insertSelect(store.db, users, USER, sql`where true`)
  await store.atomic([bind(prepared, { at: 9 })])
  const rows = store.sqlite.prepare('select username, created_at from users order by id').raw().all()
  expect(rows).toStrictEqual([
    ['anna', 7],
    ['annaa', 9],
    ['annab', 9],
  ])
})

it('inserts nothing where the condition is false, and follows what a conflict says', async () => {
  const isFirst = sql`where not exists (select 1 from users)`
  await insertSelect(store.db, users, USER, isFirst)
  await insertSelect(store.db, users, { ...USER, username: 'bert' }, isFirst)
  await insertSelect(store.db, users, USER, sql`where true`).onConflictDoNothing()
  expect(store.sqlite.prepare('select username from users').pluck().all()).toStrictEqual(['anna'])
})

it('does not compile with a column missing, unknown, or of another type', () => {
  const where = sql`where true`
  // @ts-expect-error createdAt is missing
  const missing = insertSelect(store.db, users, { username: 'anna', authProvider: 'local' }, where)
  expect(() => missing.run()).toThrow('NOT NULL constraint failed: users.created_at')
  // @ts-expect-error there is no such column
  void insertSelect(store.db, users, { ...USER, created_at: 7 }, where)
  // @ts-expect-error not one of the providers
  void insertSelect(store.db, users, { ...USER, authProvider: 'paper' }, where)
  // @ts-expect-error a flag is no number
  void insertSelect(store.db, users, { ...USER, isAdmin: 1 }, where)
  // @ts-expect-error a column that may not be null
  void insertSelect(store.db, users, { ...USER, username: null }, where)
})
