// The only file that imports arctic: docs/decisions/deprecated-packages.md.
import { CodeChallengeMethod, OAuth2Client } from 'arctic'
import type { AttemptSecrets } from '../provider.ts'
import type { Metadata } from './discovery.ts'
import type { Client } from './token.ts'

/**
 * The URL at which the browser signs in: an authorization request with a code challenge (RFC 6749, 4.1.1; RFC 7636,
 * 4.3; OpenID Connect Core 1.0, 3.1.2.1). A query that the endpoint already has is kept.
 */
export function authorizationUrl(
  { authorization_endpoint: endpoint }: Pick<Metadata, 'authorization_endpoint'>,
  { id, secret, redirectUri }: Client,
  scopes: readonly string[],
  { state, nonce, verifier }: AttemptSecrets,
): URL {
  const client = new OAuth2Client(id, secret, redirectUri)
  const { S256 } = CodeChallengeMethod
  const url = client.createAuthorizationURLWithPKCE(endpoint, state, S256, verifier, [...scopes])
  url.searchParams.set('nonce', nonce)
  return url
}
