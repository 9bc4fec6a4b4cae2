import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, whoIs } from '../../support/web/browser.ts'
import { oidcEnv, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { browserOf, failures, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

/** The environment of a second provider, called `name`, with an address below that of the first one. */
export function namedEnv(name: string, provider: TestProvider): Record<string, string> {
  const named = Object.entries(oidcEnv(provider)).flatMap(([key, value]) =>
    key === 'OIDC_ENABLED' || key === 'OIDC_REDIRECT_URI'
      ? []
      : [[key.replace('OIDC_', `OIDC_${name.toUpperCase()}_`), value]],
  )
  return Object.fromEntries(named)
}

/** Two providers of one service, on any runtime. */
export function describeProviders(runtime: string, open: OpenOidcService): void {
  describe(`several providers on ${runtime}`, () => {
    let one: TestProvider
    let two: TestProvider
    let service: OidcService
    let browser: Browser
    beforeAll(async () => {
      ;[one, two] = [await startProvider(), await startProvider()]
      service = await open({
        ...OIDC_SCENARIO_ENV,
        ...oidcEnv(one),
        ...namedEnv('club', two),
        OIDC_PROVIDERS: 'club',
        OIDC_NAME: 'the office',
        OIDC_CLUB_NAME: 'the club',
        OIDC_CLUB_USERNAME_CLAIM: 'account.login',
      })
    })
    afterAll(async () => {
      await service.close()
      await Promise.all([one.close(), two.close()])
    })
    beforeEach(() => {
      browser = browserOf(service)
      for (const provider of [one, two]) provider.behave = {}
    })

    const begin = async (own: Browser, query: string) =>
      (await own.request(`/api/auth/oidc/login${query}`)).headers.get('location') ?? ''
    const comeBack = async (own: Browser, location: string, provider: TestProvider) => {
      const { pathname, search } = await provider.authorize(location)
      return (await own.request(`${pathname}${search}`)).headers.get('location')
    }

    test('status names them in order, without anything secret', async () => {
      const status = Object(await (await browser.request('/api/auth/status')).json())
      expect(status.providers).toEqual([
        { id: 'default', name: 'the office', icon: null },
        { id: 'club', name: 'the club', icon: null },
      ])
      expect(JSON.stringify(status)).not.toContain(one.clientSecret)
    })

    test('the same subject at both providers is two users, and each provider names users in its own way', async () => {
      one.user = { sub: 'same', preferred_username: 'anna' }
      two.user = { sub: 'same', preferred_username: 'anna', account: { login: 'berta' } }
      const location = await begin(browser, '')
      expect(location).toContain(`${one.issuer}/authorize`)
      expect(await comeBack(browser, location, one)).toBe('/')
      expect(await whoIs(browser)).toMatchObject({ username: 'anna' })
      const other = browserOf(service)
      const toClub = await begin(other, '?provider=club')
      expect(toClub).toContain(`${two.issuer}/authorize`)
      expect(await comeBack(other, toClub, two)).toBe('/')
      expect(await whoIs(other)).toMatchObject({ username: 'berta', oidcSubject: 'same' })
      expect(await whoIs(browser)).toMatchObject({ username: 'anna' })
    })

    test('a user proves again who they are at the provider where they signed in', async () => {
      await comeBack(browser, await begin(browser, '?provider=club'), two)
      expect(await begin(browser, '?reauthenticate=true')).toContain(`${two.issuer}/authorize`)
    })

    test.each(['nobody', 'CLUB', '__proto__', ''])('a provider %j does not exist', async (name) => {
      const answer = await browser.request(`/api/auth/oidc/login?provider=${name}`)
      expect(answer.status).toBe(404)
    })

    test('an answer that names the other provider is refused, and its code is sent to neither', async () => {
      const location = await begin(browser, '?provider=club')
      const before = [one.count('/token'), two.count('/token')]
      two.behave = { callback: (query) => query.set('iss', one.issuer) }
      expect(await comeBack(browser, location, two)).toBe('/login?error=oidc_failed')
      expect((await failures(service)).at(-1)).toMatchObject({ reason: 'callback_iss_wrong' })
      expect([one.count('/token'), two.count('/token')]).toEqual(before)
    })

    test('a code of the other provider is only sent where the sign-in began, and creates no user', async () => {
      // One provider sends the browser on to the other one, with the state that it was given.
      const location = new URL(await begin(browser, '?provider=club'))
      const onward = new URL(`${one.issuer}/authorize`)
      onward.search = location.search
      const before = one.count('/token')
      expect(await comeBack(browser, onward.href, one)).toBe('/login?error=oidc_failed')
      expect(one.count('/token')).toBe(before)
      expect(await whoIs(browser)).toBeNull()
    })

    test('an ID token that the other provider signed for its own client is refused', async () => {
      two.behave = { claims: (claims) => ({ ...claims, iss: one.issuer, aud: one.clientId }) }
      expect(await comeBack(browser, await begin(browser, '?provider=club'), two)).toBe('/login?error=oidc_failed')
      expect((await failures(service)).at(-1)).toMatchObject({ reason: 'claim_iss' })
    })
  })
}
