import * as z from 'zod'
import { HIDDEN } from '../../shared/alerts/destination-kinds.ts'
import {
  MAX_ADDRESS,
  MAX_BROKER_PASSWORD,
  MAX_CONNECTION_KEYS,
  MAX_DEVICE_PATH,
  MAX_HOST,
  MAX_PEM,
  MAX_TOPIC,
  MAX_TOPICS,
} from '../../shared/limits.ts'
import { parseChannelKey, parsePrivateKey } from '../../meshtastic/config/configured-keys.ts'
import { parseHostPort } from '../config/host-port.ts'
import { TOPIC_FILTER } from '../config/topic-filter.ts'
import { AppError } from '../http/errors.ts'

// The address and the secrets of a connection, by its kind.

const host = z
  .string()
  .max(MAX_HOST)
  .refine((text) => !text.includes(':') && parseHostPort(text) !== null, 'a host name or an IPv4 address')
  .or(z.ipv6())
const port = z.int().min(1).max(65535).default(4403)
const pin = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .nullable()
  .default(null)
  .describe('SHA-256 of the certificate, hexadecimal: no other one is accepted. null: none is pinned yet')
const channelKeys = z
  .array(z.string().max(MAX_HOST))
  .max(MAX_CONNECTION_KEYS)
  .default([])
  .describe('`name=base64` of each channel; the default key is always tried')

const url = (protocol: RegExp, meaning: string) =>
  z
    .url({ protocol })
    .max(MAX_ADDRESS)
    .refine((text) => {
      const { username, password, hash } = new URL(text)
      return username === '' && password === '' && hash === ''
    }, 'without user name, password and fragment')
    .describe(meaning)

/** The shape of the settings of each kind. */
const SHAPES = {
  tcp: z.strictObject({ host, port }),
  serial: z.strictObject({
    device: z
      .string()
      .max(MAX_DEVICE_PATH)
      .regex(/^\/dev\/(?:(?!\.\.?\/)[\w.:+@,-]+\/)*(?!\.\.?$)[\w.:+@,-]+$/, 'a device such as /dev/serial/by-id/usb-…')
      .describe('A path below /dev; those of /dev/serial/by-id stay the same'),
  }),
  http: z.strictObject({ url: url(/^https?$/, 'The address of the radio'), fingerprint: pin }),
  mqtt: z.strictObject({
    url: url(/^(?:mqtts?|wss?)$/, 'The address of the broker'),
    username: z.string().max(MAX_HOST).nullable().default(null),
    password: z.string().max(MAX_BROKER_PASSWORD).nullable().default(null),
    topics: z.array(z.string().max(MAX_TOPIC).regex(TOPIC_FILTER)).min(1).max(MAX_TOPICS).default(['msh/#']),
    keys: channelKeys,
    privateKeys: z
      .array(z.string().max(MAX_HOST))
      .max(MAX_CONNECTION_KEYS)
      .default([])
      .describe('`!nodeid=base64` of own radios, to read direct messages to them'),
    ca: z
      .string()
      .max(MAX_PEM)
      .includes('-----BEGIN CERTIFICATE-----')
      .nullable()
      .default(null)
      .describe('Certificates in PEM form that are trusted in addition'),
    fingerprint: pin,
  }),
  udp: z.strictObject({
    port,
    interface: z.ipv4().nullable().default(null).describe('An own address, if the machine has several networks'),
    keys: channelKeys,
  }),
} as const

export type StoredKind = keyof typeof SHAPES
export const STORED_KINDS = ['tcp', 'serial', 'http', 'mqtt', 'udp'] as const satisfies readonly StoredKind[]

type SettingsOf<Kind extends StoredKind> = z.output<(typeof SHAPES)[Kind]>
/** The kind of a connection and its settings, secrets included. */
export type Target = { [Kind in StoredKind]: { readonly kind: Kind; readonly settings: SettingsOf<Kind> } }[StoredKind]

export const settingsSchema = z
  .record(z.string().max(40), z.unknown())
  .describe(`By field of the kind. Secrets are returned as ${HIDDEN}`)

type Settings = Readonly<Record<string, unknown>>

/**
 * Checks settings as they were entered. `stored`: those before, whose secrets stay where ${HIDDEN} stands or nothing
 * was given. A password is sent only to the server for which it was entered. Throws `invalid_request`.
 */
export function readTarget(kind: StoredKind, given: Settings, stored: Settings | null): Target {
  const merged = stored === null ? given : withStored(given, stored)
  const read = SHAPES[kind].safeParse(merged)
  if (!read.success) {
    const issues = read.error.issues.map(({ path, message }) => ({ path: ['settings', ...path].join('.'), message }))
    throw refused(issues)
  }
  const settings: Settings = read.data
  const issues = [
    ...listOf(settings['keys']).flatMap((text, at) => (parseChannelKey(text) === null ? [badKey('keys', at)] : [])),
    ...listOf(settings['privateKeys']).flatMap((text, at) =>
      parsePrivateKey(text) === null ? [badKey('privateKeys', at)] : [],
    ),
  ]
  if (issues.length > 0) throw refused(issues)
  // The shape was checked with the schema of this kind.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { kind, settings } as Target
}

function badKey(field: string, at: number) {
  return { path: `settings.${field}.${at}`, message: 'expected name=base64 of a key' }
}

function refused(issues: readonly { readonly path: string; readonly message: string }[]): AppError {
  const [first] = issues
  return new AppError('invalid_request', first === undefined ? undefined : `${first.path}: ${first.message}`, {
    issues,
  })
}

function withStored(given: Settings, stored: Settings): Settings {
  const asked = { ...stored, ...given }
  const isHidden = (name: string) => given[name] === undefined || given[name] === HIDDEN
  if (stored['password'] != null && isHidden('password') && serverOf(asked) !== serverOf(stored)) {
    throw refused([{ path: 'settings.password', message: 'must be entered again for another server' }])
  }
  const opened = (field: string) => openHidden(field, listOf(asked[field]), listOf(stored[field]))
  return {
    ...asked,
    ...(isHidden('password') && 'password' in stored ? { password: stored['password'] } : {}),
    ...('keys' in asked ? { keys: opened('keys') } : {}),
    ...('privateKeys' in asked ? { privateKeys: opened('privateKeys') } : {}),
    // A certificate belongs to its server.
    ...(serverOf(asked) !== serverOf(stored) &&
    (given['fingerprint'] === undefined || given['fingerprint'] === stored['fingerprint']) &&
    'fingerprint' in asked
      ? { fingerprint: null }
      : {}),
  }
}

/**
 * Puts the stored key where a hidden one stands. Several may have one name: then they are all there, in their order, or
 * nobody knows which is meant. Throws `invalid_request`.
 */
function openHidden(field: string, given: readonly string[], stored: readonly string[]): string[] {
  const byForm = Map.groupBy(stored, hidden)
  const taken = new Map<string, number>()
  const opened = given.map((text) => {
    if (!text.endsWith(`=${HIDDEN}`)) return text
    const at = taken.get(text) ?? 0
    taken.set(text, at + 1)
    return byForm.get(text)?.[at] ?? text
  })
  const isUnclear = (text: string) => {
    const known = byForm.get(text)?.length ?? 0
    return text.endsWith(`=${HIDDEN}`) && known > 1 && taken.get(text) !== known
  }
  const at = given.findIndex(isUnclear)
  if (at >= 0) {
    throw refused([{ path: `settings.${field}.${at}`, message: 'must be entered again: several keys have this name' }])
  }
  return opened
}

function serverOf({ url: text }: Settings): string | null {
  if (typeof text !== 'string' || !URL.canParse(text)) return null
  const { protocol, host: at } = new URL(text)
  // The same server without TLS would let everybody on the way read the password.
  return `${protocol}//${at}`
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

const hidden = (key: string) => `${key.slice(0, key.indexOf('='))}=${HIDDEN}`

/** The settings as they are shown: without secrets. */
export function shownSettings({ settings }: Target): Settings {
  const all: Settings = settings
  return {
    ...all,
    ...(all['password'] == null ? {} : { password: HIDDEN }),
    ...('keys' in all ? { keys: listOf(all['keys']).map(hidden) } : {}),
    ...('privateKeys' in all ? { privateKeys: listOf(all['privateKeys']).map(hidden) } : {}),
  }
}
