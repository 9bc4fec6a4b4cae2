import { afterEach, describe, expect, test } from 'vitest'
import { listen } from '../../../src/node/http/server.ts'
import { authorizeAt, type CertifiedProvider, startCertifiedProvider } from '../../support/oidc/certified-provider.ts'
import { type Browser, whoIs } from '../../support/web/browser.ts'
import { browserOf, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const ORIGIN = 'http://mesh.localhost'
const LOGOUT = '/api/auth/oidc/backchannel-logout'

/** The certified provider's own discovery, tokens and logout tokens, on any runtime. */
export function describeCertified(runtime: string, open: OpenOidcService): void {
  describe(`the certified provider on ${runtime}`, () => {
    let provider: CertifiedProvider | undefined
    let service: OidcService | undefined
    afterEach(async () => {
      await service?.close()
      await provider?.close()
    })

    test('signing out there ends the sessions of that browser by a logout token, which counts once', async () => {
      const posts: { status: number; body: string }[] = []
      // The provider sends its logout tokens here: the service itself may have no address of its own.
      const server = await listen(
        async (request) => {
          if (service === undefined) return new Response(null, { status: 503 })
          const body = await request.text()
          const { pathname } = new URL(request.url)
          const headers = { 'content-type': request.headers.get('content-type') ?? '' }
          const answer = await service.send(pathname, { method: request.method, headers, body })
          posts.push({ status: answer.status, body })
          return answer
        },
        0,
        '127.0.0.1',
      )
      provider = await startCertifiedProvider({
        origin: ORIGIN,
        method: 'client_secret_basic',
        alg: 'ES256',
        secret: 'a secret',
        client: {
          backchannel_logout_uri: `http://127.0.0.1:${server.port}${LOGOUT}`,
          backchannel_logout_session_required: true,
        },
        configuration: { features: { backchannelLogout: { enabled: true } } },
      })
      const here = await open({ ...OIDC_SCENARIO_ENV, ...provider.env })
      service = here
      const [browser, beside, elsewhere] = [browserOf(here), browserOf(here), browserOf(here)]
      const cookies = new Map<string, string>()
      const signIn = async (who: Browser, jar: Map<string, string>) => {
        const begun = await who.request('/api/auth/oidc/login?returnTo=/nodes')
        const callback = await authorizeAt(begun.headers.get('location') ?? '', 'anna', jar)
        const ended = await who.request(`${callback.pathname}${callback.search}`)
        expect(`${ended.status} ${ended.headers.get('location')}`).toBe('302 /nodes')
        expect(await whoIs(who)).toMatchObject({ authProvider: 'oidc', oidcSubject: 'anna' })
      }
      // Two sessions here belong to one at the provider, and the third to another one of the same user.
      await signIn(browser, cookies)
      await signIn(beside, cookies)
      await signIn(elsewhere, new Map())
      const { logoutUrl } = Object(await (await browser.request('/api/auth/logout', { method: 'POST' })).json())
      expect(new URL(logoutUrl).searchParams.get('id_token_hint')).toMatch(/^ey/)
      expect((await authorizeAt(logoutUrl, 'anna', cookies)).href).toBe(`${ORIGIN}/login`)
      await expect.poll(() => posts.map(({ status }) => status)).toEqual([200])
      expect([await whoIs(browser), await whoIs(beside)]).toEqual([null, null])
      expect(await whoIs(elsewhere)).toMatchObject({ oidcSubject: 'anna' })
      const [entry] = await here.sql('select action, username, details from audit_log order by id desc limit 1')
      expect(entry).toMatchObject({ action: 'session_revoked', username: 'system' })
      expect(JSON.parse(String(entry?.['details']))).toMatchObject({ by: 'the OpenID provider', sessions: 1 })

      const [said] = posts
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const again = await here.send(LOGOUT, { method: 'POST', headers, body: said?.body ?? '' })
      expect(again.status).toBe(400)
      expect(here.logged().filter((line) => line.includes('refused'))).toEqual([])
      await server.close(1000)
    })
  })
}
