import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { z } from 'zod'
import { buildService, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { item } from '../support/mesh/delivery.ts'
import { myInfo, packet, position, text, user } from '../support/mesh/mesh.ts'
import { figure } from './figures.ts'
import { type commandSchema, readersReport } from './public-plan.ts'

const PASSWORD = 'five thousand people look at the map'
const READERS = 5000
const ATTACKERS = 200
const NODES = 300
const FIRST = 0x0b000000
/** Quiet and loaded in turns: whatever else this machine does is in both. */
const ROUNDS = 4
const ROUND_MS = 15_000
const WARM_UP_MS = 6000
const PROBE_EVERY_MS = 15
const HEARD_EVERY_MS = 500
const PROBED = ['/api/nodes', '/api/messages?limit=100', '/api/dashboard', `/api/nodes/${FIRST + 1}`]

const READ = { read: true, write: false }
const ALL = { dashboard: READ, nodes: READ, messages: READ, info: READ }

const dir = mkdtempSync(join(tmpdir(), 'mesh-public-'))
let service: Service
let readers: ChildProcess
let greedy: ChildProcess
let cookie: string
let token: string

beforeAll(async () => {
  const env = { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD, TRUSTED_PROXIES: '127.0.0.1' }
  service = await startService(buildService(), env)
  cookie = await signInAt(service.url, PASSWORD)
  token = Object(await send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest'] })).token
  await hear([myInfo])
  for (let first = 0; first < NODES; first += 100) {
    const nums = Array.from({ length: 100 }, (_, n) => FIRST + first + n)
    await hear(
      nums.flatMap((from) => [
        packet(user({ id: 'x', longName: `Node ${from}`, shortName: 'ND' }), { from }),
        packet(position({ latitudeI: 520_000_000 + (from - FIRST) * 1000, longitudeI: 130_000_000 }), { from }),
      ]),
    )
  }
  await send('PUT', '/api/public-access', { enabled: true, permissions: ALL, channels: [0] })
  const script = fileURLToPath(new URL('public-readers.ts', import.meta.url))
  const { port } = new URL(service.url)
  readers = fork(script, [port, String(READERS)], { execArgv: [] })
  greedy = fork(script, [port, String(ATTACKERS), 'greedy'], { execArgv: [] })
})
afterAll(async () => {
  readers.kill()
  greedy.kill()
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

/** Milliseconds of computing that the service has used (proc(5): a clock tick is 10 ms). */
function computedMs(): number {
  const [, after = ''] = readFileSync(`/proc/${service.process.pid}/stat`, 'utf8').split(') ')
  const fields = after.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function command(what: z.infer<typeof commandSchema>, polling = readers): Promise<z.infer<typeof readersReport>> {
  const answered = once(polling, 'message')
  polling.send(what)
  const [report]: unknown[] = await answered
  return readersReport.parse(report)
}

/** The waits of a signed-in user for answers, in milliseconds, while nodes are heard. */
async function probe(forMs: number): Promise<number[]> {
  const waits: number[] = []
  const began = performance.now()
  let heard = 0
  for (let n = 0; performance.now() - began < forMs; n++) {
    if (performance.now() - began > heard * HEARD_EVERY_MS) {
      heard += 1
      await hear([packet(text(`heard ${heard}`), { from: FIRST + (heard % NODES) })])
    }
    const path = PROBED[n % PROBED.length] ?? ''
    const asked = performance.now()
    const answer = await fetch(`${service.url}${path}`, { headers: { cookie } })
    await answer.arrayBuffer()
    waits.push(performance.now() - asked)
    expect(answer.status).toBe(200)
    await wait(PROBE_EVERY_MS)
  }
  return waits
}

const at = (waits: readonly number[], share: number) =>
  waits.toSorted((a, b) => a - b)[Math.floor(waits.length * share)] ?? Number.NaN
const told = (waits: readonly number[]) =>
  `p50 ${at(waits, 0.5).toFixed(1)} ms, p99 ${at(waits, 0.99).toFixed(1)} ms of ${waits.length}`

test('5,000 people who poll the public map do not slow down signed-in users', async () => {
  await probe(WARM_UP_MS)
  const quiet: number[] = []
  const loaded: number[] = []
  const counts = new Map<string, number>()
  let computed = 0
  for (let round = 0; round < ROUNDS; round++) {
    const before = computedMs()
    quiet.push(...(await probe(ROUND_MS)))
    const between = computedMs()
    await command('go')
    loaded.push(...(await probe(ROUND_MS)))
    computed += computedMs() - between - (between - before)
    for (const [status, n] of Object.entries(await command('rest'))) counts.set(status, (counts.get(status) ?? 0) + n)
  }
  const all = [...counts.values()].reduce((sum, n) => sum + n, 0)
  figure('public answers in a second', Math.round((all * 1000) / (ROUNDS * ROUND_MS)))
  figure('public answers by status', [...counts].map(([status, n]) => `${n} of ${status}`).join(', '))
  figure('computing for a public answer', `${(computed / all).toFixed(3)} ms`)
  figure('a signed-in user, nobody else there', told(quiet))
  figure('a signed-in user beside 5,000 readers', told(loaded))
  figure('p99 of both', `${(at(loaded, 0.99) / at(quiet, 0.99)).toFixed(2)} times`)
  expect([...counts.keys()].toSorted()).toEqual(['200', '304'])
  expect(at(loaded, 0.99)).toBeLessThanOrEqual(2 * at(quiet, 0.99))
})

test('200 addresses that ask for what nobody asked for before do not slow down signed-in users much', async () => {
  const quiet = await probe(ROUND_MS)
  const before = computedMs()
  await command('go', greedy)
  const loaded = await probe(ROUND_MS)
  const counts = await command('rest', greedy)
  figure('computing under attack', `${Math.round((computedMs() - before) / (ROUND_MS / 1000))} ms a second`)
  figure('answers to attackers by status', JSON.stringify(counts))
  figure('a signed-in user, before the attack', told(quiet))
  figure('a signed-in user, during it', told(loaded))
  expect(Object.keys(counts).filter((status) => !['200', '304', '404', '429'].includes(status))).toEqual([])
  expect(counts['429']).toBeGreaterThan(0)
  expect(at(loaded, 0.99)).toBeLessThanOrEqual(Math.max(50, 3 * at(quiet, 0.99)))
})
