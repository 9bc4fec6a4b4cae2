// node bench/radio.ts, after npm run build: the built service on a radio of 2,000 nodes that then hands over 500 packets
// a second for 10 seconds, while four clients ask for the list of nodes all 100 ms.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { createFrameDecoder } from '../src/meshtastic/link/framing.ts'
import { median } from './load.ts'
import { startService } from './processes.ts'
import { decodeToRadio, handshakeFrames, packetFrame } from './traffic.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3)
const NODES = 2000
const PACKETS_A_SECOND = 500
const SECONDS = 10
const PASSWORD = 'bench measures ratios'

type Radio = {
  readonly port: number
  /** When a client was accepted, by `performance.now`. */
  acceptedAt(): number
  send(bytes: Uint8Array): void
  close(): Promise<void>
}

/** A radio of `NODES` nodes on loopback. */
async function startRadio(): Promise<Radio> {
  let client: Socket | null = null
  let acceptedAt = Number.NaN
  const server = createServer((socket) => {
    client?.destroy()
    client = socket
    acceptedAt = performance.now()
    socket.setNoDelay(true).on('error', () => socket.destroy())
    const decoder = createFrameDecoder(decodeToRadio)
    socket.on('data', (bytes) => {
      for (const { message } of decoder.push(bytes, 0)) {
        if (message.case === 'wantConfigId') socket.write(Buffer.concat(handshakeFrames(NODES, message.value)))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    acceptedAt: () => acceptedAt,
    send: (bytes) => client?.write(bytes),
    async close() {
      client?.destroy()
      server.close()
      await once(server, 'close')
    },
  }
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

type Ask = () => Promise<{ readonly ms: number; readonly nodes: number }>

function asker(port: number, cookie: string): Ask {
  return async () => {
    const begun = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}/api/nodes?limit=5000`, { headers: { cookie } })
    const body = await answer.text()
    const ms = performance.now() - begun
    if (answer.status !== 200) throw new Error(`nodes: ${answer.status}`)
    return { ms, nodes: body.split('"nodeNum":').length - 1 }
  }
}

/** The times of the answers to four clients, in order. */
async function poll(ask: Ask, seconds: number): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  const clients = Array.from({ length: 4 }, async () => {
    while (performance.now() < end) {
      times.push((await ask()).ms)
      await wait(100)
    }
  })
  await Promise.all(clients)
  return times.toSorted((a, b) => a - b)
}

const p95Of = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN

/** At an even pace. */
async function stream(radio: Radio): Promise<void> {
  const begun = performance.now()
  for (let sent = 0; sent < PACKETS_A_SECOND * SECONDS; await wait(5)) {
    const due = Math.min(PACKETS_A_SECOND * SECONDS, ((performance.now() - begun) / 1000) * PACKETS_A_SECOND)
    for (; sent < due; sent++) radio.send(packetFrame('mixture', sent + 1, NODES, Date.now()))
  }
}

/** Packets in the log, each once, when no more come. */
async function countStored(file: string): Promise<number> {
  const sqlite = new Database(file, { readonly: true })
  const count = sqlite.prepare('select count(distinct packet_id) from packets').pluck()
  const rows = sqlite.prepare('select count(*) from packets').pluck()
  let stored = -1
  while (Number(count.get()) > stored) {
    stored = Number(count.get())
    await wait(500)
  }
  const doubles = Number(rows.get()) - stored
  sqlite.close()
  if (doubles > 0) throw new Error(`${doubles} packets are stored twice`)
  return stored
}

type Round = {
  readonly connectMs: number
  readonly p95: number
  readonly longest: number
  /** Without traffic. */
  readonly quietP95: number
  readonly lost: number
}

async function round(scratch: string): Promise<Round> {
  const dataDir = mkdtempSync(join(scratch, 'data-'))
  const first = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookie = await signIn(first.port)
  await first.stop()
  const radio = await startRadio()
  const service = await startService(dataDir, { MESHTASTIC_TCP: `127.0.0.1:${radio.port}` })
  const ask = asker(service.port, cookie)
  while ((await ask()).nodes < NODES) await wait(10)
  const connectMs = performance.now() - radio.acceptedAt()
  const quiet = await poll(ask, 3)
  const [times] = await Promise.all([poll(ask, SECONDS), stream(radio)])
  const stored = await countStored(join(dataDir, 'mesh.db'))
  await service.stop()
  await radio.close()
  const longest = times.at(-1) ?? Number.NaN
  const lost = PACKETS_A_SECOND * SECONDS - stored
  return { connectMs, p95: p95Of(times), longest, quietP95: p95Of(quiet), lost }
}

let missed = 0
function report(work: string, measured: string, target: string, ok: boolean): void {
  if (!ok) missed++
  console.log(`${ok ? 'ok  ' : 'MISS'} ${work.padEnd(52)} ${measured.padEnd(44)} target ${target}`)
}

const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
try {
  const rounds: Round[] = []
  for (let n = 0; n < ROUNDS; n++) rounds.push(await round(scratch))
  const connect = median(rounds.map(({ connectMs }) => connectMs)) / 1000
  const p95 = median(rounds.map((each) => each.p95))
  const longest = median(rounds.map((each) => each.longest))
  const lost = Math.max(...rounds.map((each) => each.lost))
  report(`${NODES} nodes at connect, until all are in the list`, `${connect.toFixed(2)} s`, '≤ 5 s', connect <= 5)
  report(`${PACKETS_A_SECOND} packets/s for ${SECONDS} s`, `${lost} lost in the worst round`, 'none lost', lost === 0)
  const quiet = median(rounds.map(({ quietP95 }) => quietP95))
  const detail = `p95 ${p95.toFixed(0)} (quiet ${quiet.toFixed(0)}), longest ${longest.toFixed(0)} ms`
  report('GET /api/nodes meanwhile, 2000 nodes, 4 clients', detail, 'p95 < 100 ms', p95 < 100)
} finally {
  rmSync(scratch, { recursive: true })
}
process.exitCode = missed === 0 ? 0 : 1
