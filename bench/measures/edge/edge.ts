// What determines waiting time and cost on the edge: round trips to D1, and rows read and written. All of it on
// workerd.
import type { D1Database } from '@cloudflare/workers-types'
import { createTestHarness } from 'wrangler'
import { alertsOnBatch } from '../../../src/app/alerts/findings/on-batch.ts'
import { createCollectorFilter } from '../../../src/app/mesh/collector/filter.ts'
import { storeBatch } from '../../../src/app/mesh/ingest/ingest.ts'
import type { Heard } from '../../../src/app/mesh/heard/heard.ts'
import { claimSource, readSource } from '../../../src/app/mesh/radios/source-table.ts'
import { dropUnneeded } from '../../../src/edge/unneeded.ts'
import { d1Store } from '../../../src/edge/d1.ts'
import { createFrameDecoder } from '../../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { handshakeFrames, type Kind, packetFrame } from '../../load/traffic.ts'
import { counting, openWorker } from '../../servers/edge-worker.ts'
import { report, tableOf } from '../../table.ts'
import { measureBill } from './bill.ts'

const NODES = 250
/** Of each kind; 1000 for the figures of docs/edge.md. */
const PACKETS = Number(process.env['BENCH_EDGE_PACKETS'] ?? 200)
/** Milliseconds between two packets of the whole mesh. */
const EVERY_MS = 1000
/** Nodes of the mesh whose pages are read. */
const READ_NODES = 2000
const SOURCE = { kind: 'ingest', name: 'bench' } as const

async function measureTrips(database: D1Database): Promise<void> {
  const counted = counting(database)
  const { ask, login, headers, settle } = await openWorker(counted.database)
  const now = Date.now()
  await dropUnneeded(d1Store(database))
  await database
    .prepare(
      `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${READ_NODES})
    insert into nodes (node_num, first_heard, last_heard) select n, 1, ${now} - n * 60000 from i`,
    )
    .run()
  await database
    .prepare(
      `with recursive i(n) as (select 1 union all select n + 1 from i where n < 20000)
    insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
    select n, 3000007919, 4294967295, 0, 'Message number ' || n, ${now} - n * 4000, 'in' from i`,
    )
    .run()
  const count = async (work: string, most: number, call: () => Promise<Response>) => {
    Object.assign(counted, { trips: 0, read: 0, written: 0 })
    await (await call()).arrayBuffer()
    const { trips, read } = counted
    await settle()
    report(`edge: trips to D1, ${work}`, `${trips}, ${read} rows read`, `≤ ${most}`, trips <= most)
    return read
  }
  // The first request of each kind loads what an isolate caches; the dashboard is measured before, as once a minute.
  await ask('/api/auth/status', { headers })
  const read = await count('dashboard', 2, () => ask('/api/dashboard', { headers }))
  const besides = read - READ_NODES
  report(
    `edge: rows read for the dashboard, 20,000 messages, besides ${READ_NODES} nodes`,
    String(besides),
    '≤ 100',
    besides <= 100,
  )
  await count('status', 1, () => ask('/api/auth/status', { headers }))
  await ask('/api/nodes', { headers })
  await count('list of nodes', 2, () => ask('/api/nodes', { headers }))
  await count('sign-in', 4, login)
}

function readFrames(frames: readonly Uint8Array[], at: (n: number) => number): Heard[] {
  const decoder = createFrameDecoder(decodeFromRadio)
  return frames.flatMap((frame, n) =>
    decoder
      .push(frame, 0)
      .map(({ message }) => ({ source: SOURCE, event: toRadioEvent(message, at(n), false), raw: frame })),
  )
}

/** Index entries are rows too. All nodes are known before. */
async function measureWrites(database: D1Database): Promise<void> {
  const counter = counting(database)
  const store = d1Store(counter.database)
  await database.exec(
    "insert into users (username, auth_provider, is_admin, created_at) values ('bench', 'local', 1, 1)",
  )
  const token = await database
    .prepare(
      `insert into api_tokens (user_id, name, prefix, token_hash, scopes, created_at)
      select id, 'bench', 'mm_', 'x', '[]', 1 from users where username = 'bench' returning id`,
    )
    .first<{ id: number }>()
  await dropUnneeded(store)
  await claimSource(store, { name: SOURCE.name, tokenId: token?.id ?? 0, now: Date.now() })
  const keep = async (batch: readonly Heard[]) =>
    storeBatch(store, batch, {
      known: await readSource(store, SOURCE.name),
      radios: null,
      now: Date.now(),
      onBatch: alertsOnBatch,
    })
  await keep(readFrames(handshakeFrames(NODES, 1), () => Date.now()))
  let id = 0
  const lines: string[] = []
  for (const [kind, size, sampleSeconds] of [
    ['texts', 1, 0],
    ['positions', 1, 0],
    ['telemetry', 1, 0],
    ['mixture', 1, 0],
    ['mixture', 20, 0],
    ['mixture', 200, 0],
    ['mixture', 20, 900],
  ] satisfies [Kind, number, number][]) {
    const begin = Date.now() - PACKETS * EVERY_MS
    const at = (n: number) => begin + n * EVERY_MS
    const frames = Array.from({ length: PACKETS }, (_, n) => packetFrame(kind, ++id, NODES, at(n)))
    const filter = createCollectorFilter({ only: [], sampleSeconds })
    const before = counter.written
    const heard = readFrames(frames, at)
    for (let n = 0; n < heard.length; n += size) {
      const { passed, commit } = filter(heard.slice(n, n + size), new Set())
      commit()
      if (passed.length > 0) await keep(passed)
    }
    const rows = (counter.written - before) / PACKETS
    const sampled = sampleSeconds === 0 ? '' : `, sampled every ${sampleSeconds} s`
    // What is stored is only a part: the target is about a packet's whole life.
    report(`edge: rows written for a packet, ${kind}, ${size} a delivery${sampled}`, rows.toFixed(1), '', null)
    lines.push(`| ${kind}, ${size} per delivery${sampled} | ${rows.toFixed(1)} |`)
  }
  tableOf('docs/edge.md', 'measured: stored', [
    '| delivered | rows written per packet when it is stored |',
    '| --- | --- |',
    ...lines,
  ])
}

/** Calls `measure` with an empty database on workerd. */
async function onWorkerd(measure: (database: D1Database) => Promise<void>): Promise<void> {
  const configPath = new URL('../../../wrangler.toml', import.meta.url).pathname
  const harness = createTestHarness({ workers: [{ configPath }] })
  try {
    await harness.listen()
    const worker = harness.getWorker<{ DB: D1Database }>()
    await worker.applyD1Migrations('DB')
    const { DB: database } = await worker.getEnv()
    await measure(database)
  } finally {
    await harness.close()
  }
}

export async function measureEdge(): Promise<void> {
  // Nothing contacts another host, neither for usage statistics nor for the simulated location of a client.
  Object.assign(process.env, { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' })
  await onWorkerd(async (database) => {
    await measureTrips(database)
    await measureWrites(database)
  })
  await onWorkerd(measureBill)
}
