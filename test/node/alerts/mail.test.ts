import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterEach, expect, test } from 'vitest'
import { openMail } from '../../../src/node/alerts/mail.ts'
import { portOf } from '../../support/servers/port-of.ts'

const servers: SMTPServer[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close(() => {})
})

type Letter = {
  readonly from: string
  readonly to: string[]
  readonly text: string
  readonly user: string | undefined
  readonly isSecure: boolean
}

async function serve(options: SMTPServerOptions = {}): Promise<{ port: number; letters: Letter[] }> {
  const letters: Letter[] = []
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onData(stream, session, done) {
      let text = ''
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        letters.push({
          from,
          to: rcptTo.map(({ address }) => address),
          text,
          user: session.user,
          isSecure: session.secure,
        })
        done()
      })
    },
    ...options,
  })
  servers.push(server)
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: portOf(server.server), letters }
}

const LETTER = { to: 'you@example.org', subject: 'Ridge is silent', text: 'Ridge was not heard for 2 h', id: 'msg_1' }
const mailOf = (SMTP_URL: string, totalMs?: number) => {
  const mail = openMail({ SMTP_URL, SMTP_FROM: 'mesh@example.org' }, totalMs)
  if (mail === null) throw new Error('no mail')
  return mail
}

test('mail is sent by STARTTLS, with a password, and with the configured sender', async () => {
  const { port, letters } = await serve({
    authOptional: false,
    onAuth: ({ username, password }, _session, done) =>
      username === 'mesh' && password === 'word' ? done(null, { user: username }) : done(new Error('no')),
  })
  // The server's certificate belongs to the test: only this option makes it trusted.
  await mailOf(`smtp://mesh:word@127.0.0.1:${port}/?requireTLS=true&tls.rejectUnauthorized=false`).send(LETTER)
  expect(letters).toMatchObject([{ from: 'mesh@example.org', to: ['you@example.org'], user: 'mesh', isSecure: true }])
  expect(letters[0]?.text).toContain('Message-ID: <msg_1@example.org>')
  expect(letters[0]?.text).toContain('Auto-Submitted: auto-generated')
})

test('a server with an untrusted certificate gets no mail and no password', async () => {
  const { port, letters } = await serve()
  await expect(mailOf(`smtp://mesh:word@127.0.0.1:${port}/?requireTLS=true`).send(LETTER)).rejects.toThrow(
    /mail server/,
  )
  expect(letters).toHaveLength(0)
})

test('a wrong password, a refusal and a greylist report their status and nothing else', async () => {
  const locked = await serve({ onAuth: (_auth, _session, done) => done(new Error('secret words')) })
  const wrong = mailOf(`smtp://mesh:wrong@127.0.0.1:${locked.port}/?tls.rejectUnauthorized=false`)
  await expect(wrong.send(LETTER)).rejects.toThrow(/^the mail server answered 535$/)
  for (const responseCode of [451, 550]) {
    const { port } = await serve({
      onRcptTo: (_address, _session, done) =>
        done(Object.assign(new Error('come later, you@example.org'), { responseCode })),
    })
    const refused = mailOf(`smtp://127.0.0.1:${port}/?tls.rejectUnauthorized=false`).send(LETTER)
    await expect(refused).rejects.toThrow(new RegExp(`^the mail server answered ${responseCode}$`))
  }
})

test('a server that hangs is abandoned', async () => {
  const { port } = await serve({ onConnect: () => {} })
  await expect(mailOf(`smtp://127.0.0.1:${port}/`, 200).send(LETTER)).rejects.toThrow('in time')
})

test('names with line breaks add no header', async () => {
  const { port, letters } = await serve()
  const subject = 'Ridge\r\nBcc: everybody@example.org'
  await mailOf(`smtp://127.0.0.1:${port}/?tls.rejectUnauthorized=false`).send({ ...LETTER, subject })
  expect(letters[0]?.to).toStrictEqual(['you@example.org'])
  expect(letters[0]?.text).not.toMatch(/^Bcc:/m)
})

test('without SMTP_URL there is no e-mail', () => {
  expect(openMail({ SMTP_URL: null, SMTP_FROM: null })).toBeNull()
})
