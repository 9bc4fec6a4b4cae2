// The cost of answers in processor time of the server, against the same work in its fastest known form in the same run.
import { request } from 'node:http'
import { type Asking, load } from '../load/requests.ts'
import { DAY_MS } from '../../src/shared/time.ts'
import { CHARTED, MESSAGES, NODES } from '../seed.ts'
import { type Running, readCpu, signInPeople, startLimits, startService, PASSWORD } from '../servers/processes.ts'
import { median, report } from '../table.ts'

/** Rounds of one comparison: at least, and at most if their ratios differ. */
const ROUNDS = 5
const MAX_ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 30)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 0.5)
/** The standard error of a ratio that is exact enough. */
const EXACT = 0.02
export const PEOPLE = 8
/** Of the node with this row in the seed. */
export const nodeNumOf = (row: number) => 2_000_000_000 + row * 7919
/** Requests after which the code of a route no longer becomes faster. */
const WARM = 5000
const MAX_WARM_ROUNDS = 10
/** The service does the work of the limit and more: if it is surely faster, the limit is not a limit. */
const HONEST = 1.05

type Measured = { readonly answers: number; readonly cpuUs: number; readonly rate: number }

async function measure(server: Running, asking: Asking): Promise<Measured> {
  const before = await readCpu(server)
  const { answers, rate } = await load(server.port, asking, { connections: 2 * PEOPLE, seconds: SECONDS })
  return { answers, cpuUs: ((await readCpu(server)) - before) / answers, rate }
}

/** The standard error of a median, from the median deviation: a few disturbed rounds hardly change it. */
function errorOf(values: readonly number[]): number {
  const middle = median(values)
  const deviation = 1.4826 * median(values.map((value) => Math.abs(value - middle)))
  return (1.2533 * deviation) / Math.sqrt(values.length)
}

type Side = { readonly server: Running } & Asking

/** By requests, not by time: a limit that has answered few yet runs slower code than a service that has answered many. */
async function warmUp({ server, ...asking }: Side, requests = WARM): Promise<void> {
  let answered = 0
  for (let round = 0; round < MAX_WARM_ROUNDS && answered < requests; round++) {
    answered += (await measure(server, asking)).answers
  }
}

type Round = { readonly limit: Measured; readonly own: Measured }

/** Limit and service in turn, each first in every second round, so that both see the same machine. */
export async function compare(work: string, target: number | null, limit: Side, own: Side): Promise<void> {
  await warmUp(limit)
  await warmUp(own)
  const rounds: Round[] = []
  const ratios = () => rounds.map((round) => round.limit.cpuUs / round.own.cpuUs)
  while (rounds.length < ROUNDS || (rounds.length < MAX_ROUNDS && errorOf(ratios()) > EXACT)) {
    const first = rounds.length % 2 === 0 ? await measure(limit.server, limit) : null
    const measured = await measure(own.server, own)
    rounds.push({ limit: first ?? (await measure(limit.server, limit)), own: measured })
  }
  const of = (read: (round: Round) => number) => median(rounds.map(read))
  const ratio = median(ratios())
  const error = errorOf(ratios())
  const cost = `${of((round) => round.own.cpuUs).toFixed(0)} of ${of((round) => round.limit.cpuUs).toFixed(0)} µs`
  const rate = `${of((round) => round.own.rate).toFixed(0)} of ${of((round) => round.limit.rate).toFixed(0)}/s`
  const isWrong = ratio - 2 * error > HONEST
  const measured = `${ratio.toFixed(2)} ± ${error.toFixed(2)} (${cost}, ${rate})${isWrong ? ': the limit is wrong' : ''}`
  report(
    work,
    measured,
    target === null ? '' : `≥ ${target}`,
    isWrong ? false : target === null ? null : ratio >= target,
  )
}

function head(url: string, headers: Record<string, string>): Promise<{ etag: string; bytes: number }> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (answer) => {
      let bytes = 0
      answer.on('data', (chunk) => (bytes += chunk.length))
      answer.on('end', () => resolve({ etag: answer.headers.etag ?? '', bytes }))
    })
      .on('error', reject)
      .end()
  })
}

export async function measureRequests(dataDir: string): Promise<void> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookies = await signInPeople(dataDir, service.port, PEOPLE)
  const [cookie = ''] = cookies
  const url = (path: string) => `http://127.0.0.1:${service.port}${path}`
  const gzip = { 'accept-encoding': 'gzip' }
  const { limit, hello } = await startLimits(dataDir, [
    { name: 'nodes', url: url('/api/nodes'), headers: { cookie } },
    { name: 'nodes-gzip', url: url('/api/nodes'), headers: { cookie, ...gzip } },
    { name: 'messages', url: url('/api/messages?limit=100'), headers: { cookie } },
  ])
  const own = (path: Asking['path'], more: Partial<Asking> = {}): Side => ({ server: service, path, cookies, ...more })
  const best = (path: Asking['path'], more: Partial<Asking> = {}): Side => ({ server: limit, path, cookies, ...more })
  try {
    // What all answers of a server have in common; the first comparison leaves that of the limit out.
    const plain = await head(url('/api/nodes'), { cookie })
    const unchanged = { headers: { 'if-none-match': plain.etag }, status: 304 }
    await warmUp(best('/unchanged', { status: 304 }), 4 * WARM)
    await warmUp(own('/api/nodes', unchanged), 4 * WARM)
    await compare(
      'GET /api/auth/status with a session, against Hono hello',
      0.35,
      { server: hello, path: '/hello' },
      own('/api/auth/status'),
    )
    await compare(
      `GET /api/nodes, ${NODES} nodes, unchanged, against bytes`,
      0.7,
      best('/bytes/nodes'),
      own('/api/nodes'),
    )
    await compare(
      'the same as a browser asks for it, compressed',
      0.7,
      best('/bytes/nodes-gzip', { headers: gzip }),
      own('/api/nodes', { headers: gzip }),
    )
    const compressed = await head(url('/api/nodes'), { cookie, ...gzip })
    const share = compressed.bytes / plain.bytes
    report(
      'bytes of it on the wire',
      `${(share * 100).toFixed(0)} % (${(compressed.bytes / 1024).toFixed(0)} of ${(plain.bytes / 1024).toFixed(0)} KB)`,
      '≤ 10 %',
      share <= 0.1,
    )
    await compare(
      'GET /api/nodes, 304, against a bare 304',
      0.7,
      best('/unchanged', { status: 304 }),
      own('/api/nodes', unchanged),
    )
    // So many different pages that hardly any of them is cached.
    const limits = (n: number) => 51 + (n % 100)
    await cost(
      'GET /api/nodes at first miss',
      null,
      own((n) => `/api/nodes?limit=${limits(n) + 300}`),
    )
    await compare(
      'GET /api/messages, first page, unchanged, against bytes',
      0.7,
      best('/bytes/messages'),
      own('/api/messages?limit=100'),
    )
    await compare(
      'the same at first miss, against select and stringify',
      0.7,
      best((n) => `/select/newest?at=${limits(n) + 1}`),
      own((n) => `/api/messages?limit=${limits(n)}`),
    )
    const at = (n: number) => MESSAGES - 1 - ((n * 97) % (MESSAGES / 2))
    await compare(
      'GET /api/messages?before=',
      0.6,
      best((n) => `/select/before?at=${at(n)}`),
      own((n) => `/api/messages?before=${at(n)}`),
    )
    await compare(
      'GET /api/messages?channel=',
      0.6,
      best((n) => `/select/channel?at=${at(n)}`),
      own((n) => `/api/messages?channel=1&before=${at(n)}`),
    )
    await compare(
      'GET /api/messages?q=, many found',
      0.6,
      best((n) => `/select/found?at=${at(n)}`),
      own((n) => `/api/messages?q=over%20the%20hills&before=${at(n)}`),
    )
    await compare(
      'GET /api/audit?cursor=',
      0.6,
      best((n) => `/select/audit?at=${1000 - (n % 500)}`),
      own((n) => `/api/audit?cursor=${1000 - (n % 500)}`),
    )
    await compare('GET /api/users', 0.6, best('/select/users?at=100'), own('/api/users'))
    await cost('GET /api/dashboard', 1, own('/api/dashboard'))
    const to = Date.now()
    await cost(
      `GET /api/telemetry, a year of one of the ${CHARTED} nodes of a chart`,
      10,
      own(
        (n) =>
          `/api/telemetry?nodeId=${nodeNumOf(1 + (n % CHARTED))}&metric=deviceMetrics.voltage&from=${to - 365 * DAY_MS}&to=${to}`,
      ),
    )
  } finally {
    await Promise.all([service.stop(), limit.stop()])
  }
}

/** Work without a limit to compare with, except its time. */
export async function cost(work: string, targetMs: number | null, own: Side): Promise<void> {
  await warmUp(own)
  const rounds: Measured[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(own.server, own))
  const ms = median(rounds.map(({ cpuUs }) => cpuUs)) / 1000
  const target = targetMs === null ? '' : `≤ ${targetMs} ms`
  report(work, `${ms.toFixed(2)} ms`, target, targetMs === null ? null : ms <= targetMs)
}
