import { noteChanges } from '../../src/app/accounts/mail/notices.ts'
import { lookUpRequests } from '../../src/app/accounts/mail/password-reset.ts'
import { sendLetters, tidyLetters } from '../../src/app/accounts/mail/sending.ts'
import { type Letter, type Mail, SendFailure } from '../../src/app/base/outgoing/ports.ts'
import { type Client, createTestApp, type TestApp, USER_PASSWORD } from './app.ts'

export const SITE = 'https://mesh.example.org'
export const ANNAS = 'anna@example.org'

/** The app with a mail server that keeps what it gets, and sends when the test says so. */
export type MailApp = {
  readonly app: TestApp
  readonly letters: Letter[]
  /** Whether the mail server refuses everything. */
  isDown: boolean
  /** Looks up, writes and sends what is due. Returns what was sent. */
  post(): Promise<Letter[]>
  /** The token in the last letter to this address. */
  token(email?: string): string
  /** Anna, with a verified address. */
  anna(): Promise<Client & { id: number }>
  request(username: string, headers?: Record<string, string>): Promise<Response>
  redeem(token: string, password: string): Promise<Response>
}

export async function createMailApp(
  options: Pick<NonNullable<Parameters<typeof createTestApp>[0]>, 'env' | 'ports'> = {},
): Promise<MailApp> {
  const letters: Letter[] = []
  const mail: Mail = {
    send: async (letter) => {
      if (made.isDown) throw new SendFailure('the mail server could not be reached')
      letters.push(letter)
    },
  }
  const app = await createTestApp({ env: { PUBLIC_URL: SITE, ...options.env }, ports: { mail, ...options.ports } })
  app.origin = SITE
  const post = async () => {
    const from = letters.length
    await noteChanges(app.ports)
    await lookUpRequests(app.ports)
    while ((await sendLetters(app.ports)) > 0);
    return letters.slice(from)
  }
  const made: MailApp = {
    app,
    letters,
    isDown: false,
    post,
    token: (email = ANNAS) => {
      const text = letters.findLast(({ to }) => to === email)?.text ?? ''
      return /#([\w-]{43})$/m.exec(text)?.[1] ?? ''
    },
    anna: async () => {
      const anna = await app.user('anna')
      await post()
      await verify(made, anna, ANNAS)
      return anna
    },
    request: (username, headers) => app.client().send('POST', '/api/auth/password-reset', { username }, headers),
    redeem: (token, password) => app.client().send('POST', '/api/auth/password-reset/confirm', { token, password }),
  }
  return made
}

/** Gives a signed-in user this address, verified. */
export async function verify(made: MailApp, user: Client, email: string): Promise<void> {
  const changed = await user.send('PUT', '/api/auth/email', { email })
  if (changed.status !== 200) throw new Error(`the address was not changed: ${await changed.text()}`)
  await made.post()
  const confirmed = await made.app.client().send('POST', '/api/auth/email/confirm', { token: made.token(email) })
  if (confirmed.status !== 204) throw new Error(`the address was not verified: ${await confirmed.text()}`)
  await made.post()
}

export { tidyLetters, USER_PASSWORD }
