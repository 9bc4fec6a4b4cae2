import * as z from 'zod'
import { isPrivateUrl, isSecureUrl } from '../../../config/secure-url.ts'
import { OidcFailure } from '../failure.ts'
import type { AskProvider } from '../../../base/ask-within.ts'
import type { Allowance } from './allowance.ts'
import { HOUR_MS } from '../../../../shared/time.ts'

const LIFETIME_MS = HOUR_MS
const TIMEOUT_MS = 8000

const endpoint = z
  .string()
  .max(2048)
  .refine(isPrivateUrl)
  .refine((url) => !url.includes('#'))

const ENDPOINTS = [
  'authorization_endpoint',
  'token_endpoint',
  'jwks_uri',
  'userinfo_endpoint',
  'end_session_endpoint',
] as const

/** The required fields of OpenID Connect Discovery 1.0, section 3, and RFC 9207, section 3. */
const metadataSchema = z.object({
  issuer: z.string(),
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  jwks_uri: endpoint,
  userinfo_endpoint: endpoint.nullish(),
  end_session_endpoint: endpoint.nullish(),
  token_endpoint_auth_methods_supported: z.array(z.string()).max(100).nullish(),
  authorization_response_iss_parameter_supported: z.boolean().nullish(),
})
export type Metadata = z.infer<typeof metadataSchema>

/** How often it may be fetched: for a sign-in, after an endpoint of the cached document failed, and for a test. */
type Fetches = { readonly needed: Allowance; readonly renewed: Allowance; readonly tested: Allowance }

/** A discovery that failed, ms since the Unix epoch. */
export type DiscoveryFailure = { readonly at: number; readonly failure: OidcFailure }

/**
 * The provider's own description, cached for an hour. A failure is not cached: the next sign-in asks again, as far as
 * the allowance permits. Values are cached and promises are not: on workerd a promise belongs to its request.
 */
export function createDiscovery(
  issuer: string,
  fetches: Fetches,
  { now, onDate }: { readonly now: () => number; readonly onDate: (date: number) => void },
) {
  let known: { metadata: Metadata; at: number } | null = null
  let failed: DiscoveryFailure | null = null

  const fetched = async (ask: AskProvider): Promise<Metadata> => {
    try {
      const metadata = await discover(ask, issuer, onDate)
      known = { metadata, at: now() }
      failed = null
      return metadata
    } catch (error) {
      if (error instanceof OidcFailure) failed = { at: now(), failure: error }
      throw error
    }
  }

  return {
    /** Throws an `OidcFailure`. */
    current: async (ask: AskProvider): Promise<Metadata> => {
      if (known !== null && Math.abs(now() - known.at) < LIFETIME_MS) return known.metadata
      if (!fetches.needed.take()) throw new OidcFailure('discovery_too_often')
      return fetched(ask)
    },
    /**
     * Repeats the discovery after an endpoint of `broken` did not work; null if the provider was asked too often or is
     * unreachable.
     */
    renewed: async (ask: AskProvider, broken: Metadata): Promise<Metadata | null> => {
      if (known !== null && known.metadata !== broken) return known.metadata
      if (!fetches.renewed.take()) return null
      return fetched(ask).catch((error: unknown) => {
        if (error instanceof OidcFailure) return null
        throw error
      })
    },
    /** Repeats the discovery in any case, a few times a minute. Throws an `OidcFailure`. */
    tested: async (ask: AskProvider): Promise<Metadata> => {
      if (!fetches.tested.take()) throw new OidcFailure('discovery_too_often')
      return fetched(ask)
    },
    /** The last discovery, if it failed. */
    failure: (): DiscoveryFailure | null => failed,
  }
}

async function discover(ask: AskProvider, issuer: string, onDate: (date: number) => void): Promise<Metadata> {
  // Without a trailing slash of the issuer: section 4.1.
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await ask(url, { headers: { accept: 'application/json' } }, TIMEOUT_MS)
  if (answer.kind === 'none') throw new OidcFailure('discovery_unreachable', { why: answer.why })
  if (answer.status !== 200) throw new OidcFailure('discovery_refused', { status: answer.status })
  if (answer.date !== null) onDate(answer.date)
  return readMetadata(issuer, answer.json)
}

/** The content of a discovery document, if it is valid for `issuer`. Throws an `OidcFailure`. */
export function readMetadata(issuer: string, document: unknown): Metadata {
  const parsed = metadataSchema.safeParse(document)
  if (!parsed.success) throw new OidcFailure('discovery_invalid', { fields: brokenFields(parsed.error) })
  const metadata = parsed.data
  if (metadata.issuer !== issuer) throw new OidcFailure('discovery_issuer_wrong')
  // A provider on the network must not name ports of this machine. OIDC_ALLOW_INSECURE_ISSUER permits an http provider
  // on a private network together with its endpoints.
  const isPermitted = (url: string) =>
    url.startsWith('https:') || (issuer.startsWith('http:') && (isSecureUrl(url) || !isSecureUrl(issuer)))
  const insecure = ENDPOINTS.filter((name) => !isPermitted(metadata[name] ?? 'https:'))
  if (insecure.length > 0) {
    throw new OidcFailure('discovery_invalid', { fields: insecure.join(' ') })
  }
  return metadata
}

function brokenFields({ issues }: z.ZodError<Metadata>): string {
  return [...new Set(issues.map(({ path }) => String(path[0] ?? 'document')))].join(' ')
}
