import { afterEach, beforeEach, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'
import { createAuthenticator } from '../../../support/factors/authenticator.ts'
import { type CookieClient, cookieClient } from '../../../support/factors/cookie-client.ts'

const ORIGIN = 'http://localhost'
const WINDOW_MS = 15 * 60_000

let app: TestApp
let anna: CookieClient
let annaId: number
let passkey: ReturnType<typeof createAuthenticator>
beforeEach(async () => {
  app = await createTestApp()
  annaId = (await app.user('anna')).id
  anna = cookieClient(app)
  await anna.send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
  passkey = createAuthenticator(ORIGIN)
  const { challenge } = await optionsAt(anna, '/api/auth/factors/passkeys/options')
  const response = passkey.create(challenge)
  expect((await anna.send('POST', '/api/auth/factors/passkeys', { name: 'key', response })).status).toBe(200)
})
afterEach(() => app.close())

const optionsAt = async (client: CookieClient, path: string) =>
  Object(await (await client.send('POST', path, {})).json()).options

const ENTER = '/api/auth/login/passkey'
const enter = (client: CookieClient, response: unknown) => outcomeOf(client.send('POST', ENTER, { response }))

/** Signs in with an answer to a challenge of this browser. */
async function answer(client: CookieClient, options: { isVerified?: boolean; userHandle?: string } = {}) {
  const { challenge } = await optionsAt(client, `${ENTER}/options`)
  return enter(client, passkey.get(challenge, options))
}

test('3,000 answers to no challenge write no row, and all but ten of an address are refused at once', async () => {
  const rows = auditRows(app).length
  const forged = passkey.get('bm8gY2hhbGxlbmdlIG9mIHRoaXMgc2VydmljZQ')
  const outcomes: string[] = []
  for (let i = 0; i < 3000; i++) outcomes.push(await enter(cookieClient(app), forged))
  expect(outcomes.filter((outcome) => outcome === '403 passkey_refused')).toHaveLength(10)
  expect(outcomes.filter((outcome) => outcome === '429 rate_limited')).toHaveLength(2990)
  expect(auditRows(app).length).toBe(rows)
  // From many addresses too, and nobody locks her out: her passkey works from anywhere.
  for (let i = 0; i < 50; i++) {
    app.ip = `198.51.100.${i}`
    expect(await enter(cookieClient(app), forged)).toBe('403 passkey_refused')
  }
  expect(auditRows(app).length).toBe(rows)
  expect(await answer(cookieClient(app))).toBe('200')
})

test('wrong answers to a challenge count for the account as well, and are recorded as often as they are checked', async () => {
  const rows = auditRows(app).length
  for (let i = 0; i < 12; i++) {
    app.ip = `198.51.100.${i}`
    expect(await answer(cookieClient(app), { isVerified: false })).toBe(
      i < 10 ? '403 passkey_refused' : '429 rate_limited',
    )
  }
  expect(auditRows(app).length).toBe(rows + 10)
  // The browser in which she signed in before counts by itself.
  await anna.send('POST', '/api/auth/logout')
  expect(await answer(anna)).toBe('200')
  app.clock.advance(WINDOW_MS)
  expect(await answer(cookieClient(app))).toBe('200')
})

test('of many at one instant no more are checked than one after the other', async () => {
  const rows = auditRows(app).length
  const clients = Array.from({ length: 30 }, () => cookieClient(app))
  const outcomes = await Promise.all(clients.map((client) => answer(client, { isVerified: false })))
  expect(outcomes.filter((outcome) => outcome === '403 passkey_refused')).toHaveLength(10)
  expect(auditRows(app).length).toBe(rows + 10)
})

test('the handle of new passkeys says nothing about the user; others are refused, earlier ones work', async () => {
  const { user } = await optionsAt(anna, '/api/auth/factors/passkeys/options')
  expect(user.id).toMatch(/^[\w-]{43}$/)
  expect(await optionsAt(anna, '/api/auth/factors/passkeys/options')).toMatchObject({ user: { id: user.id } })
  expect(await answer(cookieClient(app), { userHandle: user.id })).toBe('200')
  const earlier = Buffer.from(`mesh:${annaId}`).toString('base64url')
  expect(await answer(cookieClient(app), { userHandle: earlier })).toBe('200')
  const other = Buffer.from(`mesh:${annaId + 1}`).toString('base64url')
  expect(await answer(cookieClient(app), { userHandle: other })).toBe('403 passkey_refused')
})

test('a user has twenty passkeys at most, also if many are added at one instant', async () => {
  const made = await Promise.all(
    Array.from({ length: 25 }, async (_, i) => {
      const browser = cookieClient(app)
      for (const [name, value] of anna.cookies) browser.cookies.set(name, value)
      const { challenge } = await optionsAt(browser, '/api/auth/factors/passkeys/options')
      return { browser, name: `key ${i}`, response: createAuthenticator(ORIGIN).create(challenge) }
    }),
  )
  const outcomes = await Promise.all(
    made.map(({ browser, ...body }) => outcomeOf(browser.send('POST', '/api/auth/factors/passkeys', body))),
  )
  expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(19)
  expect(outcomes.filter((outcome) => outcome === '409 too_many_passkeys')).toHaveLength(6)
})

test('a passkey of another host is listed as unusable, not offered, and still protects', async () => {
  // As after a change of PUBLIC_URL.
  app.store.sqlite.prepare("update passkeys set rp_id = 'old.example.org'").run()
  const list = Object(await (await anna.send('GET', '/api/auth/factors')).json())
  expect(list.passkeys).toMatchObject([{ name: 'key', host: 'old.example.org', isUsable: false }])
  const half = cookieClient(app)
  const credentials = { username: 'anna', password: USER_PASSWORD }
  const answered = Object(await (await half.send('POST', '/api/auth/login', credentials)).json())
  expect(answered).toEqual({ secondFactor: ['recovery'] })
  expect(await outcomeOf(half.send('POST', `${ENTER}/options`, {}))).toBe('409 passkeys_unavailable')
  expect(await optionsAt(anna, '/api/auth/factors/passkeys/options')).toMatchObject({ excludeCredentials: [] })
})
