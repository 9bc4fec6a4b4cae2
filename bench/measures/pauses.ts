// How long others wait while each route, export, backup, sweep and search of a large database is called once, and how
// long searches take.
import { createReadStream } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { RARE_WORD } from '../seed.ts'
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
import { DAY_MS } from '../../src/shared/time.ts'

const LOOP_MS = 25
const SEEN_MS = 60
/** The prober continues this long after a call: three of its requests. */
const AFTERWARDS_MS = 150
/** Background work begins a minute after the start. */
const FIRST_SWEEP_MS = 60_000
const SWEEPS_MS = 25_000
const NODE = 2_000_000_000 + 100 * 7919

type Wait = { readonly work: string; readonly loop: number; readonly seen: number; readonly ms: number }
type Large = {
  readonly service: Running
  readonly cookie: string
  watch(work: string, call: () => Promise<void>): Promise<Wait>
}

/** Reads the whole answer; returns its status. */
async function request({ service, cookie }: Large, path: string, method = 'GET'): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, { method, headers: { cookie } })
  if (answer.body !== null) for await (const _ of answer.body) continue
  return answer.status
}

async function call(large: Large, path: string, method = 'GET'): Promise<void> {
  const status = await request(large, path, method)
  if (status >= 400) throw new Error(`${method} ${path}: ${status}`)
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

/** Searches have their own targets: microseconds of the service, and the time for the user. */
const searches = (now: number) =>
  [
    ['search of a rare word in messages', `/api/messages?q=${RARE_WORD}`],
    // Every text has all of its runs of three letters, and none has it.
    ['search of frequent parts that no message has', `/api/messages?q=${encodeURIComponent('hills Message number')}`],
    [
      'search of a frequent word of a sender long ago',
      `/api/messages?q=hills&from=${NODE}&until=${now - 180 * DAY_MS}`,
    ],
    ['search of messages with a position', '/api/messages?q=hills&has=position&without=Kestrel'],
    ['direct conversation', `/api/messages?with=${NODE}`],
    ['messages of the last hour', `/api/messages?since=${now - 3_600_000}`],
    ['messages of the last year', `/api/messages?since=${now - 360 * DAY_MS}`],
    ['search of a rare word in the audit log', `/api/audit?q=${RARE_WORD}`],
  ] as const

/** Every documented GET route that needs no other parameter than these. */
async function routesOf(large: Large): Promise<string[]> {
  const answer = await fetch(`http://127.0.0.1:${large.service.port}/api/openapi.json`)
  const { paths } = Object(await answer.json())
  const values: readonly (readonly [RegExp, string])[] = [
    [/^\/api\/nodes\/\{id\}/, String(NODE)],
    [/^\/api\/messages\/\{id\}/, '1000'],
    [/^\/api\/users\/\{id\}/, '1'],
    [/^\/api\/telemetry\/\{\w+\}/, String(NODE)],
  ]
  return Object.entries<object>(paths)
    .filter(([, methods]) => 'get' in methods)
    .flatMap(([path]) => {
      const value = values.find(([pattern]) => pattern.test(path))?.[1]
      const filled = value === undefined ? path : path.replace(/\{\w+\}/, value)
      return /\{|\/events$|\/oidc\/|\/export$/.test(filled) ? [] : [filled]
    })
}

async function openLarge(dataDir: string): Promise<Large & { readonly begunAt: number; close(): Promise<void> }> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const begunAt = performance.now()
  const prober = startHelper(new URL('../load/prober.ts', import.meta.url), [String(service.port)])
  const [cookie = ''] = await signInPeople(dataDir, service.port, 1)
  return {
    service,
    cookie,
    begunAt,
    async watch(work, call) {
      await ask(prober, 'begin')
      let ms = Number.NaN
      const loop = await longestHold(service, async () => {
        const begun = performance.now()
        await call()
        ms = performance.now() - begun
        await wait(AFTERWARDS_MS)
      })
      const { longest: seen } = await ask<{ longest: number }>(prober, 'end')
      return { work, loop, seen, ms }
    },
    async close() {
      await stop(prober)
      await service.stop()
    },
  }
}

function reportWait({ work, loop, seen, ms }: Wait): void {
  const took = ms < 1000 ? '' : `, took ${(ms / 1000).toFixed(1)} s`
  const isOk = loop <= LOOP_MS && seen <= SEEN_MS
  report(
    `longest wait: ${work}`,
    `${loop.toFixed(0)} ms of loop, ${seen.toFixed(0)} ms seen${took}`,
    '≤ 25, ≤ 60 ms',
    isOk,
  )
}

/** After the start the log is sealed, and text indexes are built, in slices. */
async function whenSettled(dataDir: string): Promise<void> {
  const sqlite = new Database(`${dataDir}/mesh.db`, { readonly: true })
  const sealed = sqlite.prepare('select coalesce((select sealed_id from audit_chain), 0)').pluck()
  const last = sqlite.prepare('select coalesce(max(id), 0) from audit_log').pluck()
  while (Number(sealed.get()) < Number(last.get()) - 100) await wait(200)
  sqlite.close()
}

async function measureSearch(large: Large, work: string, path: string): Promise<void> {
  const times: { cpu: number; seen: number }[] = []
  for (let n = 0; n < 7; n++) {
    const before = await readCpu(large.service)
    const begun = performance.now()
    await call(large, `${path}&limit=${100 - n}`)
    times.push({ seen: performance.now() - begun, cpu: ((await readCpu(large.service)) - before) / 1000 })
  }
  const [cpu, seen] = [median(times.map((each) => each.cpu)), median(times.map((each) => each.seen))]
  // A page of a search ends after a bounded amount of work.
  const [mostCpu, mostSeen] = /frequent|position/.test(work) ? [150, 150] : [20, 50]
  const isMet = cpu <= mostCpu && seen <= mostSeen
  report(work, `${cpu.toFixed(1)} ms, ${seen.toFixed(1)} ms seen`, `≤ ${mostCpu}, ≤ ${mostSeen} ms`, isMet)
}

/** Reads the file into memory, where a running service has it; the measurement of the start dropped it from there. */
async function readThrough(file: string): Promise<void> {
  for await (const _ of createReadStream(file, { highWaterMark: 2 ** 20 })) continue
}

export async function measurePauses(dataDir: string): Promise<void> {
  await readThrough(`${dataDir}/mesh.db`)
  const large = await openLarge(dataDir)
  const { service, watch } = large
  try {
    const start = await watch('after the start, while the audit log is sealed', () => whenSettled(dataDir))
    reportWait(start)
    const quiet = await watch('without load, for a second', () => wait(1000))
    reportWait(quiet)
    for (const [work, path] of searches(Date.now())) await measureSearch(large, work, path)
    for (const path of await routesOf(large)) {
      let status = 0
      const found = await watch(`GET ${path}`, async () => {
        status = await request(large, path)
      })
      if (status >= 500) throw new Error(`GET ${path}: ${status}`)
      reportWait(status < 400 ? found : { ...found, work: `${found.work} (${status})` })
    }
    for (const [work, path] of [...filtered(Date.now()), ...EXPORTS]) {
      reportWait(await watch(work, () => call(large, path)))
    }
    reportWait(await watch('a backup', () => call(large, '/api/system/backup', 'POST')))
    await watchBackups(large)
    reportWait(
      await watch('four people sign in', async () => {
        await Promise.all(Array.from({ length: 4 }, () => signIn(service.port)))
      }),
    )
    await wait(Math.max(0, large.begunAt + FIRST_SWEEP_MS - 2000 - performance.now()))
    reportWait(await watch('sweeps and other background work', () => wait(SWEEPS_MS)))
  } finally {
    await large.close()
  }
}

async function watchBackups(large: Large): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${large.service.port}/api/system/backup`, {
    headers: { cookie: large.cookie },
  })
  const { backups } = Object(await answer.json())
  const name = String(backups[0]?.name)
  const path = `/api/system/backup/${name}`
  reportWait(await large.watch('a backup verified', () => call(large, `${path}/verify`, 'POST')))
  reportWait(await large.watch('a backup downloaded', () => call(large, `/api/system/backup/download/${name}`)))
  reportWait(await large.watch('a backup deleted', () => call(large, path, 'DELETE')))
}
