import type { Heard } from '../../src/app/mesh/heard/heard.ts'
import { fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createIngest, type Ingest } from '../../src/app/mesh/ingest/ingest.ts'
import { createLog } from '../../src/app/base/log.ts'
import { forgetSurplusNodes, MAX_NODES } from '../../src/app/mesh/nodes/deletion/surplus.ts'
import { enforceRowQuotas } from '../../src/app/upkeep/row-quotas.ts'
import { keepUp } from '../../src/app/upkeep/upkeep.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { createPace } from '../../src/node/upkeep/pace.ts'
import { buildService, startService } from '../support/built/built-service.ts'
import { heard, packet, position, telemetry, text, user } from '../support/mesh/mesh.ts'
import { figure } from './figures.ts'
import { floodReport, type floodSchema } from './flood-plan.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const REAL = Array.from({ length: 300 }, (_, index) => 0x0a000000 + index)
const FIRST_INVENTED = 0x10000000
const LOUD = 0x0f000000
const BATCH = 200
/** How much longer a small answer may take than on an idle service: it stores the flood on the same core. */
const LIMIT_MS = 1000

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-flood-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

/** The real nodes, reported by a broker on the previous seven days: a flood can imitate everything except the days. */
async function liveForAWeek(ingest: Ingest, source: Heard['source'], now: number): Promise<void> {
  for (let day = 7; day > 0; day--) {
    const at = now - day * DAY
    const says = REAL.flatMap((from) =>
      [
        user({ id: 'x', longName: `Real ${from}`, shortName: 'RE' }),
        position({ latitudeI: 525000000 + day * 1000, longitudeI: 134000000, time: Math.floor(at / 1000) }),
        telemetry({
          time: Math.floor(at / 1000),
          variant: { case: 'deviceMetrics', value: { batteryLevel: 50 + day } },
        }),
        text(`day ${day}`),
      ].map((data) => heard(packet(data, { from }), { at, source })),
    )
    for (let first = 0; first < says.length; first += BATCH) await ingest.store(says.slice(first, first + BATCH))
  }
}

const isReal = (column: string) => `${column} between ${REAL[0]} and ${REAL.at(-1)}`

/** The real nodes and everything known about them before `until`, for comparison. */
function readReal(store: SqliteStore, until: number) {
  const all = (sql: string) => store.sqlite.prepare(sql).raw().all()
  const ids = `(select id from nodes where ${isReal('node_num')})`
  return {
    nodes: all(
      `select node_num, long_name, days_heard >= 7, latitude from nodes where ${isReal('node_num')} order by 1`,
    ),
    positions: all(`select * from positions where node_id in ${ids} and t < ${until} order by node_id, t`),
    telemetry: all(`select * from telemetry where node_id in ${ids} and t < ${until} order by node_id, metric, t`),
    messages: all(`select * from messages where ${isReal('from_node_num')} and timestamp < ${until} order by id`),
  }
}

/** Milliseconds: the time that a user waits, and this thread's share of it, whatever else runs on the machine. */
type Took = { readonly waited: number; readonly computed: number }

/** The longest measured time; `begin` starts one and returns the function that ends it. */
function createLongest(): { begin(): () => void; longest(): Took } {
  const ownMs = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let longest: Took = { waited: 0, computed: 0 }
  return {
    begin() {
      const start = { waited: performance.now(), computed: ownMs() }
      return () => {
        longest = {
          waited: Math.max(longest.waited, performance.now() - start.waited),
          computed: Math.max(longest.computed, ownMs() - start.computed),
        }
      }
    },
    longest: () => longest,
  }
}

const countOf = (store: SqliteStore, table: string): number =>
  Number(store.sqlite.prepare(`select count(*) from ${table}`).pluck().get())

test('300 nodes heard for a week survive 1,000,000 invented ones in a day', async () => {
  const INVENTED = 1_000_000
  const HOURS = 24
  // The limits of the service take days to reach: the same rule with a hundredth of the rows.
  const most = { messages: 100_000, receptions: 100_000, positions: 100_000, telemetry: 100_000, packets: 100_000 }
  const store = openDatabase(join(dir, 'mesh.db'))
  const ingest = createIngest(store, { radios: [] })
  const began = Date.UTC(2026, 0, 15, 12)
  const broker = { kind: 'mqtt', name: 'broker' } as const
  const sources = [
    broker,
    { kind: 'mqtt', name: 'other' } as const,
    ...Array.from({ length: 8 }, (_, index) => ({ kind: 'ingest', name: `collector ${index}` }) as const),
  ]
  await liveForAWeek(ingest, broker, began)
  const before = readReal(store, began)
  expect(before.nodes).toHaveLength(REAL.length)

  let now = began
  let sent = 0
  let packets = 0
  const batches = createLongest()
  const slices = createLongest()
  const place = position({ latitudeI: 525000000, longitudeI: 134000000 })
  const words = text('made up')
  const log = createLog({ level: 'error', format: 'json', now: () => now, write: (line) => console.log(line) })
  let batch: Heard[] = []
  const flush = async () => {
    const end = batches.begin()
    await ingest.store(batch)
    end()
    packets += batch.length
    batch = []
  }
  const say = async (from: number, data: Parameters<typeof packet>[0], source: Heard['source']) => {
    batch.push(heard(packet(data, { from }), { at: now, source }))
    if (batch.length === BATCH) await flush()
  }
  const upkeep = async () => {
    const { pause: next, share } = createPace(() => true)
    let end = slices.begin()
    const pause = async () => {
      end()
      const goesOn = await next()
      end = slices.begin()
      return goesOn
    }
    await forgetSurplusNodes(store, pause, { now, share })
    await enforceRowQuotas(store, pause, { now, share, most })
    await keepUp({ store, log, now: () => now }, pause, share)
  }
  for (let hour = 0; hour < HOURS; hour++) {
    now = began + hour * HOUR
    for (const until = Math.round((INVENTED * (hour + 1)) / HOURS); sent < until; sent++) {
      const from = FIRST_INVENTED + sent
      const source = sources[sent % sources.length] ?? broker
      await say(from, user({ id: 'x', longName: `Made up ${sent}`, shortName: 'MU' }), source)
      if (sent % 8 === 0) await say(from, place, source)
      if (sent % 8 === 1) await say(from, words, source)
      if (sent % 10 === 0) await say(LOUD, text(`again ${sent}`), broker)
    }
    await upkeep()
  }
  const after = readReal(store, began)
  figure('invented senders in a day, and packets in all', `${sent}, ${packets}`)
  figure('real nodes, heard for a week, that survived', `${after.nodes.length} of ${before.nodes.length}`)
  for (const [what, { waited, computed }] of [
    ['batch stored', batches.longest()],
    ['slice of upkeep', slices.longest()],
  ] as const)
    figure(
      `longest ${what}, and the longest computing time of one`,
      `${waited.toFixed(0)} ms, ${computed.toFixed(0)} ms`,
    )
  figure('nodes and messages in the end', `${countOf(store, 'nodes')}, ${countOf(store, 'messages')}`)
  expect(after).toStrictEqual(before)
  expect(countOf(store, 'nodes')).toBeLessThanOrEqual(MAX_NODES)
  for (const [table, rows] of Object.entries(most))
    expect([table, countOf(store, table) <= rows]).toStrictEqual([table, true])
  store.close()
})

test('nodes that a radio heard survive made-up nodes repeated at a broker for ten days', async () => {
  const DAYS = 10
  const most = { messages: 20_000, positions: 20_000, telemetry: 20_000, receptions: 20_000 }
  const store = openDatabase(join(dir, 'mesh.db'))
  const ingest = createIngest(store, { radios: [] })
  const broker = { kind: 'mqtt', name: 'broker' } as const
  const other = { kind: 'mqtt', name: 'other' } as const
  const began = Date.UTC(2026, 0, 15, 12)
  const byRadio = { kind: 'tcp', name: 'radio' } as const
  const reported = REAL.map((nodeNum) => nodeNum + 1000)
  const sayAll = async (nodes: readonly number[], source: Heard['source'], at: number) => {
    const said = nodes.flatMap((from) => [
      heard(packet(user({ id: 'x', longName: `Node ${from}`, shortName: 'N' }), { from }), { at, source }),
      heard(packet(text(`day ${at}`), { from }), { at, source }),
    ])
    for (let first = 0; first < said.length; first += BATCH) await ingest.store(said.slice(first, first + BATCH))
  }
  const patient = Array.from({ length: 5000 }, (_, index) => FIRST_INVENTED + index)
  // Half a day before the strangers begin, a radio hears each of its nodes, once.
  await sayAll(REAL, byRadio, began - DAY / 2)
  const before = readReal(store, began)
  for (let day = 0; day < DAYS; day++) {
    const now = began + day * DAY
    await sayAll(patient, broker, now)
    await sayAll(reported, other, now + HOUR)
    await forgetSurplusNodes(store, async () => true, { now: now + HOUR, most: 2000 })
    await enforceRowQuotas(store, async () => true, { now: now + HOUR, most })
  }
  await sayAll([LOUD], broker, began + DAYS * DAY)
  await forgetSurplusNodes(store, async () => true, { now: began + DAYS * DAY, most: 2000 })
  const after = readReal(store, began)
  const left = (range: string) => countOf(store, `nodes where node_num ${range}`)
  figure('nodes a radio heard once that survived patient strangers', `${after.nodes.length} of ${REAL.length}`)
  expect(after).toStrictEqual(before)
  expect(left(`between ${reported[0]} and ${reported.at(-1)}`)).toBe(reported.length)
  expect(left(`= ${LOUD}`)).toBe(1)
  expect(countOf(store, 'nodes')).toBe(2000)
  store.close()
})

type Sent = { readonly invented: number; readonly loud: number; readonly real: number }

/** A process with a broker and its flooding publishers. */
async function startFlooder(): Promise<{
  url: string
  flood(what: z.infer<typeof floodSchema>): Promise<Sent>
  stop(): void
}> {
  const child = fork(fileURLToPath(new URL('flooder.ts', import.meta.url)), { execArgv: [] })
  const hear = async () => {
    const message: unknown = await new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', (code) => reject(new Error(`the flooder ended with ${code}`)))
    })
    return floodReport.parse(message)
  }
  const { url } = z.object({ url: z.string() }).parse(await hear())
  return {
    url,
    flood: async (what) => {
      child.send(what)
      const sent = await hear()
      if ('url' in sent) throw new Error('the flooder started again')
      return sent
    },
    stop: () => child.disconnect(),
  }
}

/** Requests the health every 50 ms while `work` runs, without waiting for earlier answers. */
async function probe<T>(url: string, work: () => Promise<T>): Promise<{ longest: number; bad: number; result: T }> {
  const answers: Promise<{ ms: number; isBad: boolean }>[] = []
  const ask = async () => {
    const sent = performance.now()
    const answer = await fetch(`${url}/api/health`)
    await answer.text()
    return { ms: performance.now() - sent, isBad: answer.status !== 200 }
  }
  for (let warm = 0; warm < 20; warm++) await ask()
  const timer = setInterval(() => answers.push(ask()), 50)
  const result = await work()
  clearInterval(timer)
  const all = await Promise.all(answers)
  return { longest: Math.max(...all.map(({ ms }) => ms)), bad: all.filter(({ isBad }) => isBad).length, result }
}

const residentMb = (pid: number | undefined) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

test('a service answers and keeps real data while a broker floods it', async () => {
  const flooder = await startFlooder()
  const store = openDatabase(join(dir, 'mesh.db'))
  const began = Date.now()
  const { protocol, host } = new URL(flooder.url)
  await liveForAWeek(createIngest(store, { radios: [] }), { kind: 'mqtt', name: `${protocol}//${host}` }, began)
  // A previous flood has filled the table of nodes.
  store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${MAX_NODES})
    insert into nodes (node_num, first_heard, last_heard, days_heard, last_heard_day, source_id)
    select n, ${began}, ${began}, 1, ${Math.floor(began / DAY)}, 1 from i`)
  const before = readReal(store, began)
  const built = buildService()
  const env = { DATA_DIR: dir, MESHTASTIC_MQTT_URL: flooder.url, ADMIN_PASSWORD: 'a password for the flood' }
  const service = await startService(built, env)
  const idle = await probe(service.url, () => wait(3000))
  const memory = residentMb(service.process.pid)
  const {
    longest,
    bad,
    result: sent,
  } = await probe(service.url, () =>
    flooder.flood({
      // Long enough for the first upkeep, a minute after the start.
      seconds: 75,
      invented: 2000,
      loud: 800,
      real: 5,
      realNodes: REAL,
      firstInvented: FIRST_INVENTED,
      loudNode: LOUD,
    }),
  )
  const grown = residentMb(service.process.pid) - memory
  const stored = () => countOf(store, `messages where ${isReal('from_node_num')} and timestamp >= ${began}`)
  figure('sent in 75 s: invented senders, messages of one publisher', `${sent.invented}, ${sent.loud}`)
  figure('longest wait for the health meanwhile, and before', `${longest.toFixed(0)} ms, ${idle.longest.toFixed(0)} ms`)
  figure('memory that the flood took', `${grown.toFixed(0)} MB`)
  await expect.poll(stored, { timeout: 180_000, interval: 500 }).toBe(sent.real)
  figure('messages of real nodes sent amid the flood, and stored', `${sent.real}, ${stored()}`)
  await service.stop('SIGTERM')
  const after = readReal(store, began)
  figure('real nodes that survived, nodes in the end', `${after.nodes.length}, ${countOf(store, 'nodes')}`)
  store.close()
  flooder.stop()
  expect(after).toStrictEqual(before)
  expect(bad).toBe(0)
  expect(longest).toBeLessThan(idle.longest + LIMIT_MS)
  expect(grown).toBeLessThan(500)
})
