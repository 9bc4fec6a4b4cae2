import * as z from 'zod'
import { isSecureUrl } from '../../config/secure-url.ts'
import { OidcFailure } from './failure.ts'
import { askProvider } from './http.ts'
import type { Allowance } from './allowance.ts'

const LIFETIME_MS = 60 * 60_000
const TIMEOUT_MS = 8000

const endpoint = z
  .string()
  .max(2048)
  .refine(isSecureUrl)
  .refine((url) => !url.includes('#'))

const ENDPOINTS = [
  'authorization_endpoint',
  'token_endpoint',
  'jwks_uri',
  'userinfo_endpoint',
  'end_session_endpoint',
] as const

/** What is needed of OpenID Connect Discovery 1.0, section 3, and RFC 9207, section 3. */
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

/**
 * The provider's own description, kept for an hour. A failure is kept for no time at all: the next sign-in asks again,
 * as far as the allowance goes. Values are cached and promises are not: on workerd a promise belongs to its request.
 */
export function createDiscovery(
  issuer: string,
  allowance: Allowance,
  { now, onDate }: { readonly now: () => number; readonly onDate: (date: number) => void },
) {
  let known: { metadata: Metadata; at: number } | null = null
  /** Throws an `OidcFailure`. */
  return async (timeoutMs = TIMEOUT_MS): Promise<Metadata> => {
    if (known !== null && Math.abs(now() - known.at) < LIFETIME_MS) return known.metadata
    if (!allowance.take()) throw new OidcFailure('discovery_too_often')
    const metadata = await discover(issuer, timeoutMs, onDate)
    known = { metadata, at: now() }
    return metadata
  }
}

async function discover(issuer: string, timeoutMs: number, onDate: (date: number) => void): Promise<Metadata> {
  // Section 4.1: a terminating slash of the issuer is left out.
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await askProvider(url, { headers: { accept: 'application/json' } }, timeoutMs)
  if (answer.kind === 'none') throw new OidcFailure('discovery_unreachable', { why: answer.why })
  if (answer.status !== 200) throw new OidcFailure('discovery_refused', { status: answer.status })
  if (answer.date !== null) onDate(answer.date)
  return readMetadata(issuer, answer.json)
}

/** What a discovery document says, if `issuer` may say so. Throws an `OidcFailure`. */
export function readMetadata(issuer: string, document: unknown): Metadata {
  const parsed = metadataSchema.safeParse(document)
  if (!parsed.success) throw new OidcFailure('discovery_invalid', { fields: brokenFields(parsed.error) })
  const metadata = parsed.data
  if (metadata.issuer !== issuer) throw new OidcFailure('discovery_issuer_wrong')
  // A provider on the network has no business with this machine's own ports.
  const insecure = ENDPOINTS.filter((name) => metadata[name]?.startsWith('http:') === true)
  if (insecure.length > 0 && !issuer.startsWith('http:')) {
    throw new OidcFailure('discovery_invalid', { fields: insecure.join(' ') })
  }
  return metadata
}

function brokenFields({ issues }: z.ZodError<Metadata>): string {
  return [...new Set(issues.map(({ path }) => String(path[0] ?? 'document')))].join(' ')
}
