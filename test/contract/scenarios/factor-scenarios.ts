import { expect, test } from 'vitest'
import { createAuthenticator } from '../../support/factors/authenticator.ts'
import { codeAt } from '../../support/factors/oathtool.ts'
import { auditOf, type Client, createClient, makeUser, refusal, signIn, statuses, USER_PASSWORD } from '../service.ts'

const STEP_MS = 30_000

/** Sets up an authenticator app; returns its secret and the recovery codes. */
async function enrol(client: Client): Promise<{ secret: string; codes: string[] }> {
  const { secret, enrolment } = Object((await client.send('POST', '/api/auth/factors/totp')).body)
  const code = codeAt(secret, Date.now())
  const answer = await client.send('POST', '/api/auth/factors/totp/confirm', { enrolment, code })
  expect(answer).toMatchObject({ status: 200, body: { recoveryCodes: expect.any(Array) } })
  return { secret, codes: Object(answer.body).recoveryCodes }
}

/** A browser that has given the password: sends codes with its attempt. */
async function half(admin: Client, username: string) {
  const client = createClient(admin.service)
  const answer = await client.send('POST', '/api/auth/login', { username, password: USER_PASSWORD })
  expect(answer).toMatchObject({ status: 200, body: { secondFactor: ['totp', 'recovery'] } })
  expect(client.cookie).toBeNull()
  const attempt = answer.headers.getSetCookie().find((line) => line.startsWith('mesh_attempt=')) ?? ''
  expect(attempt).toMatch(/; HttpOnly; SameSite=Strict$/)
  const [cookie = ''] = attempt.split(';', 1)
  const send = (factor: 'totp' | 'recovery', code: string) =>
    client.send('POST', `/api/auth/login/${factor}`, { code }, { cookie })
  return { client, send }
}

/** Asks for a passkey: the challenge, and the cookie that binds it to the browser. */
async function askForPasskey(client: Client, path: string): Promise<{ challenge: string; cookie: string }> {
  const answer = await client.send('POST', `${path}/options`, {})
  expect(answer.status).toBe(200)
  const line = answer.headers.getSetCookie().find((each) => each.startsWith('mesh_passkey=')) ?? ''
  const [bound = ''] = line.split(';', 1)
  return {
    challenge: String(Object(answer.body).options.challenge),
    cookie: [client.cookie, bound].filter((one) => one !== null).join('; '),
  }
}

/** Passkeys need a host name. */
function namedHost(admin: Client): Client['service'] {
  return { ...admin.service, url: Object.assign(new URL(admin.service.url), { hostname: 'localhost' }) }
}

const PASSKEYS = '/api/auth/factors/passkeys'

/** Authenticator apps and recovery codes. */
export function factorScenarios(admin: () => Client): void {
  test('a code of the app follows the password, and works once', async () => {
    await makeUser(admin(), 'otto')
    const { secret } = await enrol(await signIn(admin().service, 'otto'))
    // The current one was used to set the app up.
    const next = codeAt(secret, Date.now() + STEP_MS)
    const attempts = await Promise.all(Array.from({ length: 3 }, () => half(admin(), 'otto')))
    const answers = await Promise.all(attempts.map(({ send }) => send('totp', next)))
    expect(statuses(answers)).toEqual([200, 401, 401])
    const winner = attempts[answers.findIndex(({ status }) => status === 200)]
    const status = await winner?.client.send('GET', '/api/auth/status')
    expect(status?.body).toMatchObject({ authenticated: true, user: { username: 'otto' } })
    const again = await half(admin(), 'otto')
    expect(await again.send('totp', next)).toMatchObject(refusal(401, 'invalid_code'))
    expect(await auditOf(admin(), 'login_success')).toContainEqual(
      expect.objectContaining({ username: 'otto', details: { provider: 'local', factor: 'totp', newBrowser: true } }),
    )
    expect(await auditOf(admin(), 'login_failed')).toContainEqual(
      expect.objectContaining({ username: 'otto', details: expect.objectContaining({ reason: 'wrong_code' }) }),
    )
  })

  test('of several uses of a recovery code one succeeds, and the seed is stored encrypted', async () => {
    await makeUser(admin(), 'odile')
    const { secret, codes } = await enrol(await signIn(admin().service, 'odile'))
    const attempts = await Promise.all(Array.from({ length: 3 }, () => half(admin(), 'odile')))
    const answers = await Promise.all(attempts.map(({ send }) => send('recovery', codes[3] ?? '')))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const rows = JSON.stringify(await admin().service.sql('select * from totp_factors'))
    expect(rows).not.toContain(secret)
  })

  test('a passkey works as the second step and alone; a copy of it does not', async () => {
    const origin = Object.assign(new URL(admin().service.url), { hostname: 'localhost' })
    const service = { ...admin().service, url: origin }
    const id = await makeUser(admin(), 'pia')
    const pia = await signIn(service, 'pia')
    const passkey = createAuthenticator(origin.origin)
    const jar = new Map<string, string>()
    const send = async (client: Client, path: string, body?: unknown) => {
      const cookie = [client.cookie, ...jar.values()].filter((one) => one !== null).join('; ')
      const answer = await client.send('POST', path, body, { cookie })
      for (const line of answer.headers.getSetCookie()) {
        const [pair = ''] = line.split(';', 1)
        const [name = ''] = pair.split('=', 1)
        if (/max-age=0/i.test(line)) jar.delete(name)
        else if (/mesh_(attempt|passkey)/.test(name)) jar.set(name, pair)
      }
      return answer
    }
    const challenge = async (client: Client, path: string) =>
      String(Object((await send(client, `${path}/options`, {})).body).options.challenge)
    const made = passkey.create(await challenge(pia, '/api/auth/factors/passkeys'))
    const added = await send(pia, '/api/auth/factors/passkeys', { name: 'soft', response: made })
    expect(added).toMatchObject({ status: 200, body: { recoveryCodes: expect.any(Array) } })
    const attest = async (format: 'packed' | 'apple') => {
      const attested = createAuthenticator(origin.origin)
      const response = attested.create(await challenge(pia, '/api/auth/factors/passkeys'), format)
      return send(pia, '/api/auth/factors/passkeys', { name: format, response })
    }
    expect(await attest('packed')).toMatchObject({ status: 200 })
    expect(await attest('apple')).toMatchObject(refusal(403, 'passkey_refused'))

    const path = '/api/auth/login/passkey'
    const alone = createClient(service)
    const response = passkey.get(await challenge(alone, path))
    expect(await send(alone, path, { response })).toMatchObject({ status: 200, body: { user: { username: 'pia' } } })
    // The same answer again, and one of an authenticator whose counter did not grow.
    expect(await send(createClient(service), path, { response })).toMatchObject(refusal(403, 'passkey_refused'))
    const copied = createClient(service)
    const stale = passkey.get(await challenge(copied, path), { grows: false })
    expect(await send(copied, path, { response: stale })).toMatchObject(refusal(403, 'passkey_refused'))
    const locked = createClient(service)
    const unverified = passkey.get(await challenge(locked, path), { isVerified: false })
    expect(await send(locked, path, { response: unverified })).toMatchObject(refusal(403, 'passkey_refused'))
    // A right one clears the count of wrong ones.
    const cleared = createClient(service)
    const right = passkey.get(await challenge(cleared, path))
    expect(await send(cleared, path, { response: right })).toMatchObject({ status: 200, body: { user: {} } })
    const refused = (await auditOf(admin(), 'login_failed')).filter(({ username }) => username === 'pia')
    // The answer that was sent again had no challenge: it is not recorded.
    expect(refused.map(({ details }) => Object(details).reason)).toEqual(['wrong_passkey', 'copied_passkey'])

    const second = createClient(service)
    const credentials = { username: 'pia', password: USER_PASSWORD }
    expect((await send(second, '/api/auth/login', credentials)).body).toEqual({ secondFactor: ['passkey', 'recovery'] })
    // A browser that has given the password does not make a sign-in by passkey alone less strict.
    const left = Object((await send(second, `${path}/options?alone=true`, {})).body).options
    expect(left).toMatchObject({ userVerification: 'required', allowCredentials: [] })
    const weak = passkey.get(left.challenge, { isVerified: false })
    expect(await send(second, path, { response: weak })).toMatchObject(refusal(403, 'passkey_refused'))
    const used = passkey.get(await challenge(second, path), { isVerified: false })
    expect(await send(second, path, { response: used })).toMatchObject({ status: 200, body: { user: {} } })
    expect(await auditOf(admin(), 'login_success')).toContainEqual(
      expect.objectContaining({ username: 'pia', details: { provider: 'local', factor: 'passkey', newBrowser: true } }),
    )

    expect((await admin().send('DELETE', `/api/users/${id}`)).status).toBe(204)
    const closed = createClient(service)
    const late = passkey.get(await challenge(closed, path))
    expect(await send(closed, path, { response: late })).toMatchObject(refusal(403, 'passkey_refused'))
    expect((await auditOf(admin(), 'login_failed'))[0]).toMatchObject({
      username: 'pia',
      details: { factor: 'passkey', reason: 'user_inactive' },
    })
  })

  test('the first factor ends the sessions of the password alone, which then changes no factor', async () => {
    const id = await makeUser(admin(), 'ria')
    const ria = await signIn(admin().service, 'ria')
    const thief = await signIn(admin().service, 'ria')
    const { codes } = await enrol(ria)
    expect(await thief.send('GET', '/api/auth/factors')).toMatchObject(refusal(401, 'unauthenticated'))
    expect((await ria.send('GET', '/api/auth/factors')).status).toBe(200)
    await admin().service.sql(
      `update sessions set factor_at = 1, authenticated_at = 1 where user_id = ${id} returning id`,
    )
    expect((await ria.send('POST', '/api/auth/reauthenticate', { password: USER_PASSWORD })).status).toBe(204)
    expect((await ria.send('GET', '/api/auth/reauthenticate')).status).toBe(204)
    for (const [method, path, body] of [
      ['POST', '/api/auth/factors/totp'],
      ['DELETE', '/api/auth/factors/totp'],
      ['POST', '/api/auth/factors/recovery-codes'],
      ['POST', `${PASSKEYS}/options`],
      ['POST', '/api/auth/oidc/link', {}],
    ] as const) {
      const refused = await ria.send(method, path, body)
      expect(refused).toMatchObject(refusal(403, 'reauthentication_required'))
      expect(refused.body).toMatchObject({ ways: ['totp', 'recovery'] })
    }
    expect((await ria.send('POST', '/api/auth/reauthenticate', { recoveryCode: codes[0] })).status).toBe(204)
    expect((await ria.send('DELETE', '/api/auth/factors/totp')).status).toBe(204)
  })

  test('a user has twenty passkeys at most, also if more are added at one instant', async () => {
    await makeUser(admin(), 'rolf')
    const rolf = await signIn(namedHost(admin()), 'rolf')
    const { origin } = rolf.service.url
    const add = async ({ challenge, cookie }: Awaited<ReturnType<typeof askForPasskey>>) =>
      rolf.send('POST', PASSKEYS, { name: 'key', response: createAuthenticator(origin).create(challenge) }, { cookie })
    expect((await add(await askForPasskey(rolf, PASSKEYS))).status).toBe(200)
    const asked = await Promise.all(Array.from({ length: 22 }, () => askForPasskey(rolf, PASSKEYS)))
    const answers = await Promise.all(asked.map(add))
    expect(statuses(answers)).toEqual([...Array.from({ length: 19 }, () => 200), 409, 409, 409])
    expect(Object((await rolf.send('GET', '/api/auth/factors')).body).passkeys).toHaveLength(20)
  })

  test('answers of a passkey to no challenge are limited like passwords, and write no entry', async () => {
    await makeUser(admin(), 'rita')
    const rita = await signIn(namedHost(admin()), 'rita')
    const passkey = createAuthenticator(rita.service.url.origin)
    const { challenge, cookie } = await askForPasskey(rita, PASSKEYS)
    const made = { name: 'key', response: passkey.create(challenge) }
    expect((await rita.send('POST', PASSKEYS, made, { cookie })).status).toBe(200)
    const entries = async () => (await admin().service.sql('select count(*) as n from audit_log'))[0]?.['n']
    const before = await entries()
    const path = '/api/auth/login/passkey'
    const stranger = createClient(rita.service)
    const forged = { response: passkey.get('bm8gY2hhbGxlbmdlIG9mIHRoaXMgc2VydmljZQ') }
    const answers = await Promise.all(Array.from({ length: 30 }, () => stranger.send('POST', path, forged)))
    expect(statuses(answers)).toEqual([403, 403, 403, ...Array.from({ length: 27 }, () => 429)])
    expect(await entries()).toBe(before)
    // Nobody locks her out by it.
    const elsewhere = createClient(rita.service)
    const asked = await askForPasskey(elsewhere, path)
    const response = passkey.get(asked.challenge)
    expect((await elsewhere.send('POST', path, { response }, { cookie: asked.cookie })).status).toBe(200)
  })

  test('an administrator removes a lost factor', async () => {
    const id = await makeUser(admin(), 'ole')
    const ole = await signIn(admin().service, 'ole')
    await enrol(ole)
    const reset = `/api/users/${id}/reset-second-factor`
    expect(await ole.send('POST', reset)).toMatchObject(refusal(403, 'admin_required'))
    expect((await admin().send('POST', reset)).status).toBe(204)
    expect(await admin().send('POST', reset)).toMatchObject(refusal(409, 'no_second_factor'))
    expect((await ole.send('GET', '/api/auth/status')).body).toMatchObject({ authenticated: false })
    const again = await signIn(admin().service, 'ole')
    expect((await again.send('GET', '/api/auth/status')).body).toMatchObject({
      secondFactor: { isSetUp: false, resetAt: expect.any(Number) },
    })
  })
}
