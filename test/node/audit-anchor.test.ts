import { createHmac } from 'node:crypto'
import { createSocket, type Socket as Datagrams } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttp, type IncomingHttpHeaders, type Server as HttpServer } from 'node:http'
import { createServer as createTcp, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTls } from 'node:tls'
import { SMTPServer } from 'smtp-server'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { anchorAudit } from '../../src/app/audit/anchor/anchor.ts'
import { sealAudit } from '../../src/app/audit/chain.ts'
import { openMail } from '../../src/node/alerts/mail.ts'
import { openOutbound } from '../../src/node/alerts/outbound.ts'
import { openDatabase } from '../../src/node/database.ts'
import { openSyslog } from '../../src/node/syslog.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { buildCli, runCli } from '../support/built/built-service.ts'
import { freePort } from '../support/servers/free-port.ts'
import { portOf } from '../support/servers/port-of.ts'

const DAY = 86_400_000
const TLS = join(import.meta.dirname, 'fixtures/tls')
const LINE = /mesh-audit-anchor 2026-01-\d\dT[\d:.]+Z (\d+) ([0-9a-f]{64})/

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function open(
  url: string,
  { env = {}, ca, dir }: { env?: Record<string, string>; ca?: string; dir?: string } = {},
): Promise<TestApp> {
  const all = { AUDIT_ANCHOR_URL: url, PUBLIC_URL: 'https://mesh.example.org', ...env }
  const { SMTP_URL = null } = env
  const ports = {
    outbound: openOutbound(),
    syslog: openSyslog({ totalMs: 2000, ...(ca !== undefined && { ca }) }),
    mail: openMail({ SMTP_URL, SMTP_FROM: 'mesh@example.org' }, 2000),
  }
  const store = dir === undefined ? {} : { store: openDatabase(join(dir, 'mesh.db')) }
  const app = await createTestApp({ env: all, ports, ...store })
  ends.push(() => app.close())
  return app
}

/** One look of the service. */
async function look(app: TestApp): Promise<void> {
  await sealAudit(app.store)
  await anchorAudit(app.ports, async () => true)
}

async function act(app: TestApp, times: number): Promise<void> {
  const client = app.client()
  for (let i = 0; i < times; i++) {
    app.ip = `192.0.2.${i + 10}`
    await client.send('POST', '/api/auth/login', { username: `nobody ü ${i}`, password: 'a wrong password' })
  }
}

const row = (app: TestApp, id: number) =>
  app.store.sqlite.prepare<[number], { hash: string }>('select hash from audit_log where id = ?').get(id)
const newest = (app: TestApp) =>
  app.store.sqlite.prepare<[], number>('select max(id) from audit_log').pluck().get() ?? 0

type Body = { type: string; data: { items: { type: string; line?: string; id?: number; entry?: { id: number } }[] } }
type Received = { readonly headers: IncomingHttpHeaders; readonly text: string; readonly body: Body }

async function httpServer(
  port = 0,
  status: (text: string) => number = () => 200,
): Promise<{ port: number; received: Received[]; server: HttpServer }> {
  const received: Received[] = []
  const server = createHttp((request, answer) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const code = status(text)
      if (code === 200) received.push({ headers: request.headers, text, body: JSON.parse(text) })
      answer.writeHead(code).end()
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  return { port: portOf(server), received, server }
}

const idsOf = (received: readonly Received[]) =>
  received.flatMap(({ body }) => body.data.items.map(({ id, entry }) => id ?? entry?.id))

describe('to a webhook', () => {
  test('a line comes at the first start and then once a day, signed', async () => {
    const { port, received } = await httpServer()
    const secret = Buffer.alloc(32, 7)
    const app = await open(`http://127.0.0.1:${port}/x`, {
      env: { AUDIT_ANCHOR_SECRET: `whsec_${secret.toString('base64')}` },
    })
    await look(app)
    await act(app, 3)
    await look(app)
    expect(received).toHaveLength(1)
    app.clock.advance(DAY)
    await look(app)
    expect(received).toHaveLength(2)
    for (const { headers, text, body } of received) {
      const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = headers
      expect(signature).toBe(
        `v1,${createHmac('sha256', secret)
          .update(`${String(id)}.${String(at)}.${text}`)
          .digest('base64')}`,
      )
      const [, named, hash] = LINE.exec(body.data.items[0]?.line ?? '') ?? []
      expect(row(app, Number(named))).toStrictEqual({ hash })
    }
    expect(idsOf(received)[1]).toBe(newest(app))
  })

  test('what an unreachable or failing target missed arrives later, in order and once', async () => {
    const port = await freePort()
    const app = await open(`http://127.0.0.1:${port}/`, { env: { AUDIT_ANCHOR_ENTRIES: 'true' } })
    await look(app)
    const first = newest(app)
    for (let i = 0; i < 3; i++) {
      app.clock.advance(DAY)
      await act(app, 120)
      await look(app)
    }
    const metrics = await (await (await app.admin()).send('GET', '/api/metrics')).text()
    expect(metrics).toContain('mesh_audit_anchor_up 0')
    expect(metrics).toMatch(/mesh_audit_anchor_waiting \d{3}\n/)
    expect(app.logged.filter((line) => line.includes('Anchoring the audit log elsewhere failed'))).toHaveLength(4)
    expect(app.logged.join('\n')).not.toContain(`127.0.0.1:${port}`)
    let code = 500
    const { received } = await httpServer(port, () => code)
    // Not before the pause after the last failure has passed.
    await look(app)
    code = 200
    await look(app)
    expect(received).toHaveLength(0)
    app.clock.advance(900_000)
    await look(app)
    const items = received.flatMap(({ body }) => body.data.items)
    const entries = items.flatMap(({ entry }) => entry ?? [])
    const last = newest(app)
    expect(entries.map(({ id }) => id)).toStrictEqual(Array.from({ length: last - first }, (_, i) => first + 1 + i))
    expect(items.filter(({ type }) => type === 'anchor')).toHaveLength(4)
    const order = idsOf(received)
    expect(order).toStrictEqual(order.toSorted((a, b) => Number(a) - Number(b)))
    expect(await (await (await app.admin()).send('GET', '/api/metrics')).text()).toContain('mesh_audit_anchor_up 1')
  })

  test('a target that refuses long deliveries gets shorter ones', async () => {
    const { port, received } = await httpServer(0, (text) => (Buffer.byteLength(text) > 12_000 ? 413 : 200))
    const app = await open(`http://127.0.0.1:${port}/`, { env: { AUDIT_ANCHOR_ENTRIES: 'true' } })
    await look(app)
    const first = newest(app)
    await act(app, 120)
    await sealAudit(app.store)
    for (let looks = 0; looks < 40; looks++) {
      await look(app)
      app.clock.advance(120_000)
    }
    const ids = idsOf(received.slice(1))
    expect(ids).toStrictEqual(Array.from({ length: newest(app) - first }, (_, i) => first + 1 + i))
    expect(ids.length).toBeGreaterThanOrEqual(120)
  })

  test('a log that was rewritten behind the anchor is noticed and delivered again', async () => {
    const { port, received } = await httpServer()
    const app = await open(`http://127.0.0.1:${port}/`, { env: { AUDIT_ANCHOR_ENTRIES: 'true' } })
    await act(app, 3)
    await look(app)
    app.store.sqlite.exec(`drop trigger audit_log_no_update; drop trigger audit_chain_stays;
      update audit_log set hash = '${'f'.repeat(64)}' where id = (select max(id) from audit_log)`)
    await act(app, 1)
    await look(app)
    expect(app.logged.join('\n')).toContain('THE AUDIT LOG IS NOT THE ONE THAT WAS ANCHORED')
    expect(idsOf(received)).toContain(1)
  })

  test('two processes that look at the same time deliver once', async () => {
    const { port, received } = await httpServer()
    const app = await open(`http://127.0.0.1:${port}/`, { env: { AUDIT_ANCHOR_ENTRIES: 'true' } })
    await look(app)
    await act(app, 5)
    await sealAudit(app.store)
    await Promise.all([look(app), look(app), look(app)])
    const ids = idsOf(received).slice(1)
    expect(ids).toStrictEqual([...new Set(ids)])
  })
})

/** A syslog server over a stream that reads octet counting. */
async function streamServer(make: (accept: (socket: Socket) => void) => Server, port = 0) {
  const messages: string[] = []
  const server = make((socket) => {
    let bytes = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      for (;;) {
        const [head, length] = /^(\d+) /.exec(bytes.toString('latin1')) ?? []
        if (head === undefined || bytes.length < head.length + Number(length)) return
        messages.push(bytes.subarray(head.length, head.length + Number(length)).toString())
        bytes = bytes.subarray(head.length + Number(length))
      }
    })
  })
  server.on('error', () => {})
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  return { port: portOf(server), messages }
}

const FORM =
  /^<109>1 2026-01-\d\dT\d\d:\d\d:\d\d\.\d{3}Z mesh\.example\.org mesh-monitoring - (anchor|entry) - ([\x20-\x7e]+)$/

function expectComplete(app: TestApp, messages: readonly string[], first: number): void {
  const found = messages.map((message) => FORM.exec(message) ?? [])
  const entries = found.filter(([, kind]) => kind === 'entry').map(([, , text = '']) => Object(JSON.parse(text)).id)
  expect(found.every(([message]) => message !== undefined)).toBe(true)
  expect(entries).toStrictEqual(Array.from({ length: newest(app) - first }, (_, i) => first + 1 + i))
  expect(found.filter(([, kind]) => kind === 'anchor').length).toBeGreaterThan(0)
}

describe('to syslog', () => {
  const key = { key: readFileSync(join(TLS, 'broker-key.pem')), cert: readFileSync(join(TLS, 'broker.pem')) }
  test.each([
    ['tcp', createTcp],
    ['tls', (accept: (socket: Socket) => void) => createTls(key, accept)],
  ] as const)('over %s, after the server was away', async (transport, make) => {
    const port = await freePort()
    const options = { env: { AUDIT_ANCHOR_ENTRIES: 'true' }, ca: readFileSync(join(TLS, 'authority.pem'), 'utf8') }
    const app = await open(`syslog+${transport}://localhost:${port}`, options)
    await look(app)
    const first = newest(app)
    await act(app, 130)
    app.clock.advance(DAY)
    await look(app)
    const { messages } = await streamServer(make, port)
    app.clock.advance(900_000)
    await look(app)
    await expect.poll(() => messages.length).toBeGreaterThan(130)
    expectComplete(app, messages, first)
  })

  test('a server that cuts the connection has received nothing', async () => {
    let cuts = true
    const { port, messages } = await streamServer((accept) =>
      createTcp((socket) => (cuts ? socket.on('error', () => {}).resetAndDestroy() : accept(socket))),
    )
    const app = await open(`syslog+tcp://127.0.0.1:${port}`)
    await look(app)
    expect(app.logged.join('\n')).toContain('Anchoring the audit log elsewhere failed')
    cuts = false
    app.clock.advance(60_000)
    await look(app)
    await expect.poll(() => messages.length).toBe(1)
  })

  test('a certificate that is not trusted gets nothing', async () => {
    const { port, messages } = await streamServer((accept) => createTls(key, accept))
    const app = await open(`syslog+tls://localhost:${port}`)
    await look(app)
    expect(app.logged.join('\n')).toContain('its certificate is not trusted')
    expect(messages).toStrictEqual([])
  })

  test('over udp, also after nobody listened', async () => {
    const port = await freePort()
    const app = await open(`syslog+udp://127.0.0.1:${port}`, { env: { AUDIT_ANCHOR_ENTRIES: 'true' } })
    await look(app)
    const first = newest(app)
    expect(app.logged.join('\n')).toContain('nobody listens there')
    await act(app, 20)
    const messages: string[] = []
    const server: Datagrams = createSocket('udp4', (message) => messages.push(message.toString()))
    server.bind(port, '127.0.0.1')
    await once(server, 'listening')
    ends.push(() => server.close())
    app.clock.advance(60_000)
    await look(app)
    await expect.poll(() => messages.length).toBe(21)
    expectComplete(app, messages, first)
  })
})

test('by e-mail, after the server was away, at most one letter in ten minutes', async () => {
  const port = await freePort()
  const env = { SMTP_URL: `smtp://127.0.0.1:${port}/?ignoreTLS=true`, SMTP_FROM: 'mesh@example.org' }
  const app = await open('mailto:audit@example.org', { env: { ...env, AUDIT_ANCHOR_ENTRIES: 'true' } })
  await look(app)
  const letters: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onData(stream, _session, done) {
      let text = ''
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
      stream.on('end', () => {
        letters.push(text)
        done()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  ends.push(() => server.close(() => {}))
  app.clock.advance(60_000)
  await look(app)
  expect(letters).toHaveLength(1)
  expect(letters[0]).toMatch(/Subject: .*anchor/)
  await act(app, 2)
  await look(app)
  expect(letters).toHaveLength(1)
  app.clock.advance(600_000)
  await look(app)
  expect(letters).toHaveLength(2)
})

describe('audit verify --anchor', () => {
  let cli: string
  beforeAll(() => {
    cli = buildCli()
  })

  test('says which received lines fit the log', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-anchor-'))
    ends.push(() => rmSync(dir, { recursive: true }))
    const { port, messages } = await streamServer(createTcp)
    const app = await open(`syslog+tcp://127.0.0.1:${port}`, { env: { AUDIT_ANCHOR_ENTRIES: 'true' }, dir })
    await look(app)
    await act(app, 3)
    app.clock.advance(DAY)
    await look(app)
    await expect.poll(() => messages.length).toBe(5)
    const verify = (anchor: string) => runCli(cli, ['audit', 'verify', '--anchor', anchor], { DATA_DIR: dir })
    const file = join(dir, 'received.log')
    writeFileSync(file, `noise\n${messages.join('\n')}\n`)
    expect(await verify(file)).toMatchObject({
      code: 0,
      out: expect.stringContaining('Anchors: 5 fit, 0 do not fit'),
    })
    const [line = ''] = LINE.exec(messages[0] ?? '') ?? []
    expect(await verify(line)).toMatchObject({ code: 0, out: expect.stringContaining('Fits: entry') })
    const forged = `${line.slice(0, -64)}${'0'.repeat(64)}`
    expect(await verify(forged)).toMatchObject({ code: 1, out: expect.stringContaining('Does not fit: entry') })
    expect(await verify('nothing of this kind')).toMatchObject({ code: 1 })
  })
})
