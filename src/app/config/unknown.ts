import { nearestNames } from '../../shared/nearest.ts'

/** Prefixes of this service's variables. Other variables belong to other programs. */
const OURS =
  /^(?:ADMIN|AUDIT_ANCHOR|BACKUP|BREACHED|COLLECTOR|EMBED|HOME_ASSISTANT|LOGIN|MESHTASTIC|OIDC|PASSWORD|PROXY_AUTH|RESTORE|SESSION|SMTP|UPDATE_CHECK)_/
const OF_A_PROVIDER = /^OIDC_([A-Z0-9]+)_[A-Z_]+$/
/**
 * The edit distance within which an unknown name counts as a typing error. Other programs' variables are rarely this
 * similar.
 */
const TYPING_ERRORS = 2
const MIN_LENGTH = 8
const MAX_NAMED = 50

/** A variable without effect, and the one that may be meant. Its value is never logged. */
export type UnknownVariable = { readonly name: string; readonly hint: string | null }

/** The set variables that look like ours but are not among `known`, with the nearest known name. */
export function findUnknown(env: Readonly<Record<string, unknown>>, known: readonly string[]): UnknownVariable[] {
  const names = new Set(known)
  const isSet = (name: string) => typeof env[name] === 'string' && env[name] !== ''
  const unknown = Object.keys(env).filter((name) => !names.has(name) && isSet(name))
  return unknown
    .flatMap((name) => {
      const isOurs = OURS.test(name)
      const isLong = name.length >= MIN_LENGTH
      const longer = isOurs
        ? known.find((each) => `${each}_`.startsWith(`${name}_`) || `${name}_`.startsWith(`${each}_`))
        : undefined
      const [nearest = longer] =
        longer === undefined
          ? nearestNames(name, known, isOurs ? name.length / 2 : isLong ? TYPING_ERRORS : 0)
          : [longer]
      if (!isOurs && nearest === undefined) return []
      return { name: name.slice(0, 100), hint: hintFor(name, names, nearest) }
    })
    .slice(0, MAX_NAMED)
}

function hintFor(name: string, known: ReadonlySet<string>, nearest: string | undefined): string | null {
  const [, provider = ''] = OF_A_PROVIDER.exec(name) ?? []
  const isPart = provider !== '' && known.has(name.replace(`_${provider}_`, '_'))
  if (isPart) return `OIDC_PROVIDERS does not name ${provider.toLowerCase()}`
  return nearest === undefined ? null : `did you mean ${nearest}?`
}
