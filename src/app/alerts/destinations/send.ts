import { said } from '../../words/words.ts'
import type { DestinationKind } from '../../../shared/alerts/destination-kinds.ts'
import type { Ports } from '../../base/context.ts'
import { type OutboundAnswer, SendFailure } from '../../base/outgoing/ports.ts'
import type { AlertNotification } from '../notification.ts'
import { emailSettings, KINDS } from './kinds.ts'

export type SendNeeds = Pick<Ports, 'store' | 'config' | 'now' | 'outbound' | 'mail'>

const UNMADE = said('the message could not be created')

/** The result of an attempt. */
export type Attempt =
  | { readonly ok: true; readonly result: string }
  | {
      readonly ok: false
      readonly result: string
      readonly retryAfterMs: number | null
      /** The receiver is gone for good. */
      readonly isGone: boolean
    }

type Target = { readonly kind: DestinationKind; readonly settings: string; readonly mayBePrivate: boolean }

/** Sends one message, once. Never throws for a failure of the receiver. */
export async function attempt(needs: SendNeeds, target: Target, message: AlertNotification): Promise<Attempt> {
  try {
    return await sendTo(needs, target, message)
  } catch (error) {
    const result = error instanceof SendFailure ? error.message : UNMADE.text
    return { ok: false, result, retryAfterMs: null, isGone: false }
  }
}

async function sendTo(
  needs: SendNeeds,
  { kind, settings, mayBePrivate }: Target,
  message: AlertNotification,
): Promise<Attempt> {
  const stored: unknown = JSON.parse(settings)
  if (kind === 'email') return sendLetter(needs, emailSettings.parse(stored).address, message)
  if (needs.outbound === null) throw new SendFailure('this runtime cannot send alerts')
  const sending = await KINDS[kind].request(stored, message, needs)
  return judge(kind, await needs.outbound.send({ ...sending, mayBePrivate }))
}

async function sendLetter(
  { mail }: SendNeeds,
  to: string,
  { uid, title, text, url }: AlertNotification,
): Promise<Attempt> {
  if (mail === null) throw new SendFailure('e-mail is not set up on this service')
  await mail.send({ to, subject: title, text: url === null ? text : `${text}\n\n${url}`, id: uid })
  return { ok: true, result: 'accepted by the mail server' }
}

function judge(kind: DestinationKind, { status, retryAfterMs }: OutboundAnswer): Attempt {
  const result = `status ${status}`
  // The answer of the Apprise API if no service is configured for the key.
  if (status === 204 && kind === 'apprise')
    return { ok: false, result: `${result}: no service is set up there`, retryAfterMs, isGone: false }
  if (status >= 200 && status < 300) return { ok: true, result }
  // 404 and 410: RFC 8030, 7.3; 410 of a webhook: standardwebhooks.com.
  const isGone = status === 410 || (status === 404 && kind === 'web_push')
  const isRedirect = status >= 300 && status < 400
  return { ok: false, result: isRedirect ? `${result}: redirects are not followed` : result, retryAfterMs, isGone }
}
