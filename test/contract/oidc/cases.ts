import type { Behaviour, Json, TestProvider } from '../../support/oidc/provider.ts'
import { makeKey, signWith } from '../../support/oidc/provider.ts'

type Case = { readonly what: string; readonly behave: (provider: TestProvider) => Behaviour }
type FailingCase = Case & { readonly reason: string }

const HUGE = JSON.stringify({ padding: 'x'.repeat(5 * 1024 * 1024) })
const HTML = { status: 200, headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>Sign in</title>' }

const edited = (change: Json) => ({ discovery: (document: Json) => ({ ...document, ...change }) })

/** Documents that must be refused. */
export const DISCOVERY_CASES: readonly { what: string; behave: Behaviour; reason: string }[] = [
  { what: 'of another issuer', behave: edited({ issuer: 'https://evil.example' }), reason: 'discovery_issuer_wrong' },
  {
    what: 'of an issuer with one extra slash',
    behave: { discovery: (document) => ({ ...document, issuer: `${String(document['issuer'])}/` }) },
    reason: 'discovery_issuer_wrong',
  },
  { what: 'without an issuer', behave: edited({ issuer: undefined }), reason: 'discovery_invalid' },
  { what: 'without a token endpoint', behave: edited({ token_endpoint: undefined }), reason: 'discovery_invalid' },
  ...['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint', 'end_session_endpoint'].flatMap(
    (name) =>
      ['http://evil.example/x', 'javascript:alert(1)', 'https://user:pass@evil.example/'].map((url) => ({
        what: `whose ${name} is ${url}`,
        behave: edited({ [name]: url }),
        reason: 'discovery_invalid',
      })),
  ),
  { what: 'that is a list', behave: { discovery: () => [] }, reason: 'discovery_invalid' },
  { what: 'in HTML', behave: { discovery: HTML }, reason: 'discovery_invalid' },
  { what: 'of 5 MB', behave: { discovery: { status: 200, body: HUGE } }, reason: 'discovery_unreachable' },
  { what: 'answering 500', behave: { discovery: { status: 500, body: '{}' } }, reason: 'discovery_refused' },
  {
    what: 'that redirects',
    behave: { discovery: { status: 302, headers: { location: '/elsewhere' } } },
    reason: 'discovery_refused',
  },
]

const claims = (what: string, reason: string, change: Json): FailingCase => ({
  what,
  reason,
  behave: () => ({ claims: (good) => ({ ...good, ...change }) }),
})
const seconds = () => Math.floor(Date.now() / 1000)

const CLAIM_CASES: readonly FailingCase[] = [
  claims('iss of another issuer', 'claim_iss', { iss: 'https://evil.example' }),
  claims('no iss', 'claim_iss', { iss: undefined }),
  claims('no sub', 'claim_sub', { sub: undefined }),
  claims('an empty sub', 'claim_sub', { sub: '' }),
  claims('a sub that is a number', 'claim_sub', { sub: 7 }),
  claims('a sub with a lone surrogate', 'claim_sub', { sub: 'x\ud800' }),
  claims('a sub with a NUL', 'claim_sub', { sub: 'x\0y' }),
  claims('a sub of 256 characters', 'claim_sub', { sub: 'x'.repeat(256) }),
  claims('aud of another client', 'claim_aud', { aud: 'somebody else' }),
  claims('no aud', 'claim_aud', { aud: undefined }),
  claims('an empty aud', 'claim_aud', { aud: [] }),
  claims('a foreign azp', 'claim_azp', { azp: 'somebody else' }),
  claims('no exp', 'claim_exp', { exp: undefined }),
  claims('exp in the past', 'claim_exp', { exp: seconds() - 120 }),
  claims('exp as text', 'claim_exp', { exp: String(seconds() + 300) }),
  claims('no iat', 'claim_iat', { iat: undefined }),
  claims('iat in the future', 'claim_iat', { iat: seconds() + 3600 }),
  claims('iat of yesterday', 'claim_iat', { iat: seconds() - 86_400 }),
  claims('iat as text', 'claim_iat', { iat: String(seconds()) }),
  claims('nbf in the future', 'claim_nbf', { nbf: seconds() + 3600 }),
  claims('nonce of another sign-in', 'claim_nonce', { nonce: 'another' }),
  claims('no nonce', 'claim_nonce', { nonce: undefined }),
  claims('at_hash of another access token', 'claim_at_hash', { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }),
  claims('at_hash as a number', 'claim_at_hash', { at_hash: 1 }),
  {
    what: 'an extra audience',
    reason: 'claim_aud',
    behave: ({ clientId }) => ({ claims: (good) => ({ ...good, aud: [clientId, 'somebody else'] }) }),
  },
  {
    what: 'an extra audience and a foreign azp',
    reason: 'claim_aud',
    behave: ({ clientId }) => ({
      claims: (good) => ({ ...good, aud: [clientId, 'somebody else'], azp: 'somebody else' }),
    }),
  },
]

const header = (what: string, reason: string, change: Json): FailingCase => ({
  what,
  reason,
  behave: () => ({ header: (good) => ({ ...good, ...change }) }),
})
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const handmade =
  (sign: (head: Json, body: Json, provider: TestProvider) => string | Promise<string>) =>
  (provider: TestProvider): Behaviour => ({ sign: (head, body) => sign(head, body, provider) })

const SIGNATURE_CASES: readonly FailingCase[] = [
  {
    what: 'a signature with one bit changed',
    reason: 'id_token_signature',
    behave: handmade(async (head, body, { keys: [key] }) => {
      const token = key ? await signWith(key.privateKey, head, body) : ''
      return `${token.slice(0, -8)}${token.at(-8) === 'A' ? 'B' : 'A'}${token.slice(-7)}`
    }),
  },
  {
    what: 'another key under the right id',
    reason: 'id_token_signature',
    behave: handmade(async (head, body) => signWith((await makeKey('ES256')).privateKey, head, body)),
  },
  {
    what: 'another key in the header itself',
    reason: 'id_token_signature',
    behave: handmade(async (head, body) => {
      const { privateKey, jwk } = await makeKey('ES256')
      return signWith(privateKey, { ...head, jwk, jku: 'http://127.0.0.1:1/jwks' }, body)
    }),
  },
  {
    what: 'alg none without a signature',
    reason: 'id_token_alg',
    behave: handmade((head, body) => `${encode({ ...head, alg: 'none' })}.${encode(body)}.`),
  },
  {
    what: 'alg nOnE',
    reason: 'id_token_alg',
    behave: handmade((head, body) => `${encode({ ...head, alg: 'nOnE' })}.${encode(body)}.AAAA`),
  },
  {
    what: 'HS256 with the client secret',
    reason: 'id_token_alg',
    behave: handmade((_head, body, { clientSecret }) =>
      signWith(Buffer.from(clientSecret.padEnd(32)), { alg: 'HS256' }, body),
    ),
  },
  {
    what: 'HS256 with the public key',
    reason: 'id_token_alg',
    behave: handmade((head, body, { keys: [key] }) =>
      signWith(Buffer.from(JSON.stringify(key?.jwk)), { ...head, alg: 'HS256' }, body),
    ),
  },
  header('typ of an access token', 'id_token_typ', { typ: 'at+jwt' }),
  {
    what: 'an unknown critical header',
    reason: 'id_token_crit',
    behave: handmade(async (head, body, { keys: [key] }) => {
      const token = key ? await signWith(key.privateKey, head, body) : ''
      return [encode({ ...head, crit: ['exp'], exp: 1 }), ...token.split('.').slice(1)].join('.')
    }),
  },
  {
    what: 'a token of two parts',
    reason: 'id_token_malformed',
    behave: () => ({ sign: (h, b) => `${encode(h)}.${encode(b)}` }),
  },
  {
    what: 'a token of five parts',
    reason: 'id_token_malformed',
    behave: () => ({ sign: (h) => `${encode(h)}.a.b.c.d` }),
  },
  { what: 'a token that is not a JWT', reason: 'id_token_malformed', behave: () => ({ sign: () => 'nothing' }) },
  {
    what: 'claims that are a list',
    reason: 'id_token_malformed',
    behave: handmade(async (head, body, { keys: [key] }) =>
      key ? signWith(key.privateKey, head, Object([body])) : '',
    ),
  },
]

const ENDPOINT_CASES: readonly FailingCase[] = [
  { what: 'a token endpoint that answers HTML', reason: 'token_invalid', behave: () => ({ token: HTML }) },
  {
    what: 'a token endpoint that answers 5 MB',
    reason: 'token_unreachable',
    behave: () => ({ token: { status: 200, body: HUGE } }),
  },
  {
    what: 'a token endpoint that answers 500',
    reason: 'token_refused',
    behave: () => ({ token: { status: 500, body: '{}' } }),
  },
  {
    what: 'a token endpoint that answers 201',
    reason: 'token_refused',
    behave: () => ({ token: { status: 201, body: '{}' } }),
  },
  {
    what: 'no ID token',
    reason: 'token_invalid',
    behave: () => ({ token: (good) => ({ ...good, id_token: undefined }) }),
  },
  {
    what: 'an ID token that is not a string',
    reason: 'token_invalid',
    behave: () => ({ token: (good) => ({ ...good, id_token: {} }) }),
  },
  {
    what: 'no access token',
    reason: 'token_invalid',
    behave: () => ({ token: (good) => ({ ...good, access_token: undefined }) }),
  },
  {
    what: 'a token of another type',
    reason: 'token_invalid',
    behave: () => ({ token: (good) => ({ ...good, token_type: 'mac' }) }),
  },
  {
    what: 'no token type',
    reason: 'token_invalid',
    behave: () => ({ token: (good) => ({ ...good, token_type: undefined }) }),
  },
  { what: 'a list as the answer', reason: 'token_invalid', behave: () => ({ token: (good) => [good] }) },
  {
    what: 'UserInfo of somebody else',
    reason: 'userinfo_sub',
    behave: () => ({ userInfo: (good) => ({ ...good, sub: 'subject 2' }) }),
  },
  {
    what: 'UserInfo of nobody',
    reason: 'userinfo_sub',
    behave: () => ({ userInfo: (good) => ({ ...good, sub: undefined }) }),
  },
]

/** Each must end at the login page with `oidc_failed`. */
export const FAILING_CASES: readonly FailingCase[] = [...CLAIM_CASES, ...SIGNATURE_CASES, ...ENDPOINT_CASES]

const works = (what: string, behave: Behaviour): Case => ({ what, behave: () => behave })

/** Each follows the standards, or is an outage of something optional. */
export const WORKING_CASES: readonly Case[] = [
  works('exp half a minute ago', { claims: (good) => ({ ...good, exp: seconds() - 30 }) }),
  works('iat in half a minute', { claims: (good) => ({ ...good, iat: seconds() + 30 }) }),
  works('nbf in half a minute', { claims: (good) => ({ ...good, nbf: seconds() + 30 }) }),
  works('no at_hash', { claims: (good) => ({ ...good, at_hash: undefined }) }),
  works('aud as a list of one', { claims: (good) => ({ ...good, aud: [good['aud']] }) }),
  works('further audiences of a token issued to this client, as Zitadel makes them', {
    claims: (good) => ({ ...good, aud: [good['aud'], 'project 1'], azp: good['aud'] }),
  }),
  works('azp of this client', { claims: (good) => ({ ...good, azp: good['aud'] }) }),
  works('typ JWT', { header: (good) => ({ ...good, typ: 'JWT' }) }),
  works('a token type in small letters', { token: (good) => ({ ...good, token_type: 'bearer' }) }),
  works('UserInfo that answers 500', { userInfo: { status: 500, body: '{}' } }),
  works('UserInfo in HTML', { userInfo: HTML }),
  works('UserInfo of 5 MB', { userInfo: { status: 200, body: HUGE } }),
  works('UserInfo that is a list', { userInfo: () => [] }),
  works('UserInfo that redirects', { userInfo: { status: 302, headers: { location: 'http://127.0.0.1:1/' } } }),
]
