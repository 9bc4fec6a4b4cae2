import { isRecord } from '../../api.ts'
import { humanize } from '../../format.ts'
import { locale } from '../../language.ts'
import { t } from '../../strings.ts'

type Grant = { readonly read: boolean; readonly write: boolean }

const and = new Intl.ListFormat(locale)

/** A detail of an entry in words. */
export function inWords(value: unknown): string {
  if (value === null || value === undefined) return t.common.none
  if (typeof value === 'boolean') return value ? t.common.yes : t.common.no
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  if (isGrant(value)) return held(value)
  if (Array.isArray(value)) return value.map(inWords).join(', ') || t.common.none
  if (!isRecord(value)) return JSON.stringify(value)
  const entries = Object.entries(value)
  const isPermissions = entries.every(([name, grant]) => isGrant(grant) && nameOf(name) !== null)
  const told = isPermissions ? entries.filter(([, grant]) => isGrant(grant) && (grant.read || grant.write)) : entries
  return told.map(([name, each]) => `${nameOf(name) ?? name}: ${within(each)}`).join('; ') || t.common.none
}

/** What a token may do, as `messages:read`, in words. */
export function scopeInWords(scope: unknown): string {
  const [name = '', action = ''] = String(scope).split(':')
  const known = Object.entries(t.actions).find(([each]) => each === action)?.[1]
  if (known !== undefined) return `${nameOf(name) ?? humanize(name)}: ${known}`
  return Object.entries(t.scopes).find(([each]) => each === scope)?.[1] ?? String(scope)
}

/** The name of an area; null: it is none. */
export function nameOf(resource: string): string | null {
  return Object.entries(t.resources).find(([known]) => known === resource)?.[1] ?? null
}

const within = (value: unknown) => (isRecord(value) && !isGrant(value) ? `(${inWords(value)})` : inWords(value))

function held({ read, write }: Grant): string {
  return and.format([...(read ? [t.actions.read] : []), ...(write ? [t.actions.write] : [])]) || t.common.none
}

export function isGrant(value: unknown): value is Grant {
  return (
    isRecord(value) &&
    Object.keys(value).length === 2 &&
    typeof value['read'] === 'boolean' &&
    typeof value['write'] === 'boolean'
  )
}
