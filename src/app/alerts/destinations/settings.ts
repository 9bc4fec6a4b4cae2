import * as z from 'zod'
import type { DestinationKind } from '../../../shared/alerts/destination-kinds.ts'

const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x21-\x7e]+$/, 'letters, digits and signs without spaces')

/** An address that a request can go to; credentials belong into their own fields. */
const address = z
  .string()
  .max(2048)
  .refine((value) => {
    const url = URL.parse(value)
    return (
      url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === ''
    )
  }, 'an http or https URL without user name and fragment')
  .transform((value) => new URL(value).href)

const server = address
  .refine((value) => new URL(value).search === '', 'no query')
  .transform((value) => value.replace(/\/+$/, ''))

const base64Of = (bytes: number) =>
  z
    .string()
    .max(200)
    .refine((value) => bytesOf(value)?.length === bytes, `base64url of ${bytes} bytes`)

function bytesOf(value: string): Uint8Array | null {
  if (!/^[\w+/-]+={0,2}$/.test(value)) return null
  try {
    return Uint8Array.from(atob(value.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
  } catch {
    return null
  }
}

/** By Standard Webhooks: 24 to 64 random bytes. */
export const webhookSecret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/)
  .refine(
    (value) => (bytesOf(value.slice(6))?.length ?? 0) >= 24 && (bytesOf(value.slice(6))?.length ?? 0) <= 64,
    'whsec_ and base64 of 24 to 64 bytes',
  )

/** What each kind of destination is made of, as it is stored. */
export const SETTINGS = {
  web_push: z.strictObject({
    endpoint: address.refine((value) => value.startsWith('https:'), 'an https URL'),
    p256dh: base64Of(65),
    auth: base64Of(16),
  }),
  email: z.strictObject({ address: z.email().max(254) }),
  webhook: z.strictObject({ url: address, secret: webhookSecret.optional() }),
  ntfy: z.strictObject({
    server: server.default('https://ntfy.sh'),
    topic: z.string().regex(/^[-\w]{1,64}$/, '1–64 letters, digits, - and _'),
    token: text(200).optional(),
  }),
  gotify: z.strictObject({ server, token: text(200) }),
  discord: z.strictObject({
    url: address.refine(
      (value) => /^https:\/\/(?:(?:ptb|canary)\.)?discord(?:app)?\.com\/api\/webhooks\/\d+\/[\w-]+$/.test(value),
      'the URL of a webhook of Discord',
    ),
  }),
  slack: z.strictObject({ url: address }),
  telegram: z.strictObject({
    token: z.string().regex(/^\d{1,20}:[\w-]{10,100}$/, 'the token of a bot'),
    chat: z.string().regex(/^(?:-?\d{1,20}|@\w{1,64})$/, 'the id of a chat, or @name'),
    server: server.default('https://api.telegram.org'),
  }),
  matrix: z.strictObject({
    server,
    room: z
      .string()
      .max(255)
      .regex(/^![\x21-\x7e]+$/, 'the id of a room, such as !abc:example.org'),
    token: text(1000),
  }),
  pushover: z.strictObject({
    user: z.string().regex(/^[A-Za-z0-9]{20,40}$/),
    token: z.string().regex(/^[A-Za-z0-9]{20,40}$/),
  }),
  apprise: z.strictObject({ url: address }),
} as const satisfies Record<DestinationKind, z.ZodType>

export type SettingsOf<K extends DestinationKind> = z.output<(typeof SETTINGS)[K]>
