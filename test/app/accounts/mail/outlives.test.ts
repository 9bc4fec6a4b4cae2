import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANNAS, createMailApp, type MailApp, USER_PASSWORD } from '../../../support/account-mail.ts'
import { outcomeOf } from '../../../support/answers.ts'
import type { Client } from '../../../support/app.ts'

const KARLS = 'karl@example.org'
const CHANGE = { currentPassword: USER_PASSWORD, newPassword: 'another password for one of them' }

let made: MailApp
let admin: Client
beforeEach(async () => {
  made = await createMailApp()
  admin = await made.app.admin()
})
afterEach(() => made.app.close())

type User = Client & { id: number }
type Given = { verified: boolean; resetLink: boolean; verifyLink: boolean }

const look = async (token: string) =>
  (await outcomeOf(made.app.client().send('POST', '/api/auth/links', { token }))) === '200'

/** The lines about e-mail in the table of docs/accounts.md: what is left of an address and two links. */
const EVENTS: Readonly<Record<string, { run: (user: User) => Promise<unknown>; left: Given }>> = {
  'sign-out': {
    run: (user) => user.send('POST', '/api/auth/logout'),
    left: { verified: true, resetLink: true, verifyLink: true },
  },
  'a new password of one’s own': {
    run: (user) => user.send('POST', '/api/auth/change-password', CHANGE),
    left: { verified: true, resetLink: false, verifyLink: true },
  },
  'a reset by an administrator': {
    run: ({ id }) => admin.send('POST', `/api/users/${id}/reset-password`),
    left: { verified: false, resetLink: false, verifyLink: false },
  },
  'a reset of second factors': {
    run: ({ id }) => {
      made.app.store.sqlite
        .prepare("insert into totp_factors (user_id, seed, last_step, created_at) values (?, 'sealed', 1, 1)")
        .run(id)
      return admin.send('POST', `/api/users/${id}/reset-second-factor`)
    },
    left: { verified: false, resetLink: false, verifyLink: false },
  },
  'a demotion': {
    run: async ({ id }) => {
      await admin.send('PUT', `/api/users/${id}/admin`, { isAdmin: true })
      return admin.send('PUT', `/api/users/${id}/admin`, { isAdmin: false })
    },
    left: { verified: true, resetLink: true, verifyLink: true },
  },
  'a deactivation, even after a reactivation': {
    run: async ({ id }) => {
      await admin.send('DELETE', `/api/users/${id}`)
      return admin.send('PUT', `/api/users/${id}`, { isActive: true })
    },
    left: { verified: false, resetLink: false, verifyLink: false },
  },
  'another address': {
    run: ({ id }) => admin.send('PUT', `/api/users/${id}`, { email: 'else@example.org' }),
    left: { verified: false, resetLink: false, verifyLink: false },
  },
}

test.each(Object.entries(EVENTS))('after %s', async (_, { run, left }) => {
  // One has a verified address and a link to a new password; the other has an address and the link that verifies it.
  const anna = await made.anna()
  await made.request('anna')
  await made.post()
  const resetLink = made.token()
  const karl = await made.app.user('karl')
  await karl.send('PUT', '/api/auth/email', { email: KARLS })
  await made.post()
  const verifyLink = made.token(KARLS)
  expect([await look(resetLink), await look(verifyLink)]).toStrictEqual([true, true])
  for (const user of [anna, karl]) await run(user)
  const { user } = Object(await (await admin.send('GET', `/api/users/${anna.id}`)).json())
  expect({
    verified: user.emailVerified,
    resetLink: await look(resetLink),
    verifyLink: await look(verifyLink),
  }).toStrictEqual(left)
})

test('a reset by e-mail leaves the address verified that it went to, and its link works once', async () => {
  const anna = await made.anna()
  await made.request('anna')
  await made.post()
  const link = made.token()
  expect(await outcomeOf(made.redeem(link, 'another password for one of them'))).toBe('204')
  const { user } = Object(await (await admin.send('GET', `/api/users/${anna.id}`)).json())
  expect([user.emailVerified, await look(link)]).toStrictEqual([true, false])
})

test.each(['a verified address', 'a link that verifies one'])(
  '%s of an intruder gets no new password after an administrator took the account back',
  async (what) => {
    const anna = await made.anna()
    // Somebody in Anna’s session enters another address.
    await anna.send('PUT', '/api/auth/email', { email: KARLS })
    await made.post()
    const link = made.token(KARLS)
    const confirm = () => outcomeOf(made.app.client().send('POST', '/api/auth/email/confirm', { token: link }))
    if (what === 'a verified address') expect(await confirm()).toBe('204')
    expect((await admin.send('POST', `/api/users/${anna.id}/reset-password`)).status).toBe(200)
    expect(await confirm()).toBe('410 link_invalid')
    await made.post()
    made.letters.length = 0
    for (const name of ['anna', KARLS, ANNAS]) await made.request(name)
    await made.post()
    expect(made.letters.filter(({ subject }) => subject.includes('new password'))).toStrictEqual([])
  },
)
