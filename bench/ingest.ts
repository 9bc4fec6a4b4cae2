// node bench/ingest.ts: how fast what radios say is stored, as a ratio against raw prepared inserts in the same run.
//
// Measured: frames of the stream protocol, as they come off the wire, to rows that are on the disk, 200 packets in one
// batch. The limit: the same rows of the same tables, inserted by raw prepared statements in transactions of 200 rows
// into a database with the same schema and pragmas. The limit does not decode, recognise copies or update nodes.
import type { Heard } from '../src/app/mesh/ingest/heard.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createIngest } from '../src/app/mesh/ingest/ingest.ts'
import { createFrameDecoder } from '../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../src/meshtastic/radio-event.ts'
import { openDatabase, type SqliteStore } from '../src/node/database.ts'
import { median } from './load.ts'
import { handshakeFrames, type Kind, packetFrame } from './traffic.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3)
const PACKETS = 10_000
const NODES = 250
const BATCH = 200
/** What traffic adds rows to. */
const TABLES = ['messages', 'receptions', 'packets', 'positions', 'telemetry', 'telemetry_dirty'] as const
/** Rows come in the order of time, not in that of their keys, which no mesh keeps. */
const ARRIVAL = {
  messages: 'id',
  receptions: 't',
  packets: 'id',
  positions: 't',
  telemetry: 't',
  telemetry_dirty: 't',
} as const

const RADIO = { kind: 'tcp', name: 'bench' } as const

/** Milliseconds from frames to rows. */
async function ingestFrames(store: SqliteStore, frames: readonly Uint8Array[]): Promise<number> {
  const ingest = createIngest(store)
  const decoder = createFrameDecoder(decodeFromRadio)
  const read = (frame: Uint8Array): Heard[] =>
    decoder.push(frame, 0).map(({ message }) => ({ source: RADIO, event: toRadioEvent(message, Date.now(), false) }))
  await ingest.store(handshakeFrames(NODES, 1).flatMap(read))
  const begun = performance.now()
  for (let at = 0; at < frames.length; at += BATCH) await ingest.store(frames.slice(at, at + BATCH).flatMap(read))
  return performance.now() - begun
}

/** Milliseconds for the rows of `from`; what they refer to is copied before. */
function insertRows(from: SqliteStore, to: SqliteStore): { rows: number; ms: number } {
  for (const table of ['sources', 'nodes', 'metrics']) copy(from, to, `${table} order by id`, Number.POSITIVE_INFINITY)
  let rows = 0
  let ms = 0
  for (const table of TABLES) {
    const done = copy(from, to, `${table} order by ${ARRIVAL[table]}`, BATCH)
    rows += done.rows
    ms += done.ms
  }
  const updated = updateNodes(from, to)
  return { rows: rows + updated.rows, ms: ms + updated.ms }
}

/** What a packet changes of its sender: once for each that is among 200 packets, as ingest does it. */
function updateNodes(from: SqliteStore, to: SqliteStore): { rows: number; ms: number } {
  const heard: number[] = from.sqlite.prepare('select from_node_num from packets order by id').pluck().all().map(Number)
  const columns = ['last_heard', 'hops_away', 'snr', 'rssi', 'channel', 'via_mqtt', 'latitude', 'longitude', 'altitude']
  const more = ['precision_bits', 'position_time', 'node_num']
  const read = from.sqlite.prepare(`select ${[...columns, ...more].join()} from nodes where node_num = ?`).raw()
  const batches: unknown[][] = []
  for (let at = 0; at < heard.length; at += BATCH) {
    batches.push([...new Set(heard.slice(at, at + BATCH))].map((nodeNum) => read.get(nodeNum)))
  }
  const set = [...columns, ...more.slice(0, -1)].map((column) => `${column} = ?`).join()
  const update = to.sqlite.prepare(`update nodes set ${set} where node_num = ?`)
  const begun = performance.now()
  for (const batch of batches) {
    to.sqlite.exec('begin immediate')
    for (const row of batch) update.run(row)
    to.sqlite.exec('commit')
  }
  return { rows: batches.flat().length, ms: performance.now() - begun }
}

function copy(from: SqliteStore, to: SqliteStore, table: string, size: number): { rows: number; ms: number } {
  const rows: unknown[] = from.sqlite.prepare(`select * from ${table}`).raw().all()
  const width = from.sqlite.prepare(`select * from ${table}`).columns().length
  const insert = to.sqlite.prepare(
    `insert or replace into ${table.split(' ')[0]} values (${Array(width).fill('?').join()})`,
  )
  const begun = performance.now()
  for (let at = 0; at < rows.length; at += size) {
    to.sqlite.exec('begin immediate')
    for (let n = at; n < Math.min(rows.length, at + size); n++) insert.run(rows[n])
    to.sqlite.exec('commit')
  }
  return { rows: rows.length, ms: performance.now() - begun }
}

let missed = 0
for (const kind of ['texts', 'positions', 'telemetry', 'mixture'] satisfies Kind[]) {
  const ratios: number[] = []
  let last = ''
  for (let round = 0; round < ROUNDS; round++) {
    const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
    const frames = Array.from({ length: PACKETS }, (_, n) =>
      packetFrame(kind, n + 1, NODES, Date.now() - (PACKETS - n) * 1000),
    )
    const ours = openDatabase(join(scratch, 'ours.db'))
    const raw = openDatabase(join(scratch, 'raw.db'))
    const ms = await ingestFrames(ours, frames)
    const limit = insertRows(ours, raw)
    ratios.push(limit.ms / ms)
    const perSecond = (count: number, time: number) => Math.round((count / time) * 1000).toLocaleString('en')
    last = `${perSecond(PACKETS, ms)} packets/s, ${perSecond(limit.rows, ms)} of ${perSecond(limit.rows, limit.ms)} rows/s`
    ours.close()
    raw.close()
    rmSync(scratch, { recursive: true })
  }
  const value = median(ratios)
  if (value < 0.4) missed++
  const work = `ingest of ${PACKETS} ${kind}`
  console.log(
    `${value < 0.4 ? 'MISS' : 'ok  '} ${work.padEnd(52)} ${`${value.toFixed(2)} (${last})`.padEnd(44)} target ≥ 0.4`,
  )
}
process.exitCode = missed === 0 ? 0 : 1
