// Lists that build no cached body: against `node:http` alone with the same select and JSON.stringify.
import { DAY_MS } from '../../src/shared/time.ts'
import { NODES, PACKETS, TRACEROUTES } from '../seed.ts'
import { PASSWORD, signInPeople, startBare, startService } from '../servers/processes.ts'
import { compare, cost, nodeNumOf, PEOPLE } from './requests.ts'

/** The n-th of so many cursors, none of them near an end. */
const at = (rows: number) => (n: number) => rows - ((n * 97) % Math.floor(rows / 2))

export async function measureLists(dataDir: string): Promise<void> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  const cookies = await signInPeople(dataDir, service.port, PEOPLE)
  const bare = await startBare(dataDir)
  type Asked = [at: (n: number) => number, path: (at: number) => string]
  const beside = async (work: string, target: number, name: string, [asked, path]: Asked) =>
    compare(
      `${work}, against node:http alone`,
      target,
      { server: bare, path: (n) => `/${name}?at=${asked(n)}` },
      { server: service, path: (n) => path(asked(n)), cookies },
    )
  const rowOf = (n: number) => 1 + (n % NODES)
  try {
    await beside('GET /api/packets?before=', 0.4, 'packets', [at(PACKETS), (id) => `/api/packets?before=${id}`])
    await beside('GET /api/traceroutes?before=', 0.4, 'traceroutes', [
      at(TRACEROUTES),
      (id) => `/api/traceroutes?before=${id}`,
    ])
    const month = `from=${Date.now() - 30 * DAY_MS}&to=${Date.now()}`
    await beside('GET /api/telemetry, a month of a node', 0.4, 'telemetry', [
      rowOf,
      (row) => `/api/telemetry?metric=deviceMetrics.batteryLevel&${month}&nodeId=${nodeNumOf(row)}`,
    ])
    await beside('GET /api/audit?cursor=', 0.4, 'audit', [at(1000), (id) => `/api/audit?cursor=${id}`])
    await cost('GET /api/dashboard', 0.25, { server: service, path: '/api/dashboard', cookies })
    await cost('GET /api/nodes/:id', 0.25, {
      server: service,
      path: (n) => `/api/nodes/${nodeNumOf(rowOf(n))}`,
      cookies,
    })
    await cost('GET /api/telemetry, a day of a node', null, {
      server: service,
      path: (n) => `/api/telemetry?metric=deviceMetrics.batteryLevel&nodeId=${nodeNumOf(rowOf(n))}`,
      cookies,
    })
  } finally {
    await Promise.all([service.stop(), bare.stop()])
  }
}
