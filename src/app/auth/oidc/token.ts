import { encodeBase64 } from '@oslojs/encoding'
import * as z from 'zod'
import type { Metadata } from './discovery.ts'
import { OidcFailure } from './failure.ts'
import { askProvider, type ProviderAnswer } from './http.ts'

const TIMEOUT_MS = 10_000

export type Client = { readonly id: string; readonly secret: string; readonly redirectUri: string }

export type Tokens = { readonly idToken: string; readonly accessToken: string }

const tokensSchema = z.object({
  id_token: z.string().min(1),
  access_token: z.string().min(1),
  token_type: z.string().regex(/^bearer$/i),
})

/** In the order of preference: Basic is what RFC 6749, section 2.3.1, asks every server to know. */
const METHODS = ['client_secret_basic', 'client_secret_post'] as const
type Method = (typeof METHODS)[number]

/**
 * Redeems codes, each once: RFC 6749, section 4.1.3, and RFC 7636, section 4.5. A client may be registered for one of
 * the methods that discovery offers, so a refused client tries the other one; what worked comes first from then on.
 */
export function createRedemption(client: Client) {
  let works: Method | null = null
  /** Throws an `OidcFailure`. */
  return async (metadata: Metadata, grant: { readonly code: string; readonly verifier: string }): Promise<Tokens> => {
    const offered = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const known = METHODS.filter((method) => offered.includes(method))
    const [first, second] = known.toSorted((a, b) => Number(b === works) - Number(a === works))
    if (first === undefined) throw new OidcFailure('token_authentication_unsupported')
    const answer = await requestTokens(metadata, client, grant, first)
    const mayRetry = second !== undefined && isRefusedClient(answer)
    const tokens = readTokens(mayRetry ? await requestTokens(metadata, client, grant, second) : answer)
    works = mayRetry ? second : first
    return tokens
  }
}

function requestTokens(
  metadata: Metadata,
  client: Client,
  grant: { readonly code: string; readonly verifier: string },
  method: Method,
): Promise<ProviderAnswer> {
  const headers = new Headers({ accept: 'application/json' })
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code: grant.code,
    redirect_uri: client.redirectUri,
    code_verifier: grant.verifier,
  })
  if (method === 'client_secret_basic') {
    const credentials = `${formEncoded(client.id)}:${formEncoded(client.secret)}`
    headers.set('authorization', `Basic ${encodeBase64(new TextEncoder().encode(credentials))}`)
  } else {
    body.set('client_id', client.id)
    body.set('client_secret', client.secret)
  }
  return askProvider(metadata.token_endpoint, { method: 'POST', headers, body }, TIMEOUT_MS)
}

/** RFC 6749, 5.2, has `invalid_client` for it; there are providers that say the next best thing. */
function isRefusedClient(answer: ProviderAnswer): boolean {
  if (answer.kind === 'none' || answer.status === 200) return false
  return answer.status === 401 || ['invalid_client', 'unauthorized_client'].includes(errorCode(answer.json))
}

function readTokens(answer: ProviderAnswer): Tokens {
  if (answer.kind === 'none') throw new OidcFailure('token_unreachable', { why: answer.why })
  if (answer.status !== 200) {
    throw new OidcFailure('token_refused', { status: answer.status, error: errorCode(answer.json) })
  }
  const parsed = tokensSchema.safeParse(answer.json)
  if (!parsed.success) throw new OidcFailure('token_invalid')
  return { idToken: parsed.data.id_token, accessToken: parsed.data.access_token }
}

/** application/x-www-form-urlencoded, as RFC 6749, section 2.3.1, asks of both halves of Basic credentials. */
function formEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll('%20', '+')
}

// RFC 6749, 4.1.2.1 and 5.2; OpenID Connect Core 1.0, 3.1.2.6. Anything else could be any text.
const ERROR_CODES = [
  'access_denied',
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_client',
  'invalid_grant',
  'invalid_request',
  'invalid_scope',
  'invalid_target',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_response_type',
] as const

const errorSchema = z.object({ error: z.enum(ERROR_CODES) })

/** The provider's error code when it is a registered one, else `other`. */
export function errorCode(answer: unknown): string {
  return errorSchema.safeParse(answer).data?.error ?? 'other'
}
