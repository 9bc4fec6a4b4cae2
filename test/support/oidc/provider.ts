import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { CompactSign, type CryptoKey, exportJWK, generateKeyPair } from 'jose'

export type Json = Record<string, unknown>

/** A custom answer; `hang` never answers, `stall` begins an answer and never ends it. */
export type Reply =
  | 'hang'
  | 'stall'
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }

/** How the provider misbehaves; without any of these it follows the standards. */
export type Behaviour = {
  discovery?: Reply | ((document: Json) => unknown)
  keys?: Reply | ((set: { keys: Json[] }) => unknown)
  token?: Reply | ((answer: Json) => unknown)
  userInfo?: Reply | ((claims: Json) => unknown)
  /** Runs before UserInfo answers. */
  meanwhile?: () => Promise<unknown>
  header?: (header: Json) => Json
  claims?: (claims: Json) => Json
  /** Redeems a code without checking the PKCE verifier. */
  forgetsChallenge?: true
  /** Signs instead of the provider's own key. */
  sign?: (header: Json, claims: Json) => Promise<string> | string
  /** Changes the parameters of the redirect to the callback. */
  callback?: (query: URLSearchParams) => void
}

export type TestKey = {
  readonly alg: string
  readonly privateKey: CryptoKey
  /** As published. */
  readonly jwk: Json
}

export type SeenRequest = {
  readonly method: string
  readonly path: string
  readonly headers: Json
  readonly body: string
}

export type TestProvider = {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  behave: Behaviour
  /** Published keys; the first one signs. */
  keys: TestKey[]
  /** The user who signs in next, as the claims of UserInfo. */
  user: Json & { sub: string }
  /** Methods of client authentication that discovery offers and the token endpoint accepts. */
  authentication: string[] | undefined
  /** Paths of endpoints that are below `/new` from then on, and answer 404 at their old place. */
  readonly moved: Set<string>
  /** The registered redirect URIs; null: any. */
  redirectUris: string[] | null
  now: () => number
  readonly seen: SeenRequest[]
  /** Everything ever issued or received that nobody may store. */
  readonly secrets: Set<string>
  /** Follows an authorization URL as a browser would; returns the URL of the callback. */
  authorize(url: string): Promise<URL>
  /** How often a path was requested. */
  count(path: string): number
  close(): Promise<void>
}

/** The data behind a code: the provider behaves as configured when the code was issued. */
type Grant = { readonly query: URLSearchParams; readonly user: Json & { sub: string }; readonly behave: Behaviour }

/** Client id, secret and callback of `provider` for the environment of a service. */
export function oidcEnv(provider: TestProvider, extra: Record<string, string> = {}): Record<string, string> {
  return {
    OIDC_ENABLED: 'true',
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.clientId,
    OIDC_CLIENT_SECRET: provider.clientSecret,
    OIDC_REDIRECT_URI: 'http://localhost/api/auth/oidc/callback',
    ...extra,
  }
}

let keyNumber = 0

export async function makeKey(alg: string, published: Json = {}): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(publicKey)
  return { alg, privateKey, jwk: { kid: `key ${++keyNumber}`, use: 'sig', alg, ...jwk, ...published } }
}

export async function signWith(key: CryptoKey | Uint8Array, header: Json, claims: Json): Promise<string> {
  const { alg, ...rest } = header
  return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader({ ...rest, alg: String(alg) })
    .sign(key)
}

/** An OpenID provider on loopback with real HTTP and real keys; `behave` makes it misbehave. */
export async function startProvider(options: { secret?: string; alg?: string } = {}): Promise<TestProvider> {
  const clientId = 'mesh monitor: 1'
  const grants = new Map<string, Grant>()
  const tokens = new Map<string, Grant>()
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(Object(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = Object(server.address())
  const issuer = `http://127.0.0.1:${address.port}`
  const provider: TestProvider = {
    issuer,
    clientId,
    clientSecret: options.secret ?? randomBytes(24).toString('base64url'),
    behave: {},
    keys: [await makeKey(options.alg ?? 'ES256')],
    user: { sub: 'subject 1', preferred_username: 'anna', name: 'Anna Berg', email: 'anna.berg@example.org' },
    authentication: ['client_secret_basic'],
    moved: new Set(),
    redirectUris: null,
    now: Date.now,
    seen: [],
    secrets: new Set(),
    authorize: async (url) => {
      const redirect = await fetch(url, { redirect: 'manual' })
      const location = redirect.headers.get('location')
      if (location === null) throw new Error(`the provider answered ${redirect.status} ${await redirect.text()}`)
      return new URL(location)
    },
    count: (path) => provider.seen.filter((request) => request.path === path).length,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  provider.secrets.add(provider.clientSecret)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const body = Buffer.concat(chunks).toString()
    const seen = { method: request.method ?? '', path: url.pathname, headers: { ...request.headers }, body }
    provider.seen.push(seen)
    const endpoint = url.pathname.replace(/^\/new/, '')
    if (provider.moved.has(endpoint) !== url.pathname.startsWith('/new/')) return void response.writeHead(404).end()
    switch (endpoint) {
      case '/.well-known/openid-configuration':
        return reply(response, provider.behave.discovery, discoveryDocument(provider))
      case '/jwks':
        return reply(response, provider.behave.keys, { keys: provider.keys.map(({ jwk }) => jwk) })
      case '/authorize':
        return redirectBack(response, url.searchParams)
      case '/token':
        return redeem(response, seen)
      case '/userinfo':
        return tellUser(response, String(request.headers.authorization))
      default:
        response.writeHead(404).end()
    }
  }

  function redirectBack(response: ServerResponse, query: URLSearchParams): void {
    if (provider.redirectUris?.includes(query.get('redirect_uri') ?? '') === false) {
      return void response.writeHead(400).end('this redirect URI is not registered')
    }
    const code = randomBytes(24).toString('base64url')
    grants.set(code, { query, user: provider.user, behave: provider.behave })
    for (const name of ['state', 'nonce']) provider.secrets.add(query.get(name) ?? '')
    provider.secrets.add(code)
    const back = new URL(query.get('redirect_uri') ?? '')
    back.searchParams.set('code', code)
    back.searchParams.set('state', query.get('state') ?? '')
    provider.behave.callback?.(back.searchParams)
    response.writeHead(302, { location: back.href }).end()
  }

  async function redeem(response: ServerResponse, seen: SeenRequest): Promise<void> {
    const form = new URLSearchParams(seen.body)
    provider.secrets.add(form.get('code_verifier') ?? '')
    const grant = grants.get(form.get('code') ?? '')
    if (isClient(provider, seen, form)) grants.delete(form.get('code') ?? '')
    const problem = !isClient(provider, seen, form)
      ? 'invalid_client'
      : !isGranted(grant, form)
        ? 'invalid_grant'
        : null
    if (problem !== null || grant === undefined) {
      return reply(
        response,
        { status: problem === 'invalid_client' ? 401 : 400, body: JSON.stringify({ error: problem }) },
        {},
      )
    }
    const accessToken = randomBytes(24).toString('base64url')
    const idToken = await issueIdToken(provider, grant, accessToken)
    tokens.set(accessToken, grant)
    for (const token of [accessToken, idToken]) provider.secrets.add(token)
    return reply(response, grant.behave.token, {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: 300,
      id_token: idToken,
    })
  }

  async function tellUser(response: ServerResponse, authorization: string): Promise<void> {
    const grant = tokens.get(authorization.replace(/^Bearer /, ''))
    if (grant === undefined) return reply(response, { status: 401 }, {})
    await grant.behave.meanwhile?.()
    return reply(response, grant.behave.userInfo, grant.user)
  }

  return provider
}

function discoveryDocument({ issuer, authentication, moved }: TestProvider): Json {
  const at = (path: string) => `${issuer}${moved.has(path) ? '/new' : ''}${path}`
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: at('/token'),
    jwks_uri: at('/jwks'),
    userinfo_endpoint: at('/userinfo'),
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['none', 'HS256', 'RS256', 'ES256', 'EdDSA'],
    ...(authentication && { token_endpoint_auth_methods_supported: authentication }),
  }
}

/** RFC 6749, section 2.3.1: both halves of Basic credentials are form-encoded. */
function isClient(provider: TestProvider, { headers }: SeenRequest, form: URLSearchParams): boolean {
  const basic = /^Basic (.+)$/.exec(String(headers['authorization']))?.[1]
  const methods = provider.authentication ?? ['client_secret_basic']
  if (basic === undefined) {
    const isRight = form.get('client_id') === provider.clientId && form.get('client_secret') === provider.clientSecret
    return methods.includes('client_secret_post') && isRight
  }
  const [id = '', secret = ''] = Buffer.from(basic, 'base64').toString().split(':')
  const decode = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))
  const isRight = decode(id) === provider.clientId && decode(secret) === provider.clientSecret
  return methods.includes('client_secret_basic') && !form.has('client_secret') && isRight
}

function isGranted(grant: Grant | undefined, form: URLSearchParams): boolean {
  const challenge = createHash('sha256')
    .update(form.get('code_verifier') ?? '')
    .digest('base64url')
  return (
    grant !== undefined &&
    (grant.behave.forgetsChallenge === true || grant.query.get('code_challenge') === challenge) &&
    grant.query.get('code_challenge_method') === 'S256' &&
    form.get('grant_type') === 'authorization_code' &&
    form.get('redirect_uri') === grant.query.get('redirect_uri')
  )
}

async function issueIdToken(
  provider: TestProvider,
  { query, user, behave }: Grant,
  accessToken: string,
): Promise<string> {
  const [key] = provider.keys
  if (key === undefined) throw new Error('a provider without keys signs nothing')
  const { header = same, claims = same, sign = (h: Json, c: Json) => signWith(key.privateKey, h, c) } = behave
  const now = Math.floor(provider.now() / 1000)
  return sign(
    header({ alg: key.alg, ...(key.jwk['kid'] !== undefined && { kid: key.jwk['kid'] }) }),
    claims({
      iss: provider.issuer,
      sub: user.sub,
      aud: provider.clientId,
      exp: now + 300,
      iat: now,
      nonce: query.get('nonce'),
      at_hash: halfHash(accessToken, key.alg),
    }),
  )
}

function same<T>(value: T): T {
  return value
}

/** OpenID Connect Core 1.0, 3.1.3.6. */
function halfHash(text: string, alg: string): string {
  const name = alg.startsWith('Ed') || alg.endsWith('512') ? 'sha512' : alg.endsWith('384') ? 'sha384' : 'sha256'
  const digest = createHash(name).update(text).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

function reply<T extends Json>(
  response: ServerResponse,
  how: Reply | ((body: T) => unknown) | undefined,
  body: T,
): void {
  if (how === 'hang') return
  if (how === 'stall') {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    return
  }
  const json = { 'content-type': 'application/json' }
  if (typeof how === 'object') response.writeHead(how.status, { ...json, ...how.headers }).end(how.body)
  else response.writeHead(200, json).end(JSON.stringify(how === undefined ? body : how(body)))
}
