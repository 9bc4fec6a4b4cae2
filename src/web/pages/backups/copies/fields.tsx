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
import { Field } from '../../../parts/form/field.tsx'
import { Labelled } from '../../../parts/form/labelled.tsx'
import { copyTexts } from '../../../strings/system/copies.ts'
import type { Kind, Settings } from './place.ts'

type Shape = {
  readonly label: string
  readonly hint?: string
  /** Characters. */
  readonly maxLength: number
  readonly as?: 'password' | 'text-area' | 'check' | 'no-check'
  readonly optional?: true
  /** Stands behind *More settings*. */
  readonly rare?: true
  /** Says where the place is, which never changes. */
  readonly isWhere?: true
}

const CA: Shape = {
  label: copyTexts.ca,
  hint: copyTexts.caHint,
  maxLength: MAX_PEM,
  as: 'text-area',
  optional: true,
  rare: true,
}
const OWN_NETWORK: Shape = { label: copyTexts.ownNetwork, maxLength: 0, as: 'check' }

const FIELDS: Readonly<Record<Kind, Readonly<Record<string, Shape>>>> = {
  s3: {
    endpoint: { label: copyTexts.endpoint, hint: copyTexts.endpointHint, maxLength: MAX_ADDRESS, isWhere: true },
    region: { label: copyTexts.region, maxLength: MAX_REGION },
    bucket: { label: copyTexts.bucket, maxLength: MAX_BUCKET, isWhere: true },
    prefix: {
      label: copyTexts.prefix,
      hint: copyTexts.prefixHint,
      maxLength: MAX_PREFIX,
      optional: true,
      isWhere: true,
    },
    accessKeyId: { label: copyTexts.accessKeyId, maxLength: MAX_HOST },
    secretAccessKey: { label: copyTexts.secretAccessKey, maxLength: MAX_BROKER_PASSWORD, as: 'password' },
    ownNetwork: OWN_NETWORK,
    pathStyle: { label: copyTexts.virtualHost, maxLength: 0, as: 'no-check', rare: true },
    ca: CA,
  },
  webdav: {
    url: { label: copyTexts.url, hint: copyTexts.urlHint, maxLength: MAX_ADDRESS, isWhere: true },
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
  folder: { path: { label: copyTexts.path, hint: copyTexts.pathHint, maxLength: MAX_PATH, isWhere: true } },
}

/** What is in the fields of a new place. */
const FIRST: Settings = { region: 'us-east-1', pathStyle: true, ownNetwork: false }

/** The fields of a kind, filled with `settings`; null: a new place. */
export function PlaceFields({ kind, settings }: { kind: Kind; settings: Settings | null }) {
  const all = Object.entries(FIELDS[kind])
  const draw = ([name, shape]: (typeof all)[number]) => (
    <OneField
      key={`${kind} ${name}`}
      {...shape}
      name={name}
      value={(settings ?? FIRST)[name]}
      isFixed={settings !== null && shape.isWhere === true}
    />
  )
  const rare = all.filter(([, shape]) => shape.rare === true)
  return (
    <>
      {all.filter(([, shape]) => shape.rare !== true).map(draw)}
      {rare.length > 0 && (
        <details>
          <summary>{copyTexts.more}</summary>
          <div class="stack">{rare.map(draw)}</div>
        </details>
      )}
    </>
  )
}

function OneField(props: Shape & { name: string; value: unknown; isFixed: boolean }) {
  const { name, value, label, hint, as, optional } = props
  const text = typeof value === 'string' ? value : ''
  if (as === 'check' || as === 'no-check') {
    return (
      <label class="check">
        <input type="checkbox" name={name} defaultChecked={as === 'check' ? value === true : value === false} />
        {label}
      </label>
    )
  }
  if (as === 'text-area') {
    return (
      <Labelled label={label} hint={hint}>
        {(aria) => (
          <textarea
            {...aria}
            name={name}
            rows={4}
            maxLength={props.maxLength}
            defaultValue={text}
            autocomplete="off"
            spellcheck={false}
          />
        )}
      </Labelled>
    )
  }
  return (
    <Field
      label={label}
      name={name}
      type={as === 'password' ? 'password' : 'text'}
      defaultValue={text}
      maxLength={props.maxLength}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      required={optional !== true}
      readOnly={props.isFixed}
      {...(hint !== undefined && { hint })}
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
