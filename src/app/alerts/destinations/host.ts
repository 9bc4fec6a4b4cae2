import type { DestinationKind } from '../../../shared/alerts/destination-kinds.ts'

/** The hosts of services that have only one address. */
const FIXED: Partial<Record<DestinationKind, string>> = { pushover: 'api.pushover.net' }

/**
 * The host that receives what is sent to a destination, without path and secrets; of an e-mail address its domain.
 * Null: the settings name none.
 */
export function hostOf(kind: DestinationKind, settings: Readonly<Record<string, string>>): string | null {
  const { address, url, endpoint, server } = settings
  if (address !== undefined) return address.slice(address.lastIndexOf('@') + 1)
  const text = url ?? endpoint ?? server
  if (text === undefined) return FIXED[kind] ?? null
  return URL.canParse(text) ? new URL(text).host : null
}
