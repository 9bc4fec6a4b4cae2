import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  ANNAS,
  createMailApp,
  type MailApp,
  SITE,
  tidyLetters,
  USER_PASSWORD,
  verify,
} from '../../../support/account-mail.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client, createTestApp, moveToProvider } from '../../../support/app.ts'
import { codeAt } from '../../../support/factors/oathtool.ts'

const NEW = 'another long password'
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

let made: MailApp
let anna: Client & { id: number }
beforeEach(async () => {
  made = await createMailApp()
  anna = await made.anna()
  made.letters.length = 0
})
afterEach(() => made.app.close())

const signIn = (username: string, password: string) =>
  outcomeOf(made.app.client().send('POST', '/api/auth/login', { username, password }))

/** Asks for a link and returns its token. */
async function ask(username = 'anna'): Promise<string> {
  expect(await outcomeOf(made.request(username))).toBe('202')
  await made.post()
  return made.token()
}

const redeem = (token: string, password = NEW) => outcomeOf(made.redeem(token, password))
const rows = () => auditRows(made.app).map(({ action }) => action)

describe('a link to a new password', () => {
  test('goes to the verified address, works once, and ends sessions and tokens', async () => {
    await anna.send('POST', '/api/tokens', { name: 'one', scopes: ['nodes:read'] })
    await made.post()
    made.letters.length = 0
    const token = await ask()
    expect(made.letters.map(({ to, subject }) => [to, subject])).toEqual([[ANNAS, 'Choose a new password for anna']])
    expect(made.letters[0]?.text).toContain(`\n${SITE}/link#${token}\n`)
    expect(await outcomeOf(made.app.client().send('POST', '/api/auth/links', { token }))).toBe('200')
    expect(await redeem(token, 'short')).toBe('422 weak_password')
    expect(await redeem(token)).toBe('204')
    expect(await redeem(token)).toBe('410 link_invalid')
    expect(await outcomeOf(anna.send('GET', '/api/auth/sessions'))).toBe('401 unauthenticated')
    expect(await signIn('anna', USER_PASSWORD)).toBe('401 invalid_credentials')
    expect(await signIn('anna', NEW)).toBe('200')
    expect(auditRows(made.app).find(({ action }) => action === 'password_reset')).toEqual({
      action: 'password_reset',
      username: 'anna',
      details: { userId: anna.id, username: 'anna', by: 'mail', tokensRevoked: 1 },
    })
    const told = await made.post()
    expect(told.map(({ to, subject }) => [to, subject])).toContainEqual([ANNAS, 'Your account anna was changed'])
  })

  test('is stored as a hash only, and is in no log and no audit entry', async () => {
    const token = await ask()
    const dump = JSON.stringify(
      ['mail_links', 'account_letters', 'audit_log', 'reset_requests'].map((table) =>
        made.app.store.sqlite.prepare(`select * from ${table}`).all(),
      ),
    )
    expect(token).toHaveLength(43)
    expect(dump).not.toContain(token)
    expect(made.app.logged.join()).not.toContain(token)
    expect(made.app.logged.join()).not.toContain(ANNAS)
  })

  test('begins with PUBLIC_URL, whatever host the request names', async () => {
    made.app.origin = 'https://evil.example.net'
    await made.request('anna', { host: 'evil.example.net', 'x-forwarded-host': 'evil.example.net' })
    await made.post()
    expect(made.letters[0]?.text).toContain(`${SITE}/link#`)
    expect(made.letters[0]?.text).not.toContain('evil')
  })

  test('expires after an hour, and one from a clock that was ahead is dead', async () => {
    const token = await ask()
    made.app.clock.advance(HOUR)
    expect(await redeem(token)).toBe('410 link_invalid')
    made.app.clock.advance(366 * DAY)
    const ahead = await ask()
    made.app.clock.advance(-365 * DAY)
    made.app.ip = '192.0.2.9'
    expect(await redeem(ahead)).toBe('410 link_invalid')
    await tidyLetters(made.app.ports)
    expect(made.app.store.sqlite.prepare('select count(*) as n from mail_links').get()).toEqual({ n: 0 })
    // What that clock recorded counts against nobody.
    expect(await redeem(await ask())).toBe('204')
  })

  const changes: readonly [string, () => Promise<unknown>][] = [
    [
      'the password',
      () =>
        anna.send('POST', '/api/auth/change-password', {
          currentPassword: USER_PASSWORD,
          newPassword: 'a third long password',
        }),
    ],
    ['the address', () => anna.send('PUT', '/api/auth/email', { email: 'other@example.org' })],
    [
      'the address, by an administrator',
      async () => (await made.app.admin()).send('PUT', `/api/users/${anna.id}`, { email: 'other@example.org' }),
    ],
    [
      'the address, and back again',
      async () => {
        const admin = await made.app.admin()
        await admin.send('PUT', `/api/users/${anna.id}`, { email: 'other@example.org' })
        await admin.send('PUT', `/api/users/${anna.id}`, { email: ANNAS })
      },
    ],
    ['the account: deactivated', async () => (await made.app.admin()).send('DELETE', `/api/users/${anna.id}`)],
    [
      'the account: deactivated and reactivated',
      async () => {
        const admin = await made.app.admin()
        await admin.send('DELETE', `/api/users/${anna.id}`)
        await admin.send('PUT', `/api/users/${anna.id}`, { isActive: true })
      },
    ],
    ['the sessions', async () => (await made.app.admin()).send('DELETE', `/api/users/${anna.id}/sessions`)],
    [
      'the second factors',
      async () => {
        const { secret, enrolment } = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
        await anna.send('POST', '/api/auth/factors/totp/confirm', {
          enrolment,
          code: codeAt(secret, made.app.clock.now),
        })
      },
    ],
  ]
  test.each(changes)('is dead once this has changed: %s', async (_what, change) => {
    const token = await ask()
    expect(await outcomeOf(made.app.client().send('POST', '/api/auth/links', { token }))).toBe('200')
    await change()
    expect(await outcomeOf(made.app.client().send('POST', '/api/auth/links', { token }))).toBe('410 link_invalid')
    expect(await redeem(token)).toBe('410 link_invalid')
    expect(rows()).not.toContain('password_reset')
  })

  test('does not replace the second factor', async () => {
    const { secret, enrolment } = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
    await anna.send('POST', '/api/auth/factors/totp/confirm', { enrolment, code: codeAt(secret, made.app.clock.now) })
    expect(await redeem(await ask())).toBe('204')
    const half = await made.app.client().send('POST', '/api/auth/login', { username: 'anna', password: NEW })
    expect(Object(await half.json())).toEqual({ secondFactor: ['totp', 'recovery'] })
  })

  test('redeemed ten times at once, it sets one password', async () => {
    const token = await ask()
    const outcomes = await Promise.all(Array.from({ length: 10 }, (_, n) => redeem(token, `${NEW} ${n}`)))
    expect(outcomes.toSorted()).toEqual(['204', ...Array.from({ length: 9 }, () => '410 link_invalid')])
    expect(rows().filter((action) => action === 'password_reset')).toHaveLength(1)
  })

  test('of two open ones, the second is dead after the first was used', async () => {
    const first = await ask()
    const second = await ask()
    expect(second).not.toBe(first)
    expect(await redeem(first)).toBe('204')
    expect(await redeem(second)).toBe('410 link_invalid')
  })

  test('is not the link for another purpose', async () => {
    const other = await made.app.user('bert')
    await other.send('PUT', '/api/auth/email', { email: 'bert@example.org' })
    await made.post()
    expect(await redeem(made.token('bert@example.org'))).toBe('410 link_invalid')
    const token = await ask()
    expect(await outcomeOf(made.app.client().send('POST', '/api/auth/email/confirm', { token }))).toBe(
      '410 link_invalid',
    )
  })
})

describe('a request', () => {
  test('is answered alike, and writes the same, whoever exists', async () => {
    const bert = await made.app.user('bert')
    await bert.send('PUT', '/api/auth/email', { email: 'bert@example.org' })
    const oidc = await made.app.user('olga')
    moveToProvider(made.app, [oidc.id])
    await made.post()
    made.letters.length = 0
    const before = rows().length
    const seen = new Set<string>()
    for (const name of [
      'anna',
      ANNAS,
      'ANNA',
      'nobody',
      'bert',
      'bert@example.org',
      'olga',
      'admin',
      '%',
      "' or 1=1",
    ]) {
      made.app.ip = `192.0.2.${seen.size + 2}`
      const answer = await made.request(name)
      const headers = [...answer.headers].filter(([header]) => header !== 'x-request-id')
      seen.add(JSON.stringify([answer.status, await answer.text(), headers]))
      expect(made.app.store.sqlite.prepare('select count(*) as n from reset_requests').get()).toEqual({ n: 1 })
      // Nothing is looked up before the answer.
      expect(rows()).toHaveLength(before)
      expect(made.letters).toHaveLength(0)
      made.app.store.sqlite.exec('delete from reset_requests')
    }
    expect([...seen]).toHaveLength(1)
  })

  test('causes no letter to an address that is not verified, and none to users without a password here', async () => {
    const bert = await made.app.user('bert')
    await bert.send('PUT', '/api/auth/email', { email: 'bert@example.org' })
    await made.post()
    made.letters.length = 0
    for (const name of ['bert', 'bert@example.org', 'admin', 'nobody']) await made.request(name)
    moveToProvider(made.app, [anna.id])
    await made.request('anna')
    expect(await made.post()).toEqual([])
    expect(made.app.store.sqlite.prepare('select * from reset_requests').all()).toEqual([])
    expect(rows()).not.toContain('password_reset_requested')
  })

  test('finds an address regardless of case, but no look-alike, and writes to the stored one', async () => {
    await made.request('ANNA@Example.ORG')
    for (const name of [
      '\u0430nna@example.org',
      'anna@exampl\u0435.org',
      'ａnna@example.org',
      ' anna@example.org',
      'anna@example.org\u0000',
    ])
      await made.request(name)
    expect((await made.post()).map(({ to }) => to)).toEqual([ANNAS])
  })

  test('by an address of several users writes about each, and a username that looks like it steals nothing', async () => {
    await verify(made, await made.app.user('carl'), ANNAS)
    await verify(made, await made.app.user(ANNAS), 'eve@example.org')
    made.letters.length = 0
    await made.request(ANNAS)
    const sent = await made.post()
    expect(sent.map(({ to, subject }) => `${to}: ${subject}`).toSorted()).toEqual([
      `${ANNAS}: Choose a new password for anna`,
      `${ANNAS}: Choose a new password for carl`,
      `eve@example.org: Choose a new password for ${ANNAS}`,
    ])
  })

  test('from unknown browsers causes three letters in an hour and ten in a day; a known browser still gets one', async () => {
    const login = await made.app.client().send('POST', '/api/auth/login', { username: 'anna', password: USER_PASSWORD })
    const cookie =
      login.headers
        .getSetCookie()
        .find((line) => line.includes('mesh_browser'))
        ?.split(';')[0] ?? ''
    await made.post()
    made.letters.length = 0
    const flood = async () => {
      for (let n = 0; n < 8; n++) {
        made.app.ip = `198.51.100.${n}`
        await made.request('anna')
      }
      return (await made.post()).filter(({ subject }) => subject.startsWith('Choose')).length
    }
    expect(await flood()).toBe(3)
    await made.request('anna', { cookie })
    expect(await made.post()).toHaveLength(1)
    let day = 4
    for (let hour = 0; hour < 12; hour++) {
      made.app.clock.advance(HOUR + MINUTE)
      day += await flood()
    }
    expect(day).toBe(10)
    made.app.clock.advance(DAY)
    expect(await flood()).toBe(3)
  })

  test('is limited for each address, also for names that nobody has, and keeps at most a thousand', async () => {
    const outcomes = []
    for (let n = 0; n < 12; n++) outcomes.push(await outcomeOf(made.request(`nobody${n}`)))
    expect(outcomes.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => '202'))
    expect(outcomes.slice(10)).toEqual(['429 rate_limited', '429 rate_limited'])
    const insert = made.app.store.sqlite.prepare(
      "insert into reset_requests (name, known_to, request_id, created_at) values ('x', '[]', 'r', 1)",
    )
    for (let n = 0; n < 990; n++) insert.run()
    made.app.ip = '203.0.113.9'
    expect(await outcomeOf(made.request('anna'))).toBe('202')
    expect(made.app.store.sqlite.prepare('select count(*) as n from reset_requests').get()).toEqual({ n: 1000 })
  })
})

describe('letters', () => {
  test('are sent again while the mail server is down, with the same link', async () => {
    made.isDown = true
    await made.request('anna')
    expect(await made.post()).toEqual([])
    made.isDown = false
    expect(await made.post()).toEqual([])
    made.app.clock.advance(10_000)
    expect(await made.post()).toHaveLength(1)
    expect(await redeem(made.token())).toBe('204')
  })

  test('of a link that has expired meanwhile are not sent', async () => {
    made.isDown = true
    await made.request('anna')
    await made.post()
    made.app.clock.advance(HOUR)
    made.isDown = false
    expect(await made.post()).toEqual([])
    expect(
      made.app.store.sqlite.prepare("select sealed, result from account_letters where kind = 'reset'").all(),
    ).toEqual([{ sealed: null, result: 'not sent in time' }])
  })
})

test.each([
  ['SMTP_URL', { PUBLIC_URL: SITE }, '404 account_mail_disabled'],
  ['PUBLIC_URL', {}, '404 account_mail_disabled'],
  [
    'local sign-in',
    { PUBLIC_URL: SITE, DISABLE_LOCAL_AUTH: 'true', PROXY_AUTH_HEADER: 'Remote-User', TRUSTED_PROXIES: '127.0.0.1' },
    '403 local_auth_disabled',
  ],
])('without %s it is off, and the status says so', async (missing, env, outcome) => {
  const mail = missing === 'SMTP_URL' ? null : { send: async () => {} }
  const app = await createTestApp({ env, ports: { mail } })
  const status = await app.client().send('GET', '/api/auth/status')
  expect(Object(await status.json()).accountMail).toBe(false)
  expect(await outcomeOf(app.client().send('POST', '/api/auth/password-reset', { username: 'admin' }))).toBe(outcome)
  expect(app.store.sqlite.prepare('select count(*) as n from reset_requests').get()).toEqual({ n: 0 })
  app.close()
})
