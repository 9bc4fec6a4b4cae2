// The whole cost of the edge: a packet is stored, summarised and, when it is old, deleted; pages are read; the schedule
// looks for work. All of it is measured on workerd and priced for a month.
import type { D1Database } from '@cloudflare/workers-types'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { eachTurn } from '../../../src/app/base/pacing/slices.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { rollUp } from '../../../src/app/mesh/telemetry/roll-up.ts'
import { boundsOf, bytesOf, USUAL_LIMIT_BYTES } from '../../../src/app/retention/bounds.ts'
import { d1Store } from '../../../src/edge/d1.ts'
import { runAlerts, runAnchor, runRetention, runSchedule, runSurvey } from '../../../src/edge/schedule.ts'
import { dropUnneeded } from '../../../src/edge/unneeded.ts'
import { fetchOutbound } from '../../../src/edge/outbound.ts'
import { NO_PORTS } from '../../../src/app/base/context.ts'
import { forEachName, namesOf } from '../../../src/shared/names.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/shared/time.ts'
import { handshakeFrames, packetFrame } from '../../load/traffic.ts'
import { type Counted, counting, type EdgeWorker, openWorker } from '../../servers/edge-worker.ts'
import { report, tableOf } from '../../table.ts'
import { billOf, OBJECT_GB, type Usage } from './prices.ts'

/** Each of them sends one packet in this time, and two with telemetry in an hour. */
const NODES = 250
const EVERY_MS = 7.5 * 60_000
/** Deliveries are one second apart, so a delivery has as many packets as a second. */
const RATES = [2, 20, 50] as const
const READERS = [5, 1000] as const
/** Packets of each rate. */
const PACKETS = Number(process.env['BENCH_EDGE_PACKETS'] ?? 600)
const MAX_NODES = 20_000
const MONTH_SECONDS = 30 * 86_400
/** A reader has the page Nodes open for so many hours a day. */
const HOURS_A_DAY = 1
/** What that page asks for in an hour: src/web/state. */
const AN_HOUR = { nodes: 720, inbox: 360, firing: 60, info: 60 } as const
const NODES_OF_PAGE = 5000
/** Streams of live events end after this time, and begin again. */
const STREAM_SECONDS = 600
/** An object with readers reads this before an event, at most once a second: docs/edge.md. */
const ROWS_OF_READER = 10
/** A collector that listens asks for so long at a time, and the worker looks this often: src/app/mesh/downlink/listening.ts. */
const POLL = { seconds: 25, looks: 50 } as const
/** A backup each night, of which seven are kept; a run of the trigger writes parts of so many bytes of rows. */
const BACKUPS = { kept: 7, ofRows: 0.25, partBytes: 5_000_000 } as const

type Cost = {
  readonly read: number
  readonly written: number
  readonly cpuMs: number
  /** Written rows by table. */
  readonly byTable?: ReadonlyMap<string, number>
}

/** What work costs, divided by `times`. Processor time is that of this process, with the way to D1: an upper bound. */
async function costOf(counted: Counted, work: () => Promise<unknown>, times = 1): Promise<Cost> {
  Object.assign(counted, { trips: 0, read: 0, written: 0 })
  counted.byTable.clear()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return {
    read: counted.read / times,
    written: counted.written / times,
    cpuMs: (user + system) / 1000 / times,
    byTable: new Map([...counted.byTable].map(([table, rows]) => [table, rows / times])),
  }
}

const base64 = (frame: Uint8Array) => Buffer.from(frame.subarray(4)).toString('base64')
const count = async (database: D1Database, table: string) =>
  Number(await database.prepare(`select count(*) as n from ${table}`).first('n'))

/** What each packet leaves in these tables, before and after the summaries. */
type Left = Readonly<
  Record<'packets' | 'messages' | 'receptions' | 'positions' | 'telemetry' | 'telemetry_hourly', number>
>

type Packets = {
  readonly stored: ReadonlyMap<number, Cost & { readonly cpuOfDelivery: number }>
  readonly summarised: Cost
  readonly deleted: Cost
  readonly left: Left
  readonly listening: Listening
  /** A look at the growth of the tables, for `NODES`. */
  readonly planned: Cost
}

/** What a collector that waits for commands costs: each request, and each look into D1. */
type Listening = { readonly request: Cost; readonly look: Cost }

async function measurePackets(counted: Counted, worker: EdgeWorker): Promise<Packets> {
  const store = d1Store(counted.database)
  await dropUnneeded(store)
  const made = await worker.ask('/api/tokens', {
    method: 'POST',
    headers: { ...worker.headers, origin: 'http://edge.test', 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', scopes: ['ingest', 'radio'] }),
  })
  const { token } = Object(await made.json())
  const deliver = async (packets: readonly { data: string; receivedAt: number }[]) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ source: 'bench', packets })
    const answer = Object(await (await worker.ask('/api/ingest', { method: 'POST', headers, body })).json())
    if (answer.rejected.length > 0) throw new Error(`refused: ${JSON.stringify(answer.rejected[0])}`)
    await worker.settle()
  }
  // The hour before this one: its packets are those of an hour, and not of parts of two.
  const begun = (Math.floor(Date.now() / HOUR_MS) - 1) * HOUR_MS
  // Without the end of the handshake, which a collector does not deliver.
  const hello = handshakeFrames(NODES, 1)
    .slice(0, -1)
    .map((frame) => ({ data: base64(frame), receivedAt: begun }))
  await deliver(hello)
  let id = 0
  const next = () => {
    const receivedAt = begun + (++id * EVERY_MS) / NODES
    return { data: base64(packetFrame('mixture', id, NODES, receivedAt)), receivedAt }
  }
  const take = (size: number) => Array.from({ length: size }, next)
  // What an isolate loads once, and what a just-in-time compiler needs. Nearly every node is heard, and surveyed, for the
  // first time: that happens once in its life.
  for (let n = 0; n < 20; n++) await deliver(take(5))
  for (let n = 0; n < 12; n++) await deliver(take(50))
  await runSurvey(portsAt(store, begun + HOUR_MS), begun - MINUTE_MS)
  const known = id
  const stored = new Map<number, Cost & { readonly cpuOfDelivery: number }>()
  for (const size of RATES) {
    const deliveries = Math.ceil(PACKETS / size)
    const cost = await costOf(
      counted,
      async () => {
        for (let n = 0; n < deliveries; n++) await deliver(take(size))
      },
      deliveries * size,
    )
    stored.set(size, { ...cost, cpuOfDelivery: cost.cpuMs * size })
  }
  const listening = await measureListening(counted, worker, token)
  const summarised = await costOf(
    counted,
    async () => {
      await rollUp(store, eachTurn)
      // The last run of an hour surveys what the hour brought.
      await runSurvey(portsAt(store, begun + HOUR_MS), begun - MINUTE_MS)
    },
    id - known,
  )
  const left = {
    packets: (await count(counted.database, 'packets')) / id,
    messages: (await count(counted.database, 'messages')) / id,
    receptions: (await count(counted.database, 'receptions')) / id,
    positions: (await count(counted.database, 'positions')) / id,
    telemetry: (await count(counted.database, 'telemetry')) / id,
    telemetry_hourly: (await count(counted.database, 'telemetry_hourly')) / id,
  }
  // Rows are counted twice a day: retention/recount.ts.
  const planned = await costOf(counted, () => runRetention(portsAt(store, Date.now()), Date.now()))
  const ports = portsAt(store, Date.now() + 500 * DAY_MS)
  const deleted = await costOf(
    counted,
    async () => {
      for (let run = 0; run < 50; run++) {
        await runRetention(ports, ports.now())
        const rows = await Promise.all(
          ['telemetry', 'telemetry_hourly', 'packets', 'positions', 'messages'].map((table) =>
            count(counted.database, table),
          ),
        )
        if (rows.every((n) => n === 0)) return
      }
      throw new Error('not all of it was deleted')
    },
    id,
  )
  return { stored, summarised, deleted, left, listening, planned }
}

async function measureListening(counted: Counted, worker: EdgeWorker, token: string): Promise<Listening> {
  const listen = (wait: number) =>
    costOf(counted, async () => {
      const headers = { authorization: `Bearer ${token}` }
      await worker.ask(`/api/ingest/commands?radio=bench&kind=texts&wait=${wait}`, { headers })
      await worker.settle()
    })
  await listen(0)
  const request = await listen(0)
  const seconds = 4
  const look = plus(FREE, plus(await listen(seconds), request, -1), POLL.seconds / (seconds * POLL.looks))
  return { request, look }
}

function portsAt(store: ReturnType<typeof d1Store>, now: number) {
  const parsed = parseConfig({ SESSION_SECRET: 's'.repeat(40) })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const log = createLog({ level: 'error', format: 'json', now: () => now, write: (line) => console.error(line) })
  return {
    ...NO_PORTS,
    translations: async () => ({}),
    config: parsed.config,
    store,
    sessions: databaseSessions(store),
    log,
    now: () => now,
    outbound: fetchOutbound(),
  }
}

/** Nodes like the measured ones, with eight charts each. */
async function addNodes(database: D1Database, nodes: number): Promise<void> {
  const columns = await database.prepare("select name from pragma_table_info('nodes')").all<{ name: string }>()
  const names = columns.results.map(({ name }) => name).filter((name) => name !== 'id' && name !== 'revision')
  const now = Date.now()
  const values = names.map((name) =>
    name === 'node_num'
      ? '1000000 + i.n'
      : name === 'public_key'
        ? 'null'
        : name === 'last_heard'
          ? String(now)
          : name === 'is_local'
            ? '0'
            : `k.${name}`,
  )
  await database
    .prepare(
      `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${nodes - NODES}) insert into nodes
      (${names.join()}) select ${values.join()} from i join nodes k on k.id = 2 + i.n % 200`,
    )
    .run()
  for (let metric = 1; metric <= 8; metric++)
    await database.prepare(`insert into telemetry select id, ${metric}, ${now}, 4, 0 from nodes`).run()
}

type Reading = { readonly list: Cost; readonly others: Cost }

const FREE: Cost = { read: 0, written: 0, cpuMs: 0 }
const plus = (a: Cost, b: Cost, times = 1): Cost => ({
  read: a.read + b.read * times,
  written: a.written + b.written * times,
  cpuMs: a.cpuMs + b.cpuMs * times,
})

/** A node changes between two lists, as a mesh is never silent for five seconds: each list is made anew. */
async function measureReading(counted: Counted, worker: EdgeWorker, database: D1Database): Promise<Reading> {
  const times = 10
  const read = async (path: string) => {
    let sum = FREE
    for (let n = 0; n <= times; n++) {
      await database.prepare(`update nodes set last_heard = last_heard + 1 where id = ${10 + n}`).run()
      const cost = await costOf(counted, async () => {
        await (await worker.ask(path, { headers: worker.headers })).arrayBuffer()
      })
      // The first request loads what an isolate keeps.
      if (n > 0) sum = plus(sum, cost, 1 / times)
    }
    return sum
  }
  const list = await read('/api/nodes')
  let others = plus(FREE, await read('/api/messages?limit=200'), AN_HOUR.inbox)
  others = plus(others, await read('/api/alerts?limit=1&state=firing'), AN_HOUR.firing)
  others = plus(others, await read('/api/info'), AN_HOUR.info)
  return { list, others }
}

type Upkeep = { readonly schedule: Cost; readonly rest: Cost; readonly pass: Cost; readonly minute: Cost }

/** The schedule when there is nothing to do, and a pass through all charts that finds nothing. */
async function measureUpkeep(counted: Counted): Promise<Upkeep> {
  const store = d1Store(counted.database)
  await counted.database.prepare('delete from sweeps').run()
  await counted.database.prepare('delete from retention_plans').run()
  const ports = portsAt(store, Date.now())
  const at = Math.floor(Date.now() / HOUR_MS) * HOUR_MS + HOUR_MS / 2
  const retain = () => runRetention(ports, at)
  const pass = await costOf(counted, async () => {
    for (let run = 0; run < 4; run++) await retain()
  })
  const rest = await costOf(counted, retain)
  await runSchedule(ports, at)
  const schedule = await costOf(counted, () => runSchedule(ports, at))
  const minute = await costOf(counted, async () => {
    await runAlerts(ports)
    await runAnchor(ports)
  })
  return { schedule, rest, pass, minute }
}

/** A month of this mesh and these readers. */
function usageOf(
  { packetsPerSecond, readers }: { readonly packetsPerSecond: (typeof RATES)[number]; readonly readers: number },
  { packets, reading, upkeep, nodes }: { packets: Packets; reading: Reading; upkeep: Upkeep; nodes: number },
) {
  const stored = packets.stored.get(packetsPerSecond)
  if (stored === undefined) throw new Error(`not measured: ${packetsPerSecond}`)
  const heard = packetsPerSecond * MONTH_SECONDS
  const meshNodes = Math.min(MAX_NODES, (packetsPerSecond * EVERY_MS) / 1000)
  const scale = meshNodes / nodes
  const pages = Math.ceil(meshNodes / NODES_OF_PAGE)
  const hours = readers * HOURS_A_DAY * 30
  const lists = hours * AN_HOUR.nodes
  const days = 30
  const upkeepOf = (part: 'read' | 'written' | 'cpuMs') =>
    144 * days * (upkeep.schedule[part] * (part === 'read' ? scale : 1) + upkeep.rest[part]) +
    2 * days * upkeep.pass[part] * scale +
    1440 * days * upkeep.minute[part]
  const { bytes, rows } = holdings(packets.left, packetsPerSecond)
  const polls = MONTH_SECONDS / POLL.seconds
  const listening = (part: 'read' | 'written' | 'cpuMs') =>
    polls * (packets.listening.request[part] + POLL.looks * packets.listening.look[part])
  // Readers come at any time of the day.
  const atOnce = (readers * HOURS_A_DAY) / 24
  const awake = MONTH_SECONDS * (1 - (1 - HOURS_A_DAY / 24) ** readers)
  const backupParts = (days * bytes) / BACKUPS.partBytes
  const usage: Usage = {
    written:
      heard * (stored.written + packets.summarised.written + packets.deleted.written) +
      upkeepOf('written') +
      (2 * days * packets.planned.written * meshNodes) / NODES +
      listening('written'),
    read:
      heard * (stored.read + packets.summarised.read + packets.deleted.read) +
      upkeepOf('read') +
      lists * reading.list.read * scale +
      hours * reading.others.read +
      awake * Math.max(1, atOnce) * ROWS_OF_READER +
      days * rows +
      listening('read'),
    requests:
      MONTH_SECONDS +
      (144 * 3 + 1440 + 720) * days +
      lists * pages +
      hours * (AN_HOUR.inbox + AN_HOUR.firing + AN_HOUR.info + 3600 / STREAM_SECONDS) +
      polls,
    cpuMs:
      MONTH_SECONDS * stored.cpuOfDelivery +
      heard * (packets.summarised.cpuMs + packets.deleted.cpuMs) +
      upkeepOf('cpuMs') +
      lists * reading.list.cpuMs * scale +
      hours * reading.others.cpuMs +
      listening('cpuMs'),
    objectRequests: MONTH_SECONDS + (hours * 3600) / STREAM_SECONDS,
    objectGbSeconds: awake * OBJECT_GB,
    bucketWrites: backupParts,
    bucketReads: backupParts,
    storedGb: bytes / 1e9,
    bucketGb: (BACKUPS.kept * BACKUPS.ofRows * bytes) / 1e9,
  }
  return { meshNodes, usage }
}

const DAYS = {
  packets: 7,
  messages: 365,
  receptions: 365,
  positions: 90,
  telemetry: 30,
  telemetry_hourly: 400,
} as const

/** What D1 holds after a year: bytes, and the days that each table keeps. */
function holdings(left: Left, packetsPerSecond: number) {
  const tables = namesOf(DAYS)
  const aDay = (table: keyof Left) => left[table] * packetsPerSecond * 86_400
  const needs = tables.map((table) => [table, bytesOf(table, (aDay(table) * DAYS[table]) / 0.9)])
  const bounds = boundsOf(USUAL_LIMIT_BYTES, Object.fromEntries(needs))
  const keptDays = forEachName(DAYS, (table) => Math.min(DAYS[table], (bounds[table] * 0.9) / aDay(table)))
  const bytes = tables.reduce((sum, table) => sum + bytesOf(table, aDay(table) * keptDays[table]), 0)
  return { bytes, keptDays, rows: tables.reduce((sum, table) => sum + aDay(table) * keptDays[table], 0) }
}

const money = (dollars: number) => (dollars < 10 ? dollars.toFixed(2) : dollars.toFixed(0))

export async function measureBill(database: D1Database): Promise<void> {
  const counted = counting(database)
  const worker = await openWorker(counted.database)
  const packets = await measurePackets(counted, worker)
  const [summarised, deleted] = [packets.summarised.written, packets.deleted.written]
  const lives: string[] = []
  for (const [size, { written }] of packets.stored) {
    const parts = [written, summarised, deleted].map((rows) => rows.toFixed(1))
    const whole = written + summarised + deleted
    report(
      `edge: rows written for a packet in its life, ${size} a delivery`,
      `${whole.toFixed(1)}: stored ${parts[0]}, summarised ${parts[1]}, deleted ${parts[2]}`,
      size === 20 ? '≤ 5' : '',
      size === 20 ? whole <= 5 : null,
    )
    lives.push(`| rows written per packet, ${size} per delivery | ${parts.join(' | ')} | ${whole.toFixed(1)} |`)
  }
  const whole = { stored: packets.stored.get(20) ?? FREE, summarised: packets.summarised, deleted: packets.deleted }
  for (const part of namesOf(whole)) {
    const tables = [...(whole[part].byTable ?? [])].filter(([, rows]) => rows >= 0.005).toSorted((a, b) => b[1] - a[1])
    const rows = tables.map(([table, n]) => `${table} ${n.toFixed(2)}`).join(', ')
    report(`edge: rows written by table, ${part}, 20 a delivery`, rows, '', null)
  }
  const reads = [whole.stored, whole.summarised, whole.deleted].map(({ read }) => read)
  const wholeRead = reads.reduce((sum, read) => sum + read, 0).toFixed(0)
  const [stored, summed, gone] = reads.map((read) => read.toFixed(0))
  report(
    'edge: rows read for a packet in its life, 20 a delivery',
    `${wholeRead}: stored ${stored}, summarised ${summed}, deleted ${gone}`,
    '',
    null,
  )
  lives.push(`| rows read per packet, 20 per delivery | ${stored} | ${summed} | ${gone} | ${wholeRead} |`)
  tableOf('docs/edge.md', 'measured: life', [
    '| the mixture, in its whole life | stored | summarised | deleted | together |',
    '| --- | --- | --- | --- | --- |',
    ...lives,
  ])
  const { request, look } = packets.listening
  report(
    'edge: rows read for a collector that listens, a second',
    (request.read / POLL.seconds + (look.read * POLL.looks) / POLL.seconds).toFixed(1),
    '',
    null,
  )
  // Readers and upkeep are measured with this many nodes, and both cost what the number of nodes costs.
  const nodes = 2000
  await addNodes(database, nodes)
  const reading = await measureReading(counted, worker, database)
  report(`edge: rows read for the list of ${nodes} nodes`, reading.list.read.toFixed(0), '', null)
  const upkeep = await measureUpkeep(counted)
  report(`edge: rows read by a pass over ${nodes} nodes with 8 charts each`, upkeep.pass.read.toFixed(0), '', null)
  report(
    'edge: rows read by a run that deletes and finds nothing',
    upkeep.rest.read.toFixed(0),
    '≤ 200',
    upkeep.rest.read <= 200,
  )
  const bills: string[] = []
  const millions = (n: number) => (n < 10e6 ? (n / 1e6).toFixed(1) : (n / 1e6).toFixed(0))
  for (const packetsPerSecond of RATES) {
    const { keptDays } = holdings(packets.left, packetsPerSecond)
    const kept = namesOf(DAYS).map((table) => `${table} ${keptDays[table].toFixed(1)} of ${DAYS[table]}`)
    report(`edge: days kept in 10 GB, ${packetsPerSecond} packets/s`, kept.join(', '), '', null)
    for (const readers of READERS) {
      const { usage, meshNodes } = usageOf({ packetsPerSecond, readers }, { packets, reading, upkeep, nodes })
      const { parts, total } = billOf(usage)
      const detail = Object.entries(parts)
        .filter(([, dollars]) => dollars > 0)
        .map(([name, dollars]) => `${name} ${money(dollars)}`)
      const work = `${packetsPerSecond} packets/s of ${meshNodes} nodes, ${readers} readers`
      report(`edge: dollars a month, ${work}`, `${money(total)}: ${detail.join(', ')}`, '', null)
      const uses = [usage.written, usage.read, usage.requests, usage.cpuMs].map(millions)
      const object = `${(usage.objectGbSeconds / OBJECT_GB / 1000).toFixed(0)} thousand`
      report(
        `edge: used in a month, ${work}`,
        `${uses[0]} M rows written, ${uses[1]} M read, ${uses[2]} M requests, ${uses[3]} M ms of CPU, ${object} object seconds`,
        '',
        null,
      )
      bills.push(`| ${work} | ${money(total)} | ${uses.join(' | ')} | ${object} |`)
    }
  }
  tableOf('docs/edge.md', 'measured: bill', [
    '| mesh | dollars | million rows written | million rows read | million requests | million ms of CPU | object seconds |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...bills,
  ])
}
