import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import { createAddressing, parseTrustedProxies } from '../../src/node/http/client-address.ts'
import { listen, type Listening } from '../../src/node/http/server.ts'
import { ADMIN_PASSWORD, createTestApp, type TestApp } from '../support/app.ts'

const endings: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** The app on a real loopback port. */
async function serve(proxies: string[] = [], options: Parameters<typeof createTestApp>[0] = {}) {
  const app = await createTestApp(options)
  const ports = { ...app.ports, ...createAddressing(proxies, app.ports.log) }
  const server = await listen(createApp(() => ports).fetch, 0, '127.0.0.1')
  endings.push(
    () => app.close(),
    () => server.close(0),
  )
  return { app, server, url: `http://127.0.0.1:${server.port}` }
}

type Served = { app: TestApp; server: Listening; url: string }

const login = (url: string, headers: Record<string, string> = {}, password = ADMIN_PASSWORD) =>
  fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ username: 'admin', password }),
  })

/** Writes bytes and reads until the other side closes. */
async function rawRequest({ port }: Listening, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  endings.push(() => void socket.destroy())
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  // A server that refuses a request that is still being sent resets the connection after its answer.
  socket.on('error', () => {})
  socket.write(bytes)
  await new Promise((resolve) => socket.on('close', resolve))
  return Buffer.concat(chunks).toString()
}

const CHUNKED =
  'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'

/** The common shape of errors, with the request id in header and body, and the headers of every answer. */
function expectProblem(answer: string, status: number): void {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(head).toMatch(/\r\ncontent-type: application\/problem\+json(\r\n|$)/i)
  expect(head).toMatch(/\r\nx-content-type-options: nosniff(\r\n|$)/i)
  const requestId = /\r\nx-request-id: ([\w-]{36})(\r\n|$)/i.exec(head)?.[1]
  expect(JSON.parse(body)).toMatchObject({ type: 'about:blank', status, code: expect.any(String), requestId })
}

describe('the address of the client', () => {
  const seenIp = async ({ app, url }: Served, headers: Record<string, string>) => {
    await login(url, headers, 'wrong')
    const sql = "select ip from audit_log where action = 'login_failed' order by id desc"
    const ip = app.store.sqlite.prepare(sql).pluck().get()
    app.store.sqlite.exec('delete from rate_limits')
    return ip
  }

  test.each<[string[], string | undefined, string]>([
    [[], '203.0.113.9', '127.0.0.1'],
    [['10.0.0.0/8'], '203.0.113.9', '127.0.0.1'],
    [['127.0.0.1'], undefined, '127.0.0.1'],
    [['127.0.0.1'], '203.0.113.9', '203.0.113.9'],
    [['127.0.0.0/8'], '198.51.100.1, 203.0.113.9', '203.0.113.9'],
    [['127.0.0.1', '10.0.0.0/8'], '198.51.100.1, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
    [['127.0.0.1', '10.0.0.0/8'], '10.9.9.9, 10.1.2.3', '10.9.9.9'],
    [['127.0.0.1'], '203.0.113.9:4711', '203.0.113.9'],
    [['127.0.0.1'], '[2001:db8::9]:4711', '2001:db8::9'],
    [['127.0.0.1', '2001:db8::/32'], '203.0.113.9, 2001:db8::9', '203.0.113.9'],
    [['127.0.0.1'], '::ffff:203.0.113.9', '203.0.113.9'],
    [['127.0.0.1'], 'unknown', '127.0.0.1'],
    [['127.0.0.1'], '203.0.113.9, unknown', '127.0.0.1'],
    [['127.0.0.1'], '203.0.113.9, <script>', '127.0.0.1'],
    [['127.0.0.1'], ', ,', '127.0.0.1'],
    [['127.0.0.1'], `${'1.1.1.1, '.repeat(500)}203.0.113.9`, '203.0.113.9'],
  ])('behind %j, X-Forwarded-For "%s" is %s', async (proxies, forwarded, expected) => {
    const served = await serve(proxies)
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
    expect(await seenIp(served, { ...headers, forwarded: 'for=192.0.2.77', 'cf-connecting-ip': '192.0.2.78' })).toBe(
      expected,
    )
  })

  test('repeated X-Forwarded-For headers count as one list', async () => {
    const { app, server } = await serve(['127.0.0.1'])
    const body = JSON.stringify({ username: 'x', password: 'x' })
    await rawRequest(
      server,
      `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 203.0.113.9\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect(
      app.store.sqlite.prepare("select ip from audit_log where action = 'login_failed'").pluck().all(),
    ).toStrictEqual(['203.0.113.9'])
  })

  test('a forged X-Forwarded-For does not get around the login limiter', async () => {
    const { url } = await serve([], { env: { LOGIN_MAX_FAILURES: '3' } })
    const statuses: number[] = []
    for (let i = 0; i < 5; i++) {
      const answer = await fetch(`${url}/api/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': `203.0.113.${i}` },
        body: JSON.stringify({ username: `user-${i}`, password: 'x' }),
      })
      statuses.push(answer.status)
    }
    expect(statuses).toStrictEqual([401, 401, 401, 429, 429])
  })

  test('the first X-Forwarded-For from an untrusted address is logged once, with that address', async () => {
    const { app, url } = await serve(['198.51.100.7'])
    const warnings = () =>
      app.logged.map((line) => Object(JSON.parse(line))).filter(({ message }) => message.startsWith('X-Forwarded-For'))
    await fetch(`${url}/api/health`)
    expect(warnings()).toStrictEqual([])
    for (const client of ['203.0.113.1', '203.0.113.2']) {
      await fetch(`${url}/api/health`, { headers: { 'x-forwarded-for': client } })
    }
    expect(warnings()).toMatchObject([{ level: 'warn', address: '127.0.0.1' }])
    const trusting = await serve(['127.0.0.1'])
    await fetch(`${trusting.url}/api/health`, { headers: { 'x-forwarded-for': '203.0.113.1' } })
    expect(trusting.app.logged.filter((line) => line.includes('X-Forwarded-For'))).toStrictEqual([])
  })

  test.each(['proxy', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/', '::1/129', '10.0.0.0/8/8', ''])(
    '"%s" is not a valid proxy',
    (entry) => {
      expect(() => parseTrustedProxies(['10.0.0.1', entry])).toThrow(TypeError)
    },
  )
})

describe('the protocol of the client', () => {
  const isSecure = async (url: string, headers: Record<string, string>) => {
    const answer = await login(url, headers)
    const [cookie = ''] = answer.headers.getSetCookie()
    const hsts = answer.headers.has('strict-transport-security')
    expect([/; Secure/.test(cookie), cookie.startsWith('__Host-')]).toStrictEqual([hsts, hsts])
    return hsts
  }

  test('is https only when a trusted proxy says so', async () => {
    const [open, trusting] = [await serve(), await serve(['127.0.0.1'])]
    expect(await isSecure(open.url, { 'x-forwarded-proto': 'https', forwarded: 'proto=https' })).toBe(false)
    expect(await isSecure(trusting.url, {})).toBe(false)
    expect(await isSecure(trusting.url, { 'x-forwarded-proto': 'https' })).toBe(true)
    expect(await isSecure(trusting.url, { 'x-forwarded-proto': 'HTTPS' })).toBe(true)
    expect(await isSecure(trusting.url, { 'x-forwarded-proto': 'https, http' })).toBe(false)
    expect(await isSecure(trusting.url, { 'x-forwarded-proto': 'http' })).toBe(false)
    expect(await isSecure(trusting.url, { 'x-forwarded-proto': 'javascript' })).toBe(false)
  })

  test('is https whenever PUBLIC_URL says so, whatever the request looks like', async () => {
    const env = { PUBLIC_URL: 'https://mesh.example.org' }
    const { url } = await serve([], { env })
    expect(await isSecure(url, {})).toBe(true)
    expect(await isSecure(url, { 'x-forwarded-proto': 'http' })).toBe(true)
    for (const path of ['/api/health', '/api/auth/status', '/api/nowhere']) {
      expect((await fetch(url + path)).headers.get('strict-transport-security')).toBe('max-age=31536000')
    }
    const byHttp = await serve([], { env: { PUBLIC_URL: 'http://mesh.example.org' } })
    expect(await isSecure(byHttp.url, {})).toBe(false)
  })

  test.each<[string[], Record<string, string>, string, number]>([
    [[], {}, 'http://OWN', 200],
    [[], { 'x-forwarded-host': 'mesh.example.org' }, 'http://mesh.example.org', 403],
    [[], { 'x-forwarded-host': 'mesh.example.org' }, 'http://OWN', 200],
    [['127.0.0.1'], { 'x-forwarded-host': 'mesh.example.org' }, 'http://mesh.example.org', 200],
    [['127.0.0.1'], { 'x-forwarded-host': 'Mesh.Example.org:80' }, 'http://mesh.example.org', 200],
    [['127.0.0.1'], { 'x-forwarded-host': 'a.example:443', 'x-forwarded-proto': 'https' }, 'https://a.example', 200],
    [['127.0.0.1'], { 'x-forwarded-host': 'evil.example, a.example' }, 'http://evil.example', 403],
    [['127.0.0.1'], { 'x-forwarded-host': 'a b', 'x-forwarded-proto': 'https' }, 'https://a', 403],
  ])('behind %j with %j a page of %s gets %i', async (proxies, headers, origin, status) => {
    const { url } = await serve(proxies)
    const own = origin.replace('OWN', url.slice('http://'.length))
    expect((await login(url, { ...headers, origin: own })).status).toBe(status)
  })
})

describe('over the network', () => {
  test('a body without a length is bounded, read and answered', async () => {
    const { url } = await serve()
    const send = (bytes: number) => {
      const body = JSON.stringify({ username: 'admin', password: ADMIN_PASSWORD })
      const padded = body.slice(0, -1) + ' '.repeat(bytes - body.length) + '}'
      return fetch(`${url}/api/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: new Blob([padded]).stream(),
        duplex: 'half',
      })
    }
    expect((await send(1000)).status).toBe(200)
    expect((await send(16 * 1024)).status).toBe(200)
    expect((await send(16 * 1024 + 1)).status).toBe(413)
    expect((await send(5 * 1024 * 1024)).status).toBe(413)
  })

  test('a body with an excessive length is refused before it is sent', async () => {
    const { server } = await serve()
    const head = `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\nConnection: close\r\n\r\n`
    const socket = connect(server.port, '127.0.0.1')
    endings.push(() => void socket.destroy())
    socket.write(head)
    let answer = ''
    socket.on('data', (chunk) => (answer += String(chunk)))
    await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 413 .*"code":"payload_too_large"/s)
  })

  test.each([
    ['an untyped body', 415, 'Content-Length: 2\r\n\r\n{}'],
    ['an untyped chunked body', 415, 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
    ['no body at all', 400, '\r\n'],
    ['an empty form', 400, 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n\r\n'],
    ['two lengths', 400, 'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
    ['a length and chunks', 400, 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a negative length', 400, 'Content-Length: -1\r\n\r\n'],
    ['a header of 20 kB', 431, `X-Big: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['two thousand cookies', 431, `${'Cookie: a=b\r\n'.repeat(2000)}\r\n`],
  ])('%s is answered %s', async (_what, status, rest) => {
    const { server } = await serve()
    const answer = await rawRequest(server, `POST /api/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`)
    expect(answer.slice(0, 12)).toBe(`HTTP/1.1 ${status}`)
    expectProblem(answer, status)
  })

  test.each([
    ['no Host', 400, 'GET /api/health HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['an invalid Host', 400, 'GET /api/health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n'],
    ['a target that is not a path', 400, 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['an unknown method', 400, 'FOO /api/health HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['the hello of TLS', 400, '\x16\x03\x01\x02\r\n\r\n'],
    ['invalid chunks', 400, `${CHUNKED}zz\r\n\r\n`],
    ['endless chunk extensions', 413, `${CHUNKED}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
  ])('%s, refused before the application, is a problem document like any other', async (_what, status, bytes) => {
    const { server, app } = await serve()
    expectProblem(await rawRequest(server, bytes), status)
    expect(app.logged.filter((entry) => entry.includes('"error"'))).toStrictEqual([])
  })

  test('an unknown expectation is not a reason to refuse', async () => {
    const { server } = await serve()
    const head = 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: the-unexpected\r\n\r\n'
    expect(await rawRequest(server, head)).toMatch(/^HTTP\/1\.1 200 /)
  })

  test.each([
    ['TRACE /api/users', 4],
    ['CONNECT /api/users', 4],
    ['PROPFIND /api/users', 4],
    ['GET http://evil.example/api/users', 4],
    ['GET /api/users/%', 4],
    ['GET /%2e%2e/%2e%2e/etc/passwd', 4],
    ['GET /../../etc/passwd', 4],
    ['GET //evil.example/api/users', 4],
    ['GET *', 4],
    ['OPTIONS *', 4],
  ])('%s gets a %ixx or a closed connection and harms nobody', async (line, family) => {
    const { server, url, app } = await serve()
    const answer = await rawRequest(server, `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    if (answer !== '') expect(Number(answer.slice(9, 10))).toBe(family)
    expect((await fetch(`${url}/api/health`)).status).toBe(200)
    expect(app.logged.filter((entry) => entry.includes('"error"'))).toStrictEqual([])
  })

  test('an HTTP/1.0 request without a Host is served', async () => {
    const { server } = await serve()
    expect(await rawRequest(server, 'GET /api/health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('stopping', () => {
  /** A password check that waits until it is released. */
  function held() {
    let entered: () => void
    let release: () => void
    const inside = new Promise<void>((resolve) => (entered = resolve))
    const open = new Promise<void>((resolve) => (release = resolve))
    const passwords = {
      hash: async (password: string) => password,
      verify: async (password: string, hash: string) => {
        entered()
        await open
        return password === hash
      },
    }
    return { passwords, inside, release: () => release() }
  }

  test('a running request completes, a new one is refused, an idle connection does not delay the stop', async () => {
    const { passwords, inside, release } = held()
    const { server, url } = await serve([], { passwords })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const idle = request(`${url}/api/health`, { agent }).end()
    const [answer]: IncomingMessage[] = await once(idle, 'response')
    answer?.resume()
    const running = login(url)
    await inside
    const closing = performance.now()
    const closed = server.close(60_000)
    await expect(fetch(`${url}/api/health`)).rejects.toThrow()
    release()
    expect((await running).status).toBe(200)
    await closed
    // Far less than the keep-alive time of an idle connection.
    expect(performance.now() - closing).toBeLessThan(4500)
    agent.destroy()
  })

  test('a request that does not end is cut off after its time limit', async () => {
    const { passwords, inside } = held()
    const { server, url } = await serve([], { passwords })
    const cut = expect(login(url)).rejects.toThrow()
    await inside
    await server.close(50)
    await cut
  })

  test('a port in use is an error, not a crash', async () => {
    const { server } = await serve()
    await expect(listen(() => new Response(), server.port, '127.0.0.1')).rejects.toThrow(/EADDRINUSE/)
  })
})

describe('a body that nobody reads', () => {
  const MORE = Buffer.alloc(256 * 1024, 'x')

  /** A server that refuses at once, and a client that has read the answer before it sends the rest. */
  async function refuseEarly(headers: Record<string, string>) {
    const server = await listen(() => new Response('no', { status: 415, headers }), 0, '127.0.0.1')
    endings.push(() => server.close(0))
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
    endings.push(() => void socket.destroy())
    const errors: Error[] = []
    socket.on('error', (error) => errors.push(error))
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${4 * MORE.length}\r\n\r\n`)
    socket.write(MORE)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 415 /)
    return { socket, errors }
  }

  /** Each part is sent before the next one: an earlier reset would be an error. */
  async function sendRest(socket: Socket) {
    const closed = new Promise((resolve) => socket.once('close', resolve))
    for (let part = 0; part < 3; part += 1) await new Promise((resolve) => socket.write(MORE, resolve))
    socket.end()
    await closed
  }

  test('is taken to its end before the connection is closed, so that nobody loses the answer', async () => {
    const { socket, errors } = await refuseEarly({ connection: 'close' })
    await once(socket, 'end')
    await sendRest(socket)
    expect(errors).toEqual([])
  })

  test('is taken to its end from a client that sends slowly', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    endings.push(() => void vi.useRealTimers())
    const { socket, errors } = await refuseEarly({})
    for (let ms = 0; ms < 20_000; ms += 100) {
      await new Promise((resolve) => setImmediate(resolve))
      vi.advanceTimersByTime(100)
    }
    await sendRest(socket)
    expect(errors).toEqual([])
  })

  test('is cut off after half a minute', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    endings.push(() => void vi.useRealTimers())
    const { socket } = await refuseEarly({ connection: 'close' })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await once(socket, 'end')
    vi.advanceTimersByTime(30_000)
    // Until the reset arrives.
    const write = () => void socket.write(MORE, (error) => error ?? setImmediate(write))
    write()
    await closed
  })
})
