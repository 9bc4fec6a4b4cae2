import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createApp } from '../../src/app/app.ts'
import { createEvents } from '../../src/app/mesh/live/events.ts'
import { openRadio } from '../../src/node/radio/radio.ts'
import { listen, type Listening } from '../../src/node/http/server.ts'
import { createTestApp, START, type TestApp } from '../support/app.ts'
import { createManualClock } from '../support/manual-clock.ts'

const BEAT_MS = 15_000

let app: TestApp
let server: Listening
let cookie: string
const clock = createManualClock(START)
let events = createEvents(clock)

beforeEach(async () => {
  events = createEvents(clock)
  app = await createTestApp({ ports: { events } })
  server = await listen(createApp(() => app.ports).fetch, 0, '127.0.0.1')
  cookie = String((await app.user('reader')).cookie)
})
afterEach(async () => {
  await server.close(0)
  app.close()
})

const open = (headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${server.port}/api/events`, { headers: { cookie, ...headers } })

it('events reach a browser at once, one by one, over HTTP', async () => {
  const answer = await open()
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toContain(': open\n')
  for (let n = 1; n <= 3; n++) {
    events.publish([{ kind: 'node', data: { nodeNum: n } }])
    expect((await reader?.read())?.value).toBe(
      `id: ${events.epoch}-${n}\nevent: node\ndata: ${JSON.stringify({ nodeNum: n })}\n\n`,
    )
  }
  await reader?.cancel()
})

it('the stream frees the place of a reader that has left', async () => {
  for (let n = 0; n < 25; n++) {
    const left = new Promise((resolve) => {
      const asked = request(
        { host: '127.0.0.1', port: server.port, path: '/api/events', headers: { cookie } },
        (answer) => {
          answer.once('data', () => asked.destroy())
          answer.once('close', () => resolve(answer.statusCode))
        },
      )
      asked.on('error', () => {})
      asked.end()
    })
    expect(await left).toBe(200)
    // The service has noticed the closed connection when a later one is answered.
    for (let seen = 0; seen < 2; seen++) await fetch(`http://127.0.0.1:${server.port}/api/health`)
  }
})

it('the stream lets the service stop at once', async () => {
  const reader = (await open()).body?.getReader()
  await reader?.read()
  events.close()
  const began = performance.now()
  await server.close(60_000)
  expect(performance.now() - began).toBeLessThan(50_000)
  expect((await reader?.read())?.done).toBe(true)
})

it('the stream drops a reader that does not read, and buffers little for it', async () => {
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`GET /api/events HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`)
  const first = await new Promise((resolve) => socket.once('data', (chunk) => resolve(String(chunk))))
  expect(first).toContain('200 OK')
  socket.pause()
  // More than the buffers between both ends hold.
  const data = { text: 'x'.repeat(100_000) }
  const sent = 300
  for (let n = 0; n < sent; n++) {
    events.publish([{ kind: 'node', data }])
    await (await fetch(`http://127.0.0.1:${server.port}/api/health`)).text()
  }
  for (let n = 0; n < 3; n++) clock.advance(BEAT_MS)
  // The end of a chunked body: the service has dropped it.
  const bytes = await new Promise((resolve) => {
    let all = 0
    let end = ''
    socket.on('data', (chunk: Buffer) => {
      all += chunk.length
      end = (end + chunk.toString('latin1')).slice(-5)
      if (end === '0\r\n\r\n') resolve(all)
    })
    socket.resume()
  })
  socket.destroy()
  expect(bytes).toBeLessThan((sent * 100_000) / 2)
})

it('the stream reports links and messages from radios', async () => {
  const { config, store, log } = (await createTestApp({ env: { DEMO: 'true' } })).ports
  const radio = openRadio({ config, store, log, events, clock })
  radio.start()
  const link = (state: string) => ({ kind: 'link', data: expect.objectContaining({ name: 'demo', state }) })
  await vi.waitFor(() => {
    clock.advance(1000)
    const told = events.since(Math.max(0, events.last() - 1000), 1000)
    expect(told).toContainEqual(expect.objectContaining(link('connected')))
    expect(told).toContainEqual(expect.objectContaining({ kind: 'node' }))
    expect(told).toContainEqual(expect.objectContaining({ kind: 'message' }))
  }, 60_000)
  await radio.close()
  expect(events.since(events.last() - 1, 1)).toMatchObject([link('stopped')])
})
