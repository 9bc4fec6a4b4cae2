// Lists that build no cached body: against the same select and JSON.stringify.
import { DAY_MS } from '../../src/shared/time.ts'
import { NODES, PACKETS, TRACEROUTES } from '../seed.ts'
import { PASSWORD, signInPeople, startLimits, startService } from '../servers/processes.ts'
import { compare, cost, PEOPLE, type Side } from './compare.ts'

/** The n-th of so many cursors, none of them near an end. */
const at = (rows: number) => (n: number) => rows - ((n * 97) % Math.floor(rows / 2))
const rowOf = (n: number) => 1 + (n % NODES)
const nodeOf = (row: number) => 2_000_000_000 + row * 7919

export async function measureLists(dataDir: string): Promise<void> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookies = await signInPeople(dataDir, service.port, PEOPLE)
  const limit = await startLimits(dataDir, [])
  const own = (path: Side['path']): Side => ({ server: service, path, cookies })
  const beside = async (
    work: string,
    name: string,
    asked: (n: number) => number,
    path: (asked: number) => string,
  ): Promise<void> =>
    compare(
      work,
      null,
      { server: limit, path: (n) => `/select/${name}?at=${asked(n)}`, cookies },
      own((n) => path(asked(n))),
      0.4,
    )
  try {
    await beside('GET /api/packets?before=', 'packets', at(PACKETS), (id) => `/api/packets?before=${id}`)
    await beside(
      'GET /api/traceroutes?before=',
      'traceroutes',
      at(TRACEROUTES),
      (id) => `/api/traceroutes?before=${id}`,
    )
    const month = `metric=deviceMetrics.batteryLevel&from=${Date.now() - 30 * DAY_MS}&to=${Date.now()}`
    await beside(
      'GET /api/telemetry, a month of a node',
      'telemetry',
      rowOf,
      (row) => `/api/telemetry?${month}&nodeId=${nodeOf(row)}`,
    )
    await beside('GET /api/audit, a page', 'audit', at(1000), (id) => `/api/audit?cursor=${id}`)
    await cost('GET /api/dashboard', 0.25, own('/api/dashboard'))
    await cost(
      'GET /api/nodes/:id',
      0.25,
      own((n) => `/api/nodes/${nodeOf(rowOf(n))}`),
    )
    await cost(
      'GET /api/telemetry, a day of a node',
      null,
      own((n) => `/api/telemetry?metric=deviceMetrics.batteryLevel&nodeId=${nodeOf(rowOf(n))}`),
    )
  } finally {
    await Promise.all([service.stop(), limit.stop()])
  }
}
