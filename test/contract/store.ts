import { eq, like, or, sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { audit, type AuditContext, listAudit, SYSTEM } from '../../src/app/audit/audit.ts'
import type { Viewer } from '../../src/app/base/context.ts'
import { USER_CONFLICTS } from '../../src/app/accounts/users/conflicts.ts'
import { AppError, toAppError } from '../../src/app/http/errors.ts'
import { createLog } from '../../src/app/base/log.ts'
import { packedPermissions, unpackPermissions, writePermissions } from '../../src/app/accounts/users/permissions.ts'
import { stillAdmin } from '../../src/app/accounts/users/still-admin.ts'
import { userIdByName } from '../../src/app/accounts/users/users.ts'
import { contains } from '../../src/db/contains.ts'
import { nodes, settings, userPermissions, users } from '../../src/db/schema.ts'
import type { Store } from '../../src/db/store.ts'
import { WHOLE_VIEW } from '../../src/app/accounts/access/visible.ts'
import { WHOLE_SCOPE } from '../../src/shared/access/scope.ts'
import { ALL_PERMISSIONS } from '../../src/shared/access/resources.ts'

const NOW = Date.UTC(2026, 0, 15, 12)

const user = (username: string, isAdmin = false) => ({
  username,
  authProvider: 'local' as const,
  passwordHash: `the hash of ${username}`,
  isAdmin,
  createdAt: NOW,
})

/** What every store must do. `open` returns one with an empty, migrated database, the same one at each call. */
export function storeContract(name: string, open: () => Promise<Store> | Store): void {
  const context = (store: Store): AuditContext => ({ store, viewer: null, ip: null, requestId: null, now: () => NOW })

  describe(`store: ${name}`, () => {
    test('statements run in order, and a later one sees the rows of an earlier one', async () => {
      const store = await open()
      const NONE = { read: false, write: false }
      const later = { at: NOW + 1, by: null }
      const grants = { nodes: { read: true, write: true }, info: { read: true, write: false } }
      await store.atomic([
        store.db.insert(users).values(user('anna')),
        writePermissions(store, eq(users.username, 'anna'), grants, { at: NOW, by: null }),
        writePermissions(store, eq(users.username, 'nobody'), { nodes: NONE }, { at: NOW, by: null }),
        writePermissions(store, eq(users.username, 'anna'), { nodes: grants.nodes, info: NONE }, later),
        audit(context(store), 'user_created', { userId: userIdByName('anna'), username: 'anna' }),
      ])
      const found = { id: users.id, packed: packedPermissions }
      const row = await store.db.select(found).from(users).where(eq(users.username, 'anna')).get()
      expect(unpackPermissions(row?.packed ?? null)).toMatchObject({
        nodes: { read: true, write: true },
        info: { read: false, write: false },
        settings: { read: false, write: false },
      })
      const rows = await store.db.select().from(userPermissions).orderBy(userPermissions.id).all()
      expect(rows).toEqual([
        { id: 1, userId: row?.id, resource: 'nodes', canRead: true, canWrite: true, grantedAt: NOW, grantedBy: null },
        {
          id: 2,
          userId: row?.id,
          resource: 'info',
          canRead: false,
          canWrite: false,
          grantedAt: NOW + 1,
          grantedBy: null,
        },
      ])
      const { entries } = await listAudit(store, { action: 'user_created' }, { limit: 1 })
      expect(entries).toMatchObject([{ details: { userId: row?.id, username: 'anna' }, username: SYSTEM.username }])
    })

    test('reports its size', async () => {
      const bytes = await (await open()).sizeBytes()
      expect(bytes).toBeGreaterThan(50_000)
      expect(bytes).toBeLessThan(5_000_000)
    })

    test('one change that does not wait for the disk is visible at once, and returns its rows', async () => {
      const store = await open()
      const set = store.db.insert(settings).values({ key: 'one', value: '1', updatedAt: NOW }).returning()
      expect(await store.lazily(() => set.all())).toEqual([{ key: 'one', value: '1', updatedAt: NOW }])
      const found = await store.db.select({ key: settings.key }).from(settings).where(eq(settings.key, 'one')).all()
      expect(found).toEqual([{ key: 'one' }])
      await store.db.delete(settings).where(eq(settings.key, 'one')).run()
    })

    test('knows the size that it can reach, unless it is in memory', async () => {
      const space = await (await open()).space()
      expect(space === null || space.limitBytes > space.usedBytes).toBe(true)
    })

    test('all of the statements or none of them', async () => {
      const store = await open()
      const set = (key: string) => store.db.insert(settings).values({ key, value: '1', updatedAt: NOW })
      await store.atomic([set('first')])
      await expect(store.atomic([set('second'), set('first'), set('third')])).rejects.toThrow(/UNIQUE/)
      expect(await store.db.select({ key: settings.key }).from(settings).all()).toEqual([{ key: 'first' }])
    })

    test('a statement that is not awaited is visible at once, and also complete or not at all', async () => {
      const store = await open()
      const set = (key: string) => store.db.insert(settings).values({ key, value: '1', updatedAt: NOW })
      await store.atomic([set('lazy 1'), set('lazy 2')], 'lazily')
      await expect(store.atomic([set('lazy 3'), set('lazy 1')], 'lazily')).rejects.toThrow(/UNIQUE/)
      const found = await store.db.select({ key: settings.key }).from(settings).where(like(settings.key, 'lazy%')).all()
      expect(found).toEqual([{ key: 'lazy 1' }, { key: 'lazy 2' }])
    })

    test('an entry that depends on a change is written only with it', async () => {
      const store = await open()
      const rename = (from: string, to: string) =>
        store.atomic([
          store.db.update(users).set({ displayName: to }).where(eq(users.username, from)),
          audit(context(store), 'user_updated', { to }, { onlyIfChanged: true }),
        ])
      await store.db.insert(users).values(user('berta')).run()
      await rename('nobody', 'X')
      await rename('berta', 'Y')
      const { entries } = await listAudit(store, { action: 'user_updated' }, { limit: 10 })
      expect(entries.map(({ details }) => details)).toEqual([{ to: 'Y' }])
    })

    test('a change by somebody who has lost the administrator role in the meantime is rolled back', async () => {
      const store = await open()
      await store.db
        .insert(users)
        .values([user('zara', true), user('zoe', true)])
        .run()
      const named = (username: string) => eq(users.username, username)
      const row = await store.db.select().from(users).where(named('zara')).get()
      if (row === undefined) throw new Error('no zara')
      const at = {
        createdAt: NOW,
        lastSeenAt: NOW,
        expiresAt: NOW + 1,
        ip: null,
        userAgent: null,
        oidcIssuer: null,
        authenticatedAt: null,
        factors: null,
        factorAt: null,
      }
      const session = { id: 1, tokenHash: 'a hash', userId: row.id, epoch: row.sessionEpoch, ...at }
      const [permissions, mustChangePassword] = [ALL_PERMISSIONS, false]
      const secondFactor = { isSetUp: false, resetAt: null }
      const credential = { kind: 'session', session } as const
      const viewer: Viewer = {
        user: { ...row, emailVerified: false, oidcSubject: null },
        permissions,
        scope: WHOLE_SCOPE,
        view: WHOLE_VIEW,
        mustChangePassword,
        secondFactor,
        language: null,
        units: null,
        credential,
      }
      const rename = (displayName: string) =>
        store.atomic([
          store.db.update(users).set({ displayName }).where(named('zoe')),
          ...stillAdmin({ store, viewer }),
        ])
      await rename('while she is')
      await store.db.update(users).set({ isAdmin: false }).where(named('zara')).run()
      expect(await codeOf(() => rename('demoted'))).toBe('admin_required')
      await store.db.update(users).set({ sessionEpoch: 1 }).where(named('zara')).run()
      expect(await codeOf(() => rename('another password'))).toBe('unauthenticated')
      const zoe = await store.db.select({ name: users.displayName }).from(users).where(named('zoe')).get()
      expect(zoe).toEqual({ name: 'while she is' })
      await store.db
        .delete(users)
        .where(or(named('zara'), named('zoe')))
        .run()
    })

    test('the database itself reports the last administrator and a name in use', async () => {
      const store = await open()
      await store.db.insert(users).values(user('clara', true)).run()
      const demote = store.db.update(users).set({ isAdmin: false }).where(eq(users.username, 'clara'))
      expect(await codeOf(() => store.atomic([demote]))).toBe('last_admin')
      expect(await codeOf(async () => demote.run())).toBe('last_admin')
      expect(await codeOf(() => store.atomic([store.db.insert(users).values(user('CLARA'))]))).toBe('username_taken')
      expect(await codeOf(async () => store.db.insert(users).values(user('CLARA')).run())).toBe('username_taken')
      expect(
        await codeOf(async () =>
          store.db
            .insert(users)
            .values({ ...user('last_admin'), id: 1 })
            .run(),
        ),
      ).toBe('internal')
    })

    test('no value of a failed query reaches the log', async () => {
      const store = await open()
      const lines: string[] = []
      const log = createLog({ level: 'info', format: 'json', now: () => NOW, write: (line) => lines.push(line) })
      await store.db.insert(users).values(user('dora')).run()
      const insert = store.db.insert(users).values(user('dora'))
      for (const run of [() => store.atomic([insert]), async () => insert.run()]) {
        const error = await failure(run)
        log.error('Request failed', { error: toAppError(error) })
      }
      expect(lines).toHaveLength(2)
      expect(lines.join('\n')).toMatch(/UNIQUE/)
      expect(lines.join('\n')).not.toContain('the hash of')
    })

    test('values come back unchanged', async () => {
      const store = await open()
      const node = {
        nodeNum: 0xffff_ffff,
        firstHeard: NOW,
        latitude: -33.123_456_7,
        longName: 'Ünï \'"% 🚀',
        isFavorite: true,
      }
      await store.db.insert(nodes).values(node).run()
      const row = await store.db.select().from(nodes).where(eq(nodes.nodeNum, node.nodeNum)).get()
      expect(row).toMatchObject({ ...node, isIgnored: false, altitude: null, notes: '' })
    })

    test('a part of a text is found, whatever its length and content', async () => {
      const store = await open()
      const long = `${'%_\\'.repeat(60)}End`
      await store.db.insert(settings).values({ key: 'long', value: long, updatedAt: NOW }).run()
      const found = async (part: string) =>
        (
          await store.db
            .select({ n: sql<number>`count(*)` })
            .from(settings)
            .where(contains(settings.value, part))
            .get()
        )?.n
      expect([await found(long.toUpperCase()), await found('%_\\end'), await found('%%'), await found('x')]).toEqual([
        1, 1, 0, 0,
      ])
    })

    test('a change of a node increases the revision of the nodes', async () => {
      const store = await open()
      const revision = async () =>
        (await store.db.all<{ value: number }>(sql`select value from revisions where name = 'nodes'`))[0]?.value ?? NaN
      const before = await revision()
      await store.db.insert(nodes).values({ nodeNum: 1, firstHeard: NOW }).run()
      await store.db.delete(nodes).where(eq(nodes.nodeNum, 1)).run()
      expect(await revision()).toBe(before + 2)
    })

    test('each node has the revision of its own latest change', async () => {
      const store = await open()
      const revisions = async () =>
        (
          await store.db.all<{ v: number }>(
            sql`select revision as v from nodes where node_num in (81, 82) union all select value from revisions where name = 'nodes'`,
          )
        ).map(({ v }) => v)
      await store.db
        .insert(nodes)
        .values([81, 82].map((nodeNum) => ({ nodeNum, firstHeard: NOW })))
        .run()
      const [first = 0, second = 0, all] = await revisions()
      expect([second, all]).toEqual([first + 1, first + 1])
      await store.db.update(nodes).set({ notes: 'x' }).where(eq(nodes.nodeNum, 81)).run()
      expect(await revisions()).toEqual([first + 2, second, first + 2])
      const given = sql`(select value + 1 from revisions where name = 'nodes')`
      await store.db.update(nodes).set({ revision: given }).run()
      expect(await revisions()).toEqual([first + 3, first + 3, first + 3])
    })
  })
}

async function failure(run: () => Promise<unknown>): Promise<unknown> {
  try {
    await run()
  } catch (error) {
    return error
  }
  throw new Error('nothing failed')
}

async function codeOf(run: () => Promise<unknown>): Promise<string> {
  const error = toAppError(await failure(run), USER_CONFLICTS)
  return error instanceof AppError ? error.code : ''
}
