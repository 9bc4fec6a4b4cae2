import * as z from 'zod'
import { HIDDEN } from '../../../shared/alerts/destination-kinds.ts'
import { PLACE_KINDS, type PlaceKind } from '../../../shared/copies.ts'
import {
  MAX_ADDRESS,
  MAX_BROKER_PASSWORD,
  MAX_BUCKET,
  MAX_HOST,
  MAX_PATH,
  MAX_PEM,
  MAX_PREFIX,
  MAX_REGION,
} from '../../../shared/limits.ts'
import { AppError } from '../../http/errors.ts'

// The address and the credentials of a place, by its kind.

const address = z
  .url({ protocol: /^https?$/ })
  .max(MAX_ADDRESS)
  .refine((text) => {
    const { username, password, hash, search } = new URL(text)
    return `${username}${password}${hash}${search}` === ''
  }, 'without user name, password, query and fragment')

const ca = z
  .string()
  .max(MAX_PEM)
  .nullable()
  .default(null)
  .describe('Certificates in PEM form that are trusted instead of those of the system')
const ownNetwork = z
  .boolean()
  .default(false)
  .describe('Whether it may have a private or loopback address. Only then is http accepted')
const secret = z.string().min(1).max(MAX_BROKER_PASSWORD)

const SHAPES = {
  s3: z.strictObject({
    endpoint: address.describe('The address of the service, without the bucket'),
    region: z
      .string()
      .max(MAX_REGION)
      .regex(/^[\w-]+$/)
      .default('us-east-1'),
    bucket: z
      .string()
      .min(3)
      .max(MAX_BUCKET)
      .regex(/^[a-z\d][a-z\d.-]+$/i, 'the name of a bucket'),
    prefix: z
      .string()
      .max(MAX_PREFIX)
      .regex(/^(?:[\w.-]+\/)*(?:[\w.-]+)?$/, 'letters, digits and . _ - / only')
      .refine((text) => !/(?:^|\/)\.{1,2}(?:\/|$)/.test(text), 'no . or .. as a folder')
      .default('')
      .describe('Before the names of all copies, such as mesh/'),
    pathStyle: z.boolean().default(true).describe('false: the bucket is part of the host name'),
    accessKeyId: z
      .string()
      .min(1)
      .max(MAX_HOST)
      .regex(/^[\x21-\x7e]+$/),
    secretAccessKey: secret,
    ca,
    ownNetwork,
  }),
  webdav: z.strictObject({
    url: address.describe('The address of a folder'),
    username: z.string().max(MAX_HOST).default(''),
    password: z.string().max(MAX_BROKER_PASSWORD).default(''),
    ca,
    ownNetwork,
  }),
  folder: z.strictObject({
    path: z
      .string()
      .max(MAX_PATH)
      .regex(/^\/(?!.*(?:^|\/)\.{1,2}(?:\/|$))[^\0]+$/, 'an absolute path')
      .describe('A folder in which another disk is mounted'),
  }),
} as const

type SettingsOf<Kind extends PlaceKind> = z.output<(typeof SHAPES)[Kind]>
export type S3Settings = SettingsOf<'s3'>
export type WebDavSettings = SettingsOf<'webdav'>

/** The kind of a place and its settings, credentials included. */
export type Target = { [Kind in PlaceKind]: { readonly kind: Kind; readonly settings: SettingsOf<Kind> } }[PlaceKind]

export const kindField = z.enum(PLACE_KINDS)

export const settingsSchema = z
  .record(z.string().max(40), z.unknown())
  .describe(`By field of the kind. Secrets are returned as ${HIDDEN}`)

type Settings = Readonly<Record<string, unknown>>

const SECRETS = ['secretAccessKey', 'password'] as const
/** What says where a place is. A copy that was made there stays there, so these never change. */
const WHERE = ['endpoint', 'bucket', 'prefix', 'url', 'path'] as const

/**
 * Checks settings as they were entered. `stored`: those before, whose secrets stay where ${HIDDEN} stands or nothing was
 * given. Throws `invalid_request`.
 */
export function readTarget(kind: PlaceKind, given: Settings, stored: Settings | null): Target {
  const merged = stored === null ? given : { ...stored, ...given, ...keptSecrets(given, stored) }
  const read = SHAPES[kind].safeParse(merged)
  if (!read.success) {
    throw refused(
      read.error.issues.map(({ path, message }) => ({ path: ['settings', ...path].map(String).join('.'), message })),
    )
  }
  const settings: Settings = read.data
  const moved = stored === null ? undefined : WHERE.find((field) => settings[field] !== stored[field])
  if (moved !== undefined) throw refused([{ path: `settings.${moved}`, message: 'cannot be changed' }])
  const url = settings['endpoint'] ?? settings['url']
  if (typeof url === 'string' && url.startsWith('http:') && settings['ownNetwork'] !== true) {
    const path = kind === 's3' ? 'settings.endpoint' : 'settings.url'
    throw refused([{ path, message: 'http is only for addresses in your own network' }])
  }
  // The shape was checked with the schema of this kind.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { kind, settings } as Target
}

function keptSecrets(given: Settings, stored: Settings): Settings {
  const kept = SECRETS.filter((field) => given[field] === undefined || given[field] === HIDDEN)
  return Object.fromEntries(kept.flatMap((field) => (field in stored ? [[field, stored[field]]] : [])))
}

function refused(issues: readonly { readonly path: string; readonly message: string }[]): AppError {
  const [first] = issues
  return new AppError('invalid_request', first === undefined ? undefined : `${first.path}: ${first.message}`, {
    issues,
  })
}

/** The settings as they are shown: without secrets. */
export function shownSettings({ settings }: Target): Settings {
  const all: Settings = settings
  const hidden = SECRETS.flatMap((field) => (field in all && all[field] !== '' ? [[field, HIDDEN] as const] : []))
  return { ...all, ...Object.fromEntries(hidden) }
}

/** Where a place is, for people and the audit log: without credentials. */
export function whereIs(target: Target): string {
  const { kind, settings } = target
  if (kind === 's3')
    return `${settings.endpoint.replace(/^https?:\/\/|\/$/g, '')}/${settings.bucket}/${settings.prefix}`
  if (kind === 'webdav') return settings.url.replace(/^https?:\/\//, '')
  return settings.path
}
