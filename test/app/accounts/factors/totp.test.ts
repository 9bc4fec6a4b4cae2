import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../../support/answers.ts'
import { ADMIN_PASSWORD, auditRows, createTestApp, type TestApp, USER_PASSWORD } from '../../../support/app.ts'
import { type CookieClient, cookieClient, enrol } from '../../../support/factors/cookie-client.ts'
import { codeAt } from '../../../support/factors/oathtool.ts'

let app: TestApp
let anna: CookieClient
let annaId: number
beforeEach(async () => {
  app = await createTestApp()
  annaId = (await app.user('anna')).id
  anna = cookieClient(app)
  expect(await login(anna)).toMatchObject({ user: { username: 'anna' } })
})
afterEach(() => app.close())

async function login(
  client: CookieClient,
  username = 'anna',
  password = USER_PASSWORD,
): Promise<Record<string, unknown>> {
  return Object(await (await client.send('POST', '/api/auth/login', { username, password })).json())
}

const STEP_MS = 30_000

const sendCode = (client: CookieClient, code: string) => client.send('POST', '/api/auth/login/totp', { code })
const sendRecovery = (client: CookieClient, code: string) => client.send('POST', '/api/auth/login/recovery', { code })

/** A browser that has only given the password. */
async function half(): Promise<CookieClient> {
  const client = cookieClient(app)
  expect(await login(client)).toEqual({ secondFactor: expect.any(Array) })
  return client
}

async function isSignedIn(client: CookieClient): Promise<boolean> {
  return Object(await (await client.send('GET', '/api/auth/status')).json()).authenticated
}

describe('setting up TOTP', () => {
  test('shows a secret and an otpauth URI, and stores nothing until a code is entered', async () => {
    const begun = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
    expect(begun.secret).toMatch(/^[A-Z2-7]{32}$/)
    const uri = new URL(begun.uri)
    expect(uri.href).toMatch(/^otpauth:\/\/totp\/Mesh%20Monitoring%20Service:anna\?/)
    expect(uri.searchParams.get('secret')).toBe(begun.secret)
    expect(app.store.sqlite.prepare('select count(*) as n from totp_factors').get()).toEqual({ n: 0 })
    expect(begun.enrolment).not.toContain(begun.secret)
  })

  test('gives ten recovery codes once, and is recorded', async () => {
    const { codes, secret } = await enrol(app, anna)
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^[a-z0-9]{4}(-[a-z0-9]{4}){3}$/)
    const list = Object(await (await anna.send('GET', '/api/auth/factors')).json())
    expect(list).toEqual({
      totp: { createdAt: app.clock.now, lastUsedAt: null, isReadable: true },
      passkeys: [],
      recoveryCodesLeft: 10,
    })
    expect(auditRows(app).slice(-2)).toEqual([
      { action: 'second_factor_added', username: 'anna', details: { factor: 'totp' } },
      { action: 'recovery_codes_created', username: 'anna', details: { codes: 10 } },
    ])
    const dump = JSON.stringify(
      ['totp_factors', 'recovery_codes', 'audit_log'].map((table) =>
        app.store.sqlite.prepare(`select * from ${table}`).all(),
      ),
    )
    for (const text of [secret, ...codes, ...codes.map((code) => code.replaceAll('-', ''))]) {
      expect(dump).not.toContain(text)
    }
  })

  test("is refused with a wrong code, an old enrolment or somebody else's enrolment", async () => {
    const { secret, enrolment } = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
    const confirm = (client: CookieClient, code: string) =>
      outcomeOf(client.send('POST', '/api/auth/factors/totp/confirm', { enrolment, code }))
    const other = String((Number(codeAt(secret, app.clock.now)) + 1) % 1_000_000).padStart(6, '0')
    expect(await confirm(anna, other)).toBe('403 wrong_code')
    await app.user('bert')
    const bert = cookieClient(app)
    await login(bert, 'bert')
    expect(await confirm(bert, codeAt(secret, app.clock.now))).toBe('409 enrolment_ended')
    app.clock.advance(10 * 60_000)
    expect(await confirm(anna, codeAt(secret, app.clock.now))).toBe('409 enrolment_ended')
    expect(auditRows(app).filter(({ action }) => action === 'second_factor_added')).toEqual([])
  })

  test('one enrolment is confirmed once when many requests confirm it at the same instant', async () => {
    const { secret, enrolment } = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
    const code = codeAt(secret, app.clock.now)
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () =>
        outcomeOf(anna.send('POST', '/api/auth/factors/totp/confirm', { enrolment, code })),
      ),
    )
    expect(outcomes.toSorted()).toEqual(['200', ...Array.from({ length: 4 }, () => '409 enrolment_ended')])
    expect(Object(await (await anna.send('GET', '/api/auth/factors')).json()).recoveryCodesLeft).toBe(10)
  })
})

describe('signing in with TOTP', () => {
  test('works as before for a user without a factor', async () => {
    await app.user('bert')
    const bert = cookieClient(app)
    expect(Object.keys(await login(bert, 'bert')).toSorted()).toEqual([
      'mustChangePassword',
      'permissions',
      'scope',
      'user',
    ])
    expect(auditRows(app).at(-1)).toEqual({
      action: 'login_success',
      username: 'bert',
      details: { provider: 'local', newBrowser: true },
    })
  })

  test('asks for the code after the password, and admits nobody before it', async () => {
    const { secret } = await enrol(app, anna)
    const rows = auditRows(app).length
    const client = cookieClient(app)
    expect(await login(client)).toEqual({ secondFactor: ['totp', 'recovery'] })
    expect(await isSignedIn(client)).toBe(false)
    expect([...client.cookies.keys()]).toEqual(['mesh_attempt'])
    expect(auditRows(app).length).toBe(rows)
    app.clock.advance(STEP_MS)
    const answer = await sendCode(client, codeAt(secret, app.clock.now))
    expect(await answer.json()).toMatchObject({ user: { username: 'anna', lastLoginAt: app.clock.now } })
    expect(await isSignedIn(client)).toBe(true)
    expect(client.cookies.has('mesh_attempt')).toBe(false)
    expect(auditRows(app).slice(rows)).toEqual([
      { action: 'login_success', username: 'anna', details: { provider: 'local', factor: 'totp', newBrowser: true } },
    ])
  })

  test.each([-1, 0, 1])('accepts a code %d steps from now, but not one two steps away', async (drift) => {
    const { secret } = await enrol(app, anna)
    app.clock.advance(10 * STEP_MS)
    expect(await outcomeOf(sendCode(await half(), codeAt(secret, app.clock.now + drift * STEP_MS)))).toBe('200')
    const beyond = app.clock.now + (drift < 0 ? -2 : 2) * STEP_MS
    expect(await outcomeOf(sendCode(await half(), codeAt(secret, beyond)))).toBe('401 invalid_code')
  })

  test('a code works once: not again, not twice at the same instant, and no older code after it', async () => {
    const { secret } = await enrol(app, anna)
    expect(await outcomeOf(sendCode(await half(), codeAt(secret, app.clock.now)))).toBe('401 invalid_code')
    app.clock.advance(5 * STEP_MS)
    const code = codeAt(secret, app.clock.now)
    const clients = await Promise.all(Array.from({ length: 4 }, () => half()))
    const outcomes = await Promise.all(clients.map((client) => outcomeOf(sendCode(client, code))))
    expect(outcomes.toSorted()).toEqual(['200', '401 attempt_ended', '401 attempt_ended', '401 attempt_ended'])
    expect(await outcomeOf(sendCode(await half(), code))).toBe('401 invalid_code')
    expect(await outcomeOf(sendCode(await half(), codeAt(secret, app.clock.now - STEP_MS)))).toBe('401 invalid_code')
    const entered = auditRows(app).filter(
      ({ action, details }) => action === 'login_success' && details['factor'] === 'totp',
    )
    expect(entered).toHaveLength(1)
  })

  test('an attempt signs in once, even with a new code', async () => {
    const { secret } = await enrol(app, anna)
    app.clock.advance(5 * STEP_MS)
    const client = await half()
    const copy = cookieClient(app)
    for (const [name, value] of client.cookies) copy.cookies.set(name, value)
    expect(await outcomeOf(sendCode(client, codeAt(secret, app.clock.now)))).toBe('200')
    app.clock.advance(STEP_MS)
    expect(await outcomeOf(sendCode(copy, codeAt(secret, app.clock.now)))).toBe('401 attempt_ended')
  })

  test('five wrong codes end an attempt, each recorded; ten in a window lock the account for unknown browsers', async () => {
    const { secret } = await enrol(app, anna)
    app.clock.advance(5 * STEP_MS)
    const wrong = String((Number(codeAt(secret, app.clock.now)) + 1) % 1_000_000).padStart(6, '0')
    const rows = auditRows(app).length
    const client = await half()
    for (let i = 0; i < 5; i++) expect(await outcomeOf(sendCode(client, wrong))).toBe('401 invalid_code')
    expect(await outcomeOf(sendCode(client, codeAt(secret, app.clock.now)))).toBe('401 attempt_ended')
    const row = {
      action: 'login_failed',
      username: 'anna',
      details: { username: 'anna', provider: 'local', factor: 'totp', reason: 'wrong_code' },
    }
    expect(auditRows(app).slice(rows)).toEqual([row, row, row, row, row])
    // A right password in between does not lower the count of wrong codes.
    app.ip = '192.0.2.77'
    const second = await half()
    for (let i = 0; i < 5; i++) expect(await outcomeOf(sendCode(second, wrong))).toBe('401 invalid_code')
    const third = await half()
    expect(await outcomeOf(sendCode(third, codeAt(secret, app.clock.now)))).toBe('429 rate_limited')
    // The browser that she used before has its own count.
    await anna.send('POST', '/api/auth/logout')
    await login(anna)
    expect(await outcomeOf(sendCode(anna, codeAt(secret, app.clock.now)))).toBe('200')
  })

  test('however many known browsers a user has, together they have only the guesses of ten', async () => {
    Object.assign(app.ports, { config: { ...app.ports.config, LOGIN_MAX_FAILURES: 3 } })
    const browsers = [anna]
    for (let i = 0; i < 11; i++) {
      const browser = cookieClient(app)
      await login(browser)
      browsers.push(browser)
    }
    const { secret } = await enrol(app, anna)
    app.clock.advance(5 * STEP_MS)
    const right = codeAt(secret, app.clock.now)
    const wrong = String((Number(right) + 1) % 1_000_000).padStart(6, '0')
    const outcomes: string[] = []
    for (const browser of browsers.slice(1)) {
      expect(await login(browser)).toEqual({ secondFactor: ['totp', 'recovery'] })
      for (let i = 0; i < 3; i++) outcomes.push(await outcomeOf(sendCode(browser, wrong)))
    }
    expect(outcomes.filter((outcome) => outcome === '401 invalid_code')).toHaveLength(30)
    expect(outcomes.slice(30)).toEqual(['429 rate_limited', '429 rate_limited', '429 rate_limited'])
    const refused = auditRows(app).filter(({ details }) => details['reason'] === 'rate_limited')
    expect(refused).toMatchObject([{ username: 'anna', details: { factor: 'totp', limit: 'browsers' } }])
    app.clock.advance(15 * 60_000)
    await login(anna)
    expect(await outcomeOf(sendCode(anna, codeAt(secret, app.clock.now)))).toBe('200')
  })

  test('an attempt ends after five minutes, with a new password, with the account, and when the clock goes back', async () => {
    const { secret } = await enrol(app, anna)
    const admin = await app.admin()
    const code = () => codeAt(secret, app.clock.now)
    const late = await half()
    app.clock.advance(5 * 60_000)
    expect(await outcomeOf(sendCode(late, code()))).toBe('401 attempt_ended')
    const early = await half()
    app.clock.advance(-10_000)
    expect(await outcomeOf(sendCode(early, code()))).toBe('401 attempt_ended')
    app.clock.advance(10 * STEP_MS)
    const changed = await half()
    const change = { currentPassword: USER_PASSWORD, newPassword: 'another one for anna' }
    expect((await anna.send('POST', '/api/auth/change-password', change)).status).toBe(204)
    expect(await outcomeOf(sendCode(changed, code()))).toBe('401 attempt_ended')
    const gone = cookieClient(app)
    await login(gone, 'anna', 'another one for anna')
    await admin.send('DELETE', `/api/users/${annaId}`)
    await admin.send('PUT', `/api/users/${annaId}`, { isActive: true })
    expect(await outcomeOf(sendCode(gone, code()))).toBe('401 attempt_ended')
  })

  test('an attempt belongs to one user, and a forged attempt is worth nothing', async () => {
    const { secret } = await enrol(app, anna)
    const other = await app.user('bert')
    const bert = cookieClient(app)
    await login(bert, 'bert')
    const bertSecret = (await enrol(app, bert)).secret
    app.clock.advance(5 * STEP_MS)
    const client = await half()
    expect(await outcomeOf(sendCode(client, codeAt(bertSecret, app.clock.now)))).toBe('401 invalid_code')
    const attempt = client.cookies.get('mesh_attempt') ?? ''
    client.cookies.set('mesh_attempt', `${attempt.startsWith('A') ? 'B' : 'A'}${attempt.slice(1)}`)
    expect(await outcomeOf(sendCode(client, codeAt(secret, app.clock.now)))).toBe('401 attempt_ended')
    expect(await outcomeOf(sendCode(cookieClient(app), codeAt(secret, app.clock.now)))).toBe('401 attempt_ended')
    // A seed that was moved to another row cannot be decrypted there.
    app.store.sqlite
      .prepare('update totp_factors set seed = (select seed from totp_factors where user_id = ?) where user_id = ?')
      .run(other.id, annaId)
    expect(await login(cookieClient(app))).toEqual({ secondFactor: ['recovery'] })
  })

  test('a clock that was ahead locks nobody out after it is corrected', async () => {
    const year = 365 * 86_400_000
    app.clock.advance(year)
    const { secret } = await enrol(app, await signedInAgain())
    app.clock.advance(-year)
    // The first change after such a jump waits for a second one.
    await login(cookieClient(app))
    app.clock.advance(2 * STEP_MS)
    const code = codeAt(secret, app.clock.now)
    expect(await outcomeOf(sendCode(await half(), code))).toBe('200')
    expect(await outcomeOf(sendCode(await half(), code))).toBe('401 invalid_code')
  })

  async function signedInAgain(): Promise<CookieClient> {
    const client = cookieClient(app)
    await login(client)
    return client
  }
})

describe('recovery codes', () => {
  test('each works once, in any spelling; of twenty uses at one instant one succeeds', async () => {
    const { codes } = await enrol(app, anna)
    const [first = '', second = ''] = codes
    const clients = await Promise.all(Array.from({ length: 20 }, () => half()))
    app.ip = '192.0.2.9'
    const answers = await Promise.all(clients.map((client) => outcomeOf(sendRecovery(client, first))))
    expect(answers.filter((outcome) => outcome === '200')).toHaveLength(1)
    expect(Object(await (await anna.send('GET', '/api/auth/factors')).json()).recoveryCodesLeft).toBe(9)
    const used = auditRows(app).filter(({ action, details }) => action === 'login_success' && details['factor'])
    expect(used).toEqual([
      {
        action: 'login_success',
        username: 'anna',
        details: { provider: 'local', factor: 'recovery', newBrowser: true },
      },
    ])
    app.clock.advance(3_600_000)
    expect(await outcomeOf(sendRecovery(await half(), ` ${second.toUpperCase().replaceAll('-', ' ')} `))).toBe('200')
    expect(await outcomeOf(sendRecovery(await half(), second))).toBe('401 invalid_code')
  })

  test('new ones replace the old ones, and they are deleted with the last factor', async () => {
    const { codes } = await enrol(app, anna)
    const renewed = Object(await (await anna.send('POST', '/api/auth/factors/recovery-codes')).json()).recoveryCodes
    expect(await outcomeOf(sendRecovery(await half(), codes[0] ?? ''))).toBe('401 invalid_code')
    expect(await outcomeOf(sendRecovery(await half(), renewed[0]))).toBe('200')
    expect((await anna.send('DELETE', '/api/auth/factors/totp')).status).toBe(204)
    expect(await outcomeOf(anna.send('DELETE', '/api/auth/factors/totp'))).toBe('404 factor_not_found')
    expect(await outcomeOf(anna.send('POST', '/api/auth/factors/recovery-codes'))).toBe('409 no_second_factor')
    expect(app.store.sqlite.prepare('select count(*) as n from recovery_codes').get()).toEqual({ n: 0 })
    expect(await login(cookieClient(app))).toMatchObject({ user: { username: 'anna' } })
  })
})

describe('an administrator', () => {
  test('resets the factors of a user: this is audited, ends the sessions and notifies the user', async () => {
    await enrol(app, anna)
    const admin = await app.admin()
    const rows = auditRows(app).length
    expect((await admin.send('POST', `/api/users/${annaId}/reset-second-factor`)).status).toBe(204)
    expect(auditRows(app).slice(rows)).toEqual([
      {
        action: 'second_factor_reset',
        username: 'admin',
        details: { userId: annaId, username: 'anna', totp: 1, passkeys: 0 },
      },
    ])
    expect(await isSignedIn(anna)).toBe(false)
    expect(await login(anna)).toMatchObject({ user: { username: 'anna' } })
    const notice = async () => Object(await (await anna.send('GET', '/api/auth/status')).json()).secondFactor
    expect(await notice()).toMatchObject({ isSetUp: false, resetAt: app.clock.now })
    expect((await anna.send('DELETE', '/api/auth/factors/reset-notice')).status).toBe(204)
    expect(await notice()).toMatchObject({ resetAt: null })
    expect(await outcomeOf(admin.send('POST', `/api/users/${annaId}/reset-second-factor`))).toBe('409 no_second_factor')
    expect(await outcomeOf(admin.send('POST', '/api/users/1/reset-second-factor'))).toBe('403 self_change_forbidden')
    expect(await outcomeOf(admin.send('POST', '/api/users/999/reset-second-factor'))).toBe('404 user_not_found')
  })
})

test('under another SESSION_SECRET the seed is unusable, recovery codes still work, and the log says so', async () => {
  const { codes, secret } = await enrol(app, anna)
  Object.assign(app.ports, { config: { ...app.ports.config, SESSION_SECRET: ['t'.repeat(40)] } })
  app.clock.advance(5 * STEP_MS)
  const client = cookieClient(app)
  expect(await login(client)).toEqual({ secondFactor: ['recovery'] })
  expect(app.logged.at(-1)).toContain('SESSION_SECRET')
  expect(await outcomeOf(sendCode(client, codeAt(secret, app.clock.now)))).toBe('401 invalid_code')
  expect(await outcomeOf(sendRecovery(client, codes[0] ?? ''))).toBe('200')
  const list = Object(await (await client.send('GET', '/api/auth/factors')).json())
  expect(list.totp.isReadable).toBe(false)
})

test('the prompt for a factor does not reveal who exists: a wrong password gives the same answer for everybody', async () => {
  await enrol(app, anna)
  const answers = await Promise.all(
    ['anna', 'nobody', 'admin'].map(async (username) => {
      const answer = await cookieClient(app).send('POST', '/api/auth/login', { username, password: ADMIN_PASSWORD + 1 })
      return {
        status: answer.status,
        ...Object(await answer.json()),
        requestId: '',
        cookies: answer.headers.getSetCookie(),
      }
    }),
  )
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
})
