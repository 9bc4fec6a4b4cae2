import type { Configuration } from 'oidc-provider'
import { afterEach, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../support/app.ts'
import { type Browser, createBrowser, whoIs } from '../../support/web/browser.ts'
import { authorizeAt, type CertifiedProvider, startCertifiedProvider } from '../../support/oidc/certified-provider.ts'

const ORIGIN = 'http://mesh.localhost'

type Options = Omit<Parameters<typeof startCertifiedProvider>[0], 'origin'>

let provider: CertifiedProvider | undefined
let app: TestApp | undefined

afterEach(async () => {
  app?.close()
  await provider?.close()
})

/** A provider, a service that trusts it, and a browser. */
async function open(options: Options): Promise<{ issuer: string; service: TestApp; browser: Browser }> {
  provider = await startCertifiedProvider({ origin: ORIGIN, ...options })
  app = await createTestApp({ env: provider.env, ports: { now: Date.now } })
  const service = app
  return { issuer: provider.issuer, service, browser: createBrowser((path, init) => service.request(path, init)) }
}

/** The complete sign-in; returns the callback and where it led. */
async function signInAs(browser: Browser, who: string): Promise<{ callback: URL; end: string }> {
  const begun = await browser.request('/api/auth/oidc/login?returnTo=/nodes')
  const callback = await authorizeAt(begun.headers.get('location') ?? '', who)
  const ended = await browser.request(`${callback.pathname}${callback.search}`)
  return { callback, end: `${ended.status} ${ended.headers.get('location')}` }
}

test.each([
  ['client_secret_basic', 'RS256', 'a secret'],
  ['client_secret_post', 'RS256', 'a secret'],
  ['client_secret_basic', 'ES256', 'a:b%c+d&e=f "\\/~!*\'()%20'],
  ['client_secret_post', 'EdDSA', 'a:b%c+d&e=f "\\/~!*\'()%20'],
  ['client_secret_basic', 'Ed25519', '%:+&'],
  ['client_secret_basic', 'PS256', 'plain'],
] as const)('users sign in at the certified provider with %s, %s and the secret %j', async (method, alg, secret) => {
  const { service, browser } = await open({ method, alg, secret })
  // Twice: the second time the service knows the keys and the authentication method.
  for (const who of ['anna', 'bert']) {
    expect((await signInAs(browser, who)).end).toBe('302 /nodes')
    expect(await whoIs(browser)).toMatchObject({ authProvider: 'oidc', oidcSubject: who })
  }
  expect(service.logged.filter((line) => line.includes('failed'))).toEqual([])
})

const USUAL = { method: 'client_secret_basic', alg: 'RS256', secret: 'a secret' } as const

const ACCOUNTS: Configuration = {
  claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email'] },
  findAccount: (_context, sub) => ({
    accountId: sub,
    claims: () => ({ sub, name: `${sub} of the provider`, preferred_username: sub, email: `${sub}@example.org` }),
  }),
}

test.each(['/realms/mesh', '/application/o/mesh/'])('users sign in at an issuer with the path %s', async (path) => {
  const { issuer, browser } = await open({ ...USUAL, path, configuration: ACCOUNTS })
  expect(issuer.endsWith(path)).toBe(true)
  const { callback, end } = await signInAs(browser, 'anna')
  expect(end).toBe('302 /nodes')
  // Announced by this provider, and therefore required: RFC 9207.
  expect(callback.searchParams.get('iss')).toBe(issuer)
  const user = { username: 'anna', displayName: 'anna of the provider', email: 'anna@example.org' }
  expect(await whoIs(browser)).toMatchObject(user)
  const { logoutUrl } = Object(await (await browser.request('/api/auth/logout', { method: 'POST' })).json())
  expect(logoutUrl).toContain(`${issuer.replace(/\/$/, '')}/session/end?client_id=mesh&`)
})

test.each([
  ['with an extra slash', '/realms/mesh', '/realms/mesh/'],
  ['without its slash', '/realms/mesh/', '/realms/mesh'],
])('an issuer that is configured %s does not match', async (_what, path, configured) => {
  provider = await startCertifiedProvider({ origin: ORIGIN, ...USUAL, path })
  const { env, issuer } = provider
  app = await createTestApp({ env: { ...env, OIDC_ISSUER: `${new URL(issuer).origin}${configured}` } })
  const begun = await app.request('/api/auth/oidc/login')
  expect(begun.headers.get('location')).toBe('/login?error=oidc_unavailable')
  expect(app.logged.at(-1)).toContain('"reason":"discovery_issuer_wrong"')
})

test('each user is found again by the pairwise subject for this client', async () => {
  const { browser, service } = await open({
    ...USUAL,
    client: { subject_type: 'pairwise' },
    configuration: {
      ...ACCOUNTS,
      subjectTypes: ['pairwise'],
      pairwiseIdentifier: (_context, id, { clientId }) => `${Buffer.from(`${clientId}:${id}`).toString('base64')}/+=`,
    },
  })
  const found: unknown[] = []
  for (const who of ['anna', 'bert', 'anna']) {
    expect((await signInAs(browser, who)).end).toBe('302 /nodes')
    const { id, oidcSubject, displayName } = Object(await whoIs(browser))
    expect(displayName).toBe(`${who} of the provider`)
    expect(oidcSubject).toBe(`${Buffer.from(`mesh:${who}`).toString('base64')}/+=`)
    found.push(id)
    expect((await browser.request('/api/auth/logout', { method: 'POST' })).status).toBe(200)
  }
  expect(found[2]).toBe(found[0])
  expect(found[1]).not.toBe(found[0])
  expect(service.logged.filter((line) => line.includes('"warn"'))).toEqual([])
})

test.each(['RS256', 'ES256'] as const)('UserInfo signed with %s is read', async (alg) => {
  const { browser, service } = await open({
    ...USUAL,
    alg,
    client: { userinfo_signed_response_alg: alg },
    configuration: { ...ACCOUNTS, features: { jwtUserinfo: { enabled: true } } },
  })
  expect((await signInAs(browser, 'anna')).end).toBe('302 /nodes')
  // Only UserInfo has it.
  expect(await whoIs(browser)).toMatchObject({ displayName: 'anna of the provider' })
  expect(service.logged.filter((line) => line.includes('"warn"'))).toEqual([])
})

test('the secret is sent in the form to a provider that announces only this', async () => {
  const { browser, service } = await open({
    ...USUAL,
    method: 'client_secret_post',
    configuration: { clientAuthMethods: ['client_secret_post'] },
  })
  expect((await signInAs(browser, 'anna')).end).toBe('302 /nodes')
  expect(service.logged.filter((line) => line.includes('"warn"'))).toEqual([])
})
