import { expect, test } from 'vitest'
import { authorizationUrl } from '../../../../src/app/accounts/oidc/protocol/authorization-url.ts'

const CLIENT = { id: 's6BhdRkqt3', secret: 'gX1fBat3bV', redirectUri: 'https://client.example.com/cb' }
/** The verifier of RFC 7636, appendix B. */
const SECRETS = { state: 'xyz', nonce: 'n-0S6_WzA2Mj', verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' }

const ask = (endpoint: string, client = CLIENT, scopes = ['openid', 'profile']) =>
  authorizationUrl({ authorization_endpoint: endpoint }, client, scopes, SECRETS)

test('has the parameters of RFC 6749, 4.1.1, OpenID Connect and the challenge of RFC 7636, appendix B', () => {
  const url = ask('https://server.example.com/authorize')
  expect(url.origin + url.pathname).toBe('https://server.example.com/authorize')
  expect(Object.fromEntries(url.searchParams)).toEqual({
    response_type: 'code',
    client_id: 's6BhdRkqt3',
    redirect_uri: 'https://client.example.com/cb',
    scope: 'openid profile',
    state: 'xyz',
    nonce: 'n-0S6_WzA2Mj',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  })
})

test('keeps a query of the endpoint, and names each parameter once', () => {
  const url = ask('https://server.example.com/authorize?tenant=a%20b&tenant=c')
  expect(url.searchParams.getAll('tenant')).toEqual(['a b', 'c'])
  const own = [...url.searchParams.keys()].filter((name) => name !== 'tenant')
  expect(new Set(own).size).toBe(own.length)
})

test('encodes what a form would misread, and never contains secret or verifier', () => {
  const client = { ...CLIENT, id: 'mesh monitor: 1&scope=all', redirectUri: 'https://client.example.com/cb?a=1&b=2' }
  const url = ask('https://server.example.com/authorize', client)
  expect(url.searchParams.get('client_id')).toBe(client.id)
  expect(url.searchParams.getAll('scope')).toEqual(['openid profile'])
  expect(url.searchParams.get('redirect_uri')).toBe(client.redirectUri)
  expect(url.href).not.toContain(CLIENT.secret)
  expect(url.href).not.toContain(SECRETS.verifier)
})
