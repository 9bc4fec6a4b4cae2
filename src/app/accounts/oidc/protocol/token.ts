import * as z from 'zod'
import type { Metadata } from './discovery.ts'
import { OidcFailure } from '../failure.ts'
import type { AskProvider, ProviderAnswer } from '../../../base/ask-within.ts'
import { toBase64 } from '../../../base/crypto.ts'

const TIMEOUT_MS = 10_000

export type Client = { readonly id: string; readonly secret: string; readonly redirectUri: string }

type Grant = { readonly code: string; readonly verifier: string }

export type Tokens = { readonly idToken: string; readonly accessToken: string }

const tokensSchema = z.object({
  id_token: z.string().min(1),
  access_token: z.string().min(1),
  token_type: z.string().regex(/^bearer$/i),
})

/** In order of preference: RFC 6749, section 2.3.1, requires every server to support Basic. */
const METHODS = ['client_secret_basic', 'client_secret_post'] as const
type Method = (typeof METHODS)[number]

/**
 * Redeems codes, each once: RFC 6749, section 4.1.3, and RFC 7636, section 4.5. A client may be registered for only one
 * of the methods in the discovery document, so a refused client tries the other one. The method that worked comes first
 * from then on. If discovery names neither, both are tried, as some lists are incomplete or missing.
 * Decision: docs/decisions/requests-to-the-provider.md
 */
export function createRedemption(client: Client) {
  let works: Method | null = null
  /** Throws an `OidcFailure`. */
  return async (ask: AskProvider, metadata: Metadata, grant: Grant): Promise<Tokens> => {
    const [first, second] = methodsOf(metadata, works)
    const request = (method: Method) => ask(metadata.token_endpoint, tokenRequest(client, grant, method), TIMEOUT_MS)
    const answer = await request(first)
    const mayRetry = second !== null && isRefusedClient(answer)
    const tokens = readTokens(mayRetry ? await request(second) : answer)
    works = mayRetry ? second : first
    return tokens
  }
}

/** The first method to try, and the other one if that is allowed as well. */
function methodsOf(metadata: Metadata, works: Method | null): readonly [Method, Method | null] {
  const [one, other] = METHODS.filter((method) => metadata.token_endpoint_auth_methods_supported?.includes(method))
  if (one !== undefined && other === undefined) return [one, null]
  const [basic, post] = METHODS
  return works === post ? [post, basic] : [basic, post]
}

function tokenRequest(client: Client, grant: Grant, method: Method): RequestInit {
  const headers = new Headers({ accept: 'application/json' })
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code: grant.code,
    redirect_uri: client.redirectUri,
    code_verifier: grant.verifier,
  })
  if (method === 'client_secret_basic') {
    const credentials = `${formEncoded(client.id)}:${formEncoded(client.secret)}`
    headers.set('authorization', `Basic ${toBase64(new TextEncoder().encode(credentials))}`)
  } else {
    body.set('client_id', client.id)
    body.set('client_secret', client.secret)
  }
  return { method: 'POST', headers, body }
}

/** RFC 6749, 5.2, defines `invalid_client` for this, but some providers send other codes. */
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

/** application/x-www-form-urlencoded, as RFC 6749, section 2.3.1, requires for both halves of Basic credentials. */
function formEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll('%20', '+')
}

// From RFC 6749, 4.1.2.1 and 5.2, and OpenID Connect Core 1.0, 3.1.2.6. Other codes could be any text, so they are not
// logged.
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
