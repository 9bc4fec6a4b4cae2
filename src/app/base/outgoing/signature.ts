import * as z from 'zod'
import { bytesOf } from '../base64.ts'

/** By Standard Webhooks: 24 to 64 random bytes. */
export const webhookSecret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/)
  .refine(
    (value) => (bytesOf(value.slice(6))?.length ?? 0) >= 24 && (bytesOf(value.slice(6))?.length ?? 0) <= 64,
    'whsec_ and base64 of 24 to 64 bytes',
  )

/** The headers of a webhook; `at` in milliseconds. Without a secret there is no signature. */
export async function signWebhook(
  secret: string | null,
  { id, at, body }: { readonly id: string; readonly at: number; readonly body: string },
): Promise<Readonly<Record<string, string>>> {
  const timestamp = String(Math.floor(at / 1000))
  const signed = secret === null ? {} : { 'webhook-signature': await sign(secret, `${id}.${timestamp}.${body}`) }
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, ...signed }
}

async function sign(secret: string, text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(secret.slice('whsec_'.length)), (c) => c.charCodeAt(0))
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text)))
  return `v1,${btoa(String.fromCharCode(...signature))}`
}
