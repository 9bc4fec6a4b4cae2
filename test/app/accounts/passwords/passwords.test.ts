import { hash } from '@node-rs/bcrypt'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BCRYPT_COST, passwordIssues, randomPassword } from '../../../../src/app/accounts/passwords/passwords.ts'
import { createGate, nativePasswordHasher } from '../../../../src/node/passwords.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client, createTestApp, type TestApp } from '../../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

const create = (password: unknown, username = 'anna') => admin.send('POST', '/api/users', { username, password })
const login = (password: string, username = 'anna') =>
  app.client().send('POST', '/api/auth/login', { username, password })

// In UTF-8 'é' is two bytes and '🦊' four: 72 bytes each.
const ACCENTS_72 = 'é'.repeat(36)
const FOXES_72 = '🦊'.repeat(18)

describe('a new password', () => {
  test.each([
    ['fourteen characters', 'abcdefghijklmn', 'At least 15 characters'],
    ['fourteen foxes, twenty-eight code units', '🦊'.repeat(14), 'At least 15 characters'],
    ['73 bytes', 'x'.repeat(73), 'At most 72 bytes of UTF-8'],
    ['74 bytes of two-byte characters', 'é'.repeat(37), 'At most 72 bytes of UTF-8'],
    ['almost all that a body may hold', 'x'.repeat(250_000), 'At most 72 bytes of UTF-8'],
    ['a NUL', 'a long enough \u0000 password', 'No NUL and no unpaired surrogate'],
    ['a lone surrogate', 'a long enough \ud83e password', 'No NUL and no unpaired surrogate'],
    ['the username', 'Anna.With.A.Long.Name', 'Not the username'],
    ['a common one', 'Password123456789', 'Not a common password'],
    ['one repeated character', '1'.repeat(20), 'Not a common password'],
    ['a common one in capitals', 'QWERTYUIOPASDFGHJKL', 'Not a common password'],
  ])('of %s is refused by name', async (_what, password, message) => {
    const answer = await create(password, 'anna.with.a.long.name')
    expect(await outcomeOf(answer)).toBe('422 weak_password')
    const { issues } = Object(await answer.json())
    expect(issues).toContainEqual({ path: 'password', message })
    expect(auditRows(app).map(({ action }) => action)).not.toContain('user_created')
  })

  test.each([
    ['fifteen characters', 'no more than 15'],
    ['72 bytes', 'x'.repeat(72)],
    ['72 bytes of two-byte characters', ACCENTS_72],
    ['72 bytes of four-byte characters', FOXES_72],
    ['spaces only at the ends', '  a phrase with spaces  '],
    ['no ASCII letters', 'пароль на русском языке'],
  ])('of %s is accepted unchanged', async (_what, password) => {
    expect(await outcomeOf(create(password))).toBe('201')
    expect(await outcomeOf(login(password))).toBe('200')
    expect(await outcomeOf(login(password.slice(1)))).toBe('401 invalid_credentials')
    expect(await outcomeOf(login(` ${password}`))).toBe('401 invalid_credentials')
  })

  test('all broken rules are named together', () => {
    expect(passwordIssues('admin', 'admin', 15).map(({ message }) => message)).toStrictEqual([
      'At least 15 characters',
      'Not the username',
    ])
  })

  test('may be shorter or must be longer when PASSWORD_MIN_LENGTH says so', () => {
    expect(passwordIssues('x7#kQp2!', 'anna', 8)).toStrictEqual([])
    expect(passwordIssues('x'.repeat(63), 'anna', 64)).toStrictEqual([
      { path: 'password', message: 'At least 64 characters' },
    ])
  })

  test('typed with combining marks is the same password', async () => {
    const composed = 'Crème brûlée à la carte'
    const decomposed = composed.normalize('NFD')
    expect(decomposed).not.toBe(composed)
    expect(await outcomeOf(create(decomposed))).toBe('201')
    expect(await outcomeOf(login(composed))).toBe('200')
    expect(await outcomeOf(login(decomposed))).toBe('200')
    const anna = await app.signIn('anna', composed)
    const body = { currentPassword: composed, newPassword: decomposed }
    expect(await outcomeOf(anna.send('POST', '/api/auth/change-password', body))).toBe('422 weak_password')
  })

  test('36 accents that are 72 bytes composed and 108 decomposed are within the limit', async () => {
    expect(await outcomeOf(create(ACCENTS_72.normalize('NFD')))).toBe('201')
    expect(await outcomeOf(login(ACCENTS_72))).toBe('200')
  })
})

test('a random password has 20 letters and digits, and never repeats', () => {
  const many = Array.from({ length: 200 }, randomPassword)
  for (const password of many) expect(password).toMatch(/^[A-Za-z0-9]{20}$/)
  expect(new Set(many).size).toBe(200)
  expect(passwordIssues(many[0] ?? '', 'admin', 15)).toStrictEqual([])
})

describe('with real bcrypt', () => {
  beforeEach(async () => {
    app.close()
    app = await createTestApp({ passwords: nativePasswordHasher() })
    admin = await app.admin()
  })

  const storedHash = () =>
    String(app.store.sqlite.prepare("select password_hash from users where username = 'anna'").pluck().get())

  test('a password of 72 bytes counts to its last byte, and the hash has cost 12', async () => {
    const password = `${'x'.repeat(71)}y`
    expect(await outcomeOf(create(password))).toBe('201')
    expect(storedHash()).toMatch(/^\$2[by]\$12\$/)
    expect(BCRYPT_COST).toBe(12)
    expect(await outcomeOf(login(password))).toBe('200')
    expect(await outcomeOf(login(`${'x'.repeat(71)}z`))).toBe('401 invalid_credentials')
    expect(await outcomeOf(login(`${password}z`))).toBe('401 invalid_credentials')
  })

  test('characters after a NUL still count', async () => {
    const password = 'a long enough password'
    expect(await outcomeOf(create(password))).toBe('201')
    expect(await outcomeOf(login(`${password}\u0000tail`))).toBe('401 invalid_credentials')
    expect(await outcomeOf(login(`${password}\u0000`))).toBe('401 invalid_credentials')
  })

  test('a hash of lower cost is renewed at the next login, but not after a wrong password', async () => {
    const password = 'Crème brûlée à la carte'
    await create(password)
    const weak = await hash(password, 4)
    app.store.sqlite.prepare("update users set password_hash = ? where username = 'anna'").run(weak)
    await login('wrong')
    expect(storedHash()).toBe(weak)
    const outcomes = await Promise.all([login(password), login(password)].map(outcomeOf))
    expect(outcomes).toStrictEqual(['200', '200'])
    const renewed = storedHash()
    expect(renewed).toMatch(/^\$2[by]\$12\$/)
    expect(await outcomeOf(login(password))).toBe('200')
    expect(storedHash()).toBe(renewed)
    const successes = auditRows(app).filter(({ action, username }) => action === 'login_success' && username === 'anna')
    expect(successes).toHaveLength(3)
  })

  test('a stored hash that is not bcrypt lets nobody in and causes no error', async () => {
    await create('a long enough password')
    for (const broken of [
      '',
      'x',
      '$2b$12$short',
      '$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA',
      '$2b$99$' + '.'.repeat(53),
    ]) {
      app.store.sqlite.prepare("update users set password_hash = ? where username = 'anna'").run(broken)
      expect(await outcomeOf(login('a long enough password')), broken).toBe('401 invalid_credentials')
    }
  })
})

test('the gate runs a fixed number at once, queues a fixed number and refuses the rest', async () => {
  const gate = createGate(2, 3)
  const doors: (() => void)[] = []
  let running = 0
  let most = 0
  const job = () =>
    gate(async () => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => doors.push(resolve))
      running--
    }, 'anonymous')
  const jobs = Array.from({ length: 7 }, job)
  const settled = Promise.allSettled(jobs)
  for (let opened = 0; opened < 5;) {
    await new Promise((resolve) => setImmediate(resolve))
    const door = doors.shift()
    if (door === undefined) continue
    opened++
    door()
  }
  const results = await settled
  expect(most).toBe(2)
  expect(results.map(({ status }) => status)).toStrictEqual([
    ...Array.from({ length: 5 }, () => 'fulfilled'),
    'rejected',
    'rejected',
  ])
  expect(results.at(-1)).toMatchObject({ reason: { code: 'rate_limited', extra: { retryAfter: 5 } } })
  await expect(gate(async () => 'free again', 'anonymous')).resolves.toBe('free again')
  await expect(
    gate(async () => {
      throw new Error('a job fails')
    }, 'known'),
  ).rejects.toThrow('a job fails')
  await expect(gate(async () => 'still free', 'anonymous')).resolves.toBe('still free')
})

test('behind the gate known browsers go first, and unknown ones cannot take their places', async () => {
  const gate = createGate(1, 2)
  const done: string[] = []
  const ask = (name: string, turn: 'known' | 'anonymous') =>
    gate(async () => {
      await new Promise((resolve) => setImmediate(resolve))
      done.push(name)
    }, turn)
  const asked = [ask('first', 'anonymous'), ask('second', 'anonymous'), ask('third', 'anonymous')]
  await expect(ask('too many', 'anonymous')).rejects.toMatchObject({ code: 'rate_limited' })
  asked.push(ask('known 1', 'known'), ask('known 2', 'known'))
  await expect(ask('too many', 'known')).rejects.toMatchObject({ code: 'rate_limited' })
  await Promise.all(asked)
  expect(done).toStrictEqual(['first', 'known 1', 'known 2', 'second', 'third'])
})
