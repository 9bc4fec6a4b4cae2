// How long others wait while each route, export, backup and search of a large database is called once, and while its
// background work runs to its end; and how long searches take.
import { createReadStream } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { Waits } from '../load/prober.ts'
import { get, type Reader, routesOf } from '../load/routes.ts'
import { FREQUENT_PHRASE, NODE, RARE_WORD } from '../seed.ts'
import {
  ask,
  longestHold,
  PASSWORD,
  readCpu,
  type Running,
  signIn,
  signInPeople,
  startHelper,
  startService,
  stop,
} from '../servers/processes.ts'
import { median, report } from '../table.ts'
import { watch as watchOwn } from '../watch.ts'
import { buildTextIndexes } from '../../src/app/search/build.ts'
import { deleteExpired } from '../../src/app/upkeep/retention.ts'
import { openDatabase } from '../../src/node/database.ts'
import { createPace } from '../../src/node/upkeep/pace.ts'
import { DAY_MS } from '../../src/shared/time.ts'

const HOLD_MS = 25
const SEEN_MS = 60
/** The prober continues this long after a call: three of its requests. */
const AFTERWARDS_MS = 150
/** Background work begins a minute after the start. */
const FIRST_SWEEP_MS = 60_000
/** It has ended when the service computed less than this share of each second for so many seconds. */
const QUIET = { share: 0.05, seconds: 10, mostSeconds: 3600 }

type Wait = { readonly work: string; readonly hold: number; readonly seen: number; readonly ms: number }
type Large = {
  readonly service: Running
  readonly cookie: string
  /** Of another person. */
  readonly other: string
  watch(work: string, call: () => Promise<unknown>): Promise<Wait>
}

/** Reads the whole answer; returns its status. */
async function request(reader: Reader, path: string, method?: string): Promise<number> {
  const answer = await get(reader, path, method)
  if (answer.body !== null) for await (const _ of answer.body) continue
  return answer.status
}

async function call(reader: Reader, path: string, method?: string): Promise<void> {
  const status = await request(reader, path, method)
  if (status >= 400) throw new Error(`${method ?? 'GET'} ${path}: ${status}`)
}

/** Additional requests, beside each route without parameters. */
function filtered(now: number): readonly (readonly [work: string, path: string])[] {
  return [
    ['messages, second page', '/api/messages?before=5000'],
    ['messages of a channel', '/api/messages?channel=1'],
    ['messages, 1000 of them', '/api/messages?limit=1000'],
    ['messages, signed', '/api/messages?signed=true'],
    ['messages, a word that does not occur', '/api/messages?q=Nowhereatall'],
    ['messages, two letters', '/api/messages?q=zq'],
    ['nodes, a word', '/api/nodes?q=number%2012'],
    ['recently heard nodes', '/api/nodes?activeWithin=3600'],
    ['audit log, a word that does not occur', '/api/audit?q=Nowhereatall'],
    ['audit log, refused logins', '/api/audit?action=login_failed'],
    ['audit log, a day', `/api/audit?resource=users&from=${now - 30 * DAY_MS}&to=${now - 29 * DAY_MS}`],
    ['audit log, verified', '/api/audit/verify'],
    ['users, a word', '/api/users?q=person'],
    ['packets of a node', `/api/packets?from=${NODE}`],
  ]
}

const EXPORTS = [
  ['export of the audit log, CSV', '/api/audit/export?format=csv'],
  ['export of the audit log, NDJSON', '/api/audit/export?format=ndjson'],
  ['export of the audit log, a word', `/api/audit/export?format=csv&q=${RARE_WORD}`],
] as const

/** Parameters of GET /api/messages, and how many milliseconds a page of it may take, computed and seen. */
const searches = (now: number) =>
  [
    ['search of a rare word in messages', `q=${RARE_WORD}`, 20],
    ['search of a frequent word', 'q=the', 150],
    [`search of *${FREQUENT_PHRASE}*, which nobody wrote`, `q=${encodeURIComponent(FREQUENT_PHRASE)}`, 150],
    ['search of frequent parts that hardly ever stand together', 'q=hill%20good&also=node%20the&also=good%20of', 150],
    ['search of a frequent word of a sender long ago', `q=hill&from=${NODE}&until=${now - 180 * DAY_MS}`, 150],
    ['search with every operator', `q=the&also=node&without=hill&has=position&from=${NODE}&channel=1`, 150],
    ['search without frequent words', 'q=the&without=to%20&without=a%20&without=and', 150],
    ['search of errors', 'q=good&has=error', 150],
    ['search of signed messages', 'q=the%20good&signed=true', 150],
    ['direct conversation', `with=${NODE}`, 20],
    ['messages of the last hour', `since=${now - 3_600_000}`, 20],
    ['messages of the last year', `since=${now - 360 * DAY_MS}`, 20],
  ] as const

async function openLarge(dataDir: string): Promise<Large & { readonly begunAt: number; close(): Promise<void> }> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const begunAt = performance.now()
  const prober = startHelper(new URL('../load/prober.ts', import.meta.url), [String(service.port)])
  const [cookie = '', other = ''] = await signInPeople(dataDir, service.port, 2)
  return {
    service,
    cookie,
    other,
    begunAt,
    async watch(work, call) {
      await ask(prober, 'begin')
      let ms = Number.NaN
      const hold = await longestHold(service, async () => {
        const begun = performance.now()
        await call()
        ms = performance.now() - begun
        await wait(AFTERWARDS_MS)
      })
      const { longest: seen } = await ask<Waits>(prober, 'end')
      console.error(`       ${work}: ${textOf({ work, hold, seen, ms })}`)
      return { work, hold, seen, ms }
    },
    async close() {
      await stop(prober)
      await service.stop()
    },
  }
}

function textOf({ hold, seen, ms }: Wait): string {
  const took = ms < 1000 ? '' : `, took ${(ms / 1000).toFixed(1)} s`
  return `${hold.toFixed(0)} ms held, ${seen.toFixed(0)} ms seen${took}`
}

/** One line for all, and one for each that misses. */
function reportWaits(waits: readonly Wait[]): void {
  const isMet = ({ hold, seen }: Wait) => hold <= HOLD_MS && seen <= SEEN_MS
  const missed = waits.filter((each) => !isMet(each))
  const [held] = waits.toSorted((a, b) => b.hold - a.hold)
  const [seen] = waits.toSorted((a, b) => b.seen - a.seen)
  report(
    `longest wait for others, in ${waits.length} kinds of work`,
    `${held?.hold.toFixed(0)} ms held (${held?.work}), ${seen?.seen.toFixed(0)} ms seen (${seen?.work}); ${missed.length} miss`,
    `≤ ${HOLD_MS}, ≤ ${SEEN_MS} ms`,
    missed.length === 0,
  )
  for (const each of missed) {
    report(`longest wait: ${each.work}`, textOf(each), `≤ ${HOLD_MS}, ≤ ${SEEN_MS} ms`, false)
  }
}

/** After the start the log is sealed, and text indexes are built, in slices. */
async function whenSettled(dataDir: string): Promise<void> {
  const sqlite = new Database(`${dataDir}/mesh.db`, { readonly: true })
  const sealed = sqlite.prepare('select coalesce((select sealed_id from audit_chain), 0)').pluck()
  const last = sqlite.prepare('select coalesce(max(id), 0) from audit_log').pluck()
  while (Number(sealed.get()) < Number(last.get()) - 100) await wait(200)
  sqlite.close()
}

async function measureSearch(large: Large, [work, asked, most]: ReturnType<typeof searches>[number]): Promise<Wait> {
  const times: { cpu: number; seen: number }[] = []
  const waited = await large.watch(work, async () => {
    for (let n = 0; n < 7; n++) {
      const before = await readCpu(large.service)
      const begun = performance.now()
      await call(large, `/api/messages?${asked}&limit=${100 - n}`)
      times.push({ seen: performance.now() - begun, cpu: ((await readCpu(large.service)) - before) / 1000 })
    }
  })
  const [cpu, seen] = [median(times.map((each) => each.cpu)), median(times.map((each) => each.seen))]
  const isMet = cpu <= most && seen <= most
  report(work, `${cpu.toFixed(1)} ms, ${seen.toFixed(1)} ms seen a page`, `≤ ${most} ms`, isMet)
  return waited
}

/** Reads the file into memory, where a running service has it; the measurement of the start dropped it from there. */
async function readThrough(file: string): Promise<void> {
  for await (const _ of createReadStream(file, { highWaterMark: 2 ** 20 })) continue
}

/** Changes the database: of a copy. */
export async function measurePauses(dataDir: string): Promise<void> {
  await readThrough(`${dataDir}/mesh.db`)
  const large = await openLarge(dataDir)
  const waits: Wait[] = []
  const watch = async (...given: Parameters<Large['watch']>) => void waits.push(await large.watch(...given))
  try {
    await watch('after the start, while the audit log is sealed', () => whenSettled(dataDir))
    await watch('without load, for a second', () => wait(1000))
    await watch('background work, to its end', () => untilQuiet(large))
    checkSwept(dataDir)
    for (const each of searches(Date.now())) waits.push(await measureSearch(large, each))
    for (const path of await routesOf(large)) {
      await watch(`GET ${path}`, async () => {
        const status = await request(large, path)
        if (status >= 500) throw new Error(`GET ${path}: ${status}`)
      })
    }
    for (const [work, path] of [...filtered(Date.now()), ...EXPORTS]) await watch(work, () => call(large, path))
    await watch('two exports of the audit log at once', () =>
      Promise.all([call(large, EXPORTS[0][1]), call({ ...large, cookie: large.other }, EXPORTS[1][1])]),
    )
    await watch('alert previews of two people at once, all nodes', () =>
      Promise.all([large.cookie, large.other].map((cookie) => preview({ ...large, cookie }))),
    )
    await watch('a backup', () => call(large, '/api/system/backup', 'POST'))
    await watchBackups(large, watch)
    await watch('four people sign in', () => Promise.all(Array.from({ length: 4 }, () => signIn(large.service.port))))
  } finally {
    await large.close()
    reportWaits(waits)
  }
  await measureRetention(dataDir)
}

/** Of a rule about the battery of all nodes. */
async function preview({ service, cookie }: Reader): Promise<void> {
  const rule = { name: 'Low', kind: 'metric', nodes: { kind: 'all' }, metric: 'deviceMetrics.batteryLevel' }
  const answer = await fetch(`http://127.0.0.1:${service.port}/api/alerts/rules/preview`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ ...rule, is: 'below', limit: 20 }),
  })
  if (!answer.ok) throw new Error(`preview: ${answer.status} ${await answer.text()}`)
  await answer.arrayBuffer()
}

async function watchBackups(large: Large, watch: (...given: Parameters<Large['watch']>) => Promise<void>) {
  const { backups } = Object(await (await get(large, '/api/system/backup')).json())
  const name = String(backups[0]?.name)
  const path = `/api/system/backup/${name}`
  await watch('a backup verified', () => call(large, `${path}/verify`, 'POST'))
  await watch('a backup downloaded', () => call(large, `/api/system/backup/download/${name}`))
  await watch('a restore previewed', () => call(large, `${path}/restore`))
  // For what needs a fresh proof.
  const again = { ...large, cookie: await signIn(large.service.port) }
  await watch('a restore staged', () => call(again, `${path}/restore`, 'POST'))
  await watch('a restore given up', () => call(again, '/api/system/restore', 'DELETE'))
  await watch('a backup deleted', () => call(again, path, 'DELETE'))
}

async function untilQuiet({ service, begunAt }: Large & { readonly begunAt: number }): Promise<void> {
  await wait(Math.max(0, begunAt + FIRST_SWEEP_MS - performance.now()))
  let last = await readCpu(service)
  for (let [quiet, second] = [0, 0]; quiet < QUIET.seconds; second++) {
    if (second === QUIET.mostSeconds) throw new Error('background work did not end')
    await wait(1000)
    const now = await readCpu(service)
    quiet = now - last < QUIET.share * 1e6 ? quiet + 1 : 0
    last = now
  }
}

/** Sweeps that did nothing would hold nobody. */
function checkSwept(dataDir: string): void {
  const sqlite = new Database(`${dataDir}/mesh.db`, { readonly: true })
  const old = (table: string, time: string, days: number) =>
    sqlite
      .prepare(`select exists (select 1 from ${table} where ${time} < ?)`)
      .pluck()
      .get(Date.now() - days * DAY_MS)
  const left = old('messages', 'timestamp', 366) === 1 || old('sessions', 'expires_at', 1) === 1
  const due = sqlite.prepare('select count(*) from telemetry_dirty').pluck().get()
  sqlite.close()
  if (left || Number(due) > 1000) throw new Error('background work did not come to its end')
}

/** Of the oldest fiftieth of the messages, alone and in this process. */
async function measureRetention(dataDir: string): Promise<void> {
  const store = openDatabase(`${dataDir}/mesh.db`)
  try {
    const all = Number(store.sqlite.prepare('select count(*) from messages').pluck().get())
    const n = Math.round(all / 50)
    const cutoff = Number(
      store.sqlite.prepare('select timestamp from messages order by timestamp limit 1 offset ?').pluck().get(n),
    )
    const { pause, share } = createPace(() => true)
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    let deleted = 0
    const { hold, cpu } = await watchOwn(async () => {
      const kept = { telemetry: 0, positions: 0, messages: cutoff }
      deleted = (await deleteExpired(store, kept, pause, share)).messages
      await buildTextIndexes({ store, log, now: Date.now }, pause, share)
    })
    report(
      `retention of ${deleted.toLocaleString('en')} of ${all.toLocaleString('en')} messages`,
      `${(cpu / 1000).toFixed(1)} s of CPU, ${hold.toFixed(0)} ms held`,
      `≤ 2 s, ≤ ${HOLD_MS} ms`,
      deleted >= n && cpu <= 2000 && hold <= HOLD_MS,
    )
  } finally {
    store.close()
  }
}
