import { encodeBase64urlNoPadding } from '@oslojs/encoding'
import { CodeChallengeMethod, OAuth2Client } from 'arctic'
import type { Config } from '../../config/config.ts'
import type { AttemptSecrets, Oidc, Ports } from '../../context.ts'
import { createAllowance } from './allowance.ts'
import { wrongClaim } from './claims.ts'
import { createDiscovery, type Metadata } from './discovery.ts'
import { OidcFailure } from './failure.ts'
import { createKeys, type Verified } from './keys.ts'
import { profileOf } from './profile.ts'
import { type Client, createRedemption } from './token.ts'
import { readUserInfo } from './userinfo.ts'

export const CALLBACK_PATH = '/api/auth/oidc/callback'

/** A sign-out need not wait for a provider that doesn't answer. */
const LOGOUT_TIMEOUT_MS = 3000

type Settings = { readonly issuer: string; readonly client: Client; readonly scopes: readonly string[] }

/** The OpenID provider of the configuration; null without one. Asks nothing of it before somebody signs in. */
export function createOidc({
  config,
  log,
  now,
  clockWatch = null,
}: Pick<Ports, 'config' | 'log' | 'now'> & Partial<Pick<Ports, 'clockWatch'>>): Oidc | null {
  const settings = readSettings(config)
  if (settings === null) return null
  const { issuer, client, scopes } = settings
  if (!new URL(client.redirectUri).pathname.endsWith(CALLBACK_PATH)) {
    log.warn(`OIDC_REDIRECT_URI does not end in ${CALLBACK_PATH}: a proxy must lead it there`)
  }
  const discover = createDiscovery(issuer, createAllowance(50, 1000, now), {
    now,
    onDate: (date) => clockWatch?.agree('the OpenID provider', date),
  })
  const redeem = createRedemption(client)
  const verify = createKeys({ unknown: createAllowance(5, 5000, now), reused: createAllowance(5, 5000, now) }, now)
  return {
    issuer,
    authorizationUrl: async (secrets) => authorizationUrl(await discover(), client, scopes, secrets),
    identify: async ({ code, iss }, secrets) => {
      const metadata = await discover()
      checkCallbackIssuer(metadata, iss)
      if (code === null) throw new OidcFailure('callback_code_missing')
      const { idToken, accessToken } = await redeem(metadata, { code, verifier: secrets.verifier })
      const verified = await verify(metadata.jwks_uri, idToken)
      const subject = await subjectOf(verified, accessToken, {
        issuer,
        clientId: client.id,
        nonce: secrets.nonce,
        now: now(),
      })
      const more = await readUserInfo(metadata, accessToken, { issuer, clientId: client.id, subject }, verify)
      if (more.claims === null) log.warn('No UserInfo: the claims of the ID token must do', { why: more.why })
      return { issuer, subject, profile: profileOf({ ...verified.claims, ...more.claims }) }
    },
    logoutUrl: async () => logoutUrl(await discover(LOGOUT_TIMEOUT_MS), client),
  }
}

function readSettings(config: Config): Settings | null {
  const { OIDC_ENABLED, OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_REDIRECT_URI, OIDC_SCOPES } = config
  if (!OIDC_ENABLED) return null
  if (OIDC_ISSUER === null || OIDC_CLIENT_ID === null || OIDC_CLIENT_SECRET === null || OIDC_REDIRECT_URI === null) {
    return null
  }
  const client = { id: OIDC_CLIENT_ID, secret: OIDC_CLIENT_SECRET, redirectUri: OIDC_REDIRECT_URI }
  return { issuer: OIDC_ISSUER, client, scopes: OIDC_SCOPES }
}

function authorizationUrl(
  metadata: Metadata,
  client: Client,
  scopes: readonly string[],
  { state, nonce, verifier }: AttemptSecrets,
): string {
  const { S256 } = CodeChallengeMethod
  const url = new OAuth2Client(client.id, client.secret, client.redirectUri).createAuthorizationURLWithPKCE(
    metadata.authorization_endpoint,
    state,
    S256,
    verifier,
    [...scopes],
  )
  url.searchParams.set('nonce', nonce)
  return url.href
}

/** RFC 9207, section 2.4. */
function checkCallbackIssuer(metadata: Metadata, iss: string | null): void {
  if (iss === null && metadata.authorization_response_iss_parameter_supported === true) {
    throw new OidcFailure('callback_iss_missing')
  }
}

async function subjectOf(
  { claims, hashes }: Verified,
  accessToken: string,
  expected: { issuer: string; clientId: string; nonce: string; now: number },
): Promise<string> {
  const atHashes = await Promise.all(hashes.map((hash) => halfHash(hash, accessToken)))
  const wrong = wrongClaim(claims, { ...expected, atHashes })
  if (wrong !== null) throw new OidcFailure(wrong)
  return String(claims['sub'])
}

/** OpenID Connect Core 1.0, 3.1.3.6. */
async function halfHash(hash: string, accessToken: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(hash, new TextEncoder().encode(accessToken)))
  return encodeBase64urlNoPadding(digest.subarray(0, digest.length / 2))
}

/** OpenID Connect RP-Initiated Logout 1.0, section 2; without an ID token as hint, for none is kept. */
function logoutUrl(metadata: Metadata, client: Client): string | null {
  const endpoint = metadata.end_session_endpoint ?? null
  if (endpoint === null) return null
  const url = new URL(endpoint)
  url.searchParams.set('client_id', client.id)
  url.searchParams.set('post_logout_redirect_uri', signedOutPage(client.redirectUri))
  return url.href
}

/** The login page beside the callback, by the address that the provider knows. */
function signedOutPage(redirectUri: string): string {
  const { origin, pathname } = new URL(redirectUri)
  const base = pathname.endsWith(CALLBACK_PATH) ? pathname.slice(0, -CALLBACK_PATH.length) : ''
  return `${origin}${base}/login`
}
