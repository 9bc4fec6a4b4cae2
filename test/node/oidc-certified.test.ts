import { afterEach, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../support/app.ts'
import { createBrowser, whoIs } from '../support/browser.ts'
import { authorizeAt, type CertifiedProvider, startCertifiedProvider } from '../support/certified-provider.ts'

const ORIGIN = 'http://mesh.localhost'

let provider: CertifiedProvider | undefined
let app: TestApp | undefined

afterEach(async () => {
  app?.close()
  await provider?.close()
})

test.each([
  ['client_secret_basic', 'RS256', 'a secret'],
  ['client_secret_post', 'RS256', 'a secret'],
  ['client_secret_basic', 'ES256', 'a:b%c+d&e=f "\\/~!*\'()%20'],
  ['client_secret_post', 'EdDSA', 'a:b%c+d&e=f "\\/~!*\'()%20'],
  ['client_secret_basic', 'Ed25519', '%:+&'],
  ['client_secret_basic', 'PS256', 'plain'],
] as const)('the certified provider with %s and %s, secret %j', async (method, alg, secret) => {
  provider = await startCertifiedProvider({ origin: ORIGIN, method, alg, secret })
  app = await createTestApp({ env: provider.env, ports: { now: Date.now } })
  const service = app
  const browser = createBrowser((path, init) => service.request(path, init))
  // Twice: the second time the service knows keys, and how the provider wants the secret.
  for (const who of ['anna', 'bert']) {
    const begun = await browser.request('/api/auth/oidc/login?returnTo=/nodes')
    const callback = await authorizeAt(begun.headers.get('location') ?? '', who)
    const ended = await browser.request(`${callback.pathname}${callback.search}`)
    expect(`${ended.status} ${ended.headers.get('location')}`).toBe('302 /nodes')
    expect(await whoIs(browser)).toMatchObject({ authProvider: 'oidc', oidcSubject: who })
  }
  expect(service.logged.filter((line) => line.includes('failed'))).toEqual([])
})
