import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createProviders } from '../../../../src/app/accounts/oidc/oidc.ts'
import { reachCallback, signInBy, whoIs } from '../../../support/web/browser.ts'
import { type Json, makeKey, signWith } from '../../../support/oidc/provider.ts'
import {
  app,
  begin,
  browser,
  lastReason,
  open,
  provider,
  replaceProvider,
  useProviderSite,
} from '../../../support/oidc/provider-site.ts'

useProviderSite()

// The result depends on what the service already knows of the provider, so each test has its own service.

test('the authorization request: code, S256, fresh secrets of 256 bits, openid, the exact redirect URI', async () => {
  await open({ OIDC_SCOPES: 'profile groups' })
  const [one, two] = [await begin(), await begin()]
  const query = Object.fromEntries(one.searchParams)
  expect(query).toStrictEqual({
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: 'http://localhost/api/auth/oidc/callback',
    scope: 'openid profile groups',
    state: expect.stringMatching(/^[\w-]{16}\.[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  })
  for (const name of ['state', 'nonce', 'code_challenge']) expect(two.searchParams.get(name)).not.toBe(query[name])
})

test('an authorization endpoint keeps its own query', async () => {
  provider.behave = {
    discovery: (document) => ({ ...document, authorization_endpoint: `${provider.issuer}/authorize?tenant=a%20b` }),
  }
  expect((await begin()).searchParams.get('tenant')).toBe('a b')
})

test.each([
  ['is missing', undefined, 'callback_iss_missing'],
  ['names another issuer', 'https://evil.example', 'callback_iss_wrong'],
])('an announced iss that %s fails the sign-in before the code is redeemed', async (_what, iss, reason) => {
  provider.behave = {
    discovery: (document) => ({ ...document, authorization_response_iss_parameter_supported: true }),
    callback: (query) => (iss === undefined ? undefined : query.set('iss', iss)),
  }
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe(reason)
  expect(provider.count('/token')).toBe(0)
  provider.behave = { callback: (query) => query.set('iss', provider.issuer) }
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test.each([
  ['HTML', { status: 200, body: '<html>' }, 'keys_invalid'],
  ['5 MB', { status: 200, body: JSON.stringify({ keys: [], x: 'x'.repeat(5 * 1024 * 1024) }) }, 'keys_unreachable'],
  ['500', { status: 500, body: '{}' }, 'keys_refused'],
  ['a redirect', { status: 302, headers: { location: '/jwks' } }, 'keys_refused'],
  ['no list', () => ({ keys: {} }), 'keys_invalid'],
  ['no keys', () => ({ keys: [] }), 'key_unknown'],
  [
    '1000 keys',
    ({ keys }: { keys: Json[] }) => ({ keys: Array.from({ length: 1000 }, () => keys[0]) }),
    'keys_invalid',
  ],
  ['a key for encryption', ({ keys: [key] }: { keys: Json[] }) => ({ keys: [{ ...key, use: 'enc' }] }), 'key_unknown'],
  [
    'a key that may only sign',
    ({ keys: [key] }: { keys: Json[] }) => ({ keys: [{ ...key, key_ops: ['sign'] }] }),
    'key_unknown',
  ],
  [
    'a key for another algorithm',
    ({ keys: [key] }: { keys: Json[] }) => ({ keys: [{ ...key, alg: 'ES384' }] }),
    'key_unknown',
  ],
  ['a key with another ID', ({ keys: [key] }: { keys: Json[] }) => ({ keys: [{ ...key, kid: 'x' }] }), 'key_unknown'],
  ['a broken key', ({ keys: [key] }: { keys: Json[] }) => ({ keys: [{ ...key, x: 'AAAA' }] }), 'id_token_signature'],
  ['a shared secret', () => ({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'key 1' }] }), 'key_unknown'],
])('with %s nobody is signed in, and once a good key is published sign-in works', async (_what, keys, reason) => {
  provider.behave = { keys }
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe(reason)
  expect(await whoIs(browser)).toBeNull()
  provider.behave = {}
  app.clock.advance(10 * 60_000)
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test('a small RSA key is refused', async () => {
  const { privateKey, publicKey } = await crypto.subtle.generateKey(
    { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]) },
    true,
    ['sign', 'verify'],
  )
  const jwk = { ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: 'small', key_ops: ['verify'] }
  provider.keys = [{ alg: 'RS256', privateKey, jwk }]
  provider.behave = {
    sign: async (header, claims) => {
      const input = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
      const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', privateKey, Buffer.from(input))
      return `${input}.${Buffer.from(signature).toString('base64url')}`
    },
  }
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe('id_token_signature')
})

test.each([
  ['EdDSA', 'sha512', null],
  ['EdDSA', 'sha256', null],
  ['EdDSA', 'sha384', 'claim_at_hash'],
  ['ES256', 'sha256', null],
  ['ES256', 'sha512', 'claim_at_hash'],
  ['RS512', 'sha256', 'claim_at_hash'],
])('an ID token signed with %s whose at_hash is a %s is accepted or refused', async (alg, hash, reason) => {
  provider.keys = [await makeKey(alg)]
  let accessToken = ''
  provider.behave = {
    token: (answer) => ({ ...answer, access_token: accessToken }),
    claims: (claims) => {
      accessToken = `token of ${String(claims['nonce'])}`
      const digest = createHash(hash).update(accessToken).digest()
      return { ...claims, at_hash: digest.subarray(0, digest.length / 2).toString('base64url') }
    },
  }
  expect(await signInBy(browser, provider)).toBe(reason === null ? '302 /' : '302 /login?error=oidc_failed')
  expect(lastReason()).toBe(reason ?? undefined)
})

test('a single key without an id works, also after it changed; beside another of its kind it does not', async () => {
  provider.keys = [await makeKey('ES256', { kid: undefined }), await makeKey('RS256')]
  expect(await signInBy(browser, provider)).toBe('302 /')
  provider.keys = [await makeKey('ES256', { kid: undefined })]
  expect(await signInBy(browser, provider)).toBe('302 /')
  provider.keys = [await makeKey('ES256', { kid: undefined }), await makeKey('ES256', { kid: undefined })]
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe('key_unknown')
})

test('an unknown key costs one fetch if no keys are known, and one more if some are', async () => {
  provider.behave = { header: (header) => ({ ...header, kid: 'unknown' }) }
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(provider.count('/jwks')).toBe(1)
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(provider.count('/jwks')).toBe(2)
  for (let i = 0; i < 10; i++) await signInBy(browser, provider)
  expect(provider.count('/jwks')).toBe(6)
  app.clock.advance(5000)
  for (let i = 0; i < 10; i++) await signInBy(browser, provider)
  expect(provider.count('/jwks')).toBe(7)
})

test('keys that really change are fetched each time', async () => {
  for (let i = 0; i < 10; i++) {
    provider.keys = [await makeKey('ES256', { kid: `key ${i}` })]
    expect(await signInBy(browser, provider)).toBe('302 /')
  }
})

test('a new key under the old id works, and bad signatures under that id cost few fetches', async () => {
  expect(await signInBy(browser, provider)).toBe('302 /')
  const { kid } = provider.keys[0]?.jwk ?? {}
  expect(kid).toBeTypeOf('string')
  for (let i = 0; i < 5; i++) {
    provider.keys = [await makeKey('ES256', { kid })]
    expect(await signInBy(browser, provider)).toBe('302 /')
  }
  expect(provider.count('/jwks')).toBe(6)
  provider.behave = { sign: async (header, claims) => signWith((await makeKey('ES256')).privateKey, header, claims) }
  for (let i = 0; i < 10; i++) expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe('id_token_signature')
  expect(provider.count('/jwks')).toBe(11)
})

test('discovery is fetched at most once an hour, the keys every ten minutes', async () => {
  const counts = () => [provider.count('/.well-known/openid-configuration'), provider.count('/jwks')]
  for (let i = 0; i < 3; i++) expect(await signInBy(browser, provider)).toBe('302 /')
  expect(counts()).toEqual([1, 1])
  app.clock.advance(10 * 60_000)
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(counts()).toEqual([1, 2])
  app.clock.advance(50 * 60_000)
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(counts()).toEqual([2, 3])
})

test('while the provider is down the service starts, local login works, and sign-ins recover by themselves', async () => {
  const behaved = provider.behave
  provider.behave = { discovery: { status: 503 } }
  await open()
  expect((await browser.request('/api/auth/oidc/login')).headers.get('location')).toBe('/login?error=oidc_unavailable')
  expect((await app.request('/api/auth/status')).status).toBe(200)
  expect((await (await app.admin()).send('GET', '/api/users')).status).toBe(200)
  provider.behave = behaved
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test('a flood of sign-ins while the provider is down does not become a flood of requests', async () => {
  provider.behave = { discovery: { status: 503 } }
  for (let i = 0; i < 80; i++) await app.request('/api/auth/oidc/login')
  expect(provider.seen).toHaveLength(50)
  app.clock.advance(2000)
  provider.behave = {}
  expect(await signInBy(browser, provider)).toBe('302 /')
})

test.each([
  ['client_secret_basic', undefined],
  ['client_secret_basic', ['client_secret_post', 'client_secret_basic']],
  ['client_secret_post', ['client_secret_post', 'private_key_jwt']],
])('a secret with special characters is sent correctly by %s', async (method, offered) => {
  await replaceProvider({ secret: 'a:b%c+d&e=f ü€"\\/~!*\'()%20' })
  provider.authentication = offered
  await open()
  expect(await signInBy(browser, provider)).toBe('302 /')
  const token = provider.seen.find(({ path }) => path === '/token')
  expect(token?.headers['authorization'] === undefined).toBe(method === 'client_secret_post')
  expect(new URLSearchParams(token?.body).has('client_secret')).toBe(method === 'client_secret_post')
})

test.each(['client_secret_basic', 'client_secret_post'])(
  'a client registered for %s signs in even if discovery lists no known method, or none at all',
  async (method) => {
    for (const listed of [['private_key_jwt', 'x'], [], undefined]) {
      await open()
      provider.authentication = [method]
      provider.behave = {
        discovery: (document) => ({ ...document, token_endpoint_auth_methods_supported: listed }),
      }
      expect(await signInBy(browser, provider), String(listed)).toBe('302 /')
    }
    expect(provider.count('/token')).toBe(method === 'client_secret_basic' ? 3 : 6)
  },
)

test('a provider that refuses the client secret is tried both ways, and the log has its answers', async () => {
  provider.authentication = ['private_key_jwt']
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe('token_refused')
  expect(provider.count('/token')).toBe(2)
})

describe('an endpoint that has moved', () => {
  const DISCOVERY = '/.well-known/openid-configuration'

  test.each(['/token', '/jwks', '/userinfo'])('%s is found again within the same sign-in', async (path) => {
    expect(await signInBy(browser, provider)).toBe('302 /')
    provider.user = { ...provider.user, name: 'Anna Neu' }
    app.clock.advance(10 * 60_000)
    provider.moved.add(path)
    expect(await signInBy(browser, provider)).toBe('302 /')
    expect(await whoIs(browser)).toMatchObject({ displayName: 'Anna Neu' })
    expect([provider.count(path), provider.count(`/new${path}`)]).toEqual([2, 1])
    expect(provider.count(DISCOVERY)).toBe(2)
    expect(await signInBy(browser, provider)).toBe('302 /')
    expect(provider.count(DISCOVERY)).toBe(2)
  })

  test('is looked up three times in quick succession, then once a minute, and never because of a code', async () => {
    expect(await signInBy(browser, provider)).toBe('302 /')
    provider.behave = { token: { status: 400, body: JSON.stringify({ error: 'invalid_grant' }) } }
    for (let i = 0; i < 5; i++) await signInBy(browser, provider)
    expect(provider.count(DISCOVERY)).toBe(1)
    provider.behave = { token: { status: 404, body: '' } }
    for (let i = 0; i < 10; i++) await signInBy(browser, provider)
    expect(lastReason()).toBe('token_refused')
    expect(provider.count(DISCOVERY)).toBe(4)
    app.clock.advance(60_000)
    for (let i = 0; i < 10; i++) await signInBy(browser, provider)
    expect(provider.count(DISCOVERY)).toBe(5)
    provider.behave = {}
    expect(await signInBy(browser, provider)).toBe('302 /')
  })

  test('is not followed to another issuer or to nowhere', async () => {
    expect(await signInBy(browser, provider)).toBe('302 /')
    for (const discovery of [
      { status: 503 },
      (document: Json) => ({ ...document, issuer: 'https://evil.example', token_endpoint: `${provider.issuer}/evil` }),
    ]) {
      provider.behave = { discovery, token: { status: 404, body: '' } }
      expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
      expect(lastReason()).toBe('token_refused')
    }
    expect(provider.count('/evil')).toBe(0)
  })
})

test.each([
  ['discovery', '302 /login?error=oidc_unavailable'],
  ['token', '302 /login?error=oidc_failed'],
  ['keys', '302 /login?error=oidc_failed'],
  ['userInfo', '302 /'],
] as const)(
  'a callback ends within its time limit when %s never ends',
  async (what, end) => {
    for (const how of ['hang', 'stall'] as const) {
      await open()
      const { config, log, now } = app.ports
      Object.assign(app.ports, { providers: createProviders({ config, log, now, callbackTimeoutMs: 300 }) })
      if (what !== 'discovery') provider.behave = { [what]: how }
      const callback = await reachCallback(browser, provider)
      if (what === 'discovery') {
        provider.behave = { discovery: how }
        // A service that has not asked the provider anything yet.
        Object.assign(app.ports, { providers: createProviders({ config, log, now, callbackTimeoutMs: 300 }) })
      }
      const answer = await browser.request(callback)
      expect(`${answer.status} ${answer.headers.get('location') ?? ''}`).toBe(end)
      provider.behave = {}
    }
  },
  4500,
)

test.each(['client_secret_basic', 'client_secret_post'])(
  'a client registered for %s finds its method by trying if discovery offers both, and remembers it',
  async (method) => {
    provider.authentication = [method]
    const offered = ['client_secret_basic', 'client_secret_post']
    provider.behave = {
      discovery: (document) => ({ ...document, token_endpoint_auth_methods_supported: offered }),
    }
    expect(await signInBy(browser, provider)).toBe('302 /')
    const first = method === 'client_secret_basic' ? 1 : 2
    expect(provider.count('/token')).toBe(first)
    expect(await signInBy(browser, provider)).toBe('302 /')
    expect(provider.count('/token')).toBe(first + 1)
  },
)

test.each([
  [401, ''],
  [400, JSON.stringify({ error: 'invalid_client' })],
  [403, JSON.stringify({ error: 'unauthorized_client' })],
])('a client refused with %s %s is tried with the other method', async (status, body) => {
  const refusal = { status, body }
  provider.authentication = ['client_secret_basic', 'client_secret_post']
  provider.behave = { token: refusal }
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  const [basic, post] = provider.seen.filter(({ path }) => path === '/token')
  expect([basic, post].map((seen) => seen?.headers['authorization'] === undefined)).toEqual([false, true])
  expect(provider.count('/token')).toBe(2)
})

test('a refused grant is not retried', async () => {
  provider.authentication = ['client_secret_basic', 'client_secret_post']
  provider.behave = { token: { status: 400, body: JSON.stringify({ error: 'invalid_grant' }) } }
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(app.logged.at(-1)).toContain('"reason":"token_refused","status":400,"error":"invalid_grant"')
  expect(provider.count('/token')).toBe(1)
})

test('a wrong client secret: the log says invalid_client', async () => {
  await open({ OIDC_CLIENT_SECRET: 'wrong' })
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(app.logged.at(-1)).toContain('"reason":"token_refused","status":401,"error":"invalid_client"')
})

test('sign-out continues at the provider for a session that began there, and only for that', async () => {
  provider.behave = {
    discovery: (document) => ({ ...document, end_session_endpoint: `${provider.issuer}/end?realm=x` }),
  }
  expect(await signInBy(browser, provider)).toBe('302 /')
  const { logoutUrl } = Object(await (await browser.request('/api/auth/logout', { method: 'POST' })).json())
  const url = new URL(logoutUrl)
  expect(`${url.origin}${url.pathname}`).toBe(`${provider.issuer}/end`)
  expect(Object.fromEntries(url.searchParams)).toStrictEqual({
    realm: 'x',
    client_id: provider.clientId,
    id_token_hint: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    post_logout_redirect_uri: 'http://localhost/login',
  })
  expect(await whoIs(browser)).toBeNull()
  expect(await (await browser.request('/api/auth/logout', { method: 'POST' })).json()).toEqual({ logoutUrl: null })
  const admin = await app.admin()
  expect(await (await admin.send('POST', '/api/auth/logout')).json()).toEqual({ logoutUrl: null })
})

test('sign-out ends the session even if the provider has no such page or is down', async () => {
  for (const discovery of [undefined, { status: 503 }]) {
    expect(await signInBy(browser, provider)).toBe('302 /')
    provider.behave = discovery === undefined ? {} : { discovery }
    app.clock.advance(60 * 60_000)
    expect(await (await browser.request('/api/auth/logout', { method: 'POST' })).json()).toEqual({ logoutUrl: null })
    expect(await whoIs(browser)).toBeNull()
  }
  const said = app.logged.map((line) => JSON.parse(line)).find(({ message }) => /where to sign out/.test(message))
  expect(said).toMatchObject({ provider: 'default', reason: 'discovery_refused', status: 503 })
})

test('behind a proxy with a path, the redirects of the service begin with that path', async () => {
  await open({
    PUBLIC_URL: 'https://example.org/mesh/',
    OIDC_REDIRECT_URI: 'https://example.org/mesh/api/auth/oidc/callback',
  })
  const callback = (await reachCallback(browser, provider)).replace(/^\/mesh/, '')
  expect((await browser.request(callback)).headers.get('location')).toBe('/mesh/')
  expect((await browser.request(callback)).headers.get('location')).toBe('/mesh/login?error=oidc_state_invalid')
})

test('without OpenID Connect its routes say so, and nothing else changes', async () => {
  await open({ OIDC_ENABLED: 'false' })
  for (const route of ['login', 'callback?code=1&state=2']) {
    const answer = await app.request(`/api/auth/oidc/${route}`)
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ code: 'oidc_disabled' })
  }
  expect(await (await app.request('/api/auth/status')).json()).toMatchObject({ oidcEnabled: false })
})
