import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { MAX_PUBLIC_STREAMS, MAX_PUBLIC_STREAMS_OF_ADDRESS } from '../../src/shared/limits.ts'
import { buildService, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { item } from '../support/mesh/delivery.ts'
import { myInfo, packet, text } from '../support/mesh/mesh.ts'
import { figure } from './figures.ts'

const PASSWORD = 'a thousand people listen to the map'
const FIRST = 0x0b000000
const READ = { read: true, write: false }
const ALL = { dashboard: READ, nodes: READ, messages: READ, info: READ }
const PROBES = 200
const SOON = { timeout: 30_000, interval: 50 }

const dir = mkdtempSync(join(tmpdir(), 'mesh-streams-'))
let service: Service
let cookie: string
let token: string

beforeAll(async () => {
  // This machine is the proxy in front of the service, and names the addresses of clients.
  service = await startService(buildService(), {
    DATA_DIR: dir,
    ADMIN_PASSWORD: PASSWORD,
    TRUSTED_PROXIES: '127.0.0.1',
  })
  cookie = await signInAt(service.url, PASSWORD)
  token = Object(await send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest'] })).token
  await hear([myInfo, packet(text('hello'), { from: FIRST })])
  await send('PUT', '/api/public-access', { enabled: true, permissions: ALL, channels: [0] })
})
afterAll(async () => {
  await service.stop('SIGTERM')
  rmSync(dir, { recursive: true })
})

async function send(method: string, path: string, body: unknown): Promise<unknown> {
  const headers = { cookie, 'content-type': 'application/json' }
  const answer = await fetch(`${service.url}${path}`, { method, headers, body: JSON.stringify(body) })
  expect([path, answer.ok]).toEqual([path, true])
  return answer.json()
}

async function hear(packets: readonly Parameters<typeof item>[0][]): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ source: 'hill', packets: packets.map(item), receivedAt: Date.now() })
  const answer = await fetch(`${service.url}/api/ingest`, { method: 'POST', headers, body })
  expect(answer.status).toBe(200)
  await answer.arrayBuffer()
}

type Listener = { status: number; heard: string; hasEnded: boolean; close(): void }

/** A stream of a stranger at this address. */
function listen(address: string): Promise<Listener> {
  const { hostname: host, port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const headers = { 'x-forwarded-for': address }
    const asked = request({ host, port, path: '/api/events', headers, agent: false }, (answer) => {
      const listener: Listener = {
        status: answer.statusCode ?? 0,
        heard: '',
        hasEnded: false,
        close: () => asked.destroy(),
      }
      answer.on('data', (chunk: Buffer) => (listener.heard += chunk.toString()))
      for (const end of ['end', 'error', 'close']) answer.on(end, () => (listener.hasEnded = true))
      resolve(listener)
    })
    asked.on('error', reject)
    asked.end()
  })
}

/** How long a signed-in user waits for the nodes, in milliseconds. */
async function probe(): Promise<number[]> {
  const waits: number[] = []
  for (let n = 0; n < PROBES; n++) {
    if (n % 20 === 0) await hear([packet(text(`heard ${n}`), { from: FIRST + n })])
    const asked = performance.now()
    await (await fetch(`${service.url}/api/nodes`, { headers: { cookie } })).arrayBuffer()
    waits.push(performance.now() - asked)
    await wait(15)
  }
  return waits.toSorted((a, b) => a - b)
}

const told = (waits: readonly number[]) =>
  `p50 ${waits[Math.floor(PROBES * 0.5)]?.toFixed(1)} ms, p99 ${waits[Math.floor(PROBES * 0.99)]?.toFixed(1)} ms`

test('a thousand anonymous visitors listen; the greediest keep nobody out; switching public access off ends all streams', async () => {
  figure('a signed-in user, nobody listens', told(await probe()))
  // Ten addresses open as many streams as they can, and claim to be others.
  const greedy: Listener[] = []
  for (let n = 0; n < 10 * (MAX_PUBLIC_STREAMS_OF_ADDRESS + 5); n++) {
    greedy.push(await listen(`203.0.113.${n % 10}, 198.51.100.${n % 10}`))
  }
  const statuses = greedy.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(10 * MAX_PUBLIC_STREAMS_OF_ADDRESS)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
  // Half-open: they send their request, and never read.
  const { hostname, port } = new URL(service.url)
  const deaf: Socket[] = []
  for (let n = 0; n < 50; n++) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.pause()
    socket.write(`GET /api/events HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.18.1.${n}\r\n\r\n`)
    deaf.push(socket)
  }
  const listeners: Listener[] = []
  for (let n = 0; n < MAX_PUBLIC_STREAMS; n++) listeners.push(await listen(`10.1.${n >> 8}.${n & 255}`))
  const open = listeners.filter(({ status }) => status === 200)
  figure('streams of newcomers beside the greedy', `${open.length} of ${listeners.length}`)
  // Each greedy address has kept one, and each deaf one its own.
  expect(open.length).toBeGreaterThanOrEqual(MAX_PUBLIC_STREAMS - 10 - deaf.length)
  await vi.waitFor(() => expect(open.every(({ heard }) => heard.startsWith(': open'))).toBe(true), SOON)

  figure('a signed-in user beside a thousand streams', told(await probe()))
  const asked = performance.now()
  await hear([
    packet(text('for the town'), { from: FIRST }),
    packet(text('for the family'), { from: FIRST, channel: 2 }),
  ])
  const isTold = ({ heard }: Listener) => heard.includes('for the town')
  await vi.waitFor(() => expect(open.every((one) => isTold(one) || one.hasEnded)).toBe(true), SOON)
  figure('from a packet to the last of all readers', `${Math.round(performance.now() - asked)} ms`)
  expect(open.filter(isTold).length).toBe(open.filter(({ hasEnded }) => !hasEnded).length)
  expect([...open, ...greedy].some(({ heard }) => heard.includes('for the family'))).toBe(false)
  // They differ only in where they began, and in the times of their beats.
  const tail = ({ heard }: Listener) => heard.slice(heard.indexOf('"for the town"')).replaceAll(': beat\n\n', '')
  const last = new Set(open.filter(isTold).map(tail))
  expect(last.size).toBe(1)

  // One address opens and closes in a loop.
  const loop: number[] = []
  for (let n = 0; n < 300; n++) {
    const one = await listen('198.51.100.77')
    loop.push(one.status)
    one.close()
  }
  figure('opened and closed in a loop', `${loop.filter((status) => status === 200).length} of ${loop.length}`)
  expect(loop.at(-1)).toBe(429)

  const off = performance.now()
  await send('PUT', '/api/public-access', { enabled: false })
  await hear([packet(text('after the end'), { from: FIRST })])
  await vi.waitFor(() => expect(open.every(({ hasEnded }) => hasEnded)).toBe(true), SOON)
  figure('from switching off to the end of all streams', `${Math.round(performance.now() - off)} ms`)
  expect([...open, ...greedy].some(({ heard }) => heard.includes('after the end'))).toBe(false)
  expect((await listen('10.1.9.9')).status).toBe(401)
  for (const socket of deaf) socket.destroy()
  for (const listener of [...greedy, ...listeners]) listener.close()
})
