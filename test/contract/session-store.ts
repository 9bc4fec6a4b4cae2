import type { SessionStore, StoredSession } from '../../src/app/accounts/sessions/store.ts'
import { describe, expect, test } from 'vitest'

const HOUR = 3_600_000
const NOW = Date.UTC(2026, 0, 15, 12)

function session(id: number, changes: Partial<StoredSession> = {}): StoredSession {
  return {
    id,
    tokenHash: id.toString(16).padStart(64, '0'),
    userId: 7,
    epoch: 0,
    createdAt: NOW,
    lastSeenAt: NOW,
    expiresAt: NOW + HOUR,
    ip: '2001:db8::1',
    userAgent: 'Mozilla/5.0 (ünïcode)',
    oidcIssuer: null,
    authenticatedAt: null,
    factors: null,
    factorAt: null,
    ...changes,
  }
}

const ids = (sessions: readonly StoredSession[]) => sessions.map(({ id }) => id)

/** What every session store must do. `make` returns an empty one at each call; its maker removes it after the test. */
export function sessionStoreContract(name: string, make: () => Promise<SessionStore> | SessionStore): void {
  describe(`session store: ${name}`, () => {
    sessionContract(make)
    counterContract(make)
  })
}

type Make = () => Promise<SessionStore> | SessionStore

function sessionContract(make: Make): void {
  test('a session comes back complete, with any nulls and however large its id', async () => {
    const store = await make()
    const full = session(Number.MAX_SAFE_INTEGER, { oidcIssuer: 'https://id.example.org/a?b=c', epoch: 12 })
    const bare = session(2, { ip: null, userAgent: null, userId: 8 })
    await store.insert(full)
    await store.insert(bare)
    expect(await store.find(full.tokenHash, NOW)).toStrictEqual(full)
    expect(await store.find(bare.tokenHash, NOW)).toStrictEqual(bare)
    expect(await store.list(7, NOW)).toStrictEqual([full])
    expect(await store.list(8, NOW)).toStrictEqual([bare])
  })

  test('an unknown hash is anonymous, and changing it does nothing', async () => {
    const store = await make()
    await store.insert(session(1))
    const unknown = 'f'.repeat(64)
    await store.extend(unknown, NOW + 1, NOW + HOUR)
    expect(await store.remove(unknown)).toBe(false)
    expect(await store.removeForUser(99)).toBe(0)
    expect(await store.find(unknown, NOW)).toBeNull()
    expect(await store.find('', NOW)).toBeNull()
    expect(await store.list(99, NOW)).toStrictEqual([])
    expect(await store.list(7, NOW)).toStrictEqual([session(1)])
  })

  test('a session lives until the millisecond before it expires', async () => {
    const store = await make()
    await store.insert(session(1))
    const { tokenHash, expiresAt } = session(1)
    expect(await store.find(tokenHash, expiresAt - 1)).not.toBeNull()
    expect(ids(await store.list(7, expiresAt - 1))).toStrictEqual([1])
    expect(await store.find(tokenHash, expiresAt)).toBeNull()
    expect(await store.list(7, expiresAt)).toStrictEqual([])
  })

  test('a session that is created expired is anonymous', async () => {
    const store = await make()
    await store.insert(session(1, { expiresAt: NOW }))
    expect(await store.find(session(1).tokenHash, NOW)).toBeNull()
  })

  test('extending moves its end and its last use, and nothing else', async () => {
    const store = await make()
    await store.insert(session(1))
    await store.extend(session(1).tokenHash, NOW + 10, NOW + 2 * HOUR)
    const extended = session(1, { lastSeenAt: NOW + 10, expiresAt: NOW + 2 * HOUR })
    expect(await store.find(extended.tokenHash, NOW + HOUR)).toStrictEqual(extended)
  })

  test('extending a removed session does not bring it back', async () => {
    const store = await make()
    await store.insert(session(1))
    await store.remove(session(1).tokenHash)
    await store.extend(session(1).tokenHash, NOW, NOW + HOUR)
    expect(await store.find(session(1).tokenHash, NOW)).toBeNull()
    expect(await store.list(7, NOW)).toStrictEqual([])
  })

  test('removing a session leaves the others, of this user and of another', async () => {
    const store = await make()
    for (const one of [session(1), session(2), session(3, { userId: 8 })]) await store.insert(one)
    await store.remove(session(1).tokenHash)
    expect(await store.find(session(1).tokenHash, NOW)).toBeNull()
    expect(ids(await store.list(7, NOW))).toStrictEqual([2])
    expect(ids(await store.list(8, NOW))).toStrictEqual([3])
  })

  test('of many simultaneous removals of a session, one succeeds', async () => {
    const store = await make()
    for (const one of [session(1), session(2), session(3)]) await store.insert(one)
    const removed = await Promise.all(Array.from({ length: 10 }, () => store.remove(session(1).tokenHash)))
    expect(removed.filter((was) => was)).toStrictEqual([true])
    const others = await Promise.all(Array.from({ length: 10 }, () => store.removeForUser(7)))
    expect(others.toSorted((a, b) => a - b)).toStrictEqual([...Array.from({ length: 9 }, () => 0), 2])
  })

  test('all sessions of a user can be removed, or all but one', async () => {
    const store = await make()
    for (const one of [session(1), session(2), session(3), session(4, { userId: 8 })]) await store.insert(one)
    expect(await store.removeForUser(7, session(2).tokenHash)).toBe(2)
    expect(ids(await store.list(7, NOW))).toStrictEqual([2])
    expect(await store.find(session(1).tokenHash, NOW)).toBeNull()
    expect(await store.find(session(2).tokenHash, NOW)).toStrictEqual(session(2))
    await store.removeForUser(7)
    expect(await store.find(session(2).tokenHash, NOW)).toBeNull()
    expect(ids(await store.list(8, NOW))).toStrictEqual([4])
  })

  test("another user's hash as the exception spares nothing", async () => {
    const store = await make()
    for (const one of [session(1), session(4, { userId: 8 })]) await store.insert(one)
    await store.removeForUser(7, session(4, { userId: 8 }).tokenHash)
    expect(await store.list(7, NOW)).toStrictEqual([])
    expect(ids(await store.list(8, NOW))).toStrictEqual([4])
  })

  test('the list begins with the most recently seen; at the same instant the larger id is first', async () => {
    const store = await make()
    const seen = [
      [1, NOW + 5],
      [2, NOW + 9],
      [3, NOW + 5],
      [4, NOW],
    ] as const
    for (const [id, lastSeenAt] of seen) await store.insert(session(id, { lastSeenAt }))
    expect(ids(await store.list(7, NOW))).toStrictEqual([2, 3, 1, 4])
    await store.extend(session(4).tokenHash, NOW + 20, NOW + HOUR)
    expect(ids(await store.list(7, NOW))).toStrictEqual([4, 2, 3, 1])
  })

  test('a new session is answered with the live ones of its user', async () => {
    const store = await make()
    for (const one of [session(1, { lastSeenAt: NOW - 1 }), session(2, { userId: 8 })]) await store.insert(one)
    await store.insert(session(3, { lastSeenAt: NOW - HOUR, expiresAt: NOW }))
    expect(ids(await store.insert(session(4, { lastSeenAt: NOW })))).toStrictEqual([4, 1])
  })

  test('counts in turn end at the first that is too high, and are taken back together', async () => {
    const store = await make()
    const { hits, forgives } = store
    if (hits === undefined || forgives === undefined) return
    const limits = [
      { key: 'address', most: 2 },
      { key: 'account', most: 1 },
    ]
    const counts = async () => (await hits(limits, { ms: HOUR, now: NOW }, null)).counts.map(({ count }) => count)
    expect([await counts(), await counts(), await counts()]).toStrictEqual([[1, 1], [2, 2], [3]])
    await forgives([
      { key: 'address', how: 'one' },
      { key: 'account', how: 'all' },
    ])
    expect((await store.hit('address', HOUR, NOW)).count).toBe(3)
    expect((await store.hit('account', HOUR, NOW)).count).toBe(1)
  })

  test('sweeping removes everything expired and nothing else', async () => {
    const store = await make()
    await store.insert(session(1, { expiresAt: NOW + 1000 }))
    await store.insert(session(2, { expiresAt: NOW + 1001 }))
    await store.hit('swept', 1000, NOW)
    await store.hit('kept', 1001, NOW)
    await store.sweep(NOW + 1000)
    expect(ids(await store.list(7, NOW + 1000))).toStrictEqual([2])
    expect(await store.hit('swept', 1000, NOW + 1000)).toStrictEqual({ count: 1, resetAt: NOW + 2000 })
    expect(await store.hit('kept', 1001, NOW + 1000)).toStrictEqual({ count: 2, resetAt: NOW + 1001 })
  })
}

function counterContract(make: Make): void {
  test('attempts are counted in the window that the first one opened, and from one again after it', async () => {
    const store = await make()
    const resetAt = NOW + HOUR
    expect(await store.hit('login:account:anna', HOUR, NOW)).toStrictEqual({ count: 1, resetAt })
    expect(await store.hit('login:account:anna', HOUR, NOW + 1000)).toStrictEqual({ count: 2, resetAt })
    expect(await store.hit('login:account:anna', HOUR, resetAt - 1)).toStrictEqual({ count: 3, resetAt })
    expect(await store.hit('login:account:anna', HOUR, resetAt)).toStrictEqual({ count: 1, resetAt: resetAt + HOUR })
  })

  test('keys are counted separately, whatever they contain', async () => {
    const store = await make()
    const odd = 'login:account:\u0000 ü*?[a]\n"%'
    await store.hit('a', HOUR, NOW)
    await store.hit(odd, HOUR, NOW)
    expect((await store.hit('a', HOUR, NOW)).count).toBe(2)
    expect((await store.hit(odd, HOUR, NOW)).count).toBe(2)
    expect((await store.hit('A', HOUR, NOW)).count).toBe(1)
  })

  test('fifty attempts at once get fifty different counts', async () => {
    const store = await make()
    const answers = await Promise.all(Array.from({ length: 50 }, () => store.hit('a', HOUR, NOW)))
    expect(answers.map(({ count }) => count).toSorted((a, b) => a - b)).toStrictEqual(
      Array.from({ length: 50 }, (_, i) => i + 1),
    )
    expect(new Set(answers.map(({ resetAt }) => resetAt))).toStrictEqual(new Set([NOW + HOUR]))
  })

  test('clearing removes all keys with the prefix, whatever they contain, and no other', async () => {
    const store = await make()
    for (const key of ['login:a', 'login:*[b]?', 'login', 'oidc:login:a', 'x*y:1', 'xzy:1'])
      await store.hit(key, HOUR, NOW)
    await store.clear('login:')
    await store.clear('x*')
    const counts = []
    for (const key of ['login:a', 'login:*[b]?', 'login', 'oidc:login:a', 'x*y:1', 'xzy:1']) {
      counts.push((await store.hit(key, HOUR, NOW)).count)
    }
    expect(counts).toStrictEqual([1, 1, 2, 2, 1, 2])
  })

  test('one attempt or all are taken back, never below zero; the window stays', async () => {
    const store = await make()
    await store.forgive('a', 'one')
    await store.forgive('a', 'all')
    await store.hit('a', HOUR, NOW)
    await store.hit('a', HOUR, NOW)
    await store.forgive('a', 'one')
    expect(await store.hit('a', HOUR, NOW + 5)).toStrictEqual({ count: 2, resetAt: NOW + HOUR })
    for (let i = 0; i < 5; i++) await store.forgive('a', 'one')
    expect((await store.hit('a', HOUR, NOW + 5)).count).toBe(1)
    await store.forgive('a', 'all')
    expect(await store.hit('a', HOUR, NOW + 7)).toStrictEqual({ count: 1, resetAt: NOW + 7 + HOUR })
  })
}
