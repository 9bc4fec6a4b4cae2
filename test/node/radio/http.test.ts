import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { createLink } from '../../../src/node/radio/link.ts'
import { connectHttp, type HttpTarget } from '../../../src/node/radio/transports/http.ts'
import { RADIO_PROBLEMS } from '../../../src/shared/mesh/radio-problems.ts'
import { startRadioDevice } from '../../support/radio/device.ts'
import { startHttpDevice, type Tls } from '../../support/radio/http-device.ts'
import { portOf } from '../../support/servers/port-of.ts'
import { watchLink } from '../../support/radio/watched-link.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** A certificate that nobody else has signed, as a radio makes it for itself. */
function makeCertificate(): Tls & { readonly fingerprint: string } {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-certificate-'))
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const subject = '/CN=meshtastic.local/O=Meshtastic/C=US'
  const words = `req -x509 -newkey rsa:2048 -nodes -days 2 -subj ${subject} -keyout ${keyFile} -out ${certFile}`
  execFileSync('openssl', words.split(' '), { stdio: 'ignore' })
  const [key, cert] = [readFileSync(keyFile, 'utf8'), readFileSync(certFile, 'utf8')]
  rmSync(dir, { recursive: true })
  return { key, cert, fingerprint: new X509Certificate(cert).fingerprint256 }
}

const first = makeCertificate()
const second = makeCertificate()
const digits = ({ fingerprint }: { readonly fingerprint: string }) => fingerprint.replaceAll(':', '').toLowerCase()

async function start() {
  const device = await startRadioDevice()
  const web = await startHttpDevice(device.port, first)
  endings.push(
    () => device.stop(),
    () => web.stop(),
  )
  const told: string[] = []
  const link = (target: Partial<HttpTarget> = {}) => {
    const connect = connectHttp({
      url: web.url,
      fingerprint: null,
      pollMs: 2,
      onFingerprint: (fingerprint) => told.push(fingerprint),
      ...target,
    })
    const timings = { backoffFirstMs: 2, backoffMaxMs: 4 }
    const watched = watchLink((events) => createLink({ name: 'radio', kind: 'http', connect, timings, ...events }))
    endings.push(() => watched.stop())
    watched.start()
    return watched
  }
  return { device, web, link, told }
}

describe('the certificate of a radio', () => {
  it('is told at the first use, once', async () => {
    const { web, link, told } = await start()
    const watched = link()
    await watched.until('connected')
    web.hangUp()
    await watched.until('waiting')
    await watched.until('connected')
    expect(told).toStrictEqual([digits(first)])
  })

  it('is accepted if it is the pinned one, in either form', async () => {
    const { link, told } = await start()
    for (const fingerprint of [first.fingerprint, digits(first)]) {
      const watched = link({ fingerprint })
      await watched.until('connected')
      // Two clients would take each other's messages away.
      watched.stop()
    }
    expect(told).toStrictEqual([])
  })

  it('stops the link if it is another one, before anything is sent', async () => {
    const { device, web, link, told } = await start()
    const watched = link({ fingerprint: second.fingerprint })
    const { reason } = await watched.until('stopped')
    expect(reason).toBe(RADIO_PROBLEMS.certificate_changed)
    expect([web.requests(), device.received, told]).toStrictEqual([0, [], []])
    expect(watched.states.map(({ state }) => state)).toStrictEqual(['connecting', 'stopped'])
  })

  it('stops the link if it changes, also for one that pinned it itself', async () => {
    const { web, link, told } = await start()
    const watched = link()
    await watched.until('connected')
    web.setTls(second)
    web.hangUp()
    expect((await watched.until('stopped')).reason).toBe(RADIO_PROBLEMS.certificate_changed)
    expect(told).toStrictEqual([digits(first)])
    // Whoever says so starts it again, and it is checked again.
    watched.start()
    await watched.until('stopped')
    web.setTls(first)
    watched.start()
    await watched.until('connected')
  })
})

describe('a server that accepts connections and says nothing', () => {
  it('has no connection any more when the link has ended, and a late handshake pins nothing', async () => {
    const silent = createServer()
    const sockets: Socket[] = []
    silent.on('connection', (socket: Socket) => sockets.push(socket))
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    endings.push(() => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const told: string[] = []
    const connect = connectHttp({
      url: `https://127.0.0.1:${portOf(silent)}`,
      fingerprint: null,
      onFingerprint: (fingerprint) => told.push(fingerprint),
    })
    const stream = connect({ onOpen() {}, onData() {}, onClose() {} })
    const [socket] = await once(silent, 'connection')
    await once(socket, 'readable')
    stream.destroy()
    // It answers now, to nobody.
    const late = new TLSSocket(socket, { ...first, isServer: true })
    late.on('error', () => {})
    if (!socket.closed) await once(socket, 'close')
    expect([sockets.length, told]).toStrictEqual([1, []])
  })
})

describe('a web server in the place of the radio', () => {
  it.each([
    ['another status', { status: 500, type: 'application/x-protobuf', body: '' }],
    ['a page', { status: 200, type: 'text/html', body: '<html>' }],
    ['more than a radio says', { status: 200, type: 'application/x-protobuf', body: new Uint8Array(100_000) }],
    ['a little more than a radio says', { status: 200, type: 'application/x-protobuf', body: new Uint8Array(600) }],
  ])('ends the connection: %s', async (_name, answer) => {
    const { web, link } = await start()
    const watched = link()
    await watched.until('connected')
    web.pretend(answer)
    expect((await watched.until('waiting')).reason).toMatch(/^the radio's web server gives an answer of another kind/)
  })

  it('does not end it with bytes that are no message', async () => {
    const { device, link } = await start()
    const watched = link()
    await watched.until('connected')
    device.send(Uint8Array.of(0xff, 0xff, 0xff), new Uint8Array(512).fill(0x94))
    device.send()
    await device.next('heartbeat')
    await watched.untilEvent(({ type }) => type === 'queue-status')
    expect(watched.info().state).toBe('connected')
  })
})
