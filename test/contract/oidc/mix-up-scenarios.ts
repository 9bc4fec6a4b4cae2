import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, whoIs } from '../../support/web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { namedEnv } from './provider-scenarios.ts'
import { browserOf, failures, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const PLAIN = 'http://localhost/api/auth/oidc/callback'

/**
 * A hostile provider beside an honest one that does not say in its answers who it is: RFC 9700, section 4.4.1. On any
 * runtime, with either of them as the first one.
 */
export function describeMixUp(runtime: string, open: OpenOidcService): void {
  describe.each(['honest', 'hostile'] as const)(`mix-up on ${runtime}, where the first provider is %s`, (first) => {
    let honest: TestProvider
    let hostile: TestProvider
    let service: OidcService
    let victim: Browser
    let attacker: Browser
    const ids = first === 'honest' ? { honest: 'default', hostile: 'club' } : { honest: 'club', hostile: 'default' }
    beforeAll(async () => {
      ;[honest, hostile] = [await startProvider(), await startProvider()]
      const [one, two] = first === 'honest' ? [honest, hostile] : [hostile, honest]
      service = await open({ ...OIDC_SCENARIO_ENV, ...oidcEnv(one), ...namedEnv('club', two), OIDC_PROVIDERS: 'club' })
      honest.redirectUris = [first === 'honest' ? PLAIN : `${PLAIN}/club`]
    })
    afterAll(async () => {
      await service.close()
      await Promise.all([honest.close(), hostile.close()])
    })
    beforeEach(async () => {
      ;[victim, attacker] = [browserOf(service), browserOf(service)]
      honest.user = { sub: 'the victim', preferred_username: 'victim' }
      hostile.user = { sub: 'anybody', preferred_username: 'anybody' }
      honest.behave = {}
      hostile.behave = {}
    })

    const begin = async (browser: Browser, provider: 'honest' | 'hostile', more = '') => {
      const answer = await browser.request(`/api/auth/oidc/login?provider=${ids[provider]}${more}`)
      return new URL(answer.headers.get('location') ?? '')
    }
    const comeBack = async (browser: Browser, callback: URL) =>
      (await browser.request(`${callback.pathname}${callback.search}`)).headers.get('location')
    const requests = () => hostile.seen.length + honest.count('/token') + honest.count('/jwks')
    /** The hostile provider sends a browser on to the honest one: as client there, with its own state and `more`. */
    const sendOn = (from: URL, honestUrl: URL, more: Record<string, string> = {}): string => {
      const onward = new URL(honestUrl)
      onward.searchParams.set('state', from.searchParams.get('state') ?? '')
      for (const [name, value] of Object.entries(more)) onward.searchParams.set(name, value)
      return onward.href
    }
    /** The secrets by which the attacker would redeem the code are those of a sign-in that the attacker began. */
    const attack = async (browser: Browser, clicked: URL, more: Record<string, string> = {}) => {
      const own = await begin(attacker, 'honest')
      const callback = await honest.authorize(sendOn(clicked, own, more))
      const before = requests()
      const to = await comeBack(browser, callback)
      return { to, asked: requests() - before, own, code: callback.searchParams.get('code') ?? '' }
    }
    const latest = async () => (await failures(service)).at(-1)

    test('the code of the honest provider reaches no other one, and signs nobody in', async () => {
      const { to, asked, own } = await attack(victim, await begin(victim, 'hostile'))
      expect(to).toBe('/login?error=oidc_failed')
      expect(asked).toBe(0)
      expect(await latest()).toEqual({
        provider: 'oidc',
        providerId: ids.hostile,
        reason: 'callback_of_another_provider',
      })
      expect(await whoIs(victim)).toBeNull()
      // The attacker has seen no code, so the sign-in that waits in the attacker's browser has nothing to redeem.
      const guess = new URL(`${honest.redirectUris?.[0] ?? ''}?code=guessed`)
      guess.searchParams.set('state', own.searchParams.get('state') ?? '')
      expect(await comeBack(attacker, guess)).toBe('/login?error=oidc_failed')
      expect(await whoIs(attacker)).toBeNull()
    })

    test('an honest provider with a wildcard: the code comes back at the wrong address and cannot be redeemed', async () => {
      const registered = honest.redirectUris
      honest.redirectUris = null
      const clicked = await begin(victim, 'hostile')
      const redirectUri = clicked.searchParams.get('redirect_uri') ?? ''
      const { own, code } = await attack(victim, clicked, { redirect_uri: redirectUri })
      // The hostile provider has the code now, and the attacker uses it in a sign-in at the honest one.
      const injected = new URL(own.searchParams.get('redirect_uri') ?? '')
      injected.search = String(new URLSearchParams({ code, state: own.searchParams.get('state') ?? '' }))
      expect(await comeBack(attacker, injected)).toBe('/login?error=oidc_failed')
      expect(await latest()).toMatchObject({ providerId: ids.honest, reason: 'token_refused' })
      expect(await whoIs(attacker)).toBeNull()
      honest.redirectUris = registered
    })

    test('an answer at the address of the other provider, of none, or without a name is refused', async () => {
      for (const provider of ['honest', 'hostile'] as const) {
        const wrong = [`/${ids[provider === 'honest' ? 'hostile' : 'honest']}`, '/nobody', '/DEFAULT', '/__proto__']
        for (const path of ids[provider] === 'club' ? [...wrong, ''] : wrong) {
          const { searchParams } = await begin(victim, provider)
          const before = requests()
          const back = new URL(`${PLAIN}${path}?code=x&state=${searchParams.get('state')}`)
          expect(await comeBack(victim, back)).toBe('/login?error=oidc_failed')
          expect(requests()).toBe(before)
          expect(await latest()).toMatchObject({ reason: 'callback_of_another_provider' })
        }
      }
    })

    test('each provider signs its own users in, at its own address', async () => {
      for (const [provider, at] of [
        ['honest', honest],
        ['hostile', hostile],
      ] as const) {
        const browser = browserOf(service)
        const url = await begin(browser, provider)
        expect(url.searchParams.get('redirect_uri')).toBe(ids[provider] === 'club' ? `${PLAIN}/club` : PLAIN)
        expect(await comeBack(browser, await at.authorize(url.href))).toBe('/')
        expect(await whoIs(browser)).toMatchObject({ oidcSubject: at.user.sub })
      }
      // The first one also by its name, for a registration that says so.
      const browser = browserOf(service)
      const first = ids.honest === 'default' ? honest : hostile
      const callback = await first.authorize(
        (await begin(browser, ids.honest === 'default' ? 'honest' : 'hostile')).href,
      )
      callback.pathname += '/default'
      expect(await comeBack(browser, callback)).toBe('/')
    })

    test('a confirmation at one provider is not given by another one, nor by somebody else there', async () => {
      const url = await begin(victim, 'honest')
      expect(await comeBack(victim, await honest.authorize(url.href))).toBe('/')
      const now = { auth_time: Math.floor(Date.now() / 1000) }
      for (const provider of [honest, hostile]) provider.behave = { claims: (claims) => ({ ...claims, ...now }) }
      const mixed = await attack(victim, await begin(victim, 'hostile', '&reauthenticate=true'))
      expect(mixed).toMatchObject({ to: '/login?error=oidc_failed', asked: 0 })
      const again = async () => {
        const asked = (await victim.request('/api/auth/oidc/login?reauthenticate=true')).headers.get('location') ?? ''
        expect(asked).toContain(honest.issuer)
        return comeBack(victim, await honest.authorize(asked))
      }
      honest.user = { sub: 'somebody else', preferred_username: 'else' }
      expect(await again()).toBe('/login?error=oidc_failed')
      expect(await latest()).toMatchObject({ providerId: ids.honest, reason: 'proof_of_another_user' })
      expect(await whoIs(victim)).toMatchObject({ oidcSubject: 'the victim' })
      honest.user = { sub: 'the victim' }
      expect(await again()).toBe('/')
    })

    test('a link that the hostile provider begins does not end at an account of the honest one', async () => {
      const headers = { 'content-type': 'application/json' }
      const body = { username: 'admin', password: OIDC_SCENARIO_ENV.ADMIN_PASSWORD }
      await victim.request('/api/auth/login', { method: 'POST', headers, body: JSON.stringify(body) })
      const answer = await victim.request('/api/auth/oidc/link', {
        method: 'POST',
        headers,
        body: JSON.stringify({ provider: ids.hostile }),
      })
      const clicked = new URL(Object(await answer.json()).location)
      const { to, asked } = await attack(victim, clicked)
      expect(to).toBe('/account?error=oidc_failed')
      expect(asked).toBe(0)
      expect(await service.sql('select subject from identities where user_id = 1')).toEqual([])
    })

    test('administrators see what to register where', async () => {
      const headers = { 'content-type': 'application/json' }
      const body = { username: 'admin', password: OIDC_SCENARIO_ENV.ADMIN_PASSWORD }
      await attacker.request('/api/auth/login', { method: 'POST', headers, body: JSON.stringify(body) })
      const { providers } = Object(await (await attacker.request('/api/auth/oidc/providers')).json())
      const signedOutUri = 'http://localhost/login'
      expect(providers).toMatchObject([
        { id: 'default', redirectUri: PLAIN, signedOutUri },
        { id: 'club', redirectUri: `${PLAIN}/club`, signedOutUri },
      ])
      expect(JSON.stringify(providers)).not.toContain(honest.clientSecret)
    })
  })
}
