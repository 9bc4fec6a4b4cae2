// What the survey of the log costs at 20,000 nodes, and how long it and its readers hold the thread.
import { join } from 'node:path'
import { readCoverage } from '../../src/app/mesh/survey/coverage.ts'
import { readTopology } from '../../src/app/mesh/survey/edges.ts'
import { surveyRoutes } from '../../src/app/mesh/survey/route-links.ts'
import { surveyPackets } from '../../src/app/mesh/survey/survey.ts'
import { WHOLE_SCOPE } from '../../src/shared/access/scope.ts'
import { NO_PERMISSIONS } from '../../src/shared/access/resources.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { createPace } from '../../src/node/upkeep/pace.ts'
import { watch } from '../watch.ts'
import { report } from '../table.ts'

const FULL = { nodes: 20_000, packets: 400_000 }
const HOLD_MS = 25
const GATEWAYS = 40
const COUNT = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < ?)'

/** A position in five packets, two of three heard directly; the neighbours and traceroutes of a large mesh. */
function seed({ sqlite }: SqliteStore, nodes: number, packets: number): void {
  const now = Date.now()
  const run = (query: string, ...values: number[]) => sqlite.prepare(query).run(...values)
  sqlite.exec('begin')
  sqlite.exec(
    "insert into sources (id, kind, name, local_node_num, created_at) values (1, 'tcp', 'radio', 2000000001, 0), (2, 'mqtt', 'broker', null, 0)",
  )
  run(
    `${COUNT} insert into nodes (node_num, long_name, first_heard, last_heard)
      select 2000000000 + n, 'Node ' || n, 1, ? from i`,
    nodes,
    now,
  )
  run(
    `${COUNT} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, gateway, channel, port, rx_snr,
        rx_rssi, hops_away, hop_limit, via_mqtt, pki_encrypted, replayed, trust_level, payload)
      select 1 + (n % 4 > 0), ? - (? - n) * 100, n, 2000000000 + 1 + (n * 7919) % ?, 4294967295,
        iif(n % 4 > 0, 2000000002 + (n * 31) % ${GATEWAYS}, null), n % 3, iif(n % 5 = 0, 3, 67), n % 30 - 18, -40 - n % 90,
        n % 3, 3, 0, 0, 0, null,
        iif(n % 5 = 0, json_object('kind', 'position', 'fix', json_object('latitude', 48 + (n * 7919) % 9973 / 2000.0,
          'longitude', 8 + (n * 104729) % 9967 / 1500.0, 'precisionBits', iif(n % 2, 32, 15))), '{"kind":"telemetry"}')
      from i`,
    packets,
    now,
    packets,
    nodes,
  )
  run(
    `${COUNT} insert or ignore into neighbors (node_num, neighbor_num, snr, t, channel)
      select 2000000001 + (n * 13) % ?, 2000000001 + (n * 17 + n / 7) % ?, n % 30 - 18, ? - n * 1000, 0 from i`,
    20_000,
    nodes,
    nodes,
    now,
  )
  run(
    `${COUNT} insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, answered_at, state, route, channel)
      select n, 2000000001, 2000000001 + (n * 19) % ?, ? - n, ? - n, 'delivered', json_object(
        'route', json_array(2000000001 + n % 50, 2000000001 + n % 300), 'snrTowards', json_array(3, 2, 1),
        'routeBack', json_array(), 'snrBack', json_array()), 0 from i`,
    2000,
    nodes,
    now,
    now,
  )
  sqlite.exec('commit')
}

export async function measureSurvey(dir: string, scale: number): Promise<void> {
  const [nodes, packets] = [Math.round(FULL.nodes * scale), Math.round(FULL.packets * scale)]
  const store = openDatabase(join(dir, 'survey.db'))
  try {
    seed(store, nodes, packets)
    const tell = ({ hold, cpu }: Awaited<ReturnType<typeof watch>>, work: string, more = '') =>
      report(
        work,
        `${hold.toFixed(0)} ms held, ${cpu.toFixed(0)} ms of CPU${more}`,
        `≤ ${HOLD_MS} ms held`,
        hold <= HOLD_MS,
      )
    const { pause, share } = createPace(() => true)
    const surveyed = await watch(() => surveyPackets(store, pause, share))
    tell(
      surveyed,
      `survey of ${packets} packets, ${nodes} nodes`,
      `, ${((surveyed.cpu * 1000) / packets).toFixed(0)} µs a packet`,
    )
    tell(await watch(() => surveyRoutes({ store, now: () => Date.now() }, pause, share)), 'survey of 2000 traceroutes')
    const hidden = new Set(Array.from({ length: 20 }, (_, n) => 2_000_000_100 + n))
    const permissions = { ...NO_PERMISSIONS, nodes: { read: true, write: false } }
    const reader = { store, viewer: { permissions, view: { ...WHOLE_SCOPE, hidden } } }
    const world = { bounds: [-180, -90, 180, 90], bits: 14 } as const
    const near = { bounds: [9, 49, 10, 50], bits: 18 } as const
    tell(await watch(() => readCoverage(reader, world)), 'coverage of everything, at first')
    tell(await watch(() => readCoverage(reader, world)), 'coverage of everything, again')
    tell(await watch(() => readCoverage(reader, near)), 'coverage of a town, at first')
    const asked = { days: 7, now: Date.now() }
    tell(await watch(() => readTopology(reader, asked)), 'topology, at first')
    tell(await watch(() => readTopology(reader, asked)), 'topology, again')
  } finally {
    store.close()
  }
}
