import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createMailApp, type MailApp, SITE } from '../../../support/account-mail.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client } from '../../../support/app.ts'

const BERTS = 'bert@example.org'
const OWN = 'a password of my own'
const DAY = 86_400_000

let made: MailApp
let admin: Client
beforeEach(async () => {
  made = await createMailApp()
  admin = await made.app.admin()
  await made.post()
})
afterEach(() => made.app.close())

async function invite(more: object = {}): Promise<number> {
  const answer = await admin.send('POST', '/api/users', { username: 'bert', email: BERTS, invite: true, ...more })
  expect(answer.status).toBe(201)
  const { user, password, invitation } = Object(await answer.json())
  expect(password).toBeUndefined()
  expect(invitation).toEqual({ url: null, sentTo: BERTS, expiresAt: made.app.clock.now + 7 * DAY })
  await made.post()
  return Number(user.id)
}

const accept = (token: string, password = OWN) =>
  outcomeOf(made.app.client().send('POST', '/api/auth/invitation', { token, password }))
const signIn = (password: string) =>
  outcomeOf(made.app.client().send('POST', '/api/auth/login', { username: 'bert', password }))
const look = (token: string) => made.app.client().send('POST', '/api/auth/links', { token })

describe('an invitation by e-mail', () => {
  test('lets the invited user choose the password, once, and verifies the address', async () => {
    const id = await invite()
    const token = made.token(BERTS)
    expect(made.letters.at(-1)).toMatchObject({ to: BERTS, subject: 'Your account bert' })
    expect(made.letters.at(-1)?.text).toContain(`${SITE}/link#${token}`)
    expect(await signIn('')).toBe('400 invalid_request')
    expect(await signIn(OWN)).toBe('401 invalid_credentials')
    expect(Object(await (await look(token)).json())).toMatchObject({ purpose: 'invitation', username: 'bert' })
    expect(await accept(token, 'short')).toBe('422 weak_password')
    expect(await accept(token)).toBe('204')
    expect(await accept(token, `${OWN} 2`)).toBe('410 link_invalid')
    expect(await signIn(OWN)).toBe('200')
    const { user } = Object(await (await admin.send('GET', `/api/users/${id}`)).json())
    expect(user).toMatchObject({ email: BERTS, emailVerified: true })
    expect(auditRows(made.app).filter(({ action }) => /user_created|invit/.test(action))).toMatchObject([
      { action: 'user_created', username: 'admin' },
      { action: 'user_invited', username: 'admin', details: { userId: id, username: 'bert', sentTo: BERTS } },
      { action: 'invitation_accepted', username: 'bert', details: { userId: id, username: 'bert' } },
    ])
  })

  test('accepted ten times at once sets one password', async () => {
    await invite()
    const token = made.token(BERTS)
    const outcomes = await Promise.all(Array.from({ length: 10 }, (_, n) => accept(token, `${OWN} ${n}`)))
    expect(outcomes.toSorted()).toEqual(['204', ...Array.from({ length: 9 }, () => '410 link_invalid')])
  })

  test('is sent again with another link, and withdrawn', async () => {
    const id = await invite()
    const first = made.token(BERTS)
    expect(await outcomeOf(admin.send('POST', `/api/users/${id}/invitation`, {}))).toBe('200')
    await made.post()
    expect(await accept(first)).toBe('410 link_invalid')
    const shown = Object(await (await admin.send('GET', `/api/users/${id}/invitation`)).json())
    expect(shown).toMatchObject({ byMail: true, invitation: { sentTo: BERTS } })
    expect(await outcomeOf(admin.send('DELETE', `/api/users/${id}/invitation`))).toBe('204')
    expect(await accept(made.token(BERTS))).toBe('410 link_invalid')
    for (let n = 0; n < 3; n++)
      expect(await outcomeOf(admin.send('POST', `/api/users/${id}/invitation`, {}))).toBe('200')
    expect(await outcomeOf(admin.send('POST', `/api/users/${id}/invitation`, {}))).toBe('429 rate_limited')
  })

  const ends: readonly [string, (id: number) => Promise<unknown>][] = [
    ['a week', async () => made.app.clock.advance(7 * DAY)],
    ['a clock that was ahead', async () => made.app.clock.advance(-40 * DAY)],
    ['deactivation', (id) => admin.send('DELETE', `/api/users/${id}`)],
    ['another address', (id) => admin.send('PUT', `/api/users/${id}`, { email: 'other@example.org' })],
    ['a temporary password', (id) => admin.send('POST', `/api/users/${id}/reset-password`)],
  ]
  test.each(ends)('ends with %s', async (_what, end) => {
    const id = await invite()
    await end(id)
    made.app.ip = '192.0.2.77'
    expect(await outcomeOf(look(made.token(BERTS)))).toBe('410 link_invalid')
    expect(await accept(made.token(BERTS))).toBe('410 link_invalid')
  })

  test.each([
    ['demoted', (id: number) => admin.send('PUT', `/api/users/${id}/admin`, { isAdmin: false })],
    ['deactivated', (id: number) => admin.send('DELETE', `/api/users/${id}`)],
  ])('ends when the administrator who sent it is %s, and does not come back with the role', async (_what, end) => {
    const maker = await made.app.user('maker')
    const promote = () => admin.send('PUT', `/api/users/${maker.id}/admin`, { isAdmin: true })
    await promote()
    const invited = { username: 'bert', email: BERTS, invite: true }
    expect((await maker.send('POST', '/api/users', invited)).status).toBe(201)
    await made.post()
    const token = made.token(BERTS)
    expect(await outcomeOf(look(token))).toBe('200')
    await end(maker.id)
    expect(await accept(token)).toBe('410 link_invalid')
    await admin.send('PUT', `/api/users/${maker.id}`, { isActive: true })
    await promote()
    expect([await outcomeOf(look(token)), await accept(token)]).toEqual(['410 link_invalid', '410 link_invalid'])
  })

  test('needs an address, no password beside it, and a user without one', async () => {
    const send = (body: object) =>
      outcomeOf(admin.send('POST', '/api/users', { username: 'carl', invite: true, ...body }))
    expect(await send({})).toBe('409 email_required')
    expect(await send({ email: BERTS, password: OWN })).toBe('400 invalid_request')
    const anna = await made.app.user('anna')
    expect(await outcomeOf(admin.send('POST', `/api/users/${anna.id}/invitation`, {}))).toBe('409 has_signed_in')
  })

  test('is no way around a password reset, and none for a reset link', async () => {
    await invite()
    const token = made.token(BERTS)
    await made.request('bert')
    expect(await made.post()).toEqual([])
    expect(await outcomeOf(made.redeem(token, OWN))).toBe('410 link_invalid')
  })
})
