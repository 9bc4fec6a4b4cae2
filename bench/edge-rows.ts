// node bench/edge-rows.ts: rows that D1 writes for what a collector delivers, which is what the edge is billed by.
//
// Measured: `meta.rows_written` of D1 on workerd, entries of indexes among them, for the batches that `POST /api/ingest`
// stores. All nodes are known before; a delivery holds as many packets as are named.
import type { Heard } from '../src/app/mesh/ingest/heard.ts'
import { createCollectorFilter } from '../src/app/mesh/collector/filter.ts'
import { storeBatch } from '../src/app/mesh/ingest/ingest.ts'
import { claimSource, readSource } from '../src/app/mesh/ingest/sources.ts'
import { d1Store } from '../src/edge/d1.ts'
import { createFrameDecoder } from '../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../src/meshtastic/radio-event.ts'
import { openWorkerd, type Workerd } from '../test/edge/workerd.ts'
import { handshakeFrames, type Kind, packetFrame } from './traffic.ts'

const NODES = 250
const PACKETS = 1000
/** One packet of the whole mesh each so many milliseconds. */
const EVERY_MS = 1000
const SOURCE = { kind: 'ingest', name: 'bench' } as const

type Database = Workerd['database']

/** The same database, which counts what it writes. */
function counting(database: Database): { readonly database: Database; written: number } {
  const counter = { written: 0, database }
  const count = <T extends { meta: { rows_written: number } }>(answer: T): T => {
    counter.written += answer.meta.rows_written
    return answer
  }
  counter.database = new Proxy(database, {
    get: (target, name) => {
      if (name !== 'batch') return Reflect.get(target, name).bind(target)
      return async (statements: Parameters<Database['batch']>[0]) => (await target.batch(statements)).map(count)
    },
  })
  return counter
}

function read(frames: readonly Uint8Array[], at: (n: number) => number): Heard[] {
  const decoder = createFrameDecoder(decodeFromRadio)
  return frames.flatMap((frame, n) =>
    decoder
      .push(frame, 0)
      .map(({ message }) => ({ source: SOURCE, event: toRadioEvent(message, at(n), false), raw: frame })),
  )
}

const workerd = await openWorkerd({})
const counter = counting(workerd.database)
const store = d1Store(counter.database)
await workerd.sql("insert into users (username, auth_provider, is_admin, created_at) values ('bench', 'local', 1, 1)")
await workerd.sql(
  "insert into api_tokens (user_id, name, prefix, token_hash, scopes, created_at) values (1, 'bench', 'mm_', 'x', '[]', 1)",
)
await claimSource(store, { name: SOURCE.name, tokenId: 1, now: Date.now() })
const keep = async (batch: readonly Heard[]) =>
  storeBatch(store, batch, { known: await readSource(store, SOURCE.name), radios: null, now: Date.now() })
await keep(read(handshakeFrames(NODES, 1), () => Date.now()))

let id = 0
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
  const heard = read(frames, at)
  for (let n = 0; n < heard.length; n += size) {
    const { passed, commit } = filter(heard.slice(n, n + size), new Set())
    commit()
    if (passed.length > 0) await keep(passed)
  }
  const rows = ((counter.written - before) / PACKETS).toFixed(1)
  const sampled = sampleSeconds === 0 ? '' : `, sampled each ${sampleSeconds} s`
  console.log(`${rows.padStart(5)} rows a packet heard: ${kind}, ${size} a delivery${sampled}`)
}
await workerd.close()
