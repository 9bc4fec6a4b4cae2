import { namesOf } from '../names.ts'

type Field = {
  /** Fields that are never returned. */
  readonly secret?: true
  readonly optional?: true
  readonly example?: string
}

/** Where alerts can be sent, and the fields of each kind. */
export const DESTINATION_KINDS = {
  web_push: { endpoint: { secret: true }, p256dh: { secret: true }, auth: { secret: true } },
  email: { address: { example: 'you@example.org' } },
  webhook: {
    url: { secret: true, example: 'https://example.org/hook' },
    secret: { secret: true, optional: true, example: 'whsec_…' },
  },
  ntfy: {
    server: { optional: true, example: 'https://ntfy.sh' },
    topic: { secret: true },
    token: { secret: true, optional: true },
  },
  gotify: { server: { example: 'https://gotify.example.org' }, token: { secret: true } },
  discord: { url: { secret: true, example: 'https://discord.com/api/webhooks/…' } },
  slack: { url: { secret: true, example: 'https://hooks.slack.com/services/…' } },
  telegram: {
    token: { secret: true, example: '123456:ABC…' },
    chat: { example: '-100123456' },
    server: { optional: true, example: 'https://api.telegram.org' },
  },
  matrix: {
    server: { example: 'https://matrix.example.org' },
    room: { example: '!abc:example.org' },
    token: { secret: true },
  },
  pushover: { user: { secret: true }, token: { secret: true } },
  apprise: { url: { secret: true, example: 'https://apprise.example.org/notify/key' } },
} as const satisfies Record<string, Record<string, Field>>

export type DestinationKind = keyof typeof DESTINATION_KINDS
export const DESTINATION_KIND_NAMES = namesOf(DESTINATION_KINDS)

/** Stands for a secret that is set. */
export const HIDDEN = '••••'

/** The fields of a kind, in their order. */
export function fieldsOf(kind: DestinationKind): readonly (readonly [name: string, field: Field])[] {
  return Object.entries<Field>(DESTINATION_KINDS[kind])
}

/** The events after which a destination is held until its owner has reviewed it. */
export const HELD_FOR = ['password_reset', 'second_factor_reset', 'user_deactivated', 'restore'] as const
export type HeldFor = (typeof HELD_FOR)[number]

/**
 * The result of a message. `merged`: there were too many within an hour, so it is counted in a summary. `dropped`: its
 * owner may no longer see it.
 */
export const ALERT_DELIVERY_STATES = ['waiting', 'delivered', 'failed', 'merged', 'dropped'] as const

/**
 * Why a message is sent. `quiet`: what the owner's quiet hours held. `destination`: the owner got another destination, or
 * one with another address.
 */
export const NOTIFICATION_KINDS = [
  'fired',
  'resolved',
  'repeated',
  'summary',
  'quiet',
  'test',
  'confirm',
  'destination',
] as const
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number]
