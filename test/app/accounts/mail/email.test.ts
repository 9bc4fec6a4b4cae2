import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ANNAS, createMailApp, type MailApp, USER_PASSWORD, verify } from '../../../support/account-mail.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { auditRows, type Client, moveToProvider } from '../../../support/app.ts'

const HOUR = 3_600_000
const OTHER = 'other@example.org'

let made: MailApp
let anna: Client & { id: number }
beforeEach(async () => {
  made = await createMailApp()
  anna = await made.app.user('anna')
  await made.post()
  made.letters.length = 0
})
afterEach(() => made.app.close())

const confirm = (token: string) => outcomeOf(made.app.client().send('POST', '/api/auth/email/confirm', { token }))
const subjects = async () => (await made.post()).map(({ to, subject }) => `${to}: ${subject}`)

async function status(client: Client = anna): Promise<{ email: string | null; emailVerified: boolean }> {
  const { user } = Object(await (await client.send('GET', '/api/auth/status')).json())
  return { email: user.email, emailVerified: user.emailVerified }
}

describe('an own address', () => {
  test('is verified by the link that was sent to it, once', async () => {
    const changed = await anna.send('PUT', '/api/auth/email', { email: ANNAS })
    expect(Object(await changed.json()).user).toMatchObject({ email: ANNAS, emailVerified: false })
    expect(await subjects()).toEqual([`${ANNAS}: Confirm this address for anna`])
    const token = made.token()
    expect(await status()).toEqual({ email: ANNAS, emailVerified: false })
    expect(await confirm(token)).toBe('204')
    expect(await status()).toEqual({ email: ANNAS, emailVerified: true })
    expect(await confirm(token)).toBe('410 link_invalid')
    expect(auditRows(made.app).slice(-2)).toEqual([
      {
        action: 'user_updated',
        username: 'anna',
        details: { userId: anna.id, username: 'anna', before: { email: null }, after: { email: ANNAS } },
      },
      { action: 'email_verified', username: 'anna', details: { userId: anna.id, username: 'anna', email: ANNAS } },
    ])
  })

  test('needs a new proof for another address, and the previous one is notified', async () => {
    await verify(made, anna, ANNAS)
    await anna.send('PUT', '/api/auth/email', { email: OTHER })
    expect(await status()).toEqual({ email: OTHER, emailVerified: false })
    expect((await subjects()).toSorted()).toEqual([
      `${ANNAS}: Your account anna was changed`,
      `${OTHER}: Confirm this address for anna`,
    ])
    // An intruder who changes the address first does not hide what follows.
    await anna.send('POST', '/api/auth/change-password', {
      currentPassword: USER_PASSWORD,
      newPassword: 'a third long password',
    })
    expect(await subjects()).toEqual([`${ANNAS}: Your account anna was changed`])
    made.app.clock.advance(25 * HOUR)
    await made.app.signIn('anna', 'a third long password')
    expect(await subjects()).toEqual([])
  })

  test('changed and changed back is not verified', async () => {
    await verify(made, anna, ANNAS)
    for (const email of [OTHER, ANNAS]) await anna.send('PUT', '/api/auth/email', { email })
    expect(await status()).toEqual({ email: ANNAS, emailVerified: false })
  })

  test('has one link that works: the latest, within a day, while it is the address', async () => {
    await anna.send('PUT', '/api/auth/email', { email: ANNAS })
    await made.post()
    const first = made.token()
    expect(await outcomeOf(anna.send('POST', '/api/auth/email/link'))).toBe('204')
    await made.post()
    expect(await confirm(first)).toBe('410 link_invalid')
    const second = made.token()
    made.app.clock.advance(24 * HOUR)
    expect(await confirm(second)).toBe('410 link_invalid')
    anna = Object.assign(await made.app.signIn('anna'), { id: anna.id })
    await anna.send('POST', '/api/auth/email/link')
    await made.post()
    const third = made.token()
    await anna.send('PUT', '/api/auth/email', { email: OTHER })
    expect(await confirm(third)).toBe('410 link_invalid')
    expect(await status()).toMatchObject({ emailVerified: false })
  })

  test('that an administrator changes is not verified, and both addresses learn it', async () => {
    await verify(made, anna, ANNAS)
    const admin = await made.app.admin()
    const changed = await admin.send('PUT', `/api/users/${anna.id}`, { email: OTHER })
    expect(Object(await changed.json()).user).toMatchObject({ email: OTHER, emailVerified: false })
    expect((await subjects()).toSorted()).toEqual([
      `${ANNAS}: Your account anna was changed`,
      `${OTHER}: Confirm this address for anna`,
    ])
    // What GET answered can be sent back, but the flag is not set by it.
    const { user } = Object(await (await admin.send('GET', `/api/users/${anna.id}`)).json())
    expect(await outcomeOf(admin.send('PUT', `/api/users/${anna.id}`, { user }))).toBe('200')
    expect(await outcomeOf(admin.send('PUT', `/api/users/${anna.id}`, { emailVerified: true }))).toBe(
      '400 invalid_request',
    )
    expect(await subjects()).toEqual([])
  })

  test('of a user of a provider belongs to the provider', async () => {
    moveToProvider(made.app, [anna.id])
    made.app.store.sqlite.prepare('update sessions set oidc_issuer = ?').run('https://id.example.org')
    expect(await outcomeOf(anna.send('PUT', '/api/auth/email', { email: ANNAS }))).toBe('409 not_a_local_user')
    expect(await outcomeOf(anna.send('POST', '/api/auth/email/link'))).toBe('409 not_a_local_user')
  })

  test('gets at most five letters a day, however many users enter it', async () => {
    const victim = 'victim@example.org'
    const others = [anna, await made.app.user('bert'), await made.app.user('carl')]
    for (const one of others) {
      for (let n = 0; n < 4; n++) {
        await one.send('PUT', '/api/auth/email', { email: victim.toUpperCase().replace('EXAMPLE.ORG', 'example.org') })
        await one.send('PUT', '/api/auth/email', { email: null })
        await one.send('PUT', '/api/auth/email', { email: victim })
      }
    }
    const sent = (await made.post()).filter(({ subject }) => subject.startsWith('Confirm'))
    expect(sent.map(({ to }) => to.toLowerCase())).toEqual(Array.from({ length: 5 }, () => victim))
    expect(await outcomeOf(anna.send('POST', '/api/auth/email/link'))).toBe('429 rate_limited')
  })

  test('cannot carry headers into the letter', async () => {
    for (const email of [
      'a@example.org\r\nBcc: b@example.org',
      'a@example.org, b@example.org',
      '"a b"@example.org',
      'ä@example.org',
    ])
      expect(await outcomeOf(anna.send('PUT', '/api/auth/email', { email }))).toBe('400 invalid_request')
  })
})
