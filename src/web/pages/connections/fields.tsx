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
import { Field } from '../../parts/form/field.tsx'
import { Labelled } from '../../parts/form/labelled.tsx'
import { connectionTexts } from '../../strings/system/connections.ts'
import type { Kind, Settings } from './connection.ts'

type Shape = {
  readonly label: string
  readonly hint?: string
  /** Characters. */
  readonly maxLength: number
  readonly as?: 'number' | 'password' | 'lines' | 'text-area'
  readonly optional?: true
  /** Stands behind *More settings*. */
  readonly rare?: true
}

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

const FIELDS: Readonly<Record<Kind, Readonly<Record<string, Shape>>>> = {
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
  const all = Object.entries(FIELDS[kind])
  const rare = all.filter(([, shape]) => shape.rare === true)
  const draw = ([name, shape]: (typeof all)[number]) => (
    <OneField key={`${kind} ${name}`} {...shape} name={name} value={(settings ?? FIRST)[name]} />
  )
  return (
    <>
      {all.filter(([, shape]) => shape.rare !== true).map(draw)}
      {rare.length > 0 && (
        <details>
          <summary>{connectionTexts.more}</summary>
          <div class="stack">{rare.map(draw)}</div>
        </details>
      )}
    </>
  )
}

function OneField(props: Shape & { name: string; value: unknown }) {
  const { name, value, label, hint, as, optional } = props
  const text = textOf(value)
  if (as === 'lines' || as === 'text-area') {
    return (
      <Labelled label={label} hint={hint}>
        {(aria) => (
          <textarea
            {...aria}
            name={name}
            rows={as === 'lines' ? 2 : 4}
            maxLength={props.maxLength}
            defaultValue={text}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            required={optional !== true}
          />
        )}
      </Labelled>
    )
  }
  return (
    <Field
      label={label}
      name={name}
      type={as === 'password' ? 'password' : as === 'number' ? 'number' : 'text'}
      defaultValue={text}
      maxLength={props.maxLength}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      required={optional !== true}
      {...(hint !== undefined && { hint })}
      {...(as === 'number' && { min: 1, max: 65535 })}
    />
  )
}

/** A setting as it stands in its field. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join('\n')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
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
