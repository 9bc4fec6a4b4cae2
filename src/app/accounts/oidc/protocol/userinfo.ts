import * as z from 'zod'
import { type Claims, isAudience } from './claims.ts'
import type { Metadata } from './discovery.ts'
import { OidcFailure } from '../failure.ts'
import type { AskProvider, ProviderAnswer } from '../../../base/ask-within.ts'
import type { Verified } from './keys.ts'

const TIMEOUT_MS = 5000

/** The additional claims of UserInfo, or why there are none: a word for the log. */
export type UserInfo = { readonly claims: Claims } | { readonly claims: null; readonly why: string }

export type UserInfoExpected = { readonly issuer: string; readonly clientId: string; readonly subject: string }

const claimsSchema = z.record(z.string(), z.unknown())

/**
 * Queries the UserInfo endpoint, if there is one. A missing or invalid answer does not prevent the sign-in. OpenID
 * Connect Core 1.0, 5.3. Throws an `OidcFailure` if the claims belong to another subject.
 */
export async function readUserInfo(
  ask: AskProvider,
  metadata: Metadata,
  accessToken: string,
  expected: UserInfoExpected,
  verify: (ask: AskProvider, uri: string, token: string) => Promise<Verified>,
): Promise<UserInfo> {
  const endpoint = metadata.userinfo_endpoint ?? null
  if (endpoint === null) return { claims: {} }
  const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` }
  const answer = await ask(endpoint, { headers }, TIMEOUT_MS)
  if (answer.kind === 'none') return { claims: null, why: answer.why }
  if (answer.status !== 200) return { claims: null, why: `status ${answer.status}` }
  const info = await readClaims(answer, expected, (token) => verify(ask, metadata.jwks_uri, token))
  if (info.claims !== null && info.claims['sub'] !== expected.subject) throw new OidcFailure('userinfo_sub')
  return info
}

/** A JSON object, or a signed one: a provider may be configured to sign it for this client (5.3.2). */
async function readClaims(
  { json, text }: ProviderAnswer & { kind: 'answer' },
  { issuer, clientId }: UserInfoExpected,
  verify: (token: string) => Promise<Verified>,
): Promise<UserInfo> {
  const plain = claimsSchema.safeParse(json)
  if (plain.success) return { claims: plain.data }
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)) return { claims: null, why: 'no claims' }
  try {
    const { claims } = await verify(text)
    const { iss = issuer, aud = clientId } = claims
    const isOurs = iss === issuer && isAudience({ ...claims, aud }, clientId)
    return isOurs ? { claims } : { claims: null, why: 'for another' }
  } catch (error) {
    if (!(error instanceof OidcFailure)) throw error
    return { claims: null, why: error.reason }
  }
}
