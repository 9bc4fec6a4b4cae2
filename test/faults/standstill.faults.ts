import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../src/node/database.ts'
import { buildService, type Built, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { figure } from './figures.ts'

const ENTRIES = 1_000_000
const PROBE_MS = 50
/** The longest wait for a small answer, beyond the delay of the machine itself. */
const LIMIT_MS = 60
const IDLE_PROBES = 60
const PASSWORD = 'a password for the standstill'

let built: Built
let service: Service
let cookie: string
/** The longest wait while the service is idle: the cost of other processes on this machine. */
let idle: number
const dataDir = mkdtempSync(join(tmpdir(), 'mesh-standstill-'))

beforeAll(async () => {
  seed()
  built = buildService()
  service = await startService(built, { DATA_DIR: dataDir, ADMIN_PASSWORD: PASSWORD })
  cookie = await signInAt(service.url, PASSWORD)
  idle = await longestWait(async () => {
    for (let n = 0; n < IDLE_PROBES; n++) await wait(PROBE_MS)
  })
  figure('idle service: longest wait', `${idle.toFixed(0)} ms`)
}, 600_000)

afterAll(async () => {
  await service.stop('SIGKILL')
  rmSync(dataDir, { recursive: true })
})

function seed(): void {
  const store = openDatabase(join(dataDir, 'mesh.db'))
  store.sqlite.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < ${ENTRIES})
    insert into audit_log (timestamp, user_id, username, action, resource, details, ip, request_id)
    select 1768478400000 + i, 7, 'reader', 'node_updated', 'nodes',
      '{"nodeNum":' || i || ',"before":{"note":"as it was"},"after":{"note":"as it is now, with more to say"}}',
      '192.0.2.7', '00000000-0000-4000-8000-000000000000' from n`)
  store.close()
}

/** Fetches in its own process, whose work must not delay the prober; returns the bytes. */
async function download(path: string): Promise<number> {
  const script = `const answer = await fetch(process.argv[1], { headers: { cookie: process.argv[2] } })
    if (answer.status !== 200) throw new Error(String(answer.status))
    let bytes = 0
    for await (const chunk of answer.body) bytes += chunk.length
    console.log(bytes)`
  const child: ChildProcess = spawn(
    process.execPath,
    ['--input-type=module', '-e', script, `${service.url}${path}`, cookie],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let out = ''
  child.stdout?.on('data', (chunk) => (out += String(chunk)))
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  return Number(out)
}

/** Requests the health every 50 ms while `work` runs, without waiting for earlier answers. */
async function longestWait(work: () => Promise<unknown>): Promise<number> {
  const waits: Promise<number>[] = []
  const probe = async () => {
    const began = performance.now()
    await (await fetch(`${service.url}/api/health`)).text()
    return performance.now() - began
  }
  // The first connections and the first compilation of the code are not to be measured.
  for (let warm = 0; warm < 20; warm++) await probe()
  const timer = setInterval(() => waits.push(probe()), PROBE_MS)
  await work()
  clearInterval(timer)
  return Math.max(...(await Promise.all(waits)))
}

test.each([
  ['audit export, CSV', '/api/audit/export?format=csv', ENTRIES * 100],
  ['audit export, NDJSON', '/api/audit/export?format=ndjson', ENTRIES * 100],
  ['audit export of a rare word', '/api/audit/export?format=ndjson&q=nothing+like+it', 0],
  ['audit search for a rare word', '/api/audit?q=nothing+like+it', 10],
])('nobody waits while %s runs', { timeout: 600_000 }, async (what, path, bytes) => {
  await download('/api/health')
  let size = -1
  const began = performance.now()
  const longest = await longestWait(async () => (size = await download(path)))
  figure(`${what}, ${ENTRIES} entries: longest wait of others`, `${longest.toFixed(0)} ms`)
  figure(`${what}, ${ENTRIES} entries: takes`, `${((performance.now() - began) / 1000).toFixed(1)} s`)
  expect(size).toBeGreaterThanOrEqual(bytes)
  expect(longest).toBeLessThanOrEqual(idle + LIMIT_MS)
})

test('nobody waits while a backup is downloaded, or metrics are read', { timeout: 600_000 }, async () => {
  const made = await fetch(`${service.url}/api/system/backup`, { method: 'POST', headers: { cookie } })
  expect(made.status).toBe(201)
  const { backup } = Object(await made.json())
  const backupWait = await longestWait(() => download(`/api/system/backup/download/${backup.name}`))
  const metricsWait = await longestWait(() => download('/api/metrics'))
  figure('download of a backup: longest wait of others', `${backupWait.toFixed(0)} ms`)
  figure('metrics: longest wait of others', `${metricsWait.toFixed(0)} ms`)
  expect(Math.max(backupWait, metricsWait)).toBeLessThanOrEqual(idle + LIMIT_MS)
})
