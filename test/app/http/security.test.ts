import { createApp } from '../../../src/app/app.ts'
import { limitProcessorTime, processorTime } from '../../support/processor-time.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { listOperations } from '../../../src/app/http/openapi/document.ts'
import { auditedBy, outcomeOf } from '../../support/answers.ts'
import { ADMIN_PASSWORD, type Client, createTestApp, type TestApp, USER_PASSWORD } from '../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

const json = { 'content-type': 'application/json' }

/** A request with the administrator's cookie and exactly these headers and this body. */
const raw = (method: string, path: string, init: RequestInit = {}) =>
  app.request(path, { ...init, method, headers: { cookie: String(admin.cookie), ...Object(init.headers) } })

describe('security headers', () => {
  const paths = [
    '/api/health',
    '/api/ready',
    '/api/users',
    '/api/nothing',
    '/api/docs',
    '/api/audit/export?format=csv',
    '/api',
    '/elsewhere',
  ]

  test.each(paths)('are on every answer of %s', async (path) => {
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
      const { headers } = await app.request(path, { method })
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; img-src 'self' data:; object-src 'none'",
      )
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
      expect(headers.get('permissions-policy')).toMatch(/screen-wake-lock=\(self\).*camera=\(\).*geolocation=\(\)/)
      expect(headers.get('strict-transport-security')).toBeNull()
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('x-powered-by')).toBeNull()
      expect(headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/)
      if (path.startsWith('/api')) expect(headers.get('cache-control')).toBe('no-store')
    }
  })

  test('HSTS is sent over https only', async () => {
    app.origin = 'https://mesh.example.org'
    expect((await app.request('/api/health')).headers.get('strict-transport-security')).toBe('max-age=31536000')
  })

  test('each request has its own id, never one chosen by the caller', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () =>
        (await app.request('/api/health', { headers: { 'x-request-id': 'mine' } })).headers.get('x-request-id'),
      ),
    )
    expect(new Set(ids).size).toBe(20)
    expect(ids).not.toContain('mine')
  })
})

describe('methods and paths', () => {
  test('Allow names exactly the methods that a path has, on every path', async () => {
    const paths = new Set(listOperations(app.routes).map(({ path }) => path.replace(/:\w+(?:\{[^}]*\})?/g, '1')))
    expect(paths.size).toBeGreaterThan(80)
    for (const path of paths) {
      const lacking: string[] = []
      const allows = new Set<string>()
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const { status, headers } = await app.request(path, { method })
        if (status !== 405) continue
        lacking.push(method)
        allows.add(String(headers.get('allow')))
      }
      const rest = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'].filter((method) => !lacking.includes(method))
      expect([path, [...allows]]).toStrictEqual([path, [rest.join(', ')]])
    }
  })

  test.each([
    ['PATCH', '/api/users', 'GET, HEAD, POST'],
    ['DELETE', '/api/users', 'GET, HEAD, POST'],
    ['POST', '/api/users/1', 'DELETE, GET, HEAD, PUT'],
    ['GET', '/api/users/1/admin', 'PUT'],
    ['GET', '/api/auth/login', 'POST'],
    ['HEAD', '/api/auth/login', 'POST'],
    ['PUT', '/api/health', 'GET, HEAD'],
    ['OPTIONS', '/api/users', 'GET, HEAD, POST'],
    ['HEAD', '/api/auth/oidc/callback', 'GET'],
    ['POST', '/api/auth/oidc/callback', 'GET'],
  ])('%s %s is 405 and allows %s', async (method, path, allow) => {
    for (const answer of [await app.request(path, { method }), await raw(method, path)]) {
      expect([answer.status, answer.headers.get('allow')]).toStrictEqual([405, allow])
    }
  })

  test.each([
    '/api',
    '/api/',
    '/api/nothing',
    '/api/users/',
    '/api/users/1/',
    '/api//users',
    '/API/users',
    '/api/users/1/x',
  ])('%s is 404 for any method, signed in or not', async (path) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect(await outcomeOf(app.request(path, { method }))).toBe('404 not_found')
      expect(await outcomeOf(raw(method, path))).toBe('404 not_found')
    }
  })

  test('HEAD is GET without a body, with the same access rule', async () => {
    const head = await raw('HEAD', '/api/users')
    expect([head.status, head.headers.get('content-type'), await head.text()]).toStrictEqual([
      200,
      'application/json',
      '',
    ])
    const anna = await app.user('anna')
    expect((await anna.send('HEAD', '/api/users')).status).toBe(403)
    expect((await app.request('/api/users', { method: 'HEAD' })).status).toBe(401)
  })

  test('no header overrides the method', async () => {
    const anna = await app.user('anna')
    for (const name of ['x-http-method-override', 'x-method-override', 'x-http-method']) {
      await raw('POST', `/api/users/${anna.id}?_method=DELETE`, { headers: { [name]: 'DELETE' } })
    }
    expect((await anna.send('GET', '/api/auth/sessions')).status).toBe(200)
  })
})

describe('another origin', () => {
  const login = (headers: Record<string, string>) =>
    app.client().send('POST', '/api/auth/login', { username: 'admin', password: ADMIN_PASSWORD }, headers)
  const logout = (headers: Record<string, string>) => raw('POST', '/api/auth/logout', { headers })

  test.each([
    ['no header', {}, true],
    ['sec-fetch-site: same-origin', { 'sec-fetch-site': 'same-origin' }, true],
    ['sec-fetch-site: none', { 'sec-fetch-site': 'none' }, true],
    ['sec-fetch-site: same-site', { 'sec-fetch-site': 'same-site' }, false],
    ['sec-fetch-site: cross-site', { 'sec-fetch-site': 'cross-site' }, false],
    ['an unknown sec-fetch-site', { 'sec-fetch-site': 'x' }, false],
    ['its own origin', { origin: 'http://localhost' }, true],
    ['another origin', { origin: 'https://evil.example' }, false],
    ['another port', { origin: 'http://localhost:8080' }, false],
    ['another scheme', { origin: 'https://localhost' }, false],
    ['an origin that begins like our own', { origin: 'http://localhost.evil.example' }, false],
    ['origin null', { origin: 'null' }, false],
    ['an empty origin', { origin: '' }, false],
    ['cross-site with its own origin', { 'sec-fetch-site': 'cross-site', origin: 'http://localhost' }, false],
    [
      'same-origin behind a proxy that changes the host',
      { 'sec-fetch-site': 'same-origin', origin: 'https://x' },
      true,
    ],
  ])('a request with %s (%j) is allowed: %s', async (_what, headers, isFine) => {
    const audited = await auditedBy(app, async () => {
      expect(await outcomeOf(logout(headers))).toBe(isFine ? '200' : '403 cross_origin')
      expect(await outcomeOf(login(headers))).toBe(isFine ? '200' : '403 cross_origin')
    })
    expect(audited).toStrictEqual(isFine ? ['logout', 'login_success'] : [])
  })

  test('every unsafe method is checked first, every safe one is exempt', async () => {
    const headers = { origin: 'https://evil.example' }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'X-CUSTOM']) {
      expect(await outcomeOf(raw(method, '/api/users/1', { headers })), method).toBe('403 cross_origin')
    }
    expect((await raw('GET', '/api/users', { headers })).status).toBe(200)
    expect((await raw('HEAD', '/api/users', { headers })).status).toBe(200)
  })

  test('the origin of PUBLIC_URL counts as our own, whatever its path', async () => {
    app.close()
    app = await createTestApp({ env: { PUBLIC_URL: 'https://Mesh.example.org:443/base/' } })
    admin = await app.admin()
    expect(await outcomeOf(logout({ origin: 'https://mesh.example.org' }))).toBe('200')
    admin = await app.admin()
    expect(await outcomeOf(logout({ origin: 'http://localhost' }))).toBe('200')
    expect(await outcomeOf(logout({ origin: 'https://mesh.example.org:8443' }))).toBe('403 cross_origin')
  })

  test('a bearer token alone needs no such check; beside a cookie it does', async () => {
    const { token } = Object(
      await (await admin.send('POST', '/api/tokens', { name: 'x', scopes: ['nodes:read'] })).json(),
    )
    const headers = { authorization: `Bearer ${token}`, origin: 'https://evil.example' }
    expect(await outcomeOf(app.request('/api/auth/logout', { method: 'POST', headers }))).toBe('200')
    expect(await outcomeOf(logout(headers))).toBe('403 cross_origin')
  })
})

describe('bodies', () => {
  const users = (init: RequestInit) => raw('POST', '/api/users', init)
  const good = JSON.stringify({ username: 'anna', password: USER_PASSWORD })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'application/problem+json',
    'text/json',
    'application',
    'application/json, text/plain',
  ])('of type %s are 415', async (type) => {
    expect(await outcomeOf(users({ body: good, headers: { 'content-type': type } }))).toBe('415 unsupported_media_type')
  })

  test.each(['application/json', 'application/json;charset=utf-8', 'Application/JSON ; charset="UTF-8"'])(
    'of type %s are read',
    async (type) => {
      expect(await outcomeOf(users({ body: good, headers: { 'content-type': type } }))).toBe('201')
    },
  )

  test.each(['{', '', 'nope', '{"username":}', "{'a':1}", '{"a":1}}', '\u0000', 'NaN', '{"a":01}', '// x'])(
    '%j is 400 invalid_json',
    async (body) => {
      expect(await outcomeOf(users({ body, headers: json }))).toBe('400 invalid_json')
    },
  )

  test('that are not UTF-8 are refused, not repaired', async () => {
    const [start = '', end = ''] = good.split('anna')
    const body = new Blob([start, new Uint8Array([0xff]), end])
    expect(await outcomeOf(users({ body, headers: json }))).toBe('400 invalid_json')
    const toggle = raw('PUT', '/api/users/1/admin', { body: new Uint8Array([0x22, 0xc3, 0x22]), headers: json })
    expect(await outcomeOf(toggle)).toBe('400 invalid_json')
  })

  test('that end early are not logged as a failure of the service', async () => {
    const cut = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) })
    expect(await outcomeOf(users({ body: cut, duplex: 'half', headers: json }))).toBe('400 invalid_request')
    expect(app.logged.filter((line) => line.includes('"error"'))).toStrictEqual([])
  })

  test.each([
    ['/api/users', 256, '201'],
    // Anybody may send it.
    ['/api/auth/login', 16, '401 invalid_credentials'],
    ['/api/ingest', 1024, '403 forbidden'],
  ])('for %s larger than %i KiB are 413, with and without a length', async (path, kib, otherwise) => {
    const padded = (bytes: number) => `${good.slice(0, -1)}${' '.repeat(bytes - good.length)}}`
    const stream = (text: string) => ({ body: new Blob([text]).stream(), duplex: 'half' as const })
    const post = (init: object) => outcomeOf(raw('POST', path, init))
    const size = kib * 1024
    expect(await post({ ...stream(padded(size + 1)), headers: json })).toBe('413 payload_too_large')
    const length = { ...json, 'content-length': String(size + 1) }
    expect(await post({ body: padded(size + 1), headers: length })).toBe('413 payload_too_large')
    expect(await post({ ...stream(padded(size)), headers: json })).toBe(otherwise)
  })

  test('of anonymous callers take little of the processor, whatever they contain', async () => {
    const { request } = createApp(() => app.ports)
    const fields = Array.from({ length: 1100 }, (_, n) => `"key${n}":${n}`)
    const bodies = [`${'['.repeat(8190)}${']'.repeat(8190)}`, `{${fields.join()}}`]
    const send = (body: string) => request('/api/auth/login', { method: 'POST', headers: json, body })
    for (const body of bodies) await send(body)
    const begun = processorTime()
    for (let n = 0; n < 50; n++) for (const body of bodies) expect((await send(body)).status).toBe(400)
    // A hundred, each of which would take a tenth of a second if it were a mebibyte.
    limitProcessorTime(begun, 1000)
  })

  test('are read only after the access check', async () => {
    for (const body of ['{', '[]', good]) {
      const answer = app.request('/api/users', { method: 'POST', body, headers: json })
      expect(await outcomeOf(answer)).toBe('401 unauthenticated')
    }
  })
})

describe('hostile input', () => {
  const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth)
  const BODIES: [string, string][] = [
    ['arrays a hundred thousand deep', nested(100_000, '[', ']')],
    ['objects a hundred thousand deep', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['a deep value in a field', `{"username":${nested(50_000, '[', ']')},"password":"x"}`],
    ['fifty thousand fields', `{${Array.from({ length: 50_000 }, (_, i) => `"k${i}":1`).join(',')}}`],
    ['__proto__', '{"__proto__":{"isAdmin":true},"username":"p1","password":"a password for everyone"}'],
    ['constructor', '{"constructor":{"prototype":{"x":1}},"username":"p1","password":"a password for everyone"}'],
    ['an enormous number', '{"username":1e999,"password":"x"}'],
    ['a NUL', '{"username":"a\\u0000b","password":"a password for everyone"}'],
    ['a lone surrogate', '{"username":"\\ud800","password":"a password for everyone"}'],
    ['a name of a megabyte', `{"username":"${'x'.repeat(1_000_000)}","password":"x"}`],
    ['duplicate keys', '{"username":"a","username":"../x","password":"a password for everyone"}'],
    ['a byte order mark in the middle', '{"username":"\\ufeff","password":"a password for everyone"}'],
  ]
  const TARGETS = [
    ['POST', '/api/users'],
    ['PUT', '/api/users/1'],
    ['PUT', '/api/users/1/admin'],
    ['PUT', '/api/users/1/permissions'],
    ['POST', '/api/tokens'],
    ['POST', '/api/auth/login'],
    ['POST', '/api/auth/change-password'],
  ] as const

  test.each(BODIES)('%s as a body is a 4xx everywhere', async (_what, body) => {
    for (const [method, path] of TARGETS) {
      const answer = await raw(method, path, { body, headers: json })
      expect([400, 401, 413], `${method} ${path}`).toContain(answer.status)
      expect((await answer.text()).length).toBeLessThan(30_000)
    }
    expect(Object('').isAdmin).toBeUndefined()
  })

  test.each([
    '?limit=%00',
    '?limit=%ff',
    '?limit=%',
    '?limit=%ud800',
    '?__proto__=1&limit=x',
    '?constructor=1&limit=x',
    '?limit[]=1&limit=x',
    `?limit=${'9'.repeat(10_000)}`,
    `?limit=x${'&a=1'.repeat(10_000)}`,
  ])('a query of %s is a 4xx', async (query) => {
    expect(await outcomeOf(raw('GET', `/api/users${query.slice(0, 50_000)}`))).toBe('400 invalid_request')
  })

  test.each(['?__proto__=1', '?constructor=1', '?toString', '?hasOwnProperty=1', '?%ff=1', '?=', '?&&&', '?a[b]=c'])(
    'an unknown query of %s changes nothing',
    async (query) => {
      expect((await raw('GET', `/api/users${query}`)).status).toBe(200)
    },
  )

  test.each(['__proto__', 'constructor', '%00', '%ff', '%', '%2e%2e', '..%2f..', '%F0%9F%A6%8A', 'x'.repeat(8000)])(
    'an id of %s is a 4xx',
    async (id) => {
      const { status } = await raw('GET', `/api/users/${id}`)
      expect([400, 404]).toContain(status)
    },
  )

  test.each([
    { cookie: `mesh_session=${'x'.repeat(100_000)}` },
    { cookie: ';'.repeat(5000) },
    { cookie: '__proto__=1; constructor=2; mesh_session' },
    { cookie: 'mesh_session=%E0%A4%A; mesh_session=%' },
    { authorization: `Bearer mm_${'x'.repeat(100_000)}` },
    { authorization: `Bearer ${' '.repeat(50_000)}x` },
    { authorization: 'Bearer mm_\u00ff' },
    { 'user-agent': 'x'.repeat(100_000) },
    { 'content-type': `application/json;${';'.repeat(50_000)}` },
    { origin: 'x'.repeat(100_000) },
    { 'content-length': 'NaN' },
  ])('an oversized or nonsensical header never breaks the service', async (headers) => {
    const given: Record<string, string> = { ...headers }
    for (const path of ['/api/auth/status', '/api/users']) {
      expect((await app.request(path, { headers: given })).status).toBeLessThan(500)
    }
    const body = JSON.stringify({ username: 'admin', password: 'x' })
    const answer = await app.request('/api/auth/login', { method: 'POST', body, headers: { ...json, ...given } })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
  })

  test('none of this is logged as a failure', async () => {
    for (const [, body] of BODIES) await raw('POST', '/api/auth/login', { body, headers: json })
    expect(app.logged.filter((line) => line.includes('"error"'))).toStrictEqual([])
  })
})

test('a refusal explains the fields and never shows their values', async () => {
  const answer = await admin.send('POST', '/api/users', { username: 'bad name', password: 'my secret words', extra: 1 })
  const text = await answer.text()
  expect(text).not.toContain('my secret words')
  const { detail, issues } = JSON.parse(text)
  expect(detail).toBe('username: 1–64 letters, digits and . _ - @; Unrecognized key: "extra"')
  expect(issues).toStrictEqual([
    { path: 'username', message: '1–64 letters, digits and . _ - @' },
    { path: '', message: 'Unrecognized key: "extra"' },
  ])
})
