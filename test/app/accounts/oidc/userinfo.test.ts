import { expect, test } from 'vitest'
import { signInBy, whoIs } from '../../../support/web/browser.ts'
import { type Json, makeKey, signWith, type TestProvider } from '../../../support/oidc/provider.ts'
import { app, browser, lastReason, provider, useProviderSite } from '../../../support/oidc/provider-site.ts'

useProviderSite()

const SUBJECT = 'subject 1'

/** UserInfo answers `body` as a JWT; the ID token carries another name. */
function answersJwt(body: string): void {
  provider.behave = {
    userInfo: { status: 200, headers: { 'content-type': 'application/jwt' }, body },
    claims: (claims) => ({ ...claims, name: 'Anna of the token' }),
  }
}

function signed({ keys: [key] }: TestProvider, change: Json = {}): Promise<string> {
  if (key === undefined) throw new Error('a provider without keys cannot sign')
  return signWith(key.privateKey, { alg: key.alg, kid: key.jwk['kid'] }, { sub: SUBJECT, name: 'Anna Berg', ...change })
}

function warnings(): string[] {
  return app.logged.filter((line) => line.includes('No UserInfo'))
}

test.each([
  ['with issuer and audience', ({ issuer, clientId }: TestProvider) => ({ iss: issuer, aud: clientId })],
  ['with the audience as a list', ({ clientId }: TestProvider) => ({ aud: [clientId] })],
  ['with neither', () => ({})],
])('signed UserInfo %s is read', async (_what, claims) => {
  answersJwt(await signed(provider, claims(provider)))
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(await whoIs(browser)).toMatchObject({ oidcSubject: SUBJECT, displayName: 'Anna Berg' })
  expect(warnings()).toEqual([])
})

test('UserInfo signed by a new key is read after fetching the key', async () => {
  expect(await signInBy(browser, provider)).toBe('302 /')
  const key = await makeKey('RS256')
  provider.keys = [...provider.keys, key]
  answersJwt(await signed({ ...provider, keys: [key] }, { name: 'Anna Tal' }))
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(await whoIs(browser)).toMatchObject({ displayName: 'Anna Tal' })
})

const encoded = (value: Json) => Buffer.from(JSON.stringify(value)).toString('base64url')

test.each<[string, string, (provider: TestProvider) => Promise<string> | string]>([
  ['for another client', 'for another', (it) => signed(it, { aud: 'somebody else' })],
  ['for this client and another one', 'for another', (it) => signed(it, { aud: [it.clientId, 'somebody else'] })],
  ['of another issuer', 'for another', (it) => signed(it, { iss: 'https://evil.example' })],
  [
    'signed by somebody else',
    'id_token_signature',
    async (it) => signed({ ...it, keys: [{ ...(await makeKey('ES256')), jwk: it.keys[0]?.jwk ?? {} }] }),
  ],
  [
    'signed with the client secret',
    'id_token_alg',
    (it) => signWith(Buffer.from(it.clientSecret.padEnd(32)), { alg: 'HS256' }, { sub: SUBJECT, name: 'Eve' }),
  ],
  ['not signed', 'id_token_alg', () => `${encoded({ alg: 'none' })}.${encoded({ sub: SUBJECT, name: 'Eve' })}.`],
  ['no JWT at all', 'no claims', () => 'Anna Berg'],
])('UserInfo %s is ignored, but does not prevent the sign-in', async (_what, why, body) => {
  answersJwt(await body(provider))
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(await whoIs(browser)).toMatchObject({ oidcSubject: SUBJECT, displayName: 'Anna of the token' })
  expect(warnings()).toEqual([expect.stringContaining(`"why":"${why}"`)])
})

test('signed UserInfo of another subject prevents the sign-in', async () => {
  answersJwt(await signed(provider, { sub: 'subject 2' }))
  expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
  expect(lastReason()).toBe('userinfo_sub')
})

test('an outage of UserInfo is logged with its cause; a provider without UserInfo is not an outage', async () => {
  provider.behave = { userInfo: { status: 503, body: '{}' } }
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(warnings()).toEqual([expect.stringContaining('"why":"status 503"')])
  provider.behave = { discovery: (document) => ({ ...document, userinfo_endpoint: undefined }) }
  app.clock.advance(60 * 60_000)
  expect(await signInBy(browser, provider)).toBe('302 /')
  expect(warnings()).toHaveLength(1)
  expect(provider.count('/userinfo')).toBe(1)
})
