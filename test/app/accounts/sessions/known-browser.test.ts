import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { ADMIN_PASSWORD, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'

const MINUTE = 60_000
const DAY = 86_400_000

let app: TestApp
let addresses = 0
beforeEach(async () => {
  app = await createTestApp({ env: { LOGIN_MAX_FAILURES: '3' } })
})
afterEach(() => app.close())

type Credentials = { username: string; password: string }
const RIGHT = { username: 'admin', password: ADMIN_PASSWORD }
const WRONG = { username: 'admin', password: 'wrong' }

/** Signs in at an address that nobody else uses; returns the outcome and the cookie of the browser. */
async function signIn(credentials: Credentials, cookie: string | null = null) {
  const n = ++addresses
  app.ip = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
  const answer = await app
    .client()
    .send('POST', '/api/auth/login', credentials, cookie === null ? {} : { cookie: `a=b; ${cookie}` })
  const set = answer.headers.getSetCookie().find((line) => /^(__Host-)?mesh_browser=/.test(line))
  return { outcome: await outcomeOf(answer), set, cookie: set?.split(';')[0] ?? null }
}

const outcomeFor = async (credentials: Credentials, cookie?: string | null) =>
  (await signIn(credentials, cookie)).outcome

/** Signs in with wrong passwords until strangers are refused. */
async function lockOut(username = 'admin') {
  for (let i = 0; i < 3; i++) expect(await outcomeFor({ username, password: 'wrong' })).toBe('401 invalid_credentials')
  expect(await outcomeFor({ username, password: 'wrong' })).toBe('429 rate_limited')
}

async function known(credentials: Credentials = RIGHT, before: string | null = null): Promise<string> {
  const { cookie, outcome } = await signIn(credentials, before)
  expect(outcome).toBe('200')
  return String(cookie)
}

describe('a browser that has signed in before', () => {
  test('gets in while unknown browsers lock the account, and does not unlock it for them', async () => {
    let cookie = await known()
    for (let round = 0; round < 5; round++) {
      if (round === 0) await lockOut()
      else expect(await outcomeFor(RIGHT)).toBe('429 rate_limited')
      cookie = await known(RIGHT, cookie)
      app.clock.advance(MINUTE)
    }
  })

  test('is not kept out by failures of others at its own address', async () => {
    const cookie = await known()
    app.ip = '192.0.2.1'
    const login = (body: Credentials, headers?: Record<string, string>) =>
      outcomeOf(app.client().send('POST', '/api/auth/login', body, headers))
    for (const username of ['a', 'b', 'c']) await login({ username, password: 'wrong' })
    expect(await login(RIGHT)).toBe('429 rate_limited')
    expect(await login(RIGHT, { cookie })).toBe('200')
  })

  test('is locked out by its own wrong guesses, which lock out nobody else', async () => {
    const [one, other] = [await known(), await known()]
    for (let i = 0; i < 3; i++) expect(await outcomeFor(WRONG, one)).toBe('401 invalid_credentials')
    expect(await outcomeFor(RIGHT, one)).toBe('429 rate_limited')
    expect(await outcomeFor(RIGHT, other)).toBe('200')
    expect(await outcomeFor(RIGHT)).toBe('200')
    app.clock.advance(15 * MINUTE)
    expect(await outcomeFor(RIGHT, one)).toBe('200')
  })

  test('cannot guess faster by simultaneous requests or with many cookies', async () => {
    const one = await known()
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => outcomeFor(WRONG, one)))
    expect(outcomes.filter((outcome) => outcome === '401 invalid_credentials')).toHaveLength(3)
    const many = await Promise.all(Array.from({ length: 12 }, () => known()))
    const guesses: string[] = []
    for (const cookie of many) for (let i = 0; i < 3; i++) guesses.push(await outcomeFor(WRONG, cookie))
    expect(guesses.filter((outcome) => outcome === '401 invalid_credentials')).toHaveLength(30 - 3)
    expect(await outcomeFor(RIGHT)).toBe('200')
  })

  test('is unknown to other accounts until somebody signs in to them there', async () => {
    await app.user('anna')
    const anna = { username: 'anna', password: USER_PASSWORD }
    const cookie = await known()
    await lockOut('anna')
    expect(await outcomeFor(anna, cookie)).toBe('429 rate_limited')
    app.clock.advance(15 * MINUTE)
    const both = await known(anna, cookie)
    await lockOut('anna')
    await lockOut('admin')
    expect(await outcomeFor({ ...anna, username: 'ANNA' }, both)).toBe('200')
    expect(await outcomeFor(RIGHT, both)).toBe('200')
  })

  test('stays known when the user is renamed, signs out or changes the password', async () => {
    const user = await app.user('anna')
    const cookie = await known({ username: 'anna', password: USER_PASSWORD })
    const change = { currentPassword: USER_PASSWORD, newPassword: 'quite another password' }
    const changed = await user.send('POST', '/api/auth/change-password', change)
    expect(changed.status).toBe(204)
    expect(changed.headers.getSetCookie().map((line) => line.split('=')[0])).toEqual(['mesh_session', 'mesh_browser'])
    const signedOut = await user.send('POST', '/api/auth/logout')
    expect(signedOut.headers.getSetCookie().filter((line) => line.includes('mesh_browser'))).toEqual([])
    await (await app.admin()).send('PUT', `/api/users/${user.id}`, { username: 'anne' })
    await lockOut('anne')
    expect(await outcomeFor({ username: 'anne', password: 'quite another password' }, cookie)).toBe('200')
  })

  test('stays known for 180 days after its latest sign-in', async () => {
    const cookie = await known()
    app.clock.advance(179 * DAY)
    await lockOut()
    const renewed = await known(RIGHT, cookie)
    app.clock.advance(DAY)
    await lockOut()
    expect(await outcomeFor(RIGHT, cookie)).toBe('429 rate_limited')
    expect(await outcomeFor(RIGHT, renewed)).toBe('200')
  })

  test('is not known by a cookie that is forged, truncated, changed or made with another secret', async () => {
    const cookie = await known()
    const other = await createTestApp({ env: { SESSION_SECRET: 'o'.repeat(40) } })
    const foreign = (await other.client().send('POST', '/api/auth/login', RIGHT)).headers.getSetCookie()[1]
    other.close()
    await lockOut()
    const [name, value = ''] = cookie.split('=')
    const changed = `${value.slice(0, -2)}${value.at(-2) === 'A' ? 'B' : 'A'}${value.slice(-1)}`
    const none = ['', 'x', '%00', 'a'.repeat(3000), value.slice(1), value.slice(0, -1), changed, `${value}.${value}`]
    for (const made of [...none.map((text) => `${name}=${text}`), String(foreign?.split(';')[0])]) {
      expect(await outcomeFor(RIGHT, made), made).toBe('429 rate_limited')
    }
    expect(await outcomeFor(RIGHT, cookie)).toBe('200')
  })
})

test('unknown browsers that keep all cores hashing do not make a known browser wait', async () => {
  const turns: string[] = []
  const { passwords } = app.ports
  Object.assign(app.ports, {
    passwords: {
      ...passwords,
      verify: async (...of: Parameters<typeof passwords.verify>) => {
        turns.push(of[2])
        return passwords.verify(...of)
      },
    },
  })
  const cookie = await known()
  await signIn(WRONG)
  await known(RIGHT, cookie)
  await signIn({ username: 'nobody', password: 'wrong' }, cookie)
  expect(turns).toEqual(['anonymous', 'anonymous', 'known', 'anonymous'])
})

test('the cookie is HttpOnly and Lax, and over HTTPS a __Host- cookie', async () => {
  const shape = '=[\\w-]+; Max-Age=15552000; Path=/; HttpOnly; '
  expect((await signIn(RIGHT)).set).toMatch(new RegExp(`^mesh_browser${shape}SameSite=Lax$`))
  app.origin = 'https://mesh.example.org'
  expect((await signIn(RIGHT)).set).toMatch(new RegExp(`^__Host-mesh_browser${shape}Secure; SameSite=Lax$`))
  expect((await signIn(WRONG)).set).toBe(undefined)
})

test('wrong current passwords do not block signing in, nor the reverse', async () => {
  const user = await app.user('anna')
  const change = (currentPassword: string) =>
    outcomeOf(
      user.send('POST', '/api/auth/change-password', { currentPassword, newPassword: 'quite another password' }),
    )
  await lockOut('anna')
  app.ip = '192.0.2.77'
  for (const username of ['a', 'b', 'c']) {
    await app.client().send('POST', '/api/auth/login', { username, password: 'wrong' })
  }
  expect(await change('wrong')).toBe('403 wrong_password')
  app.clock.advance(15 * MINUTE)
  for (let i = 0; i < 3; i++) expect(await change('wrong')).toBe('403 wrong_password')
  expect(await change(USER_PASSWORD)).toBe('429 rate_limited')
  expect(await outcomeFor({ username: 'anna', password: USER_PASSWORD })).toBe('200')
})

test('a reset clears the failures counted against that user, and no others', async () => {
  const anna = await app.user('anna')
  const cookie = await known({ username: 'anna', password: USER_PASSWORD })
  await lockOut('anna')
  await lockOut('admin')
  for (let i = 0; i < 3; i++) await outcomeFor({ username: 'anna', password: 'wrong' }, cookie)
  app.clock.advance(15 * MINUTE)
  const admin = await app.admin()
  await lockOut('admin')
  await lockOut('anna')
  for (let i = 0; i < 3; i++) await outcomeFor({ username: 'anna', password: 'wrong' }, cookie)
  const reset = await admin.send('POST', `/api/users/${anna.id}/reset-password`)
  const { password } = Object(await reset.json())
  expect(await outcomeFor({ username: 'anna', password }, cookie)).toBe('200')
  expect(await outcomeFor({ username: 'anna', password })).toBe('200')
  expect(await outcomeFor(RIGHT)).toBe('429 rate_limited')
})
