// What the import of a MeshMonitor database takes, and how long others wait while it runs beside the service.
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { makeTheirs, SECRET } from '../../test/support/moving-in/meshmonitor.ts'
import type { Waits } from '../load/prober.ts'
import { handshakeFrames, packetFrame } from '../load/traffic.ts'
import { ask, PASSWORD, SHIPPED, signIn, startHelper, startService, stop } from '../servers/processes.ts'
import { report } from '../table.ts'
import { HOUR_MS } from '../../src/shared/time.ts'

const MEASUREMENTS = 10_000_000
const CLI = new URL('../../dist/node/cli.js', import.meta.url).pathname
const READS = ['/api/health', '/api/nodes', '/api/messages', '/api/dashboard']
/** How long others are watched without an import. */
const ALONE_MS = 30_000
const DELIVERY_EVERY_MS = 200
const NODES = 50
const MOST_MS = 60
const MOST_MB = 150
const MOST_SECONDS = 600
/** The import reads by it; without the others the file is made sooner. */
const KEPT_INDEX = 'idx_telemetry_type_node_ts'

/** The measurements of the recorded database again and again, each time an hour earlier. Returns their number. */
function grow(file: string, wanted: number): number {
  const sqlite = new Database(file)
  const ask = (sql: string) => sqlite.prepare(sql).pluck()
  const indexes = ask(`select name from sqlite_master where type = 'index' and tbl_name = 'telemetry'
    and sql is not null and name <> '${KEPT_INDEX}'`).all()
  for (const name of indexes) sqlite.exec(`drop index ${String(name)}`)
  const count = () => Number(ask('select count(*) from telemetry').get())
  sqlite
    .prepare(
      `insert into telemetry (nodeId, nodeNum, telemetryType, timestamp, value, unit, createdAt, channel, sourceId)
       with recursive again (n) as (select 1 union all select n + 1 from again where n < ?)
       select nodeId, nodeNum, telemetryType, timestamp - n * ${HOUR_MS}, value, unit, createdAt, channel, sourceId
       from again cross join telemetry`,
    )
    .run(Math.max(1, Math.round(wanted / count()) - 1))
  const rows = count()
  sqlite.close()
  return rows
}

/** A collector that delivers one packet after another, whether or not earlier ones were answered. */
async function startCollector(port: number, cookie: string) {
  const post = async (path: string, body: unknown, headers: Record<string, string>) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  const { token } = Object(await post('/api/tokens', { name: 'hill', scopes: ['ingest'] }, { cookie }))
  const deliver = async (frames: readonly Uint8Array[]): Promise<number> => {
    const begun = performance.now()
    const packets = frames.map((frame) => ({
      data: Buffer.from(frame.subarray(4)).toString('base64'),
      receivedAt: Date.now(),
    }))
    await post('/api/ingest', { source: 'hill', packets }, { authorization: `Bearer ${token}` })
    return performance.now() - begun
  }
  await deliver(handshakeFrames(NODES, 1))
  let id = 0
  let waits: Promise<number>[] = []
  const timer = setInterval(
    () => waits.push(deliver([packetFrame('mixture', ++id, NODES, Date.now())])),
    DELIVERY_EVERY_MS,
  )
  return {
    begin: () => void (waits = []),
    async end(): Promise<Waits> {
      const sorted = (await Promise.all(waits)).toSorted((a, b) => a - b)
      return { longest: sorted.at(-1) ?? Number.NaN, p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN }
    },
    stop: () => clearInterval(timer),
  }
}

/** Runs the command; returns its seconds and the most memory that it had, in MB. */
async function importFrom(file: string, dataDir: string): Promise<{ readonly seconds: number; readonly mb: number }> {
  const begun = performance.now()
  const env = { ...process.env, ...SHIPPED, DATA_DIR: dataDir, SESSION_SECRET: SECRET }
  const child = execFile(process.execPath, [CLI, 'import', 'meshmonitor', file], { env })
  let mb = 0
  const watching = setInterval(() => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    mb = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? mb * 1024) / 1024
  }, 100)
  const said: string[] = []
  child.stderr?.on('data', (text) => said.push(String(text)))
  const code = await new Promise((resolve) => child.once('exit', resolve))
  clearInterval(watching)
  if (code !== 0) throw new Error(`the import ended with ${String(code)}: ${said.join('')}`)
  return { seconds: (performance.now() - begun) / 1000, mb }
}

export async function measureMovingIn(scratch: string, scale: number): Promise<void> {
  const theirs = makeTheirs()
  const dataDir = join(scratch, 'moving-in')
  mkdirSync(dataDir)
  const rows = grow(theirs.file, MEASUREMENTS * scale)
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD, SESSION_SECRET: SECRET })
  const cookie = await signIn(service.port)
  const prober = startHelper(new URL('../load/prober.ts', import.meta.url), [String(service.port), cookie, ...READS])
  const collector = await startCollector(service.port, cookie)
  const watch = async <T>(work: () => Promise<T>) => {
    await ask(prober, 'begin')
    collector.begin()
    const result = await work()
    return { result, reads: await ask<Waits>(prober, 'end'), changes: await collector.end() }
  }
  try {
    const alone = await watch(() => wait(ALONE_MS))
    const beside = await watch(() => importFrom(theirs.file, dataDir))
    const { seconds, mb } = beside.result
    const ofTenMillion = (seconds * MEASUREMENTS) / rows
    report(
      `import of ${rows.toLocaleString('en')} measurements beside the service`,
      `${seconds.toFixed(0)} s`,
      `≤ ${MOST_SECONDS} s for ${MEASUREMENTS.toLocaleString('en')}`,
      ofTenMillion <= MOST_SECONDS,
    )
    report('memory of the import', `${mb.toFixed(0)} MB`, `≤ ${MOST_MB} MB`, mb <= MOST_MB)
    for (const [name, kind] of [
      ['reads', 'reads'],
      ['deliveries of a collector', 'changes'],
    ] as const) {
      const { p99, longest } = beside[kind]
      const without = alone[kind]
      report(
        `${name} meanwhile`,
        `p99 ${p99.toFixed(0)} ms, longest ${longest.toFixed(0)} ms (without: ${without.p99.toFixed(0)}, ${without.longest.toFixed(0)})`,
        `longest ≤ ${MOST_MS} ms`,
        longest <= MOST_MS,
      )
    }
  } finally {
    collector.stop()
    await stop(prober)
    await service.stop()
    theirs.remove()
  }
}
