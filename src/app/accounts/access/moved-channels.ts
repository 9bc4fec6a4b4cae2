import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { settings, users } from '../../../db/schema.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { audit, type AuditContext, SYSTEM } from '../../audit/audit.ts'
import { scopeColumns, scopeOf, scopeRow } from '../users/scope.ts'
import { PUBLIC_ACCESS_KEY, readPublicAccess } from './public-access.ts'

/** Key of the row in `settings`. */
const KEY = 'channelNumbers'
const numbersSchema = z.record(z.string(), z.string())

const REASON = 'another channel has this number now'

/**
 * Statements that withdraw a number from public access and from the scopes of users if it stands for another channel now
 * than when it was noted. Otherwise channels that change places in a radio would show a private one to everybody.
 * `identities`: of the numbers that are channel indexes of a radio.
 * Decision: docs/decisions/channel-numbers.md
 */
export async function withdrawMoved(
  store: Store,
  identities: ReadonlyMap<number, string>,
  now: number,
): Promise<Statement[]> {
  const { db } = store
  const row = await db.select({ value: settings.value }).from(settings).where(eq(settings.key, KEY)).get()
  const noted = row === undefined ? {} : (numbersSchema.safeParse(JSON.parse(row.value)).data ?? {})
  // A number that has no channel now keeps its last one.
  const after = { ...noted, ...Object.fromEntries(identities) }
  const value = JSON.stringify(after)
  if (value === row?.value) return []
  const moved = new Set([...identities.keys()].filter((number) => (noted[number] ?? after[number]) !== after[number]))
  return [
    db
      .insert(settings)
      .values({ key: KEY, value, updatedAt: now })
      .onConflictDoUpdate({ target: settings.key, set: { value, updatedAt: now } }),
    ...(moved.size === 0 ? [] : [...(await fromPublic(store, moved, now)), ...(await fromScopes(store, moved, now))]),
  ]
}

type Moved = ReadonlySet<number>

const without = (numbers: readonly number[], moved: Moved) => numbers.filter((number) => !moved.has(number))

const byService = (store: Store, now: number): AuditContext => {
  return { store, now: () => now, ip: null, requestId: null, viewer: null }
}

async function fromPublic(store: Store, moved: Moved, now: number): Promise<Statement[]> {
  const before = await readPublicAccess(store)
  const after = { ...before, channels: without(before.channels, moved) }
  if (after.channels.length === before.channels.length) return []
  return [
    store.db
      .update(settings)
      .set({ value: JSON.stringify(after), updatedAt: now })
      .where(eq(settings.key, PUBLIC_ACCESS_KEY)),
    audit(byService(store, now), 'public_access_updated', { before, after, reason: REASON }, { actor: SYSTEM }),
  ]
}

async function fromScopes(store: Store, moved: Moved, now: number): Promise<Statement[]> {
  const numbers = JSON.stringify([...moved])
  const read = sql`json_each(${users.channels}, '$.read')`
  const found = await store.db
    .select({ id: users.id, username: users.username, isAdmin: users.isAdmin, ...scopeColumns })
    .from(users)
    .where(
      and(
        eq(users.isAdmin, false),
        sql`exists (select 1 from ${read} where value in (select value from json_each(${numbers})))`,
      ),
    )
    .all()
  return found.flatMap(({ id, username, ...row }) => {
    const before = scopeOf(row)
    if (before.channels === 'all') return []
    const channels = { read: without(before.channels.read, moved), write: without(before.channels.write, moved) }
    const after = { ...before, channels }
    const details = { userId: id, username, before: { scope: before }, after: { scope: after }, reason: REASON }
    return [
      store.db.update(users).set(scopeRow(after)).where(eq(users.id, id)),
      audit(byService(store, now), 'permissions_updated', details, { actor: SYSTEM }),
    ]
  })
}
