import { eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { audit, SYSTEM } from '../../../src/app/audit/audit.ts'
import { users } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'

test('an entry that depends on the change before it is the first of its step', async () => {
  const store = openDatabase(':memory:')
  const ctx = { store, now: () => 1, viewer: null, ip: null, requestId: null }
  const nobody = store.db.update(users).set({ email: 'a@example.org' }).where(eq(users.id, 7))
  const unlessNobody = audit(ctx, 'user_updated', {}, { actor: SYSTEM, onlyIfChanged: true })
  await store.atomic([nobody, unlessNobody])
  expect(store.sqlite.prepare('select count(*) from audit_log').pluck().get()).toBe(0)
  // SQLite would count the rows of the text index that the first entry left to be written.
  await expect(store.atomic([audit(ctx, 'logout', {}), nobody, unlessNobody])).rejects.toThrow('use onlyIf')
  expect(store.sqlite.prepare('select count(*) from audit_log').pluck().get()).toBe(0)
  store.close()
})
