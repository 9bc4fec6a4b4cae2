// node bench/backup.ts, after npm run build: backup and restore of 1,000,000 metric rows, as ratios against what this
// machine can do with the same rows in the same run.
import type { ChildProcess } from 'node:child_process'
import { closeSync, fsyncSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { median } from './load.ts'
import { readPause, type Running, startService, watchPauses } from './processes.ts'
import { METRIC_ROWS, seed } from './seed.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3)
const PASSWORD = 'bench measures ratios'

let missed = 0
function report(work: string, measured: string, target: string, ok: boolean): void {
  if (!ok) missed++
  console.log(`${ok ? 'ok  ' : 'MISS'} ${work.padEnd(52)} ${measured.padEnd(44)} target ${target}`)
}

const perSecond = (rows: number, ms: number) => (rows / ms) * 1000
const rate = (value: number) => `${Math.round(value).toLocaleString('en')} rows/s`

/** The rows read one by one, made JSON, written and brought to the disk. */
function rawExport(database: string, file: string): number {
  const sqlite = new Database(database, { readonly: true })
  const begun = performance.now()
  const fd = openSync(file, 'w')
  let lines: string[] = []
  for (const row of sqlite.prepare('select * from telemetry').raw().iterate()) {
    lines.push(JSON.stringify(row))
    if (lines.length < 1000) continue
    writeSync(fd, lines.join(',\n'))
    lines = []
  }
  writeSync(fd, lines.join(',\n'))
  fsyncSync(fd)
  closeSync(fd)
  const ms = performance.now() - begun
  sqlite.close()
  return perSecond(METRIC_ROWS, ms)
}

/** The rows, in memory, by one prepared insert in one transaction. */
function rawInsert(database: string, file: string): number {
  const source = new Database(database, { readonly: true })
  const rows = source.prepare('select node_id, metric, t, v from telemetry').raw().all()
  source.close()
  rmSync(file, { force: true })
  const sqlite = new Database(file)
  sqlite.pragma('journal_mode = WAL')
  sqlite.exec(`create table telemetry (node_id integer not null, metric integer not null, t integer not null,
    v real not null, primary key (node_id, metric, t)) without rowid`)
  const begun = performance.now()
  const insert = sqlite.prepare('insert into telemetry (node_id, metric, t, v) values (?, ?, ?, ?)')
  sqlite.exec('begin')
  for (const row of rows) insert.run(row)
  sqlite.exec('commit')
  const ms = performance.now() - begun
  sqlite.close()
  return perSecond(METRIC_ROWS, ms)
}

async function signIn(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: PASSWORD }),
  })
  if (!answer.ok) throw new Error(`sign-in: ${answer.status}`)
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

function rssMb({ pid }: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** One backup by the service, with what it cost the service. */
async function backUp(service: Running, cookie: string) {
  const before = rssMb(service.child)
  let peak = before
  const watch = setInterval(() => (peak = Math.max(peak, rssMb(service.child))), 10)
  watchPauses(service)
  const begun = performance.now()
  const answer = await fetch(`http://127.0.0.1:${service.port}/api/system/backup`, {
    method: 'POST',
    headers: { cookie },
  })
  const ms = performance.now() - begun
  clearInterval(watch)
  if (answer.status !== 201) throw new Error(`backup: ${answer.status} ${await answer.text()}`)
  const { backup } = Object(await answer.json())
  const maxMs = await readPause(service)
  const rows = Number(backup.rows)
  return { name: String(backup.name), rows, rate: perSecond(rows, ms), extraMb: peak - before, pauseMs: maxMs }
}

async function backups(scratch: string, dataDir: string): Promise<{ name: string; rows: number }> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookie = await signIn(service.port)
  const rounds: (Awaited<ReturnType<typeof backUp>> & { limit: number })[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const limit = rawExport(join(dataDir, 'mesh.db'), join(scratch, 'raw.json'))
    rounds.push({ ...(await backUp(service, cookie)), limit })
  }
  await service.stop()
  const ratio = median(rounds.map(({ rate, limit }) => rate / limit))
  const [own, limit] = [median(rounds.map(({ rate }) => rate)), median(rounds.map(({ limit }) => limit))]
  report('backup of 1,000,000 rows', `${ratio.toFixed(2)} (${rate(own)} of ${rate(limit)})`, '≥ 0.7', ratio >= 0.7)
  const memory = median(rounds.map(({ extraMb }) => extraMb))
  report('memory of the service meanwhile', `${memory.toFixed(0)} MB more`, '≤ 80 MB', memory <= 80)
  const pause = median(rounds.map(({ pauseMs }) => pauseMs))
  report('longest event-loop pause meanwhile', `${pause.toFixed(1)} ms`, '≤ 25 ms', pause <= 25)
  const [first] = rounds
  return { name: first?.name ?? '', rows: first?.rows ?? 0 }
}

/** Starts the service and stops it: how long the start took, and its highest memory so far. */
async function start(dataDir: string, env: Record<string, string>): Promise<{ ms: number; peakMb: number }> {
  const service = await startService(dataDir, env)
  const status = readFileSync(`/proc/${service.child.pid}/status`, 'utf8')
  await service.stop()
  return { ms: service.startMs, peakMb: Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024 }
}

/** The start that restores, against a start that does not. */
async function restores(scratch: string, dataDir: string, name: string, rows: number): Promise<void> {
  const rounds: { rate: number; extraMb: number; limit: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const limit = rawInsert(join(dataDir, 'mesh.db'), join(scratch, 'raw.db'))
    const plain = await start(dataDir, {})
    rmSync(join(dataDir, '.restore-completed'), { force: true })
    const restoring = await start(dataDir, { RESTORE_FROM_BACKUP: name })
    rounds.push({ rate: perSecond(rows, restoring.ms - plain.ms), extraMb: restoring.peakMb - plain.peakMb, limit })
  }
  const ratio = median(rounds.map(({ rate, limit }) => rate / limit))
  const [own, limit] = [median(rounds.map(({ rate }) => rate)), median(rounds.map(({ limit }) => limit))]
  report('restore of 1,000,000 rows', `${ratio.toFixed(2)} (${rate(own)} of ${rate(limit)})`, '≥ 0.5', ratio >= 0.5)
  const memory = median(rounds.map(({ extraMb }) => extraMb))
  report('memory of a start with it', `${memory.toFixed(0)} MB more`, '≤ 120 MB', memory <= 120)
}

async function run(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-backup-'))
  try {
    const dataDir = join(scratch, 'data')
    mkdirSync(dataDir)
    seed(join(dataDir, 'mesh.db'))
    const { name, rows } = await backups(scratch, dataDir)
    await restores(scratch, dataDir, name, rows)
  } finally {
    rmSync(scratch, { recursive: true })
  }
  process.exitCode = missed === 0 ? 0 : 1
}

await run()
