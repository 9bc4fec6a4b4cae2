import {
  MAX_ADDRESS,
  MAX_BROKER_PASSWORD,
  MAX_CONNECTION_KEYS,
  MAX_DEVICE_PATH,
  MAX_HOST,
  MAX_PEM,
  MAX_TOPIC,
  MAX_TOPICS,
} from '../../../shared/limits.ts'
import { type Shape, ShapedFields, type Shapes } from '../../parts/form/shaped-fields.tsx'
import { connectionTexts } from '../../strings/system/connections.ts'
import type { Kind, Settings } from './connection.ts'

const PORT: Shape = { label: connectionTexts.port, maxLength: 5, as: 'number' }
const KEYS: Shape = {
  label: connectionTexts.keys,
  hint: connectionTexts.keysHint,
  maxLength: MAX_CONNECTION_KEYS * (MAX_HOST + 1),
  as: 'lines',
  optional: true,
}
const PIN: Shape = {
  label: connectionTexts.fingerprint,
  hint: connectionTexts.fingerprintHint,
  maxLength: 64,
  optional: true,
  rare: true,
}

const FIELDS: Readonly<Record<Kind, Shapes>> = {
  tcp: { host: { label: connectionTexts.host, maxLength: MAX_HOST }, port: PORT },
  serial: { device: { label: connectionTexts.device, hint: connectionTexts.deviceHint, maxLength: MAX_DEVICE_PATH } },
  http: { url: { label: connectionTexts.url, hint: 'https://192.168.1.20', maxLength: MAX_ADDRESS }, fingerprint: PIN },
  mqtt: {
    url: { label: connectionTexts.url, hint: 'mqtts://broker.example.org', maxLength: MAX_ADDRESS },
    username: { label: connectionTexts.username, hint: connectionTexts.optional, maxLength: MAX_HOST, optional: true },
    password: {
      label: connectionTexts.password,
      hint: connectionTexts.optional,
      maxLength: MAX_BROKER_PASSWORD,
      as: 'password',
      optional: true,
    },
    topics: {
      label: connectionTexts.topics,
      hint: 'msh/EU_868/#',
      maxLength: MAX_TOPICS * (MAX_TOPIC + 1),
      as: 'lines',
    },
    keys: KEYS,
    privateKeys: { ...KEYS, label: connectionTexts.privateKeys, hint: connectionTexts.privateKeysHint, rare: true },
    ca: {
      label: connectionTexts.ca,
      hint: connectionTexts.caHint,
      maxLength: MAX_PEM,
      as: 'text-area',
      optional: true,
      rare: true,
    },
    fingerprint: PIN,
  },
  udp: {
    keys: KEYS,
    port: { ...PORT, rare: true },
    interface: { label: connectionTexts.interface, maxLength: 15, optional: true, rare: true },
  },
}

/** What is in the fields of a new connection. */
const FIRST: Settings = { port: 4403, topics: ['msh/#'] }

/** The fields of a kind, filled with `settings`. */
export function SettingsFields({ kind, settings }: { kind: Kind; settings: Settings | null }) {
  return <ShapedFields key={kind} shapes={FIELDS[kind]} values={settings ?? FIRST} more={connectionTexts.more} />
}

/** The settings as they stand in the fields. An empty optional field is null, or an empty list. */
export function settingsIn(kind: Kind, text: (name: string) => string): Settings {
  return Object.fromEntries(
    Object.entries(FIELDS[kind]).map(([name, { as }]) => {
      const typed = as === 'password' ? text(name) : text(name).trim()
      if (as === 'lines') return [name, typed.split('\n').flatMap((line) => (line.trim() === '' ? [] : line.trim()))]
      if (as === 'number') return [name, Number(typed)]
      return [name, typed === '' ? null : typed]
    }),
  )
}
