import {
  MAX_ADDRESS,
  MAX_BROKER_PASSWORD,
  MAX_BUCKET,
  MAX_HOST,
  MAX_PATH,
  MAX_PEM,
  MAX_PREFIX,
  MAX_REGION,
} from '../../../../shared/limits.ts'
import { type Shape, ShapedFields, type Shapes } from '../../../parts/form/shaped-fields.tsx'
import { copyTexts } from '../../../strings/system/copies.ts'
import type { Kind, Settings } from './place.ts'

const CA: Shape = {
  label: copyTexts.ca,
  hint: copyTexts.caHint,
  maxLength: MAX_PEM,
  as: 'text-area',
  optional: true,
  rare: true,
}
const OWN_NETWORK: Shape = { label: copyTexts.ownNetwork, maxLength: 0, as: 'check' }

/** Fixed is what says where the place is. */
const FIELDS: Readonly<Record<Kind, Shapes>> = {
  s3: {
    endpoint: { label: copyTexts.endpoint, hint: copyTexts.endpointHint, maxLength: MAX_ADDRESS, isFixed: true },
    region: { label: copyTexts.region, maxLength: MAX_REGION },
    bucket: { label: copyTexts.bucket, maxLength: MAX_BUCKET, isFixed: true },
    prefix: {
      label: copyTexts.prefix,
      hint: copyTexts.prefixHint,
      maxLength: MAX_PREFIX,
      optional: true,
      isFixed: true,
    },
    accessKeyId: { label: copyTexts.accessKeyId, maxLength: MAX_HOST },
    secretAccessKey: { label: copyTexts.secretAccessKey, maxLength: MAX_BROKER_PASSWORD, as: 'password' },
    ownNetwork: OWN_NETWORK,
    pathStyle: { label: copyTexts.virtualHost, maxLength: 0, as: 'no-check', rare: true },
    ca: CA,
  },
  webdav: {
    url: { label: copyTexts.url, hint: copyTexts.urlHint, maxLength: MAX_ADDRESS, isFixed: true },
    username: { label: copyTexts.username, maxLength: MAX_HOST, optional: true },
    password: {
      label: copyTexts.password,
      hint: copyTexts.passwordHint,
      maxLength: MAX_BROKER_PASSWORD,
      as: 'password',
      optional: true,
    },
    ownNetwork: OWN_NETWORK,
    ca: CA,
  },
  folder: { path: { label: copyTexts.path, hint: copyTexts.pathHint, maxLength: MAX_PATH, isFixed: true } },
}

/** What is in the fields of a new place. */
const FIRST: Settings = { region: 'us-east-1', pathStyle: true, ownNetwork: false }

/** The fields of a kind, filled with `settings`; null: a new place. */
export function PlaceFields({ kind, settings }: { kind: Kind; settings: Settings | null }) {
  return (
    <ShapedFields
      key={kind}
      shapes={FIELDS[kind]}
      values={settings ?? FIRST}
      areStored={settings !== null}
      more={copyTexts.more}
    />
  )
}

/** The settings as they stand in the fields. */
export function placeSettings(kind: Kind, text: (name: string) => string): Settings {
  return Object.fromEntries(
    Object.entries(FIELDS[kind]).map(([name, { as }]) => {
      const typed = as === 'password' ? text(name) : text(name).trim()
      if (as === 'check') return [name, typed === 'on']
      if (as === 'no-check') return [name, typed !== 'on']
      return [name, as === 'text-area' && typed === '' ? null : typed]
    }),
  )
}
