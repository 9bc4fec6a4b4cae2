// The cost of answers in processor time of the server, against the same work in its fastest known form in the same run.
import { request } from 'node:http'
import type { Asking } from '../load/requests.ts'
import { DAY_MS } from '../../src/shared/time.ts'
import { CHARTED, MESSAGES, NODES } from '../seed.ts'
import { signInPeople, startLimits, startService, PASSWORD } from '../servers/processes.ts'
import { report } from '../table.ts'
import { compare, cost, PEOPLE, type Side, WARM, warmUp } from './compare.ts'

/** Of the node with this row in the seed. */
const nodeNumOf = (row: number) => 2_000_000_000 + row * 7919
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
  const limit = await startLimits(dataDir, [
    { name: 'health', url: url('/api/health'), headers: {} },
    { name: 'nodes', url: url('/api/nodes'), headers: { cookie } },
    { name: 'nodes-gzip', url: url('/api/nodes'), headers: { cookie, ...gzip } },
    { name: 'messages', url: url('/api/messages?limit=100'), headers: { cookie } },
  ])
  const own = (path: Asking['path'], more: Partial<Asking> = {}): Side => ({ server: service, path, cookies, ...more })
  const best = (path: Asking['path'], more: Partial<Asking> = {}): Side<typeof limit> => ({
    server: limit,
    path,
    cookies,
    ...more,
  })
  try {
    // What all answers of a server have in common; the first comparison leaves that of the limit out.
    const plain = await head(url('/api/nodes'), { cookie })
    const unchanged = { headers: { 'if-none-match': plain.etag }, status: 304 }
    await warmUp(best('/unchanged', { status: 304 }), 4 * WARM)
    await warmUp(own('/api/nodes', unchanged), 4 * WARM)
    await compare(
      'GET /api/health, against node:http alone',
      0.25,
      { server: limit.bare, path: '/bytes/health' },
      own('/api/health'),
    )
    await cost('GET /api/auth/status with a session', null, own('/api/auth/status'))
    await compare(
      `GET /api/nodes, ${NODES} nodes, unchanged, against bytes`,
      0.7,
      best('/bytes/nodes'),
      own('/api/nodes'),
      0.5,
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
      'GET /api/nodes, 304, against a 304',
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
      0.3,
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
      0.5,
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
      own((n) => `/api/messages?q=the&before=${at(n)}`),
    )
    await compare(
      'GET /api/audit?cursor=',
      0.6,
      best((n) => `/select/audit?at=${1000 - (n % 500)}`),
      own((n) => `/api/audit?cursor=${1000 - (n % 500)}`),
    )
    await compare('GET /api/users', 0.6, best('/select/users?at=100'), own('/api/users'))
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
