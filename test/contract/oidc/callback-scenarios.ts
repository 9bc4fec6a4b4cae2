import { expect, test } from 'vitest'
import { type Browser, reachCallback, signInBy, whoIs } from '../../support/web/browser.ts'
import type { TestProvider } from '../../support/oidc/provider.ts'
import { browserOf, expectFailure, type OidcService } from './service.ts'

type Scene = { provider: TestProvider; service: OidcService; browser: Browser }

const byText = (a: string, b: string) => (a < b ? -1 : 1)

/** A callback with its query changed. */
function changed(callback: string, change: (query: URLSearchParams) => void): string {
  const url = new URL(callback, 'http://site.invalid')
  change(url.searchParams)
  return `${url.pathname}${url.search}`
}

/** Possible forms of a callback, in different browsers. */
export function callbackCases(scene: () => Scene): void {
  const fails = async (error: string, reason: string, change: (query: URLSearchParams) => void) => {
    const { provider, service, browser } = scene()
    const callback = changed(await reachCallback(browser, provider), change)
    const before = provider.count('/token')
    await expectFailure(service, browser, callback, { error, reason })
    expect(provider.count('/token')).toBe(before)
  }

  test.each([
    ['no state', 'state_invalid', (query: URLSearchParams) => query.delete('state')],
    ['a made-up state', 'state_invalid', (query: URLSearchParams) => query.set('state', 'made up')],
    [
      'a state with another ending',
      'state_invalid',
      (query: URLSearchParams) => query.set('state', `${query.get('state')?.slice(0, -4)}AAAA`),
    ],
    [
      'a state that was never issued',
      'attempt_unknown',
      (query: URLSearchParams) => query.set('state', `${'A'.repeat(16)}.${'A'.repeat(43)}`),
    ],
    ['two states', 'state_invalid', (query: URLSearchParams) => query.append('state', query.get('state') ?? '')],
  ])('a callback with %s is refused', async (_what, reason, change) => {
    await fails('oidc_state_invalid', reason, change)
  })

  test.each([
    ['code', 'code'],
    ['iss', 'https://evil.example'],
    ['session_state', 'x'],
  ])('a callback with %s twice is refused, and the sign-in can still be finished', async (name, value) => {
    const { provider, browser } = scene()
    const callback = await reachCallback(browser, provider)
    const twice = changed(callback, (query) => {
      query.append(name, value)
      query.append(name, value)
    })
    expect((await browser.request(twice)).headers.get('location')).toBe('/login?error=oidc_failed')
    expect((await browser.request(callback)).headers.get('location')).toBe('/')
  })

  test('a callback with the iss of another provider is refused', () =>
    fails('oidc_failed', 'callback_iss_wrong', (query) => query.set('iss', 'https://evil.example')))

  test('a callback with an empty iss is refused', () =>
    fails('oidc_failed', 'callback_iss_wrong', (query) => query.set('iss', '')))

  test('a callback without a code is refused', () =>
    fails('oidc_failed', 'callback_code_missing', (query) => query.delete('code')))

  test.each(['access_denied', 'consent_required'])('a refusal by the user (%s) is reported as such', (error) =>
    fails('oidc_denied', 'provider_denied', (query) => {
      query.delete('code')
      query.set('error', error)
    }),
  )

  test('an error takes precedence over a code', () =>
    fails('oidc_failed', 'provider_error', (query) => query.set('error', 'server_error')))

  test('an invalid error code is not repeated anywhere', async () => {
    const { service } = scene()
    await fails('oidc_failed', 'provider_error', (query) => query.set('error', '<script>boo</script>'))
    expect(JSON.stringify(await service.sql('select details from audit_log'))).not.toContain('boo')
    expect(service.logged().join('\n')).not.toContain('boo')
  })

  test('a callback with the right iss signs in', async () => {
    const { provider, browser } = scene()
    provider.behave = { callback: (query) => query.set('iss', provider.issuer) }
    expect(await signInBy(browser, provider)).toBe('302 /')
  })

  test('a callback is refused in another browser, and still works in the right one', async () => {
    const { provider, service, browser } = scene()
    const callback = await reachCallback(browser, provider)
    await expectFailure(service, browserOf(service), callback, {
      error: 'oidc_state_invalid',
      reason: 'attempt_unknown',
    })
    expect((await browser.request(callback)).headers.get('location')).toBe('/')
  })

  test('a callback sent again, with or without its cookie, signs nobody in', async () => {
    const { provider, service, browser } = scene()
    const callback = await reachCallback(browser, provider)
    const kept = [...browser.cookies]
    expect((await browser.request(callback)).headers.get('location')).toBe('/')
    const again = browserOf(service)
    await expectFailure(service, again, callback, { error: 'oidc_state_invalid', reason: 'attempt_unknown' })
    for (const [name, value] of kept) again.cookies.set(name, value)
    await expectFailure(service, again, callback, { error: 'oidc_state_invalid', reason: 'attempt_used' })
  })

  test('of one callback sent twenty times at once, one signs in', async () => {
    const { provider, service, browser } = scene()
    const callback = await reachCallback(browser, provider)
    const cookies = [...browser.cookies]
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => {
        const twin = browserOf(service)
        for (const [name, value] of cookies) twin.cookies.set(name, value)
        return twin.request(callback)
      }),
    )
    const ends = answers.map(({ headers }) => headers.get('location') ?? '').toSorted(byText)
    expect(ends).toEqual(['/', ...Array.from({ length: 19 }, () => '/login?error=oidc_state_invalid')])
  })

  test('a code that was already redeemed is refused', async () => {
    const { provider, service, browser } = scene()
    const first = await reachCallback(browser, provider)
    expect((await browser.request(first)).headers.get('location')).toBe('/')
    const other = browserOf(service)
    const code = new URL(first, 'http://site.invalid').searchParams.get('code') ?? ''
    const second = changed(await reachCallback(other, provider), (query) => query.set('code', code))
    await expectFailure(service, other, second, { error: 'oidc_failed', reason: 'token_refused' })
  })

  test('swapped codes of two tabs: PKCE and nonce bind each to its own tab', async () => {
    const { provider, service, browser } = scene()
    const tabs = [await reachCallback(browser, provider), await reachCallback(browser, provider)]
    const [one = '', two = ''] = tabs.map((tab) => new URL(tab, 'http://site.invalid').searchParams.get('code') ?? '')
    const mixed = tabs.map((tab, i) => changed(tab, (query) => query.set('code', i === 0 ? two : one)))
    for (const callback of mixed) {
      await expectFailure(service, browser, callback, { error: 'oidc_failed', reason: 'token_refused' })
    }
  })

  test('swapped codes of two tabs at a provider without PKCE: the nonce binds each to its own tab', async () => {
    const { provider, service, browser } = scene()
    provider.behave = { forgetsChallenge: true }
    const [first, second] = [await reachCallback(browser, provider), await reachCallback(browser, provider)]
    const code = new URL(first, 'http://site.invalid').searchParams.get('code') ?? ''
    const mixed = changed(second, (query) => query.set('code', code))
    await expectFailure(service, browser, mixed, { error: 'oidc_failed', reason: 'claim_nonce' })
  })

  test('several tabs at once each end where they began', async () => {
    const { provider, browser } = scene()
    const ways = ['/nodes', '/messages', '/settings']
    const callbacks = await Promise.all(ways.map((way) => reachCallback(browser, provider, way)))
    const ends = []
    for (const callback of callbacks.toReversed()) ends.push((await browser.request(callback)).headers.get('location'))
    expect(ends).toEqual(ways.toReversed())
    // On the edge another one names the browser's latest change.
    expect([...browser.cookies.keys()].filter((name) => name !== 'mesh_bookmark')).toEqual(['mesh_session'])
  })

  test('HEAD and POST on the callback change nothing', async () => {
    const { provider, browser } = scene()
    const callback = await reachCallback(browser, provider)
    for (const method of ['HEAD', 'POST', 'PUT', 'DELETE']) {
      expect((await browser.request(callback, { method })).status).toBe(405)
    }
    expect(await whoIs(browser)).toBeNull()
    expect((await browser.request(callback)).headers.get('location')).toBe('/')
  })

  test('all failures look alike: the same headers and no body', async () => {
    const { provider, browser } = scene()
    const shapes = []
    for (const behave of [{ token: { status: 500 } }, { claims: () => ({}) }, { sign: () => 'not a token' }]) {
      provider.behave = behave
      const answer = await browser.request(await reachCallback(browser, provider))
      const headers = [...answer.headers].filter(([name]) => !/^(date|x-request-id|set-cookie)$/.test(name))
      shapes.push(JSON.stringify([answer.status, headers, await answer.text()]))
    }
    expect(new Set(shapes).size).toBe(1)
  })
}
