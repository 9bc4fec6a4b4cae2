import type { Provider } from './provider.ts'
import { callbackIn, callbackPathOf, signedOutPage } from '../../config/callback.ts'
import type { ProviderSettings } from '../../config/providers.ts'
import type { Ports } from '../../base/context.ts'
import { toBase64url } from '../../base/crypto.ts'
import { authorizationUrl } from './protocol/authorization-url.ts'
import { createAllowance } from './protocol/allowance.ts'
import { authenticationTime, type Claims, factorsOf, wrongClaim } from './protocol/claims.ts'
import { createDiscovery, type Metadata } from './protocol/discovery.ts'
import { OidcFailure } from './failure.ts'
import { askWithin } from '../../base/ask-within.ts'
import { readGroups } from './groups.ts'
import { countKeys, createKeys, type Verified } from './protocol/keys.ts'
import { readLogout } from './protocol/logout-token.ts'
import { profileOf } from './protocol/profile.ts'
import { type Client, createRedemption } from './protocol/token.ts'
import { readUserInfo } from './protocol/userinfo.ts'

/** The type in the header of a logout token: section 2.4. */
const LOGOUT_TYPE = 'LOGOUT+JWT'

/** The maximum time that a sign-out waits for a provider. */
const LOGOUT_TIMEOUT_MS = 3000

/** The time for all requests of one callback to the provider. The rest of its 25 s is for the service itself. */
const CALLBACK_TIMEOUT_MS = 24_000
const BEGIN_TIMEOUT_MS = 8000
const TEST_TIMEOUT_MS = 12_000

type Needs = Pick<Ports, 'log' | 'now'> &
  Partial<Pick<Ports, 'clockWatch'>> & {
    /** The time limit of a callback, for tests. */
    readonly callbackTimeoutMs?: number
  }

/** The configured OpenID providers, the default one first. Contacts one only when somebody signs in there. */
export function createProviders({ config, ...needs }: Needs & Pick<Ports, 'config'>): readonly Provider[] {
  for (const { id: provider, issuer, redirectUri } of config.OIDC_PROVIDERS) {
    needs.log.info('Redirect URI to register at the OpenID provider', { provider, issuer, redirectUri })
    if (callbackIn(redirectUri) !== null) continue
    const path = callbackPathOf(provider)
    needs.log.warn(`The redirect URI is not a callback of this service: a proxy must route it to ${path}`, { provider })
  }
  return config.OIDC_PROVIDERS.map((settings) => createProvider(settings, needs))
}

function createProvider(
  settings: ProviderSettings,
  { log, now, clockWatch = null, callbackTimeoutMs = CALLBACK_TIMEOUT_MS }: Needs,
): Provider {
  const { issuer, scopes, groupsClaim, usernameClaim } = settings
  const client: Client = { id: settings.clientId, secret: settings.clientSecret, redirectUri: settings.redirectUri }
  const fetches = {
    needed: createAllowance(50, 1000, now),
    renewed: createAllowance(3, 60_000, now),
    tested: createAllowance(5, 12_000, now),
  }
  const discovery = createDiscovery(issuer, fetches, {
    now,
    onDate: (date) => clockWatch?.agree(`the OpenID provider ${settings.id}`, date),
  })
  // Anybody can send a logout token, but must not be able to fill the log.
  const complaints = createAllowance(10, 60_000, now)
  const redeem = createRedemption(client)
  const verify = createKeys({ unknown: createAllowance(5, 5000, now), reused: createAllowance(5, 5000, now) }, now)
  return {
    issuer,
    settings,
    authorizationUrl: async (secrets, how) => {
      const url = authorizationUrl(await discovery.current(askWithin(BEGIN_TIMEOUT_MS)), client, scopes, secrets)
      // With max_age the provider must return the time of authentication in auth_time: OpenID Connect Core 1.0,
      // 3.1.2.1.
      if (how === 'anew') {
        url.searchParams.set('prompt', 'login')
        url.searchParams.set('max_age', '0')
      }
      return url.href
    },
    identify: async ({ code, iss }, secrets) => {
      const ask = askWithin(callbackTimeoutMs)
      let metadata = await discovery.current(ask)
      checkCallbackIssuer(metadata, iss)
      if (code === null) throw new OidcFailure('callback_code_missing')
      /** Whether the provider now names another endpoint than the one that failed. */
      const hasMoved = async (name: 'token_endpoint' | 'jwks_uri' | 'userinfo_endpoint'): Promise<boolean> => {
        const before = metadata
        metadata = (await discovery.renewed(ask, before)) ?? before
        return metadata[name] !== before[name]
      }
      const { idToken, accessToken } = await againIf(
        () => hasMoved('token_endpoint'),
        () => redeem(ask, metadata, { code, verifier: secrets.verifier }),
      )
      const verified = await againIf(
        () => hasMoved('jwks_uri'),
        () => verify(ask, metadata.jwks_uri, idToken),
      )
      const clientId = client.id
      const subject = await subjectOf(verified, accessToken, { issuer, clientId, nonce: secrets.nonce, now: now() })
      const tell = () => readUserInfo(ask, metadata, accessToken, { issuer, clientId, subject }, verify)
      const first = await tell()
      const more = first.claims === null && (await hasMoved('userinfo_endpoint')) ? await tell() : first
      if (more.claims === null) {
        log.warn('No UserInfo: only the claims of the ID token are used', { provider: settings.id, why: more.why })
      }
      const claims = { ...verified.claims, ...more.claims }
      return {
        issuer,
        subject,
        authenticatedAt: authenticationTime(verified.claims),
        factors: factorsOf(verified.claims),
        groups: groupsClaim === null ? 'missing' : readGroups(claims, groupsClaim, more.claims !== null),
        profile: profileOf(claims, usernameClaim),
        sid: sessionName(verified.claims),
        idToken,
      }
    },
    test: async () => {
      const ask = askWithin(TEST_TIMEOUT_MS)
      const metadata = await discovery.tested(ask)
      const keys = await countKeys(ask, metadata.jwks_uri)
      if (keys === 0) throw new OidcFailure('keys_unusable')
      return {
        authorizationEndpoint: metadata.authorization_endpoint,
        tokenEndpoint: metadata.token_endpoint,
        userinfoEndpoint: metadata.userinfo_endpoint ?? null,
        endSessionEndpoint: metadata.end_session_endpoint ?? null,
        keys,
      }
    },
    discoveryFailure: discovery.failure,
    logoutUrl: async (idToken) => logoutUrl(await discovery.current(askWithin(LOGOUT_TIMEOUT_MS)), client, idToken),
    checkLogout: async (token) => {
      try {
        const ask = askWithin(BEGIN_TIMEOUT_MS)
        const { jwks_uri: keys } = await discovery.current(ask)
        const { claims } = await verify(ask, keys, token, LOGOUT_TYPE)
        const ended = readLogout(claims, { issuer, clientId: client.id, now: now() })
        if (typeof ended === 'string') throw new OidcFailure(ended)
        return ended
      } catch (error) {
        if (error instanceof OidcFailure && complaints.take()) {
          const why = { provider: settings.id, reason: error.reason, ...error.details }
          log.warn('A logout token of the OpenID provider was refused', why)
        }
        throw error
      }
    },
  }
}

/** Repeats `step` if an endpoint of the provider failed and has moved since. */
async function againIf<T>(hasMoved: () => Promise<boolean>, step: () => Promise<T>): Promise<T> {
  return step().catch(async (error: unknown) => {
    if (error instanceof OidcFailure && isEndpointFailure(error) && (await hasMoved())) return step()
    throw error
  })
}

/** Whether an endpoint of the provider may be the cause: not a failure that a forged code can produce. */
function isEndpointFailure({ reason, details }: OidcFailure): boolean {
  switch (reason) {
    case 'token_unreachable':
    case 'token_invalid':
    case 'keys_unreachable':
    case 'keys_refused':
    case 'keys_invalid':
      return true
    case 'token_refused': {
      const status = Number(details['status'])
      return status < 400 || status >= 500 || [404, 405, 410].includes(status)
    }
    default:
      return false
  }
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
  return toBase64url(digest.subarray(0, digest.length / 2))
}

/** The provider's ID of the session of an ID token. OpenID Connect Back-Channel Logout 1.0, 2.1. */
function sessionName({ sid }: Claims): string | null {
  return typeof sid === 'string' && sid !== '' && sid.length <= 255 ? sid : null
}

/** OpenID Connect RP-Initiated Logout 1.0, section 2. */
function logoutUrl(metadata: Metadata, client: Client, idToken: string | null): string | null {
  const endpoint = metadata.end_session_endpoint ?? null
  if (endpoint === null) return null
  const url = new URL(endpoint)
  url.searchParams.set('client_id', client.id)
  if (idToken !== null) url.searchParams.set('id_token_hint', idToken)
  url.searchParams.set('post_logout_redirect_uri', signedOutPage(client.redirectUri))
  return url.href
}
