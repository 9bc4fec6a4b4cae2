import { said } from '../../app/words/words.ts'
import type { Transporter } from 'nodemailer'
import { type Mail, SendFailure } from '../../app/base/outgoing/ports.ts'
import type { Config } from '../../app/config/config.ts'

const TOTAL_MS = 20_000

/** E-mail by the server of SMTP_URL; null without one. `totalMs`, in milliseconds, is for tests. */
export function openMail(
  { SMTP_URL, SMTP_FROM }: Pick<Config, 'SMTP_URL' | 'SMTP_FROM'>,
  totalMs = TOTAL_MS,
): Mail | null {
  if (SMTP_URL === null || SMTP_FROM === null) return null
  let transport: Promise<Transporter> | null = null
  // Loaded for the first mail only, because it is a tenth of the program.
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport(SMTP_URL, { from: SMTP_FROM, disableFileAccess: true, disableUrlAccess: true })
  }
  const domain = SMTP_FROM.replace(/^.*@/, '').replaceAll(/[^\w.-]/g, '')
  return {
    async send({ to, subject, text, id }) {
      const letter = {
        to: { name: '', address: to },
        subject,
        text,
        messageId: `<${id}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
      }
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(new SendFailure('the mail server did not answer in time')), totalMs)
      try {
        transport ??= open()
        await Promise.race([transport.then((opened) => opened.sendMail(letter)), late])
      } catch (error) {
        throw error instanceof SendFailure ? error : new SendFailure(wordsFor(error))
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** Only the error's code and status, because the server's text may quote the message or the password. */
function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return said('the mail could not be sent').text
  if ('responseCode' in error && typeof error.responseCode === 'number')
    return `the mail server answered ${error.responseCode}`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === 'EAUTH') return said('the mail server refused the password').text
  return code === 'ETLS'
    ? said('the mail server does not offer encryption with a trusted certificate').text
    : said('the mail server could not be reached').text
}
