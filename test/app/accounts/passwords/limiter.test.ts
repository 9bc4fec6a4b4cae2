import type { PasswordHasher } from '../../../../src/app/accounts/passwords/hasher.ts'
import type { SessionStore } from '../../../../src/app/accounts/sessions/store.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { databaseSessions } from '../../../../src/app/accounts/sessions/database-sessions.ts'
import { memorySessions } from '../../../../src/app/accounts/sessions/memory-sessions.ts'
import { AppError } from '../../../../src/app/http/errors.ts'
import { openDatabase } from '../../../../src/node/database.ts'
import { auditedBy, outcomeOf } from '../../../support/answers.ts'
import { ADMIN_PASSWORD, auditRows, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'

let app: TestApp
afterEach(() => app.close())

const login = (username: string, password: string) =>
  app.client().send('POST', '/api/auth/login', { username, password })

/** Counts the passwords that reach the hash, and answers one turn of the event loop later. */
function countingHasher() {
  const calls = { verify: 0, hash: 0 }
  const passwords: PasswordHasher = {
    hash: async (password) => {
      calls.hash++
      return `$2b$12$${Buffer.from(password).toString('base64url')}`
    },
    verify: async (password, hash) => {
      calls.verify++
      await new Promise((resolve) => setImmediate(resolve))
      return hash === `$2b$12$${Buffer.from(password).toString('base64url')}`
    },
  }
  return { passwords, calls }
}

test('the eleventh failure in a quarter of an hour is not checked, recorded once, and says when to retry', async () => {
  const { passwords, calls } = countingHasher()
  app = await createTestApp({ passwords })
  for (let i = 0; i < 10; i++) {
    app.ip = `192.0.2.${i}`
    expect(await outcomeOf(login('admin', 'wrong'))).toBe('401 invalid_credentials')
    app.clock.advance(1000)
  }
  app.ip = '198.51.100.1'
  const audited = await auditedBy(app, async () => {
    const answer = await login('ADMIN', ADMIN_PASSWORD)
    expect(await outcomeOf(answer)).toBe('429 rate_limited')
    expect(answer.headers.get('retry-after')).toBe('890')
    expect(answer.headers.getSetCookie()).toStrictEqual([])
    for (let i = 0; i < 5; i++) expect(await outcomeOf(login('admin', 'wrong'))).toBe('429 rate_limited')
  })
  const details = { username: 'ADMIN', provider: 'local', reason: 'rate_limited', limit: 'account' }
  expect([audited, auditRows(app).at(-1)?.details]).toStrictEqual([['login_failed'], details])
  expect(app.logged.filter((line) => line.includes('Sign-ins are refused'))).toHaveLength(1)
  expect(calls.verify).toBe(10)
  app.clock.advance(889_999)
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('429 rate_limited')
  app.clock.advance(1)
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('200')
})

test('an account that does not exist is limited in the same way, so that nobody learns who exists', async () => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '2' } })
  for (const username of ['nobody', 'admin']) {
    const outcomes: string[] = []
    for (let i = 0; i < 4; i++) {
      app.ip = `192.0.2.${username.length}${i}`
      outcomes.push(await outcomeOf(login(username, 'wrong')))
    }
    expect(outcomes).toStrictEqual([
      '401 invalid_credentials',
      '401 invalid_credentials',
      '429 rate_limited',
      '429 rate_limited',
    ])
  }
})

test('an address is counted over all accounts, and other addresses are not affected', async () => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '3' } })
  for (const username of ['a', 'b', 'c']) {
    expect(await outcomeOf(login(username, 'wrong'))).toBe('401 invalid_credentials')
  }
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('429 rate_limited')
  app.ip = '192.0.2.2'
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('200')
})

test('an address that tries many names leaves one entry per window', async () => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '3' } })
  for (let i = 0; i < 3; i++) await login(`name${i}`, 'wrong')
  const refuse = async () => {
    for (let i = 0; i < 20; i++) expect(await outcomeOf(login(`other${i}`, 'wrong'))).toBe('429 rate_limited')
  }
  const details = { provider: 'local', reason: 'rate_limited', limit: 'address' }
  expect(await auditedBy(app, refuse)).toStrictEqual(['login_failed'])
  expect(auditRows(app).at(-1)?.details).toMatchObject(details)
  app.clock.advance(15 * 60_000)
  for (let i = 0; i < 3; i++) await login(`name${i}`, 'wrong')
  expect(await auditedBy(app, refuse)).toStrictEqual(['login_failed'])
  expect(auditRows(app).at(-1)?.details).toMatchObject(details)
})

test.each([
  ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:2::1'],
  ['2001:db8::1', '2001:0db8:0000:0000:1::', '2001:db8:1::'],
  ['::1', '::2', '1::1'],
  ['fe80::1%eth0', 'fe80::2', 'fe80:0:0:1::2'],
])('%s and %s count as one address, %s as another', async (one, same, other) => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '1' } })
  app.ip = one
  expect(await outcomeOf(login('a', 'wrong'))).toBe('401 invalid_credentials')
  app.ip = same
  expect(await outcomeOf(login('b', 'wrong'))).toBe('429 rate_limited')
  app.ip = other
  expect(await outcomeOf(login('c', 'wrong'))).toBe('401 invalid_credentials')
})

test('a success resets the account and does not count against the address', async () => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '3' } })
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 2; i++) {
      app.ip = `192.0.2.${round * 2 + i}`
      expect(await outcomeOf(login('admin', 'wrong'))).toBe('401 invalid_credentials')
    }
    app.ip = '198.51.100.1'
    expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('200')
  }
})

test('a blocked account does not use up the allowance of the address', async () => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '2' } })
  for (let i = 0; i < 2; i++) {
    app.ip = `192.0.2.${i}`
    await login('victim', 'wrong')
  }
  app.ip = '198.51.100.1'
  for (let i = 0; i < 20; i++) expect(await outcomeOf(login('victim', 'wrong'))).toBe('429 rate_limited')
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('200')
})

const STORES: [string, () => { sessions?: SessionStore; store?: ReturnType<typeof openDatabase> }][] = [
  [
    'database',
    () => {
      const store = openMemoryStore()
      return { store, sessions: databaseSessions(store) }
    },
  ],
  ['memory', () => ({ sessions: memorySessions() })],
]

describe.each(STORES)('with the %s store', (_name, make) => {
  test('of fifty attempts at once ten are checked and recorded, and the refusal of the rest is recorded', async () => {
    const { passwords, calls } = countingHasher()
    const { store, sessions } = make()
    app = await createTestApp({ passwords, ...(store && { store }), ...(sessions && { ports: { sessions } }) })
    const before = auditRows(app).length
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) => outcomeOf(login('admin', i < 45 ? 'wrong' : ADMIN_PASSWORD))),
    )
    expect(outcomes.filter((outcome) => outcome === '429 rate_limited')).toHaveLength(40)
    expect(outcomes.filter((outcome) => outcome === '401 invalid_credentials')).toHaveLength(10)
    expect(calls.verify).toBe(10)
    expect(auditRows(app)).toHaveLength(before + 11)
  })
})

test('the current password of change-password cannot be guessed faster than at sign-in', async () => {
  const { passwords, calls } = countingHasher()
  app = await createTestApp({ passwords })
  const user = await app.user('anna')
  const before = calls.verify
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, () =>
      outcomeOf(
        user.send('POST', '/api/auth/change-password', { currentPassword: 'guess', newPassword: 'x'.repeat(20) }),
      ),
    ),
  )
  expect(calls.verify - before).toBe(10)
  expect(outcomes.filter((outcome) => outcome === '403 wrong_password')).toHaveLength(10)
  expect(outcomes.filter((outcome) => outcome === '429 rate_limited')).toHaveLength(40)
})

test('requests beyond the allowed number of hashes must wait, and are neither counted nor recorded', async () => {
  const { passwords } = countingHasher()
  let isFull = false
  const busy: PasswordHasher = {
    ...passwords,
    verify: async (password, hash, turn) => {
      if (isFull) throw new AppError('rate_limited', undefined, { retryAfter: 5 })
      return passwords.verify(password, hash, turn)
    },
  }
  app = await createTestApp({ passwords: busy, env: { LOGIN_MAX_FAILURES: '2' } })
  isFull = true
  const audited = await auditedBy(app, async () => {
    for (let i = 0; i < 5; i++) {
      const answer = await login('admin', ADMIN_PASSWORD)
      expect(await outcomeOf(answer)).toBe('429 rate_limited')
      expect(answer.headers.get('retry-after')).toBe('5')
    }
  })
  expect(audited).toStrictEqual([])
  isFull = false
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('200')
})

test('every checked login costs one hash, for any account and any password', async () => {
  const { passwords, calls } = countingHasher()
  app = await createTestApp({ passwords })
  const admin = await app.admin()
  const gone = await app.user('gone')
  await admin.send('DELETE', `/api/users/${gone.id}`)
  const outside = await app.user('outside')
  const passwordless = await app.user('passwordless')
  const { sqlite } = app.store
  sqlite.prepare("update users set auth_provider = 'oidc' where id = ?").run(outside.id)
  sqlite.prepare("update users set auth_provider = 'oidc', password_hash = null where id = ?").run(passwordless.id)
  const tries = [
    ['admin', 'wrong'],
    ['nobody', 'wrong'],
    ['gone', USER_PASSWORD],
    ['outside', USER_PASSWORD],
    ['passwordless', USER_PASSWORD],
    ['admin', `${ADMIN_PASSWORD}\u0000`],
    ['admin', 'x'.repeat(4096)],
    ['admin', '\ud800'],
  ] as const
  for (const [username, password] of tries) {
    const before = { ...calls }
    expect(await outcomeOf(login(username, password)), username).toBe('401 invalid_credentials')
    expect({ ...calls }, username).toStrictEqual({ ...before, verify: before.verify + 1 })
    app.clock.advance(900_000)
  }
})

test('refused excess requests do not count themselves: right passwords at once lock nobody out', async () => {
  const { passwords } = countingHasher()
  app = await createTestApp({ passwords, env: { LOGIN_MAX_FAILURES: '3' } })
  const outcomes = await Promise.all(Array.from({ length: 30 }, () => outcomeOf(login('admin', ADMIN_PASSWORD))))
  expect(new Set(outcomes)).toStrictEqual(new Set(['200', '429 rate_limited']))
  expect(await outcomeOf(login('admin', ADMIN_PASSWORD))).toBe('200')
})

describe('where requests may queue', () => {
  const patient = () => {
    const { passwords, calls } = countingHasher()
    return { passwords: { ...passwords, mayWait: true } as const, calls }
  }

  test.each([
    ['one account', () => 'admin'],
    ['one address and many names', (i: number) => (i % 2 === 0 ? 'admin' : 'anna')],
  ])('forty right passwords at once from %s all get in', async (_name, nameOf) => {
    app = await createTestApp({ passwords: patient().passwords, env: { LOGIN_MAX_FAILURES: '3' } })
    await app.user('anna')
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, i) => {
        const username = nameOf(i)
        return outcomeOf(login(username, username === 'admin' ? ADMIN_PASSWORD : USER_PASSWORD))
      }),
    )
    expect(new Set(outcomes)).toStrictEqual(new Set(['200']))
  })

  test('wrong passwords still use up the allowance, and nobody waits forever', async () => {
    const { passwords, calls } = patient()
    app = await createTestApp({ passwords, env: { LOGIN_MAX_FAILURES: '3' } })
    const before = auditRows(app).length
    const outcomes = await Promise.all(Array.from({ length: 60 }, () => outcomeOf(login('admin', 'wrong'))))
    expect(outcomes.filter((outcome) => outcome === '401 invalid_credentials')).toHaveLength(3)
    expect(outcomes.filter((outcome) => outcome === '429 rate_limited')).toHaveLength(57)
    expect(calls.verify).toBe(3)
    expect(auditRows(app)).toHaveLength(before + 4)
    const late = await login('admin', ADMIN_PASSWORD)
    expect([late.status, late.headers.get('retry-after')]).toStrictEqual([429, '900'])
  })

  test('requests beyond the length of the queue are told to retry in a moment', async () => {
    const { passwords } = patient()
    const opened = Promise.withResolvers<void>()
    const slow: PasswordHasher = {
      ...passwords,
      verify: async (password, hash, turn) => {
        await opened.promise
        return passwords.verify(password, hash, turn)
      },
    }
    app = await createTestApp({ passwords: slow, env: { LOGIN_MAX_FAILURES: '2' } })
    const answers = Array.from({ length: 70 }, () => login('admin', ADMIN_PASSWORD))
    const refused = await Promise.race(answers)
    expect([await outcomeOf(refused), refused.headers.get('retry-after')]).toStrictEqual(['429 rate_limited', '5'])
    opened.resolve()
    const outcomes = await Promise.all(answers.map(outcomeOf))
    expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(66)
    expect(outcomes.filter((outcome) => outcome === '429 rate_limited')).toHaveLength(4)
  })
})
