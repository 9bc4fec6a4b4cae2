import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildService, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { FAR, packet, position, telemetry, text } from '../support/mesh/mesh.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../support/radio/device.ts'
import { figure } from './figures.ts'
import { flushesAndWrites, refusedFlushes, slowFlushes } from './slow-flushes.ts'

const FLUSH_MS = 45
const SECONDS = 20
const NODES = 300
const PASSWORD = 'the first administrator'
/** What people read, in turn, every 20 ms. */
const READS = ['/api/messages', '/api/nodes', '/api/dashboard', '/api/auth/status', '/api/telemetry', '/api/packets']
const EACH_MS = 20

let dir: string
let radio: RadioDevice
let service: Service
let cookie: string
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-slow-card-'))
  radio = await startRadioDevice()
  service = await startService(buildService(), {
    DATA_DIR: dir,
    ADMIN_PASSWORD: PASSWORD,
    MESHTASTIC_TCP: `127.0.0.1:${radio.port}`,
  })
  cookie = await signInAt(service.url, PASSWORD)
})
afterAll(async () => {
  await service?.stop('SIGTERM')
  await radio?.stop()
  rmSync(dir, { recursive: true })
})

/** Telemetry, positions and texts of 300 nodes, at an even pace. */
async function hear(packetsASecond: number, seconds: number): Promise<void> {
  const begun = performance.now()
  for (let sent = 0; sent < packetsASecond * seconds; await later(10)) {
    const due = Math.min(seconds, (performance.now() - begun) / 1000) * packetsASecond
    for (; sent < due; sent++) radio.send(fromRadio(packet(dataOf(sent), { from: FAR + (sent % NODES) })))
  }
}

function dataOf(n: number): Parameters<typeof packet>[0] {
  const deviceMetrics = { batteryLevel: n % 101, voltage: 3.7, channelUtilization: 7.5, airUtilTx: 1.25 }
  if (n % 4 < 2) return telemetry({ variant: { case: 'deviceMetrics', value: deviceMetrics } })
  return n % 4 === 2 ? position({ latitudeI: 520_000_000 + n, longitudeI: 130_000_000 }) : text(`Over the hills ${n}`)
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const rename = (displayName: string) =>
  fetch(`${service.url}/api/users/1`, {
    method: 'PUT',
    headers: { cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ displayName }),
  })

/** Requests without waiting for earlier answers; `end` returns the waits in milliseconds, sorted. */
function readAll(): { end(): Promise<number[]> } {
  const waits: Promise<number>[] = []
  const read = (path: string) =>
    new Promise<number>((resolve, reject) => {
      const begun = performance.now()
      get(service.url + path, { headers: { cookie } }, (answer) => {
        answer.resume().on('end', () => resolve(performance.now() - begun))
      }).on('error', reject)
    })
  const timer = setInterval(() => waits.push(read(READS[waits.length % READS.length] ?? '/')), EACH_MS)
  return {
    end: async () => {
      clearInterval(timer)
      return (await Promise.all(waits)).toSorted((a, b) => a - b)
    },
  }
}

const at = (sorted: readonly number[], share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0)

for (const packets of [5, 50]) {
  test(`${packets} packets a second on a card with ${FLUSH_MS} ms a flush keep no reader waiting`, async () => {
    const quick = readAll()
    await hear(packets, SECONDS)
    const usual = await quick.end()
    const slow = await slowFlushes(service.process.pid, FLUSH_MS, join(dir, 'flushes'))
    const reading = readAll()
    const writes: number[] = []
    const streaming = hear(packets, SECONDS)
    for (let i = 0; i < SECONDS; i++) {
      const begun = performance.now()
      expect((await rename(`name ${packets} ${i}`)).status).toBe(200)
      writes.push(performance.now() - begun)
      await later(1000 - Math.min(1000, performance.now() - begun))
    }
    await streaming
    const waits = await reading.end()
    const flushes = await slow.end()
    writes.sort((a, b) => a - b)
    const shown = (sorted: readonly number[]) => [0.5, 0.99].map((share) => at(sorted, share)).join(', ')
    figure(`${packets} packets/s: flushes of ${FLUSH_MS} ms, of the main thread`, `${flushes}, ${slow.ofMain()}`)
    figure('others read, ms: median, 99th percentile; longest', `${shown(waits)}; ${Math.round(waits.at(-1) ?? 0)}`)
    figure('the same without the slow card', `${shown(usual)}; ${Math.round(usual.at(-1) ?? 0)}`)
    figure('a change is acknowledged, ms: median; longest', `${at(writes, 0.5)}; ${Math.round(writes.at(-1) ?? 0)}`)
    expect(flushes).toBeGreaterThan(SECONDS)
    expect(slow.ofMain()).toBe(0)
  })
}

test('the answer to a change is sent when its flush has ended', async () => {
  const tracing = await flushesAndWrites(service.process.pid, join(dir, 'order'))
  expect((await rename('in order')).status).toBe(200)
  const lines = await tracing.end()
  const answered = lines.findIndex((line) => line.includes('HTTP/1.1 200'))
  const flushed = lines.findIndex((line) => /fdatasync(?:\(\d+\)| resumed).*= 0/.test(line))
  expect(answered).toBeGreaterThan(-1)
  expect(flushed).toBeGreaterThan(-1)
  expect(flushed).toBeLessThan(answered)
})

test('a change whose flush fails is not acknowledged; where every flush fails the service ends, and starts with what was acknowledged', async () => {
  expect((await rename('acknowledged')).status).toBe(200)
  const ended = once(service.process, 'exit')
  await refusedFlushes(service.process.pid, join(dir, 'refused'))
  const outcome = await rename('refused').then(
    ({ status }) => status,
    () => 'cut',
  )
  expect(['cut', 503]).toContain(outcome)
  // Not by a signal: its supervisor starts it again.
  expect(await ended).toEqual([1, null])
  expect(service.lines.join('\n')).toContain('The disk refused to keep changes')
  const startAgain = async () => {
    service = await startService(buildService(), { DATA_DIR: dir })
    cookie = await signInAt(service.url, PASSWORD)
    const answer = await fetch(`${service.url}/api/users/1`, { headers: { cookie } })
    return Object(await answer.json()).user.displayName
  }
  // What was not acknowledged may be there as well.
  expect(['acknowledged', 'refused']).toContain(await startAgain())
  expect((await rename('accepted')).status).toBe(200)
  expect(await service.stop('SIGKILL')).toBe(null)
  expect(await startAgain()).toBe('accepted')
})
