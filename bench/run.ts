// npm run bench: what the service does, as ratios against what this machine can do in the same run.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { load, median } from './load.ts'
import { readPause, type Running, startLimit, startService, watchPauses } from './processes.ts'
import { MESSAGES, METRIC_ROWS, NODES, seed } from './seed.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 3)
const PASSWORD = 'bench measures ratios'

type Row = { work: string; measured: string; target: string; ok: boolean }
const table: Row[] = []

function report(work: string, measured: string, target: string, ok: boolean): void {
  table.push({ work, measured, target, ok })
  console.log(`${ok ? 'ok  ' : 'MISS'} ${work.padEnd(52)} ${measured.padEnd(44)} target ${target}`)
}

/** Rounds of limit and service in turn, so that both see the same machine. */
async function ratio(
  work: string,
  target: number,
  limit: { server: Running; path: string; headers?: Record<string, string> },
  ours: { server: Running; path: string; headers?: Record<string, string>; status?: number },
): Promise<void> {
  const ratios: number[] = []
  let last = ''
  for (let round = 0; round < ROUNDS; round++) {
    const options = { connections: 16, seconds: SECONDS }
    const best = await load(limit.server.port, limit.path, { ...options, headers: limit.headers ?? {} })
    const own = await load(ours.server.port, ours.path, { ...options, headers: ours.headers ?? {} })
    const wanted = ours.status ?? 200
    if (own.statuses.size !== 1 || !own.statuses.has(wanted))
      throw new Error(`${work}: ${[...own.statuses.keys()].join()}`)
    ratios.push(own.rate / best.rate)
    last = `${own.rate.toFixed(0)}/s of ${best.rate.toFixed(0)}/s`
  }
  const value = median(ratios)
  report(work, `${value.toFixed(2)} (${last})`, `≥ ${target}`, value >= target)
}

async function signIn(port: number, username = 'admin'): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password: PASSWORD }),
  })
  if (!answer.ok) throw new Error(`sign-in: ${answer.status}`)
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

/** p99 of status while four clients sign in without pause, against p99 without them. */
async function signInLoad(service: Running, cookie: string): Promise<void> {
  const headers = { cookie }
  const quiet: number[] = []
  const busy: number[] = []
  const pauses: number[] = []
  let signIns = 0
  for (let round = 0; round < ROUNDS; round++) {
    quiet.push((await load(service.port, '/api/auth/status', { connections: 4, seconds: SECONDS, headers })).p99)
    watchPauses(service)
    const end = performance.now() + SECONDS * 1000
    const clients = Array.from({ length: 4 }, async () => {
      for (; performance.now() < end; signIns++) await signIn(service.port)
    })
    busy.push((await load(service.port, '/api/auth/status', { connections: 4, seconds: SECONDS, headers })).p99)
    await Promise.all(clients)
    pauses.push(await readPause(service))
  }
  const factor = median(busy) / median(quiet)
  const detail = `${factor.toFixed(1)}× (${median(quiet).toFixed(1)} → ${median(busy).toFixed(1)} ms)`
  report('p99 of status while 4 clients sign in', detail, '≤ 3×', factor <= 3)
  const pause = median(pauses)
  const rate = (signIns / (ROUNDS * SECONDS)).toFixed(1)
  report('longest event-loop pause meanwhile', `${pause.toFixed(1)} ms (${rate} sign-ins/s)`, '≤ 25 ms', pause <= 25)
}

async function startAndMemory(dataDir: string): Promise<void> {
  const times: number[] = []
  const extra: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const bare = await startLimit('bare')
    await fetch(`http://127.0.0.1:${bare.port}/hello`)
    const service = await startService(dataDir)
    times.push(service.startMs)
    extra.push(rssMb(service) - rssMb(bare))
    await service.stop()
    await bare.stop()
  }
  const start = median(times) / 1000
  report('start to first healthy answer', `${start.toFixed(2)} s`, '≤ 0.7 s', start <= 0.7)
  const memory = median(extra)
  report('idle memory over a bare Hono server', `${memory.toFixed(0)} MB`, '≤ 60 MB', memory <= 60)
}

function rssMb({ child }: Running): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
}

function sizes(scratch: string): void {
  execFileSync('npx', ['--no-install', 'wrangler', 'deploy', '--dry-run', '--outdir', join(scratch, 'worker')], {
    stdio: 'ignore',
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false' },
  })
  const worker = gzipSync(readFileSync(join(scratch, 'worker', 'worker.js')), { level: 9 }).length / 1024
  report('worker bundle', `${worker.toFixed(0)} KB gzip`, '≤ 250 KB', worker <= 250)
  execFileSync('sh', ['scripts/runtime-files.sh', join(scratch, 'runtime')])
  const size = execFileSync('du', ['-sk', join(scratch, 'runtime', 'node_modules')]).toString()
  const packages = Number.parseInt(size, 10) / 1024
  report('packages in the container', `${packages.toFixed(0)} MB`, '≤ 60 MB', packages <= 60)
}

const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
try {
  const dataDir = join(scratch, 'data')
  mkdirSync(dataDir)
  console.log(`Seeding ${NODES} nodes, ${MESSAGES} messages, ${METRIC_ROWS} metric rows`)
  seed(join(dataDir, 'mesh.db'))
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookie = await signIn(service.port)
  const bare = await startLimit('bare', dataDir)
  const hello = { server: bare, path: '/hello' }
  await ratio('GET /api/auth/status with a session', 0.35, hello, {
    server: service,
    path: '/api/auth/status',
    headers: { cookie },
  })
  await ratio('GET /api/health', 0.8, hello, { server: service, path: '/api/health' })
  const nodesUrl = `http://127.0.0.1:${service.port}/api/nodes`
  const bytes = await startLimit('bytes', dataDir, { BODY_OF: nodesUrl, COOKIE: cookie })
  const fromMemory = { server: bytes, path: '/bytes', headers: { cookie } }
  await ratio(`GET /api/nodes, ${NODES} nodes`, 0.7, fromMemory, {
    server: service,
    path: '/api/nodes',
    headers: { cookie },
  })
  const etag = (await fetch(nodesUrl, { headers: { cookie } })).headers.get('etag') ?? ''
  await ratio('GET /api/nodes, unchanged (304)', 0.7, fromMemory, {
    server: service,
    path: '/api/nodes',
    headers: { cookie, 'if-none-match': etag },
    status: 304,
  })
  await ratio(
    'GET /api/messages?limit=100',
    0.7,
    { server: bare, path: '/messages' },
    {
      server: service,
      path: '/api/messages?limit=100',
      headers: { cookie },
    },
  )
  await signInLoad(service, cookie)
  await Promise.all([service.stop(), bare.stop(), bytes.stop()])
  await startAndMemory(dataDir)
  sizes(scratch)
} finally {
  rmSync(scratch, { recursive: true })
}
const missed = table.filter(({ ok }) => !ok)
console.log(`\n${table.length - missed.length} of ${table.length} targets reached`)
process.exitCode = missed.length === 0 ? 0 : 1
