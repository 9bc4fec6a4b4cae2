import { expect, test } from 'vitest'
import { type Client, createClient, makeUser, refusal, signIn, USER_PASSWORD } from '../service.ts'

const CREDENTIALS = { username: 'nobody', password: 'whatever it is' }

/** Rules for every request, whoever sends it. */
export function requestScenarios(admin: () => Client): void {
  test('health answers everybody and sets no cookie', async () => {
    const answer = await createClient(admin().service).send('GET', '/api/health')
    expect(answer).toMatchObject({ status: 200, body: { status: 'ok', uptime: expect.any(Number) } })
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('a load balancer and a supervisor learn what they ask for', async () => {
    const client = createClient(admin().service)
    expect(await client.send('GET', '/api/ready')).toMatchObject({ status: 200, body: { status: 'ready' } })
    expect(await client.send('GET', '/api/live')).toMatchObject({ status: 200, body: { status: 'live' } })
  })

  test('the API describes itself, using no script and no other host', async () => {
    const client = createClient(admin().service)
    const document = await client.send('GET', '/api/openapi.json')
    expect(document).toMatchObject({ status: 200, body: { openapi: '3.1.0' } })
    expect(Object.keys(Object(document.body).paths)).toEqual(
      expect.arrayContaining(['/api/users/{id}/permissions', '/api/auth/login', '/api/audit/export', '/api/tokens']),
    )
    const page = await client.send('GET', '/api/docs')
    expect(page.headers.get('content-type')).toMatch(/^text\/html/)
    expect(page.body).toContain('/api/users/{id}/permissions')
    expect(page.body).not.toMatch(/<script|https?:\/\//)
  })

  test('a refusal has the same code in every language, and its words in the wanted one', async () => {
    const client = createClient(admin().service)
    const ask = (language: string) => client.send('GET', '/api/users', undefined, { 'accept-language': language })
    const [english, german] = [await ask('xx, en;q=0.5'), await ask('de-AT, en;q=0.5')]
    expect(english).toMatchObject({ status: 401, body: { code: 'unauthenticated', title: 'Not signed in' } })
    expect(german).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated', title: expect.stringContaining('ngemeldet') },
    })
    expect(german.headers.get('content-language')).toBe('de')
    expect(german.headers.get('vary')).toMatch(/accept-language/i)
  })

  test('the language and the units that somebody chose come with their account', async () => {
    await makeUser(admin(), 'linguist')
    const client = await signIn(admin().service, 'linguist')
    const chosen = async () => Object((await client.send('GET', '/api/auth/status')).body)
    expect(await chosen()).toMatchObject({ language: null, units: null })
    expect(await client.send('PUT', '/api/auth/preferences', { language: 'pl', units: 'imperial' })).toMatchObject({
      status: 204,
    })
    expect(await chosen()).toMatchObject({ language: 'pl', units: 'imperial' })
    expect(await client.send('PUT', '/api/auth/preferences', { language: 'tlh' })).toMatchObject(
      refusal(400, 'invalid_request'),
    )
  })

  test('every answer carries the security headers and its own id', async () => {
    const client = createClient(admin().service)
    const answers = await Promise.all(['/api/health', '/api/users', '/nowhere'].map((path) => client.send('GET', path)))
    for (const { headers } of answers) {
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('permissions-policy')).toMatch(/camera=\(\).*geolocation=\(\)/)
      expect(headers.get('strict-transport-security')).toBe(null)
    }
    expect(answers[1]?.headers.get('cache-control')).toBe('no-store')
    expect(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size).toBe(3)
  })

  test('an unknown path is 404, a known path with another method 405', async () => {
    const client = createClient(admin().service)
    expect(await client.send('GET', '/api/nowhere')).toMatchObject(refusal(404, 'not_found'))
    const wrong = await client.send('DELETE', '/api/auth/login')
    expect(wrong).toMatchObject(refusal(405, 'method_not_allowed'))
    expect(wrong.headers.get('allow')).toBe('POST')
    expect((await client.send('HEAD', '/api/users')).status).toBe(401)
  })

  test("administrators' routes refuse everybody else, whether the subject exists or not", async () => {
    const id = await makeUser(admin(), 'wanda')
    const user = await signIn(admin().service, 'wanda')
    const routes: [string, string, unknown?][] = [
      ['GET', '/api/users'],
      ['POST', '/api/users', { username: 'mine', password: USER_PASSWORD }],
      ['GET', `/api/users/${id}`],
      ['GET', '/api/users/987654321'],
      ['PUT', `/api/users/${id}`, { displayName: 'Me' }],
      ['DELETE', `/api/users/${id}`],
      ['PUT', `/api/users/${id}/admin`, { isAdmin: true }],
      ['POST', `/api/users/${id}/reset-password`],
      ['PUT', `/api/users/${id}/permissions`, { permissions: {} }],
      ['GET', '/api/audit'],
      ['GET', '/api/audit/export?format=csv'],
    ]
    for (const [method, path, body] of routes) {
      const anonymous = await createClient(admin().service).send(method, path, body)
      expect(anonymous, `${method} ${path}`).toMatchObject(refusal(401, 'unauthenticated'))
      expect(await user.send(method, path, body), `${method} ${path}`).toMatchObject(refusal(403, 'admin_required'))
    }
  })

  const NODE_NEW = { kind: 'node_new', name: 'once' }
  const HELLO = {
    kind: 'announce',
    name: 'once',
    enabled: false,
    when: { kind: 'interval', hours: 6 },
    channels: [0],
    text: 'Hello',
  }
  test.each([
    ['a token', '/api/tokens', { name: 'once', scopes: ['nodes:read'] }, 'tokens'],
    ['a user', '/api/users', { username: 'once' }, 'users'],
    ['an alert rule', '/api/alerts/rules', NODE_NEW, 'rules'],
    ['a rule of automation', '/api/automation', HELLO, 'automations'],
  ])('equal requests with one Idempotency-Key at the same instant create %s once', async (_, path, body, list) => {
    const key = { 'idempotency-key': `once at ${path}`.replaceAll(' ', '-') }
    const named = async () =>
      JSON.stringify(Object((await admin().send('GET', path)).body)[list]).split('"once"').length - 1
    const create = () => admin().send('POST', path, body, key)
    const made = await Promise.all([create(), create(), create(), create()])
    expect(made.map(({ status }) => status)).toStrictEqual([201, 201, 201, 201])
    expect(new Set(made.map(({ headers }) => headers.get('location'))).size).toBe(1)
    const shown = made.filter((one) => Object(one.body).secretShown === true)
    expect(shown.length).toBe(made.some((one) => 'secretShown' in Object(one.body)) ? 1 : 0)
    expect(await named()).toBe(1)
    const other = JSON.parse(JSON.stringify(body).replace('"once"', '"twice"'))
    expect(await admin().send('POST', path, other, key)).toMatchObject(refusal(422, 'idempotency_key_reused'))
  })

  test('a time is in milliseconds or ISO 8601 with a zone, in queries and in bodies', async () => {
    const ms = Date.UTC(2026, 0, 15, 12)
    for (const [from, status] of [
      [String(ms), 200],
      ['2026-01-15T12:00:00Z', 200],
      ['2026-01-15T13:00:00%2B01:00', 200],
      ['2026-01-15T12:00:00', 400],
    ] as const) {
      expect([from, (await admin().send('GET', `/api/audit?from=${from}`)).status]).toEqual([from, status])
    }
    const mute = (silencedUntil: unknown) =>
      admin().send('POST', '/api/alerts/rules', { ...NODE_NEW, name: 'Muted', enabled: false, silencedUntil })
    const made = await mute('2026-01-15T13:00:00+01:00')
    expect(made).toMatchObject({ status: 201, body: { rule: { rule: { silencedUntil: ms } } } })
    expect(await mute('2026-01-15T12:00:00')).toMatchObject(refusal(400, 'invalid_request'))
  })

  test('a page of another origin can change nothing', async () => {
    const client = createClient(admin().service)
    const login = (headers: Record<string, string>) => client.send('POST', '/api/auth/logout', undefined, headers)
    expect(await login({ 'sec-fetch-site': 'cross-site' })).toMatchObject(refusal(403, 'cross_origin'))
    expect(await login({ origin: 'https://elsewhere.example' })).toMatchObject(refusal(403, 'cross_origin'))
    expect((await login({ origin: admin().service.url.origin })).status).toBe(200)
    expect((await login({ 'sec-fetch-site': 'same-origin' })).status).toBe(200)
  })

  test('a body is JSON of a limited size', async () => {
    const client = createClient(admin().service)
    const login = (body: string, headers = {}) => client.send('POST', '/api/auth/login', body, headers)
    expect(await login('{"username":')).toMatchObject(refusal(400, 'invalid_json'))
    const noUtf8 = await fetch(new URL('/api/auth/login', admin().service.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    })
    expect({ status: noUtf8.status, body: await noUtf8.json() }).toMatchObject(refusal(400, 'invalid_json'))
    expect(await login('a=b', { 'content-type': 'application/x-www-form-urlencoded' })).toMatchObject(
      refusal(415, 'unsupported_media_type'),
    )
    const long = (kib: number) => JSON.stringify({ ...CREDENTIALS, username: 'x'.repeat(kib * 1024) })
    expect(await login(long(15))).toMatchObject(refusal(400, 'invalid_request'))
    expect(await login(long(16))).toMatchObject(refusal(413, 'payload_too_large'))
    const create = (body: string) => admin().send('POST', '/api/users', body)
    expect(await create(long(255))).toMatchObject(refusal(400, 'invalid_request'))
    expect(await create(long(256))).toMatchObject(refusal(413, 'payload_too_large'))
    expect(await login(JSON.stringify({ ...CREDENTIALS, isAdmin: true }))).toMatchObject(
      refusal(400, 'invalid_request'),
    )
  })

  test('the answer to a body that nobody reads reaches a client that is still sending it', async () => {
    const client = createClient(admin().service)
    const long = 'x'.repeat(4 * 1024 * 1024)
    const send = async (headers: Record<string, string>, body: string | ReadableStream<Uint8Array> = long) => {
      const url = new URL('/api/auth/login', client.service.url)
      const answer = await fetch(url, { method: 'POST', headers, body, duplex: 'half' })
      await answer.arrayBuffer()
      return answer.status
    }
    const json = { 'content-type': 'application/json' }
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all([
        send(json),
        send(json, new Blob([long]).stream()),
        send({ 'content-type': 'text/plain' }),
        send({ ...json, 'sec-fetch-site': 'cross-site' }),
      ])
      expect(answers).toEqual([413, 413, 415, 403])
    }
  })

  test('a long body without a length is cut off', async () => {
    const chunk = new TextEncoder().encode('x'.repeat(64 * 1024))
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => (++sent > 20 ? controller.close() : controller.enqueue(chunk)),
    })
    const answer = await fetch(new URL('/api/auth/login', admin().service.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      duplex: 'half',
    })
    expect({ status: answer.status, body: await answer.json() }).toMatchObject(refusal(413, 'payload_too_large'))
  })
}
