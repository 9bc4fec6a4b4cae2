import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'
import { createAuthenticator } from '../../../support/factors/authenticator.ts'
import { type CookieClient, cookieClient, enrol } from '../../../support/factors/cookie-client.ts'
import { codeAt } from '../../../support/factors/oathtool.ts'

const QUARTER_MS = 15 * 60_000
const STEP_MS = 30_000
const ORIGIN = 'http://localhost'

let app: TestApp
let anna: CookieClient
beforeEach(async () => {
  app = await createTestApp()
  await app.user('anna')
  anna = await byPassword()
})
afterEach(() => app.close())

async function byPassword(): Promise<CookieClient> {
  const client = cookieClient(app)
  const credentials = { username: 'anna', password: USER_PASSWORD }
  expect((await client.send('POST', '/api/auth/login', credentials)).status).toBe(200)
  return client
}

const outcome = (client: CookieClient, method: string, path: string, body?: unknown) =>
  outcomeOf(client.send(method, path, body))

const prove = (client: CookieClient, proof: unknown) => outcome(client, 'POST', '/api/auth/reauthenticate', proof)

const challengeAt = async (client: CookieClient, path: string) =>
  Object(await (await client.send('POST', path, {})).json()).options

async function addPasskey(client: CookieClient) {
  const passkey = createAuthenticator(ORIGIN)
  const { challenge } = await challengeAt(client, '/api/auth/factors/passkeys/options')
  const response = passkey.create(challenge)
  return { passkey, added: await outcome(client, 'POST', '/api/auth/factors/passkeys', { name: 'key', response }) }
}

describe('the first factor ends the sessions that needed the password alone', () => {
  test.each(['totp', 'passkey'])('%s', async (factor) => {
    const thief = await byPassword()
    const before = anna.cookies.get('mesh_session')
    if (factor === 'totp') await enrol(app, anna)
    else expect((await addPasskey(anna)).added).toBe('200')
    expect(await outcome(thief, 'GET', '/api/auth/factors')).toBe('401 unauthenticated')
    expect(await outcome(anna, 'GET', '/api/auth/factors')).toBe('200')
    expect(anna.cookies.get('mesh_session')).not.toBe(before)
    const old = cookieClient(app)
    old.cookies.set('mesh_session', before ?? '')
    expect(await outcome(old, 'GET', '/api/auth/factors')).toBe('401 unauthenticated')
    expect(app.store.sqlite.prepare('select count(*) as n from sessions where user_id = 2').get()).toEqual({ n: 1 })
  })

  test('and another factor ends none', async () => {
    const { secret } = await enrol(app, anna)
    app.clock.advance(STEP_MS)
    const other = await byPassword()
    expect(await outcome(other, 'POST', '/api/auth/login/totp', { code: codeAt(secret, app.clock.now) })).toBe('200')
    expect((await addPasskey(anna)).added).toBe('200')
    expect(await outcome(other, 'GET', '/api/auth/factors')).toBe('200')
  })

  test('also one from before the upgrade, in whichever store it is', async () => {
    const thief = await byPassword()
    await enrol(app, anna)
    app.store.sqlite.prepare('update users set session_epoch = session_epoch - 1').run()
    app.store.sqlite.prepare('update sessions set factors = null, factor_at = null').run()
    for (const client of [thief, anna])
      expect(await outcome(client, 'GET', '/api/auth/factors')).toBe('401 unauthenticated')
  })

  test('also one of two that are set up at the same instant: one of them wins', async () => {
    const thief = await byPassword()
    const { secret, enrolment } = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
    const { challenge } = await challengeAt(thief, '/api/auth/factors/passkeys/options')
    const response = createAuthenticator(ORIGIN).create(challenge)
    const outcomes = await Promise.all([
      outcome(anna, 'POST', '/api/auth/factors/totp/confirm', { enrolment, code: codeAt(secret, app.clock.now) }),
      outcome(thief, 'POST', '/api/auth/factors/passkeys', { name: 'thief', response }),
    ])
    expect(outcomes.filter((each) => each === '200')).toHaveLength(1)
    const signedIn = await Promise.all([anna, thief].map((client) => outcome(client, 'GET', '/api/auth/factors')))
    expect(signedIn.filter((each) => each === '200')).toHaveLength(1)
  })
})

describe('factors change only with proof of a factor', () => {
  const changes: readonly [method: string, path: string, body?: unknown][] = [
    ['POST', '/api/auth/factors/totp'],
    ['POST', '/api/auth/factors/passkeys/options'],
    ['DELETE', '/api/auth/factors/passkeys/1'],
    ['POST', '/api/auth/factors/recovery-codes'],
    ['POST', '/api/auth/oidc/link', {}],
    ['DELETE', '/api/auth/factors/totp'],
  ]

  test('the password alone is not enough, a code of the app is', async () => {
    const { secret } = await enrol(app, anna)
    app.clock.advance(QUARTER_MS)
    expect(await prove(anna, { password: USER_PASSWORD })).toBe('204')
    for (const [method, path, body] of changes) {
      const refused = Object(await (await anna.send(method, path, body)).json())
      expect(refused).toMatchObject({ code: 'reauthentication_required', ways: ['totp', 'recovery'] })
    }
    // Other changes still accept it.
    expect(await outcome(anna, 'POST', '/api/tokens', { name: 'one', scopes: ['nodes:read'] })).toBe('201')
    expect(await prove(anna, { code: codeAt(secret, app.clock.now) })).toBe('204')
    for (const [method, path, body] of changes) {
      expect(await outcome(anna, method, path, body)).not.toBe('403 reauthentication_required')
    }
  })

  test('a recovery code proves it once, and so does a sign-in with it', async () => {
    const { codes } = await enrol(app, anna)
    app.clock.advance(QUARTER_MS)
    expect(await outcome(anna, 'DELETE', '/api/auth/factors/totp')).toBe('403 reauthentication_required')
    expect(await prove(anna, { recoveryCode: codes[0] })).toBe('204')
    expect(await prove(anna, { recoveryCode: codes[0] })).toBe('403 wrong_code')
    const elsewhere = await byPassword()
    expect(await outcome(elsewhere, 'POST', '/api/auth/login/recovery', { code: codes[1] })).toBe('200')
    expect(await outcome(elsewhere, 'DELETE', '/api/auth/factors/totp')).toBe('204')
  })

  test('a passkey proves it only if it was unlocked', async () => {
    const { passkey } = await addPasskey(anna)
    app.clock.advance(QUARTER_MS)
    const ask = () => challengeAt(anna, '/api/auth/reauthenticate/options')
    const first = await ask()
    expect(first).toMatchObject({ userVerification: 'required', allowCredentials: [{ type: 'public-key' }] })
    const touched = passkey.get(first.challenge, { isVerified: false })
    expect(await prove(anna, { passkey: touched })).toBe('403 passkey_refused')
    expect(await prove(anna, { passkey: passkey.get((await ask()).challenge) })).toBe('204')
    expect(await outcome(anna, 'POST', '/api/auth/factors/recovery-codes')).toBe('200')
  })

  test('a right password does not clear the count of wrong codes', async () => {
    const { secret } = await enrol(app, anna)
    app.clock.advance(STEP_MS)
    const right = codeAt(secret, app.clock.now)
    const wrong = String((Number(right) + 1) % 1_000_000).padStart(6, '0')
    for (let i = 0; i < 10; i++) {
      expect(await prove(anna, { code: wrong })).toBe('403 wrong_code')
      expect(await prove(anna, { password: USER_PASSWORD })).toBe('204')
    }
    expect(await prove(anna, { code: right })).toBe('429 rate_limited')
  })

  test('a session that ended meanwhile does not come back by a proof', async () => {
    const other = await byPassword()
    const sessions = Object(await (await anna.send('GET', '/api/auth/sessions')).json()).sessions
    expect(sessions).toHaveLength(3)
    const [proved] = await Promise.all([
      prove(other, { password: USER_PASSWORD }),
      anna.send('DELETE', '/api/auth/sessions'),
    ])
    expect(['204', '401 unauthenticated']).toContain(proved)
    const left = Object(await (await anna.send('GET', '/api/auth/sessions')).json()).sessions
    expect(left.length).toBe(proved === '204' && (await outcome(other, 'GET', '/api/auth/sessions')) === '200' ? 2 : 1)
  })
})

test('REQUIRE_SECOND_FACTOR looks at how the session began', async () => {
  const { secret } = await enrol(app, anna)
  Object.assign(app.ports, { config: { ...app.ports.config, REQUIRE_SECOND_FACTOR: 'all' } })
  expect(await outcome(anna, 'GET', '/api/nodes')).toBe('200')
  app.clock.advance(STEP_MS)
  const other = await byPassword()
  expect(await outcome(other, 'GET', '/api/nodes')).toBe('401 unauthenticated')
  expect(await outcome(other, 'POST', '/api/auth/login/totp', { code: codeAt(secret, app.clock.now) })).toBe('200')
  expect(await outcome(other, 'GET', '/api/nodes')).toBe('200')
  app.store.sqlite.prepare('update sessions set factors = 1').run()
  expect(await outcome(other, 'GET', '/api/nodes')).toBe('401 unauthenticated')
})
