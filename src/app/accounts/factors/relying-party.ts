import { ownedBy } from '../../base/owned.ts'
import type { Context } from 'hono'
import type { Ctx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'

/** The host that passkeys belong to, and the origin that their signatures name. */
export type Party = { readonly id: string; readonly origin: string }

/**
 * The relying party from PUBLIC_URL or the request's host; null where browsers do not allow passkeys: over http except
 * on localhost, and at an IP address.
 */
export function relyingParty(c: Context, ctx: Ctx): Party | null {
  const url = ctx.config.PUBLIC_URL ?? ctx.origin(c)
  // Nearly all requests have the same address.
  const latest = parties(ctx.config)
  if (latest.url !== url) Object.assign(latest, { url, party: partyAt(url) })
  return latest.party
}

const parties = ownedBy((_config: Ctx['config']): { url: string; party: Party | null } => ({ url: '', party: null }))

function partyAt(url: string): Party | null {
  const { origin, protocol, hostname } = new URL(url)
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  const isAddress = hostname.startsWith('[') || /^[\d.]+$/.test(hostname)
  return isAddress || (protocol !== 'https:' && !isLocal) ? null : { id: hostname, origin }
}

/** Throws `passkeys_unavailable`. */
export function demandParty(c: Context, ctx: Ctx): Party {
  const party = relyingParty(c, ctx)
  if (party === null) throw new AppError('passkeys_unavailable')
  return party
}
