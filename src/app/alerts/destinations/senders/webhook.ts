import * as z from 'zod'
import { formatNodeId } from '../../../../meshtastic/node-id.ts'
import type { ToldAlert, ToldMessage } from '../../outbox/told-message.ts'
import { address, bytesOf } from './fields.ts'
import { json, type Sending } from './sending.ts'

/** By Standard Webhooks: 24 to 64 random bytes. */
const webhookSecret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/)
  .refine(
    (value) => (bytesOf(value.slice(6))?.length ?? 0) >= 24 && (bytesOf(value.slice(6))?.length ?? 0) <= 64,
    'whsec_ and base64 of 24 to 64 bytes',
  )

export const webhookSettings = z.strictObject({ url: address, secret: webhookSecret.optional() })

/** JSON, signed as standardwebhooks.com asks for: `webhook-id`, `webhook-timestamp`, `webhook-signature`. */
export async function toWebhook(
  { url, secret }: z.output<typeof webhookSettings>,
  message: ToldMessage,
): Promise<Sending> {
  const { uid, told, at, title, text, rule, alerts, total } = message
  const body = JSON.stringify({
    type: `alert.${told}`,
    timestamp: new Date(at).toISOString(),
    data: { title, text, url: message.url, rule, alerts: alerts.map(shown), total },
  })
  const timestamp = String(Math.floor(at / 1000))
  const signed = secret === undefined ? {} : { 'webhook-signature': await sign(secret, `${uid}.${timestamp}.${body}`) }
  return json(url, body, { 'webhook-id': uid, 'webhook-timestamp': timestamp, ...signed })
}

function shown({ nodeNum, ...alert }: ToldAlert) {
  return { ...alert, nodeNum, nodeId: nodeNum === null ? null : formatNodeId(nodeNum) }
}

async function sign(secret: string, text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(secret.slice('whsec_'.length)), (c) => c.charCodeAt(0))
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text)))
  return `v1,${btoa(String.fromCharCode(...signature))}`
}
