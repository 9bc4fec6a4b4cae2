import { createServer, type RequestListener, type Server } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { isPublicAddress } from '../../../src/app/alerts/destinations/public-address.ts'
import { SendFailure } from '../../../src/app/base/outgoing/ports.ts'
import { openOutbound, type Resolve } from '../../../src/node/alerts/outbound.ts'
import { portOf } from '../../support/servers/port-of.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return portOf(server)
}

const request = (url: string, mayBePrivate = true) =>
  ({ url, method: 'POST', headers: { 'x-kind': 'test' }, body: '{"a":1}', mayBePrivate }) as const

describe('an address', () => {
  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    '2001::1',
    '2001:db8::1',
    '2002:7f00:1::1',
    '3fff::1',
    'localhost',
    '1.2.3',
    '0x7f.0.0.1',
    '1:2:3:4:5:6:7:8:9',
    '',
  ])('%s is not public', (address) => expect(isPublicAddress(address)).toBe(false))

  test.each([
    '1.1.1.1',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '::ffff:1.1.1.1',
    '64:ff9b::101:101',
    '2a00::1',
  ])('%s is public', (address) => expect(isPublicAddress(address)).toBe(true))
})

describe('a request to an address that a user entered', () => {
  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0177.0.0.1/',
    'http://0x7f.1/',
    'http://127.1/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://0.0.0.0/',
    'http://localhost/',
    'http://169.254.169.254/latest/meta-data/',
  ])('%s is refused, except for administrators', async (url) => {
    await expect(openOutbound().send(request(url, false))).rejects.toThrow('private addresses')
  })

  test('connects to the address that was checked: a name that resolves differently the next time changes nothing', async () => {
    let asked = 0
    const port = await serve((_, answer) => answer.end())
    const rebinding: Resolve = async () => [{ address: ++asked === 1 ? '192.0.2.1' : '127.0.0.1', family: 4 }]
    const outbound = openOutbound({ resolve: rebinding, totalMs: 300 })
    await expect(outbound.send(request(`http://rebind.example.org:${port}/`))).rejects.toThrow(SendFailure)
    expect(asked).toBe(1)
    const mixed: Resolve = async () => [
      { address: '1.1.1.1', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ]
    const refused = openOutbound({ resolve: mixed }).send(request(`http://mixed.example.org:${port}/`, false))
    await expect(refused).rejects.toThrow('private addresses')
  })

  test('follows no redirect', async () => {
    const seen: (string | undefined)[] = []
    const port = await serve((incoming, answer) => {
      seen.push(incoming.url)
      answer.writeHead(307, { location: `http://127.0.0.1:${port}/secret` }).end()
    })
    expect(await openOutbound().send(request(`http://127.0.0.1:${port}/hook`))).toStrictEqual({
      status: 307,
      retryAfterMs: null,
    })
    expect(seen).toStrictEqual(['/hook'])
  })

  test('returns status and Retry-After, and sends headers and body', async () => {
    const bodies: string[] = []
    const port = await serve((incoming, answer) => {
      let body = ''
      incoming.on('data', (chunk) => (body += chunk))
      incoming.on('end', () => {
        bodies.push(`${String(incoming.headers['x-kind'])} ${body}`)
        answer.writeHead(429, { 'retry-after': '120' }).end('slow down')
      })
    })
    expect(await openOutbound().send(request(`http://127.0.0.1:${port}/`))).toStrictEqual({
      status: 429,
      retryAfterMs: 120_000,
    })
    expect(bodies).toStrictEqual(['test {"a":1}'])
  })

  test('reads no more than 64 KB of an endless answer', async () => {
    let isCut = false
    const { promise: cut, resolve } = Promise.withResolvers<void>()
    const port = await serve((_, answer) => {
      answer.writeHead(200)
      const more = () => {
        for (let chunk = 0; chunk < 64; chunk++) if (isCut || !answer.write('x'.repeat(16_384))) return
      }
      answer.on('drain', more)
      answer.on('close', () => {
        isCut = true
        resolve()
      })
      more()
    })
    expect(await openOutbound().send(request(`http://127.0.0.1:${port}/`))).toMatchObject({ status: 200 })
    await cut
  })

  test('times out for a server that never answers and for one that answers byte by byte', async () => {
    const silent = await serve(() => {})
    const outbound = openOutbound({ totalMs: 200 })
    await expect(outbound.send(request(`http://127.0.0.1:${silent}/`))).rejects.toThrow('no answer in time')
    const dripping = await serve((_, answer) => {
      answer.writeHead(200)
      const timer = setInterval(() => answer.write('x'), 20)
      answer.on('close', () => clearInterval(timer))
    })
    await expect(outbound.send(request(`http://127.0.0.1:${dripping}/`))).rejects.toThrow('no answer in time')
  })

  test('describes a failure in words that contain no address', async () => {
    await expect(openOutbound().send(request('http://127.0.0.1:1/'))).rejects.toThrow(/^nobody listens there$/)
  })
})

describe('a document at an address that the operator configured', () => {
  test('is read by a plain GET', async () => {
    const seen: unknown[] = []
    const port = await serve((incoming, answer) => {
      seen.push(incoming.method, incoming.headers['content-length'], incoming.headers['x-kind'])
      answer.writeHead(203).end('grüße')
    })
    expect(await openOutbound().read(`http://127.0.0.1:${port}/`)).toStrictEqual({ status: 203, text: 'grüße' })
    expect(seen).toStrictEqual(['GET', undefined, undefined])
  })

  test('is at most 64 KB, and complete or refused', async () => {
    const sizes = [65_536, 65_537]
    const port = await serve((_, answer) => answer.end('x'.repeat(sizes.shift() ?? 0)))
    expect((await openOutbound().read(`http://127.0.0.1:${port}/`)).text).toHaveLength(65_536)
    await expect(openOutbound().read(`http://127.0.0.1:${port}/`)).rejects.toThrow(/^the answer is too large$/)
  })
})
