import { afterEach, beforeEach, expect, test } from 'vitest'
import { outcomeOf } from '../../support/answers.ts'
import { createTestApp, type TestApp, USER_PASSWORD } from '../../support/app.ts'
import { createAuthenticator } from '../../support/factors/authenticator.ts'
import { type CookieClient, cookieClient, enrol } from '../../support/factors/cookie-client.ts'
import { codeAt } from '../../support/factors/oathtool.ts'

let app: TestApp
beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const json = async (client: CookieClient, method: string, path: string, body?: unknown) =>
  Object(await (await client.send(method, path, body)).json())

async function byPassword(): Promise<CookieClient> {
  const client = cookieClient(app)
  await client.send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
  return client
}

test('users see their own sign-ins alone, with the method, page by page', async () => {
  await app.user('anna')
  await app.user('bert')
  const anna = await byPassword()
  const { secret, codes } = await enrol(app, anna)
  app.clock.advance(30_000)
  const byCode = await byPassword()
  expect(await outcomeOf(byCode.send('POST', '/api/auth/login/totp', { code: codeAt(secret, app.clock.now) }))).toBe(
    '200',
  )
  const byRecovery = await byPassword()
  expect(await outcomeOf(byRecovery.send('POST', '/api/auth/login/recovery', { code: codes[0] }))).toBe('200')
  const passkey = createAuthenticator('http://localhost')
  const { options: made } = await json(anna, 'POST', '/api/auth/factors/passkeys/options', {})
  const response = passkey.create(made.challenge)
  expect(await outcomeOf(anna.send('POST', '/api/auth/factors/passkeys', { name: 'key', response }))).toBe('200')
  for (const client of [cookieClient(app), await byPassword()]) {
    const { options } = await json(client, 'POST', '/api/auth/login/passkey/options', {})
    const answer = { response: passkey.get(options.challenge) }
    expect(await outcomeOf(client.send('POST', '/api/auth/login/passkey', answer))).toBe('200')
  }
  const first = await json(anna, 'GET', '/api/auth/sign-ins?limit=3')
  const second = await json(anna, 'GET', `/api/auth/sign-ins?limit=3&before=${first.nextBefore}`)
  expect(second.nextBefore).toBeNull()
  const all = [...first.signIns, ...second.signIns]
  expect(all.map(({ method }: { method: string }) => method)).toEqual([
    'password+passkey',
    'passkey',
    'password+recovery',
    'password+totp',
    'password',
    'password',
  ])
  expect(all[0]).toEqual({
    id: expect.any(Number),
    at: app.clock.now,
    method: 'password+passkey',
    provider: null,
    ip: '192.0.2.1',
    browser: null,
  })
  expect(await outcomeOf(cookieClient(app).send('GET', '/api/auth/sign-ins'))).toBe('401 unauthenticated')
})

test('administrators see who has which second factor; what GET answers can be sent back, but not changed', async () => {
  const admin = await app.admin()
  const anna = await app.user('anna')
  await enrol(app, anna)
  const { users } = Object(await (await admin.send('GET', '/api/users')).json())
  expect(users).toMatchObject([
    { username: 'admin', secondFactor: [] },
    { username: 'anna', secondFactor: ['totp'] },
  ])
  const { user } = Object(await (await admin.send('GET', `/api/users/${anna.id}`)).json())
  expect(await outcomeOf(admin.send('PUT', `/api/users/${anna.id}`, user))).toBe('200')
  const none = { ...user, secondFactor: [] }
  expect(await outcomeOf(admin.send('PUT', `/api/users/${anna.id}`, none))).toBe('400 invalid_request')
})
