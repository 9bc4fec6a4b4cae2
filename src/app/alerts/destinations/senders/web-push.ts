import { buildPushPayload } from '@block65/webcrypto-web-push'
import * as z from 'zod'
import type { PushKeys } from '../push-keys.ts'
import { bodyText, fit, inCodePoints, type AlertNotification, withoutMentions } from '../../notification.ts'
import { address, base64Of } from './fields.ts'
import type { Sending } from '../../../base/outgoing/request.ts'

export const webPushSettings = z.strictObject({
  endpoint: address.refine((value) => value.startsWith('https:'), 'an https URL'),
  p256dh: base64Of(65),
  auth: base64Of(16),
})

/** How long a push service keeps a message for a device that is off, in seconds. */
const KEPT_S = 86_400

/** Web Push: RFC 8030, encrypted by RFC 8291, signed by RFC 8292. `subject`: the contact for a push service. */
export async function toWebPush(
  { endpoint, p256dh, auth }: z.output<typeof webPushSettings>,
  message: AlertNotification,
  { keys, subject }: { readonly keys: PushKeys; readonly subject: string },
): Promise<Sending> {
  const { uid, notification, title, text, path } = message
  const data = JSON.stringify({
    id: uid,
    notification,
    path,
    title: fit(withoutMentions(title), 120, inCodePoints),
    text: bodyText({ text, url: null }, 600, inCodePoints),
  })
  const { headers, body } = await buildPushPayload(
    { data, options: { ttl: KEPT_S, urgency: notification === 'resolved' ? 'normal' : 'high' } },
    { endpoint, expirationTime: null, keys: { p256dh, auth } },
    { ...keys, subject },
  )
  return {
    url: endpoint,
    method: 'POST',
    headers: Object.fromEntries(new Headers(headers)),
    body: new Uint8Array(body),
  }
}
