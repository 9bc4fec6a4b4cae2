import type { JsonValue } from '@bufbuild/protobuf'
import type { RawSection } from './sections.ts'
import { viewSection } from './values.ts'

/** A secret that a radio sends to the server which another field of the section names. Paths as in fields. */
export type Renewal = {
  readonly path: string
  /** A change to this value counts; null: any change. */
  readonly value: boolean | null
  readonly secret: string
}

const RENEWALS: Readonly<Record<string, readonly Renewal[]>> = {
  // The firmware sends the password unencrypted and accepts any certificate. It also decides how an address is read, so
  // any other spelling counts as another broker.
  mqtt: [
    { path: 'address', value: null, secret: 'password' },
    { path: 'tlsEnabled', value: false, secret: 'password' },
  ],
  // An access point with that name can try out passwords offline after the first answer.
  network: [{ path: 'wifiSsid', value: null, secret: 'wifiPsk' }],
}

/** Changes of a section after which a secret that is set must be given again, or cleared. */
export function listRenewals(section: string): readonly Renewal[] {
  return RENEWALS[section] ?? []
}

type Changed = { readonly leaf: { readonly path: string }; readonly after: JsonValue }

/** The renewals that these changes require but that leave the secret as it is. */
export function findUnrenewed(section: RawSection, changes: readonly Changed[]): Renewal[] {
  const { secrets } = viewSection(section)
  return listRenewals(section.section).filter(({ path, value, secret }) => {
    const isAsked = changes.some(({ leaf, after }) => leaf.path === path && (value === null || after === value))
    const isGiven = changes.some(({ leaf }) => leaf.path === secret)
    return isAsked && !isGiven && secrets[secret]?.isSet === true
  })
}
