import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, signInBy, whoIs } from '../../support/web/browser.ts'
import { type Json, oidcEnv, signWith, startProvider, type TestProvider } from '../../support/oidc/provider.ts'
import { browserOf, failures, OIDC_SCENARIO_ENV, type OidcService, type OpenOidcService } from './service.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/** Sessions that end here and at the provider together, on any runtime. */
export function describeEnding(runtime: string, open: OpenOidcService): void {
  describe(`the end of sessions of a provider on ${runtime}`, () => {
    let provider: TestProvider
    let service: OidcService
    let messages = 0
    beforeAll(async () => {
      provider = await startProvider()
      service = await open({ ...OIDC_SCENARIO_ENV, ...oidcEnv(provider) })
    })
    afterAll(async () => {
      await service.close()
      await provider.close()
    })
    beforeEach(() => {
      provider.behave = {}
    })

    /** Signs `sub` in, in a session with the provider's ID `sid`. */
    const enter = async (sub: string, sid?: string): Promise<Browser> => {
      const browser = browserOf(service)
      provider.user = { sub }
      provider.behave = {
        claims: (claims) => ({ ...claims, ...(sid !== undefined && { sid }) }),
        discovery: (document) => ({ ...document, end_session_endpoint: `${provider.issuer}/end` }),
      }
      expect(await signInBy(browser, provider)).toBe('302 /')
      return browser
    }
    const isIn = async (browser: Browser) => (await whoIs(browser)) !== null
    const seconds = () => Math.floor(Date.now() / 1000)

    const post = async (form: string): Promise<number> => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await service.send('/api/auth/oidc/backchannel-logout', { method: 'POST', headers, body: form })
      expect(answer.headers.get('cache-control')).toBe('no-store')
      return answer.status
    }
    const claimsOf = (more: Json): Json => ({
      iss: provider.issuer,
      aud: provider.clientId,
      iat: seconds(),
      exp: seconds() + 120,
      jti: `message ${++messages}`,
      events: { [EVENT]: {} },
      ...more,
    })
    const sign = async (claims: Json, header: Json = {}): Promise<string> => {
      const [key] = provider.keys
      if (key === undefined) throw new Error('a provider without keys signs nothing')
      return signWith(key.privateKey, { alg: key.alg, kid: key.jwk['kid'], typ: 'logout+jwt', ...header }, claims)
    }
    const say = async (more: Json, header: Json = {}) => post(`logout_token=${await sign(claimsOf(more), header)}`)
    const unsigned = (header: Json, claims: Json) =>
      [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')

    test('a sid ends that session only, a sub all sessions of that user, recorded once each', async () => {
      const [one, two, other] = [await enter('a', 's1'), await enter('a', 's2'), await enter('b', 's3')]
      expect(await say({ sid: 's1' })).toBe(200)
      expect([await isIn(one), await isIn(two), await isIn(other)]).toEqual([false, true, true])
      const three = await enter('a')
      expect(await say({ sub: 'a' })).toBe(200)
      expect([await isIn(two), await isIn(three), await isIn(other)]).toEqual([false, false, true])
      const rows = await service.sql(
        "select username, details from audit_log where action = 'session_revoked' order by id",
      )
      expect(rows.map(({ details }) => Object(JSON.parse(String(details))).sessions)).toEqual([1, 2])
      expect(rows[0]).toMatchObject({ username: 'system' })
      expect(Object(JSON.parse(String(rows[0]?.['details'])))).toMatchObject({ providerId: 'default' })
      // Nothing is left of them, and ending none is not an error.
      expect(await say({ sid: 's1' })).toBe(200)
      expect(await say({ sub: 'nobody' })).toBe(200)
      expect(await say({ sub: 'b', sid: 's2' })).toBe(200)
      expect(await isIn(other)).toBe(true)
    })

    test('a token counts once, however often it is sent, even twice at the same instant', async () => {
      await enter('c', 'c1')
      const form = `logout_token=${await sign(claimsOf({ sid: 'c1' }))}`
      const answers = await Promise.all(Array.from({ length: 5 }, () => post(form)))
      expect(answers.toSorted((a, b) => a - b)).toEqual([200, 400, 400, 400, 400])
      const again = await enter('c', 'c1')
      expect(await post(form)).toBe(400)
      expect(await isIn(again)).toBe(true)
    })

    test('a token is used up only when its sessions have ended: after a failure the provider may send it again', async () => {
      const browser = await enter('r', 'r1')
      const form = `logout_token=${await sign(claimsOf({ sid: 'r1' }))}`
      await service.sql(`create trigger no_end before delete on provider_sessions
        begin select raise(abort, 'the disk is broken'); end`)
      expect(await post(form)).toBeGreaterThanOrEqual(500)
      await service.sql('drop trigger no_end')
      const again = await enter('r', 'r1')
      expect(await post(form)).toBe(200)
      expect([await isIn(browser), await isIn(again)]).toEqual([false, false])
      expect(await post(form)).toBe(400)
    })

    test.each([
      ['its sid', { sid: 'm1' }, true],
      ['its user', { sub: 'm' }, true],
      ['its user and sid', { sub: 'm', sid: 'm1' }, true],
      ['another session', { sid: 'm2' }, false],
      ['another user', { sub: 'n' }, false],
      ['its sid, of another user', { sub: 'n', sid: 'm1' }, false],
    ])('a sign-in that is under way while a token ends %s', async (_what, named, isEnded) => {
      await enter('n')
      const browser = browserOf(service)
      provider.user = { sub: 'm' }
      const meanwhile = async () => expect(await say(named)).toBe(200)
      provider.behave = { claims: (claims) => ({ ...claims, sid: 'm1' }), meanwhile }
      expect(await signInBy(browser, provider)).toBe(isEnded ? '302 /login?error=oidc_denied' : '302 /')
      expect(await isIn(browser)).toBe(!isEnded)
      if (isEnded) {
        expect((await failures(service)).at(-1)).toEqual({
          provider: 'oidc',
          providerId: 'default',
          reason: 'ended_at_provider',
        })
        expect(await service.sql("select sid from provider_sessions where sid = 'm1'")).toEqual([])
      }
      // The next sign-in is a new one.
      provider.behave = { claims: (claims) => ({ ...claims, sid: 'm1' }) }
      expect(await signInBy(browser, provider)).toBe('302 /')
      expect(await isIn(browser)).toBe(true)
      expect(await say({ sub: 'm' })).toBe(200)
    })

    test('a token without exp, of type JWT or without a type, is accepted too', async () => {
      for (const header of [{ typ: 'JWT' }, { typ: undefined }, { typ: 'LOGOUT+JWT' }]) {
        const browser = await enter('d', 'd1')
        expect(await say({ sid: 'd1', exp: undefined }, header)).toBe(200)
        expect(await isIn(browser)).toBe(false)
      }
    })

    test.each<[string, Json]>([
      ['with a nonce', { nonce: 'x' }],
      ['without events', { events: undefined }],
      ['with another event', { events: { 'http://schemas.openid.net/event/other': {} } }],
      ['whose event is not an object', { events: { [EVENT]: true } }],
      ['with inherited events', { events: {}, __proto__: null }],
      ['for another audience', { aud: 'somebody else' }],
      ['of another issuer', { iss: 'https://evil.example' }],
      ['without jti', { jti: undefined }],
      ['without iat', { iat: undefined }],
      ['of yesterday', { iat: 1_700_000_000, exp: 4_000_000_000 }],
      ['of tomorrow', { iat: 4_000_000_000, exp: 4_000_000_100 }],
      ['that expired', { exp: 1_700_000_000 }],
      ['without sid and sub', { sid: undefined, sub: undefined }],
      ['whose sid is a list', { sid: ['e1'] }],
      ['whose sub is a number', { sub: 7 }],
    ])('a token %s ends nothing', async (_what, change) => {
      const browser = await enter('e', 'e1')
      expect(await say({ sid: 'e1', ...change })).toBe(400)
      expect(await isIn(browser)).toBe(true)
    })

    test('a token that is unsigned, or signed by another key or with the client secret, ends nothing', async () => {
      const browser = await enter('f', 'f1')
      const claims = claimsOf({ sid: 'f1' })
      const { createHmac } = await import('node:crypto')
      const hs = unsigned({ alg: 'HS256', typ: 'logout+jwt' }, claims)
      const mac = createHmac('sha256', provider.clientSecret).update(hs).digest('base64url')
      const otherProvider = await startProvider()
      const [foreign] = otherProvider.keys
      if (foreign === undefined) throw new Error('no key')
      const kid = provider.keys[0]?.jwk['kid']
      const tokens = [
        `${unsigned({ alg: 'none' }, claims)}.`,
        `${hs}.${mac}`,
        await signWith(foreign.privateKey, { alg: foreign.alg, kid }, claims),
        await sign(claims, { typ: 'at+jwt' }),
        'no token',
        '',
        `${'x'.repeat(15_000)}.y.z`,
      ]
      for (const token of tokens) expect(await post(`logout_token=${token}`)).toBe(400)
      expect(await post('')).toBe(400)
      expect(await post(`logout_token=${'x'.repeat(20_000)}.y.z`)).toBe(413)
      expect(await post(`logout_token=${await sign(claims)}&logout_token=x`)).toBe(400)
      expect(await isIn(browser)).toBe(true)
      await otherProvider.close()
    })

    test('a logout token signs nobody in', async () => {
      const browser = browserOf(service)
      provider.user = { sub: 'g' }
      provider.behave = { claims: (claims) => ({ ...claims, nonce: undefined, events: { [EVENT]: {} } }) }
      expect(await signInBy(browser, provider)).toBe('302 /login?error=oidc_failed')
    })

    test('a sign-out gives the provider its ID token once, which is never stored in clear', async () => {
      const browser = await enter('h', 'h1')
      const rows = JSON.stringify(await service.sql('select * from provider_sessions'))
      const { logoutUrl } = Object(await (await browser.request('/api/auth/logout', { method: 'POST' })).json())
      const hint = new URL(logoutUrl).searchParams.get('id_token_hint') ?? ''
      expect(provider.secrets.has(hint)).toBe(true)
      expect(rows).not.toContain(hint)
      expect(await service.sql("select sid from provider_sessions where sid = 'h1'")).toEqual([])
      expect(await isIn(browser)).toBe(false)
    })

    test('other routes accept no form', async () => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await service.send('/api/auth/logout', { method: 'POST', headers, body: 'x=y' })
      expect(answer.status).toBe(415)
    })
  })
}
