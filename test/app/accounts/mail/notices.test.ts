import { afterEach, beforeEach, expect, test } from 'vitest'
import { evaluateRules } from '../../../../src/app/alerts/findings/evaluate.ts'
import { deliverDue } from '../../../../src/app/alerts/outbox/outbox.ts'
import { ANNAS, createMailApp, type MailApp, USER_PASSWORD } from '../../../support/account-mail.ts'
import { auditRows, type Client, moveToProvider } from '../../../support/app.ts'
import { codeAt } from '../../../support/factors/oathtool.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nInjected: yes'.replace(
  '\r\n',
  ' ',
)
const HOUR = 3_600_000

let made: MailApp
let anna: Client & { id: number }
beforeEach(async () => {
  made = await createMailApp()
  anna = await made.anna()
  made.letters.length = 0
})
afterEach(() => made.app.close())

const subjects = async () => (await made.post()).map(({ to, subject }) => `${to}: ${subject}`)
const CHANGED = `${ANNAS}: Your account anna was changed`
const NEW_BROWSER = `${ANNAS}: Sign-in from a new browser: anna`

async function login(headers: Record<string, string> = {}): Promise<string> {
  const body = { username: 'anna', password: USER_PASSWORD }
  const answer = await made.app.client().send('POST', '/api/auth/login', body, headers)
  return (
    answer.headers
      .getSetCookie()
      .find((line) => line.includes('mesh_browser'))
      ?.split(';')[0] ?? ''
  )
}

test('a sign-in in a new browser is recorded as such and notified, one in a known browser is not', async () => {
  made.app.ip = '203.0.113.7'
  const cookie = await login({ 'user-agent': FIREFOX })
  expect(auditRows(made.app).at(-1)?.details).toEqual({
    provider: 'local',
    browser: 'Firefox on Linux',
    newBrowser: true,
  })
  const [letter, ...more] = await made.post()
  expect(more).toEqual([])
  expect(`${letter?.to}: ${letter?.subject}`).toBe(NEW_BROWSER)
  expect(letter?.text).toContain('Address: 203.0.113.7\nBrowser: Firefox on Linux\n')
  expect(letter?.text).not.toContain('Injected')
  await login({ 'user-agent': FIREFOX, cookie })
  expect(auditRows(made.app).at(-1)?.details).toEqual({ provider: 'local', browser: 'Firefox on Linux' })
  expect(await subjects()).toEqual([])
})

test('each change of the ways to sign in is notified, once for each request', async () => {
  const { secret, enrolment } = Object(await (await anna.send('POST', '/api/auth/factors/totp')).json())
  await anna.send('POST', '/api/auth/factors/totp/confirm', { enrolment, code: codeAt(secret, made.app.clock.now) })
  const [added, ...more] = await made.post()
  expect(more).toEqual([])
  expect(added?.text).toContain('- A second factor (authenticator app or passkey) was added.\n- New recovery codes')
  const admin = await made.app.admin()
  await admin.send('POST', `/api/users/${anna.id}/reset-second-factor`)
  expect(await subjects()).toEqual([CHANGED])
  await admin.send('POST', `/api/users/${anna.id}/reset-password`)
  expect(await subjects()).toEqual([CHANGED])
  // Nothing else about the account is told, and nothing that was refused.
  await admin.send('PUT', `/api/users/${anna.id}`, { displayName: 'Anna' })
  await admin.send('PUT', `/api/users/${anna.id}/admin`, { isAdmin: true })
  await made.app.client().send('POST', '/api/auth/login', { username: 'anna', password: 'wrong' })
  expect(await subjects()).toEqual([])
})

test('many sign-ins hide no change: each kind has its own share of letters, and the last one says so', async () => {
  for (let n = 0; n < 15; n++) {
    made.app.ip = `198.51.100.${n}`
    await login()
  }
  const told = await made.post()
  expect(told).toHaveLength(10)
  expect(told.filter(({ text }) => text.includes('no more of them for a day'))).toHaveLength(1)
  await anna.send('POST', '/api/auth/change-password', {
    currentPassword: USER_PASSWORD,
    newPassword: 'a third long password',
  })
  expect(await subjects()).toEqual([CHANGED])
})

test('no notification for what happened while e-mail was off or a day ago, and none to users of a provider', async () => {
  await login()
  made.app.clock.advance(25 * HOUR)
  expect(await subjects()).toEqual([])
  moveToProvider(made.app, [anna.id])
  await (await made.app.admin()).send('DELETE', `/api/users/${anna.id}/tokens`)
  made.app.store.sqlite.exec(
    `insert into audit_log (timestamp, user_id, username, action, resource, details) values
      (${made.app.clock.now}, ${anna.id}, 'anna', 'password_changed', 'auth', '{}')`,
  )
  expect(await subjects()).toEqual([])
})

test('a mail server that is down delays letters and no request', async () => {
  made.isDown = true
  await login()
  expect(await made.post()).toEqual([])
  for (let n = 0; n < 5; n++) {
    made.app.clock.advance(HOUR)
    await made.post()
  }
  made.isDown = false
  made.app.clock.advance(HOUR)
  expect(await subjects()).toEqual([NEW_BROWSER])
})

test('a rule about sign-ins that sends to the same address repeats nothing, and reports the rest', async () => {
  const destination = { kind: 'email', name: 'Mail', settings: { address: ANNAS } }
  const added = Object(await (await anna.send('POST', '/api/alerts/destinations', destination)).json())
  const rule = { kind: 'sign_in', name: 'Account', destinations: [added.destination.id] }
  expect((await anna.send('POST', '/api/alerts/rules', rule)).status).toBe(201)
  made.app.store.sqlite.prepare('update alert_destinations set confirmed_at = 1').run()
  const alerts = async () => {
    const from = made.letters.length
    await evaluateRules({ ...made.app.ports, startedAt: made.app.clock.now }, async () => true)
    while ((await deliverDue(made.app.ports)) > 0);
    return made.letters.slice(from).map(({ text }) => text)
  }
  await alerts()
  await made.post()
  made.app.ip = '203.0.113.7'
  await login()
  expect(await subjects()).toEqual([NEW_BROWSER])
  made.app.clock.advance(60_000)
  expect(await alerts()).toEqual([])
  const dropped = "select count(*) as n from alert_deliveries where notification = 'fired' and state = 'dropped'"
  expect(made.app.store.sqlite.prepare(dropped).get()).toEqual({ n: 1 })
  await anna.send('POST', '/api/tokens', { name: 'one', scopes: ['nodes:read'] })
  expect(await subjects()).toEqual([])
  made.app.clock.advance(60_000)
  expect(await alerts()).toEqual([expect.stringContaining('An API token was created in your name')])
})
