// The whole cost of the edge: a packet is stored, summarised and, when it is old, deleted; pages are read; the schedule
// looks for work. All of it is measured on workerd and priced for a month.
import type { D1Database } from '@cloudflare/workers-types'
import { databaseSessions } from '../../../src/app/accounts/sessions/database-sessions.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { countWaiting } from '../../../src/app/mesh/survey/survey.ts'
import { boundsOf, bytesOf, USUAL_LIMIT_BYTES } from '../../../src/app/retention/bounds.ts'
import { PLAIN_ROW_BYTES, RUNS_OF } from '../../../src/db/runs.ts'
import { d1Store } from '../../../src/edge/d1.ts'
import {
  MANY_PACKETS,
  runAlerts,
  runAnchor,
  runRetention,
  runSchedule,
  runSurvey,
  surveyAll,
  SURVEY_SHARE,
} from '../../../src/edge/schedule.ts'
import { dropUnneeded } from '../../../src/edge/unneeded.ts'
import { fetchOutbound } from '../../../src/edge/outbound.ts'
import { NO_PORTS } from '../../../src/app/base/context.ts'
import { forEachName, namesOf } from '../../../src/shared/names.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/shared/time.ts'
import { handshakeFrames, packetFrame, senderOf } from '../../load/traffic.ts'
import { type Counted, counting, type EdgeWorker, openWorker } from '../../servers/edge-worker.ts'
import { report, tableOf } from '../../table.ts'
import { billOf, OBJECT_GB, type Usage } from './prices.ts'

/** Each of them sends one packet in this time. Twice as many as a usual delivery has packets, each of another sender. */
const NODES = 40
const EVERY_MS = 7.5 * MINUTE_MS
/** A day, because some rows are written once a day for a node. Fewer only try the program. */
const HOURS = Number(process.env['BENCH_EDGE_HOURS'] ?? 24)
/** Hours before that day, in which nearly all is heard that is heard for the first time in a node's life. */
const HOURS_BEFORE = 2
/** Deliveries are one second apart, so a delivery has as many packets as a second. */
const RATES = [2, 20, 50] as const
const READERS = [5, 1000] as const
type Rate = (typeof RATES)[number]
const USUAL_RATE = 20
/** Deliveries of other sizes come in the first hour: of the small ones few, because each takes as long as a large one. */
const sizeAfter = (ms: number): Rate => (ms < 0 || ms >= HOUR_MS ? USUAL_RATE : ms < 10 * MINUTE_MS ? 2 : 50)
/** How often the trigger of the survey fires. */
const SURVEY_MS = 10 * MINUTE_MS
/** How often deletion works through all tables, and rows are counted. */
const PASS_HOURS = 12
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
  readonly byTable: ReadonlyMap<string, number>
}

/** What work costs. Processor time is that of this process, with the way to D1: an upper bound. */
async function costOf(counted: Counted, work: () => Promise<unknown>): Promise<Cost> {
  Object.assign(counted, { trips: 0, read: 0, written: 0 })
  counted.byTable.clear()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return {
    read: counted.read,
    written: counted.written,
    cpuMs: (user + system) / 1000,
    byTable: new Map(counted.byTable),
  }
}

const FREE: Cost = { read: 0, written: 0, cpuMs: 0, byTable: new Map() }

function plus(a: Cost, b: Cost, times = 1): Cost {
  const byTable = new Map(a.byTable)
  for (const [table, rows] of b.byTable) byTable.set(table, (byTable.get(table) ?? 0) + rows * times)
  return {
    read: a.read + b.read * times,
    written: a.written + b.written * times,
    cpuMs: a.cpuMs + b.cpuMs * times,
    byTable,
  }
}

const base64 = (frame: Uint8Array) => Buffer.from(frame.subarray(4)).toString('base64')
/** Adds costs up, and shares them among the packets that they were for. */
function tally() {
  let sum = FREE
  let packets = 0
  return {
    add(cost: Cost, more: number): void {
      sum = plus(sum, cost)
      packets += more
    },
    /** Of a packet. */
    share: (): Cost => plus(FREE, sum, 1 / Math.max(1, packets)),
  }
}

/** What each packet leaves in these tables, as rows of the plain form. */
type Left = Readonly<
  Record<'packets' | 'messages' | 'receptions' | 'positions' | 'telemetry' | 'telemetry_hourly', number>
>

/** What each packet costs. */
type Packets = {
  readonly stored: ReadonlyMap<Rate, Cost>
  /** By the packets a second that the mesh sends: one run surveys a part of a large mesh's hour. */
  readonly summarised: ReadonlyMap<Rate, Cost>
  readonly deleted: ReadonlyMap<Rate, Cost>
  readonly left: Left
  readonly listening: Listening
}

/** What a collector that waits for commands costs: each request, and each look into D1. */
type Listening = { readonly request: Cost; readonly look: Cost }

const meshOf = (packetsPerSecond: number) => Math.min(MAX_NODES, (packetsPerSecond * EVERY_MS) / 1000)

async function measurePackets(counted: Counted, worker: EdgeWorker): Promise<Packets> {
  const { database } = counted
  const store = d1Store(database)
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
  // Midnight: the hours belong to one day, and the day before ends with those that are not measured.
  const begun = (Math.floor(Date.now() / DAY_MS) - 1) * DAY_MS
  const first = begun - HOURS_BEFORE * HOUR_MS
  // Without the end of the handshake, which a collector does not deliver.
  const hello = handshakeFrames(NODES, 1, first)
    .slice(0, -1)
    .map((frame) => ({ data: base64(frame), receivedAt: first }))
  await deliver(hello)
  let id = 0
  const timeOf = (packet: number) => first + (packet * EVERY_MS) / NODES
  let packetId = 0
  // A second of a large mesh hardly ever has two packets of a node.
  const take = (size: number) => {
    const senders = new Set<number>()
    return Array.from({ length: size }, () => {
      if (senders.size === NODES - 1) senders.clear()
      do packetId++
      while (senders.has(senderOf(packetId, NODES)))
      senders.add(senderOf(packetId, NODES))
      const receivedAt = timeOf(id++)
      return { data: base64(packetFrame('mixture', packetId, NODES, receivedAt)), receivedAt }
    })
  }
  const [stored, surveyed] = [
    new Map(RATES.map((rate) => [rate, tally()])),
    new Map(RATES.map((rate) => [rate, tally()])),
  ]
  const upkept = tally()
  for (let hour = -HOURS_BEFORE; hour < HOURS; hour++) {
    const isMeasured = hour >= 0
    // Each hour is surveyed as that of another mesh.
    const rate = RATES[Math.abs(hour) % RATES.length] ?? USUAL_RATE
    const end = begun + (hour + 1) * HOUR_MS
    const survey = async (at: number) => {
      const waiting = await countWaiting(store)
      // As in a mesh so many times as large: a slice has as many packets of each node, and as many wait for the run.
      const times = meshOf(rate) / NODES
      const isDue = at + SURVEY_MS === end || waiting * times >= MANY_PACKETS
      const cost = await costOf(counted, async () => {
        if (isDue) await surveyAll(portsAt(store, at), () => SURVEY_SHARE / times)
      })
      if (isMeasured) surveyed.get(rate)?.add(cost, waiting - (await countWaiting(store)))
    }
    const before = id
    for (let next = end - HOUR_MS + SURVEY_MS; timeOf(id) < end;) {
      const size = sizeAfter(timeOf(id) - begun)
      const packets = take(size)
      const cost = await costOf(counted, () => deliver(packets))
      if (isMeasured) stored.get(size)?.add(cost, size)
      for (; next < end && timeOf(id) >= next; next += SURVEY_MS) await survey(next)
    }
    const ports = portsAt(store, end)
    const cost = await costOf(counted, async () => {
      await runSchedule(ports, end)
      // Looks for findings.
      await runSurvey(ports, end)
      if ((hour + 1) % PASS_HOURS === 0) await runRetention(ports, end)
    })
    if (isMeasured) upkept.add(cost, id - before)
  }
  const listening = await measureListening(counted, worker, token)
  const left = forEachName(LEFT, () => 0)
  for (const table of namesOf(LEFT)) left[table] = Number(await database.prepare(LEFT[table]).first('n')) / id
  const deleted = tally()
  deleted.add(await measureDeletion(counted, begun), id)
  const byRate = (costFor: (rate: Rate) => Cost) => new Map(RATES.map((rate) => [rate, asIn(rate, costFor(rate))]))
  return {
    stored: byRate((rate) => stored.get(rate)?.share() ?? FREE),
    summarised: byRate((rate) => plus(upkept.share(), surveyed.get(rate)?.share() ?? FREE)),
    deleted: byRate(() => deleted.share()),
    left,
    listening,
  }
}

/** Their rows are written for the whole mesh in each run or slice, however many packets there are. */
const OF_MESH = ['survey', 'finding_looks', 'sweeps', 'retention_plans', 'nodes_text', 'audit_log_text']

/** The cost of a packet in a mesh that sends so many a second: more packets share what is written for all of them. */
function asIn(packetsPerSecond: Rate, cost: Cost): Cost {
  const surplus = OF_MESH.map((table): [string, number] => {
    return [table, (cost.byTable.get(table) ?? 0) * (1 - NODES / meshOf(packetsPerSecond))]
  })
  const written = surplus.reduce((sum, [, rows]) => sum + rows, 0)
  return plus(cost, { ...FREE, written, byTable: new Map(surplus) }, -1)
}

const countOf = (table: string) => `select count(*) as n from ${table}`
const sizeOf = (table: keyof typeof RUNS_OF) =>
  `select sum(octet_length(body)) / ${PLAIN_ROW_BYTES[table]}.0 as n from ${RUNS_OF[table].table}`
const LEFT = {
  packets: 'select sum(packets) as n from packet_pages',
  messages: countOf('messages'),
  receptions: countOf('receptions'),
  positions: countOf('positions'),
  telemetry: sizeOf('telemetry'),
  telemetry_hourly: sizeOf('telemetry_hourly'),
} as const satisfies Record<keyof Left, string>

/** Twice a day, as on the edge, from when each table begins to lose a day that begins at `begun` until all of it is lost. */
async function measureDeletion(counted: Counted, begun: number): Promise<Cost> {
  const store = d1Store(counted.database)
  let sum = FREE
  for (const days of [...new Set<number>(Object.values(DAYS))].toSorted((a, b) => a - b)) {
    for (let pass = 0; pass <= 2 * 2; pass++) {
      const at = begun + days * DAY_MS + (pass * DAY_MS) / 2
      sum = plus(sum, await costOf(counted, () => runRetention(portsAt(store, at), at)))
    }
  }
  for (const table of namesOf(LEFT)) {
    const n = Number(await counted.database.prepare(LEFT[table]).first('n'))
    if (n > 0) throw new Error(`not all of it was deleted: ${n} of ${table}`)
  }
  return sum
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
      (${names.join()}) select ${values.join()} from i join nodes k on k.id = 2 + i.n % ${NODES - 1}`,
    )
    .run()
  const added = Number(await database.prepare('select count(*) as n from nodes').first('n'))
  if (added !== nodes) throw new Error(`${added} nodes instead of ${nodes}`)
  for (let metric = 1; metric <= 8; metric++)
    await database.prepare(`insert into telemetry select id, ${metric}, ${now}, 4, 0 from nodes`).run()
}

type Reading = { readonly list: Cost; readonly others: Cost }

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
  { packetsPerSecond, readers }: { readonly packetsPerSecond: Rate; readonly readers: number },
  { packets, reading, upkeep, nodes }: { packets: Packets; reading: Reading; upkeep: Upkeep; nodes: number },
) {
  const stored = packets.stored.get(packetsPerSecond)
  const summarised = packets.summarised.get(packetsPerSecond)
  const deleted = packets.deleted.get(packetsPerSecond)
  if (stored === undefined || summarised === undefined || deleted === undefined)
    throw new Error(`not measured: ${packetsPerSecond}`)
  const heard = packetsPerSecond * MONTH_SECONDS
  const meshNodes = meshOf(packetsPerSecond)
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
      heard * (stored.written + summarised.written + deleted.written) + upkeepOf('written') + listening('written'),
    read:
      heard * (stored.read + summarised.read + deleted.read) +
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
      heard * stored.cpuMs +
      heard * (summarised.cpuMs + deleted.cpuMs) +
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
  const lives: string[] = []
  for (const [size, { written }] of packets.stored) {
    const summarised = packets.summarised.get(size)?.written ?? 0
    const parts = [written, summarised, packets.deleted.get(size)?.written ?? 0]
    const whole = parts.reduce((sum, rows) => sum + rows, 0)
    const shown = parts.map((rows) => rows.toFixed(2))
    report(
      `edge: rows written for an unsigned packet, heard once, in its life, ${size} a delivery, mesh of ${meshOf(size)} nodes`,
      `${whole.toFixed(2)}: stored ${shown[0]}, summarised ${shown[1]}, deleted ${shown[2]}`,
      size === USUAL_RATE ? '≤ 5' : '',
      // A part of a day lacks what is written once a day.
      size === USUAL_RATE && HOURS === 24 ? whole <= 5 : null,
    )
    const mesh = `${size} per delivery, ${meshOf(size)} nodes`
    lives.push(`| rows written per packet, ${mesh} | ${shown.join(' | ')} | ${whole.toFixed(2)} |`)
  }
  const whole = {
    stored: packets.stored.get(USUAL_RATE) ?? FREE,
    summarised: packets.summarised.get(USUAL_RATE) ?? FREE,
    deleted: packets.deleted.get(USUAL_RATE) ?? FREE,
  }
  for (const part of namesOf(whole)) {
    const tables = [...whole[part].byTable].filter(([, rows]) => rows >= 0.005).toSorted((a, b) => b[1] - a[1])
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
