import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { type Browser, signInBy } from '../../support/web/browser.ts'
import { namedEnv } from './provider-scenarios.ts'
import { browserOf, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** What administrators see and try of their providers, on any runtime. */
export function describeTests(runtime: string, open: OpenOidcService): void {
  describe(`tests of providers on ${runtime}`, () => {
    let plain: TestProvider
    let club: TestProvider
    let service: OidcService
    let admin: Browser
    beforeAll(async () => {
      ;[plain, club] = [await startProvider(), await startProvider()]
      const env = { ...OIDC_SCENARIO_ENV, ...oidcEnv(plain), ...namedEnv('club', club), OIDC_PROVIDERS: 'club' }
      service = await open(env)
      admin = browserOf(service)
      const body = JSON.stringify({ username: 'admin', password: OIDC_SCENARIO_ENV.ADMIN_PASSWORD })
      await admin.request('/api/auth/login', { method: 'POST', headers: JSON_TYPE, body })
    })
    afterAll(async () => {
      await service.close()
      await Promise.all([plain.close(), club.close()])
    })
    beforeEach(() => {
      for (const provider of [plain, club]) provider.behave = {}
    })

    const tryOut = async (id: string, by = admin) => {
      const answer = await by.request(`/api/auth/oidc/providers/${id}/test`, { method: 'POST' })
      return { status: answer.status, body: Object(await answer.json()) }
    }
    const lastFailures = async () => {
      const { providers } = Object(await (await admin.request('/api/auth/oidc/providers')).json())
      return providers.map(({ lastFailure }: { lastFailure: unknown }) => lastFailure)
    }

    test('a working provider says what it has, and nobody signs in', async () => {
      const before = plain.count('/token')
      const { status, body } = await tryOut('default')
      expect(status).toBe(200)
      expect(body).toMatchObject({ failure: null, found: { tokenEndpoint: `${plain.issuer}/token`, keys: 1 } })
      expect(plain.count('/token')).toBe(before)
      expect(JSON.stringify(body)).not.toContain(plain.clientSecret)
    })

    test.each([
      ['discovery_refused', () => (club.behave = { discovery: { status: 404 } }), { status: 404 }],
      ['discovery_issuer_wrong', () => (club.behave = { discovery: (all) => ({ ...all, issuer: plain.issuer }) }), {}],
      ['keys_unusable', () => (club.behave = { keys: () => ({ keys: [{ kty: 'oct', k: 'c2VjcmV0' }] }) }), {}],
    ] as const)('a test that ends with %s says so, and so does the audit log', async (reason, spoil, details) => {
      spoil()
      expect((await tryOut('club')).body).toMatchObject({ failure: { reason, details }, found: null })
      const entries = await service.sql(
        "select details from audit_log where action = 'oidc_provider_tested' order by id",
      )
      expect(JSON.parse(String(entries.at(-1)?.['details']))).toMatchObject({ providerId: 'club', ok: false, reason })
    })

    test('a failed discovery is what failed last, until one works', async () => {
      club.behave = { discovery: { status: 503 } }
      await tryOut('club')
      expect(await lastFailures()).toMatchObject([null, { reason: 'discovery_refused', details: { status: 503 } }])
      club.behave = {}
      await tryOut('club')
      expect(await lastFailures()).toStrictEqual([null, null])
    })

    test('a failed sign-in is what failed last there, without who it was; a made-up callback is not', async () => {
      club.behave = { token: { status: 400, body: '{"error":"invalid_client"}' } }
      const visitor = browserOf(service)
      const location = (await visitor.request('/api/auth/oidc/login?provider=club')).headers.get('location') ?? ''
      const { pathname, search } = await club.authorize(location)
      await visitor.request(`${pathname}${search}`)
      await visitor.request('/api/auth/oidc/callback/club?code=x&state=invented')
      const [, failed] = await lastFailures()
      expect(failed).toMatchObject({ reason: 'token_refused', details: { error: 'invalid_client' } })
      expect(Object.keys(failed.details)).not.toContain('subject')
    })

    test('tests are limited, and only administrators may ask for them', async () => {
      const all = []
      for (let i = 0; i < 6; i++) all.push((await tryOut('default')).body.failure?.reason ?? 'works')
      expect(all).toContain('works')
      expect(all.at(-1)).toBe('discovery_too_often')
      expect((await tryOut('nobody')).status).toBe(404)
      const stranger = browserOf(service)
      expect((await tryOut('default', stranger)).status).toBe(401)
      await signInBy(stranger, plain)
      expect((await tryOut('default', stranger)).status).toBe(403)
      expect((await stranger.request('/api/auth/oidc/providers')).status).toBe(403)
    })
  })
}
