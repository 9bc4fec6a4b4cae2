import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Built, buildService, type Service, startService } from '../support/built/built-service.ts'
import { oidcEnv, startProvider, type TestProvider } from '../support/oidc/provider.ts'
import { figure } from './figures.ts'
import { slowFlushes } from './slow-flushes.ts'

const FLUSH_MS = 100
const SECONDS = 10
const EACH_A_SECOND = 40

let built: Built
let dir: string
let provider: TestProvider
let service: Service
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-slow-disk-'))
  built = buildService()
  provider = await startProvider()
  service = await startService(built, {
    DATA_DIR: dir,
    ADMIN_PASSWORD: 'the first administrator',
    TRUSTED_PROXIES: '127.0.0.1',
    ...oidcEnv(provider),
  })
})
afterAll(async () => {
  await service?.stop('SIGTERM')
  await provider?.close()
  rmSync(dir, { recursive: true })
})

const slowDisk = () => slowFlushes(service.process.pid, FLUSH_MS, join(dir, 'flushes'))

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const login = (i: number) =>
  fetch(`${service.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `198.51.${i % 200}.1` },
    body: JSON.stringify({ username: `name ${i % 300}`, password: 'wrong' }),
  })
const begin = (i: number) =>
  fetch(`${service.url}/api/auth/oidc/login`, {
    headers: { 'x-forwarded-for': `198.51.${i % 200}.1` },
    redirect: 'manual',
  })

/** Shows that the measurement notices work that does wait for the disk. */
async function flushesOfSignIn(): Promise<number> {
  const disk = await slowDisk()
  const answer = await fetch(`${service.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: 'the first administrator' }),
  })
  expect(answer.status).toBe(200)
  const flushes = await disk.end()
  expect(flushes).toBeGreaterThan(0)
  return flushes
}

test('refused logins and started sign-ins on a disk with 100 ms per flush keep nobody waiting', async () => {
  await begin(0)
  const disk = await slowDisk()
  const statuses = new Map<string, number>()
  const asked: Promise<void>[] = []
  const ask = async (what: string, request: Promise<Response>) => {
    const { status } = await request
    statuses.set(`${what} ${status}`, (statuses.get(`${what} ${status}`) ?? 0) + 1)
  }
  const waits: number[] = []
  const end = performance.now() + SECONDS * 1000
  const visitor = (async () => {
    while (performance.now() < end) {
      const sent = performance.now()
      await (await fetch(`${service.url}/api/auth/status`)).text()
      waits.push(performance.now() - sent)
      await later(20)
    }
  })()
  for (let i = 0; i < SECONDS * EACH_A_SECOND; i++) {
    asked.push(ask('login', login(i)), ask('begin', begin(i)))
    await later(1000 / EACH_A_SECOND)
  }
  await Promise.all([visitor, ...asked])
  const flushes = await disk.end()
  waits.sort((a, b) => a - b)
  const worst = Math.round(waits.at(-1) ?? Infinity)
  figure('refused logins and started sign-ins a second', EACH_A_SECOND * 2)
  figure('answers', JSON.stringify(Object.fromEntries(statuses)))
  figure(`flushes of ${FLUSH_MS} ms meanwhile`, flushes)
  figure(
    'another visitor waits, ms: median, 99th percentile, longest',
    [waits[Math.floor(waits.length / 2)] ?? 0, waits[Math.floor(waits.length * 0.99)] ?? 0, worst]
      .map(Math.round)
      .join(', '),
  )
  figure('flushes of one sign-in that succeeds', await flushesOfSignIn())
  expect(statuses.get('begin 302')).toBe(SECONDS * EACH_A_SECOND)
  expect([...statuses.keys()].toSorted()).toEqual(['begin 302', 'login 401', 'login 429'])
  // Ordinary work may flush: a minute's upkeep, a checkpoint.
  expect(flushes).toBeLessThan(12)
  expect(worst).toBeLessThan(1500)
})
