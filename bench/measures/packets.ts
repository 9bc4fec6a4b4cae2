// The cost of packets: stored, sent to live readers, and while others poll.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { alertsOnBatch } from '../../src/app/alerts/findings/on-batch.ts'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import type { Heard } from '../../src/app/mesh/heard/heard.ts'
import { createFrameDecoder } from '../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { handshakeFrames, packetFrame, startRadio } from '../load/traffic.ts'
import {
  ask,
  longestHold,
  memoryMb,
  PASSWORD,
  readCpu,
  type Running,
  signInPeople,
  startHelper,
  startService,
  stop,
} from '../servers/processes.ts'
import { inRounds, reportRatio } from '../ratio.ts'
import { report } from '../table.ts'

const LIVE_SECONDS = Number(process.env['BENCH_LIVE_SECONDS'] ?? 60)
const PACKETS = 10_000
const NODES = 250
const BATCH = 200
const RADIO = { kind: 'tcp', name: 'bench' } as const

/** The tables that traffic fills, in the order of time rather than of their keys. */
const ARRIVAL = {
  messages: 'id',
  receptions: 't',
  packets: 'id',
  positions: 't',
  telemetry: 't',
  telemetry_dirty: 't',
} as const

/** Microseconds of processor time. */
async function timed(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** From frames on the wire to rows on the disk, 200 packets in one batch. */
async function ingestFrames(store: SqliteStore, frames: readonly Uint8Array[]): Promise<number> {
  const ingest = createIngest(store, { onBatch: alertsOnBatch })
  const decoder = createFrameDecoder(decodeFromRadio)
  const read = (frame: Uint8Array): Heard[] =>
    decoder.push(frame, 0).map(({ message }) => ({ source: RADIO, event: toRadioEvent(message, Date.now(), false) }))
  await ingest.store(handshakeFrames(NODES, 1).flatMap(read))
  return timed(async () => {
    for (let at = 0; at < frames.length; at += BATCH) await ingest.store(frames.slice(at, at + BATCH).flatMap(read))
  })
}

type Writing = { readonly rows: readonly unknown[]; write(row: unknown): void }

/** Tables and their indexes, without triggers, text index and counters. */
function makePlain({ sqlite }: SqliteStore): void {
  const made = sqlite.prepare<[], { type: string; name: string }>(
    "select type, name from sqlite_master where type = 'trigger' or sql like 'create virtual%'",
  )
  for (const { type, name } of made.all()) sqlite.exec(`drop ${type === 'trigger' ? type : 'table'} "${name}"`)
}

/**
 * The same rows by raw prepared statements into plain tables, in one transaction for each batch. It neither decodes nor
 * recognises copies.
 */
async function insertRows(from: SqliteStore, to: SqliteStore): Promise<number> {
  makePlain(to)
  for (const table of ['sources', 'nodes', 'metrics']) {
    const { rows, write } = inserting(from, to, `${table} order by id`)
    rows.forEach(write)
  }
  const batches = PACKETS / BATCH
  const tables = [
    ...Object.entries(ARRIVAL).map(([table, order]) => inserting(from, to, `${table} order by ${order}`)),
    updatingNodes(from, to),
  ].map(({ rows, write }) => ({ rows, write, share: Math.ceil(rows.length / batches) }))
  return timed(() => {
    for (let batch = 0; batch < batches; batch++) {
      to.sqlite.exec('begin immediate')
      for (const { rows, write, share } of tables) {
        const end = Math.min(rows.length, (batch + 1) * share)
        for (let n = batch * share; n < end; n++) write(rows[n])
      }
      to.sqlite.exec('commit')
    }
  })
}

function inserting(from: SqliteStore, to: SqliteStore, table: string): Writing {
  const select = from.sqlite.prepare(`select * from ${table}`).raw()
  const marks = Array(select.columns().length).fill('?').join()
  const insert = to.sqlite.prepare(`insert or replace into ${table.split(' ')[0]} values (${marks})`)
  return { rows: select.all(), write: (row) => insert.run(row) }
}

/** What a packet changes about its sender: once per sender in a batch. */
function updatingNodes(from: SqliteStore, to: SqliteStore): Writing {
  const heard: number[] = from.sqlite.prepare('select from_node_num from packets order by id').pluck().all().map(Number)
  const columns = ['last_heard', 'hops_away', 'snr', 'rssi', 'channel', 'via_mqtt', 'latitude', 'longitude', 'altitude']
  const more = ['precision_bits', 'position_time', 'node_num']
  const read = from.sqlite.prepare(`select ${[...columns, ...more].join()} from nodes where node_num = ?`).raw()
  const rows: unknown[] = []
  for (let at = 0; at < heard.length; at += BATCH) {
    rows.push(...[...new Set(heard.slice(at, at + BATCH))].map((nodeNum) => read.get(nodeNum)))
  }
  const set = [...columns, ...more.slice(0, -1)].map((column) => `${column} = ?`).join()
  const update = to.sqlite.prepare(`update nodes set ${set} where node_num = ?`)
  return { rows, write: (row) => update.run(row) }
}

export async function measureIngest(): Promise<void> {
  const once = async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
    const frames = Array.from({ length: PACKETS }, (_, n) =>
      packetFrame('mixture', n + 1, NODES, Date.now() - (PACKETS - n) * 1000),
    )
    const [ours, raw] = [openDatabase(join(scratch, 'ours.db')), openDatabase(join(scratch, 'raw.db'))]
    const own = await ingestFrames(ours, frames)
    const limit = await insertRows(ours, raw)
    ours.close()
    raw.close()
    rmSync(scratch, { recursive: true })
    return { own, limit }
  }
  await once()
  const each = (cpuUs: number) => (cpuUs / PACKETS).toFixed(0)
  reportRatio('ingest of a mixed batch, against one transaction into plain tables', await inRounds(['limit'], once), {
    target: 0.25,
    cost: (own, limit) => `${each(own)} of ${each(limit)} µs a packet`,
  })
}

type Radio = Awaited<ReturnType<typeof startRadio>>
type Site = {
  readonly service: Running
  readonly radio: Radio
  readonly cookies: readonly string[]
  readonly database: string
}

/** The service on a radio with this many nodes, all of them known by now. */
export async function openSite(
  scratch: string,
  nodes: number,
  people: number,
): Promise<Site & { close(): Promise<void> }> {
  const dataDir = mkdtempSync(join(scratch, 'site-'))
  const radio = await startRadio(nodes)
  const env = { ADMIN_PASSWORD: PASSWORD, MESHTASTIC_TCP: `127.0.0.1:${radio.port}` }
  const service = await startService(dataDir, env)
  const cookies = await signInPeople(dataDir, service.port, people)
  const [cookie = ''] = cookies
  const count = async () => {
    const answer = await fetch(`http://127.0.0.1:${service.port}/api/nodes`, { headers: { cookie } })
    return (await answer.text()).split('"nodeNum":').length - 1
  }
  while ((await count()) < nodes) await wait(50)
  const close = async () => {
    await service.stop()
    await radio.close()
    rmSync(dataDir, { recursive: true })
  }
  return { service, radio, cookies, database: join(dataDir, 'mesh.db'), close }
}

/** How long a busy machine may go without storing any waiting packet. */
const PATIENCE_MS = 10_000

/** The number of different packets in the log, once all that were sent are stored or no more arrive. */
async function countStored(file: string, sent: number): Promise<number> {
  const sqlite = new Database(file, { readonly: true })
  const count = sqlite.prepare('select count(distinct packet_id) from packets').pluck()
  let stored = Number(count.get())
  for (let grewAt = performance.now(); stored < sent && performance.now() - grewAt < PATIENCE_MS; await wait(250)) {
    const now = Number(count.get())
    if (now > stored) grewAt = performance.now()
    stored = now
  }
  sqlite.close()
  return stored
}

type Told = { resets: number; ended: number; p50: number; p95: number; longest: number }

/** 200 readers while 2,000 packets arrive per second. */
export async function measureLive(scratch: string): Promise<void> {
  const site = await openSite(scratch, NODES, 20)
  const readers = startHelper(new URL('../load/readers.ts', import.meta.url), [
    String(site.service.port),
    '200',
    ...site.cookies,
  ])
  try {
    await wait(2000)
    await ask(readers, 'begin')
    const before = await readCpu(site.service)
    let sent = 0
    const hold = await longestHold(site.service, async () => {
      sent = await site.radio.stream(2000, LIVE_SECONDS)
    })
    const core = ((await readCpu(site.service)) - before) / LIVE_SECONDS / 10_000
    const lost = sent - (await countStored(site.database, sent))
    await wait(1000)
    const heard = await ask<Told>(readers, 'end')
    const told = `${lost} of ${sent.toLocaleString('en')} lost, ${core.toFixed(0)} % of a core`
    report(`2,000 packets/s for ${LIVE_SECONDS} s with 200 readers`, told, 'none lost', lost === 0 && heard.ended === 0)
    report('longest hold meanwhile', `${hold.toFixed(0)} ms`, '≤ 25 ms', hold <= 25)
    const p95 = `p95 ${heard.p95} ms, longest ${heard.longest} ms, ${heard.resets} gaps reported`
    report('events of them, from the radio to the reader', p95, 'p95 ≤ 300 ms', heard.p95 <= 300 && heard.resets === 0)
  } finally {
    await stop(readers)
    await site.close()
  }
}

/** 20 users with an open page that polls each second, while packets arrive. */
async function poll({ service, cookies }: Site, path: string, seconds: number) {
  let [asked, whole] = [0, 0]
  const end = performance.now() + seconds * 1000
  await Promise.all(
    cookies.map(async (cookie, n) => {
      await wait((n * 1000) / cookies.length)
      for (let etag = ''; performance.now() < end; asked++) {
        const begun = performance.now()
        const headers = { cookie, ...(etag === '' ? {} : { 'if-none-match': etag }) }
        const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, { headers })
        await answer.arrayBuffer()
        etag = answer.headers.get('etag') ?? ''
        if (answer.status !== 304) whole++
        await wait(Math.max(0, 1000 - (performance.now() - begun)))
      }
    }),
  )
  return { asked, whole }
}

const POLLED = ['/api/nodes', '/api/messages', '/api/packets', '/api/dashboard']

/** What changes while pages poll: what polling adds to the cost of the packets, and memory with 20 users. */
export async function measureChanging(scratch: string): Promise<void> {
  const seconds = 6
  const site = await openSite(scratch, 500, 20)
  const { service, radio } = site
  const cpuOf = async (work: () => Promise<unknown>) => {
    const before = await readCpu(service)
    await work()
    return (await readCpu(service)) - before
  }
  const readers = startHelper(new URL('../load/readers.ts', import.meta.url), [
    String(service.port),
    '20',
    ...site.cookies,
  ])
  try {
    // What has not run yet takes several times as long.
    await Promise.all([radio.stream(100, seconds), poll(site, '/api/nodes', seconds)])
    for (const packets of [10, 100]) {
      const storing = () => cpuOf(() => radio.stream(packets, seconds))
      const before = await storing()
      const polled: { path: string; both: number; told: Awaited<ReturnType<typeof poll>> }[] = []
      for (const path of POLLED) {
        let told = { asked: 0, whole: 0 }
        const both = await cpuOf(() =>
          Promise.all([radio.stream(packets, seconds), poll(site, path, seconds).then((answers) => (told = answers))]),
        )
        polled.push({ path, both, told })
      }
      const alone = (before + (await storing())) / 2
      for (const { path, both, told } of polled) {
        const [ms, core] = [(both - alone) / told.asked / 1000, (both - alone) / seconds / 10_000]
        const measured = `${ms.toFixed(2)} ms each, ${core.toFixed(1)} % of a core; ${told.whole} of ${told.asked} changed`
        report(`GET ${path}, 20 people each second, ${packets} packets/s`, measured, '', null)
      }
    }
    await radio.stream(100, seconds)
    const { now } = memoryMb(service)
    report('memory, 100 packets/s, 20 readers', `${now.toFixed(0)} MB`, '≤ 150 MB', now <= 150)
  } finally {
    await stop(readers)
    await site.close()
  }
}
