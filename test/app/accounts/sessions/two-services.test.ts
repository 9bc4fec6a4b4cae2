import { afterEach, describe, expect, test } from 'vitest'
import { ADMIN_PASSWORD, createTestApp, type TestApp } from '../../../support/app.ts'
import { enrol } from '../../../support/factors/cookie-client.ts'
import { createBrowser } from '../../../support/web/browser.ts'

const ORIGIN = 'https://mesh.example.org'

const opened: TestApp[] = []
afterEach(() => {
  for (const app of opened.splice(0)) app.close()
})

/** Services under paths of one host, behind a proxy that removes the path, and a browser that keeps all cookies. */
async function openHost(paths: readonly string[]) {
  const apps = new Map<string, TestApp>()
  for (const path of paths) {
    const app = await createTestApp({ env: { PUBLIC_URL: ORIGIN + path, SESSION_SECRET: `${path} `.padEnd(40, 's') } })
    app.origin = ORIGIN
    opened.push(app)
    apps.set(path, app)
  }
  const set: string[] = []
  const browser = createBrowser(async (url, init) => {
    const path = paths.toSorted((a, b) => b.length - a.length).find((each) => url.startsWith(`${each}/`)) ?? ''
    const answer = await appAt(path).request(url.slice(path.length), init)
    set.push(...answer.headers.getSetCookie())
    return answer
  })
  const appAt = (path: string): TestApp => {
    const app = apps.get(path)
    if (app === undefined) throw new Error(`nothing is served at ${path}`)
    return app
  }
  const at = (path: string) => ({
    app: appAt(path),
    send: (method: string, route: string, body?: unknown) =>
      browser.request(path + route, {
        method,
        headers: { 'content-type': 'application/json', origin: ORIGIN },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
  })
  return { at, cookies: browser.cookies, set }
}

type Service = ReturnType<Awaited<ReturnType<typeof openHost>>['at']>

const login = ({ send }: Service) =>
  send('POST', '/api/auth/login', { username: 'admin', password: ADMIN_PASSWORD }).then(({ status }) => status)
const isSignedIn = async ({ send }: Service) => (await send('GET', '/api/auth/sessions')).status === 200

describe.each([
  ['/a', '/b'],
  ['', '/b'],
  ['/mesh', '/mesh/b'],
  ['/a', '/a_b'],
])('of two services at %j and %j of one host', (one, two) => {
  test('signing in to and out of one leaves the other alone, also while a second factor is awaited', async () => {
    const host = await openHost([one, two])
    const [a, b] = [host.at(one), host.at(two)]
    expect([await login(a), await login(b)]).toStrictEqual([200, 200])
    expect([await isSignedIn(a), await isSignedIn(b)]).toStrictEqual([true, true])
    expect((await a.send('POST', '/api/auth/logout')).status).toBe(200)
    expect([await isSignedIn(a), await isSignedIn(b)]).toStrictEqual([false, true])
    await enrol(b.app, b)
    await b.send('POST', '/api/auth/logout')
    for (const each of [a, b]) expect((await each.send('POST', '/api/auth/login/passkey/options')).status).toBe(200)
    const awaited = async () => (await b.send('POST', '/api/auth/login/totp', { code: '000000' })).json()
    expect([await login(b), await login(a)]).toStrictEqual([200, 200])
    expect(await awaited()).toMatchObject({ code: 'invalid_code' })
    expect(await isSignedIn(a)).toBe(true)
    // Each has a session or an attempt, a challenge and a mark of the browser.
    expect(host.cookies.size).toBe(6)
    for (const cookie of host.set) {
      // RFC 6265bis, section 4.1.3.2: a browser drops a __Host- cookie unless all of this holds.
      expect(cookie).toMatch(/^__Host-mesh_[\w.%-]+=[^;]*;.* Path=\/;.* Secure/)
      expect(cookie).not.toMatch(/domain/i)
    }
  })
})
