import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Browser, reachCallback, signInBy, whoIs } from '../../support/web/browser.ts'
import { makeKey, oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { callbackCases } from './callback-scenarios.ts'
import { DISCOVERY_CASES, FAILING_CASES, WORKING_CASES } from './cases.ts'
import {
  browserOf,
  expectFailure,
  expectNoLeak,
  failures,
  OIDC_SCENARIO_ENV,
  type OidcService,
  type OpenOidcService,
} from './service.ts'

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']

/**
 * What every runtime must do with a provider that behaves, and with one that does not. All scenarios share one service;
 * the first ones run before it knows the provider.
 */
export function describeOidc(runtime: string, open: OpenOidcService): void {
  describe(`OpenID Connect on ${runtime}`, () => {
    let provider: TestProvider
    let service: OidcService
    let browser: Browser
    let user: TestProvider['user']
    /** A second service, whose provider is silent from the start. */
    let silentService: OidcService
    let silent: TestProvider

    beforeAll(async () => {
      provider = await startProvider()
      provider.keys = await Promise.all(ALGORITHMS.map((alg) => makeKey(alg)))
      user = provider.user
      service = await open({ ...OIDC_SCENARIO_ENV, ...oidcEnv(provider) })
      silent = await startProvider()
      silent.behave = { discovery: 'stall' }
      silentService = await open({ ...OIDC_SCENARIO_ENV, ...oidcEnv(silent) })
    })
    afterAll(async () => {
      await Promise.all([service.close(), silentService.close()])
      await Promise.all([provider.close(), silent.close()])
    })
    beforeEach(() => {
      provider.behave = {}
      provider.user = { ...user }
      browser = browserOf(service)
    })

    const fails = async (expected: { error: string; reason: string }) =>
      expectFailure(service, browser, await reachCallback(browser, provider), expected)

    test.each(DISCOVERY_CASES)(
      'discovery $what: no sign-in, and no request to another host',
      async ({ behave, reason }) => {
        provider.behave = behave
        const before = await service.sql('select count(*) as n from rate_limits')
        const answer = await browser.request('/api/auth/oidc/login')
        expect(`${answer.status} ${answer.headers.get('location')}`).toBe('302 /login?error=oidc_unavailable')
        expect(browser.cookies.size).toBe(0)
        await vi.waitFor(() => expect(service.logged().at(-1)).toContain(`"reason":"${reason}"`), 60_000)
        expect(await service.sql('select count(*) as n from rate_limits')).toEqual(before)
      },
    )

    test('answers that never come: each times out, and the sign-in works without UserInfo', async () => {
      const callbacks: [Browser, string, string][] = []
      for (const [behave, reason] of [
        [{ token: 'hang' }, 'token_unreachable'],
        [{ token: 'stall' }, 'token_unreachable'],
        [{ keys: 'stall' }, 'keys_unreachable'],
      ] as const) {
        provider.behave = behave
        const own = browserOf(service)
        callbacks.push([own, await reachCallback(own, provider), reason])
      }
      const begun = performance.now()
      const undiscovered = browserOf(silentService).request('/api/auth/oidc/login')
      const stalled = callbacks.map(([own, callback]) => own.request(callback))
      await vi.waitFor(() => expect(provider.count('/jwks')).toBe(1), 60_000)
      provider.behave = { userInfo: 'stall', claims: (claims) => ({ ...claims, name: 'Anna of the token' }) }
      provider.user = { sub: 'subject of the token' }
      const patient = browserOf(service)
      expect(await signInBy(patient, provider)).toBe('302 /')
      expect(await whoIs(patient)).toMatchObject({ displayName: 'Anna of the token' })
      const answers = await Promise.all(stalled)
      expect((await undiscovered).headers.get('location')).toBe('/login?error=oidc_unavailable')
      expect(performance.now() - begun).toBeLessThan(100_000)
      const line = '"reason":"discovery_unreachable","why":"timeout"'
      await vi.waitFor(() => expect(silentService.logged().at(-1)).toContain(line), 60_000)
      expect(answers.map(({ headers }) => headers.get('location'))).toEqual(
        callbacks.map(() => '/login?error=oidc_failed'),
      )
      const recorded = (await failures(service)).map(({ reason, why }) => `${String(reason)} ${String(why)}`)
      expect(recorded.toSorted()).toEqual(callbacks.map(([, , reason]) => `${reason} timeout`).toSorted())
    })

    test('a user signs in, reaches the requested page, and has the identity from the provider', async () => {
      expect(await signInBy(browser, provider, '/nodes?sort=name')).toBe('302 /nodes?sort=name')
      expect(await whoIs(browser)).toMatchObject({
        username: 'anna',
        displayName: 'Anna Berg',
        email: 'anna.berg@example.org',
        authProvider: 'oidc',
        oidcSubject: 'subject 1',
        isAdmin: false,
      })
    })

    test.each(FAILING_CASES)('$what: nobody is signed in', async ({ behave, reason }) => {
      provider.behave = behave(provider)
      await fails({ error: 'oidc_failed', reason })
    })

    test.each(WORKING_CASES)('$what: does not prevent the sign-in', async ({ behave }) => {
      provider.behave = behave(provider)
      expect(await signInBy(browser, provider)).toBe('302 /')
      expect(await whoIs(browser)).toMatchObject({ oidcSubject: 'subject 1' })
    })

    test('a token endpoint that redirects: code and verifier reach no other host', async () => {
      const thief = await startProvider()
      for (const status of [301, 302, 303, 307, 308]) {
        provider.behave = { token: { status, headers: { location: `${thief.issuer}/token` } } }
        await fails({ error: 'oidc_failed', reason: 'token_refused' })
      }
      expect(thief.seen).toEqual([])
      await thief.close()
    })

    test.each(ALGORITHMS)('an ID token signed with %s is accepted', async (alg) => {
      provider.keys = provider.keys.toSorted((a, b) => Number(b.alg === alg) - Number(a.alg === alg))
      expect(await signInBy(browser, provider)).toBe('302 /')
    })

    test('a key that changes is fetched once; an unknown key causes no further requests', async () => {
      expect(await signInBy(browser, provider)).toBe('302 /')
      provider.keys = [await makeKey('ES256')]
      const before = provider.count('/jwks')
      expect(await signInBy(browser, provider)).toBe('302 /')
      expect(await signInBy(browser, provider)).toBe('302 /')
      expect(provider.count('/jwks')).toBe(before + 1)
      const unknown = await makeKey('ES256')
      provider.behave = { header: (header) => ({ ...header, kid: unknown.jwk['kid'] }) }
      for (let i = 0; i < 12; i++) {
        browser.cookies.clear()
        await fails({ error: 'oidc_failed', reason: 'key_unknown' })
      }
      expect(provider.count('/jwks')).toBeLessThan(before + 8)
    })

    callbackCases(() => ({ provider, service, browser }))

    test('no secret is in any row or log line of these scenarios, and no e-mail in a log', async () => {
      expect((await failures(service)).length).toBeGreaterThan(40)
      await expectNoLeak(service, provider)
    })
  })
}
