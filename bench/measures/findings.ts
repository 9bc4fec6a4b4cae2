// How long the loop is held at once while the mesh is looked through for findings, now and 30 days back, and by reading
// as many findings as there can be. By processor time of the thread, as others use the machine too.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { WHOLE_VIEW } from '../../src/app/accounts/access/visible.ts'
import { readMeshFindings } from '../../src/app/alerts/world/mesh-findings.ts'
import { listFindings } from '../../src/app/mesh/findings/findings.ts'
import { lookForFindings } from '../../src/app/mesh/findings/look.ts'
import { lookBack } from '../../src/app/mesh/findings/past.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { ALL_PERMISSIONS } from '../../src/shared/access/resources.ts'
import { FINDING_RULES } from '../../src/shared/mesh/finding-rules.ts'
import { DAY_MS, HOUR_MS } from '../../src/shared/time.ts'
import { median, report } from '../table.ts'

const NODES = 2000
const DAYS = 30
const ROUNDS = 5
const LOOP_MS = 25
const FIRST = 2_000_000_000

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** A mesh whose every table is as full as it may become. */
function seed({ sqlite }: SqliteStore, packets: number, now: number): void {
  const count = (most: number) =>
    `with recursive x(i) as (select 0 union all select i + 1 from x where i < ${most - 1})`
  const num = `${FIRST} + i % ${NODES}`
  const today = Math.floor(now / DAY_MS)
  const indexes = sqlite
    .prepare<[], { name: string; sql: string }>(
      "select name, sql from sqlite_master where type = 'index' and tbl_name = 'packets' and sql is not null",
    )
    .all()
  const triggers = sqlite
    .prepare<[], { name: string }>("select name from sqlite_master where type = 'trigger' and tbl_name = 'packets'")
    .all()
  sqlite.exec(`begin;
    insert into sources (id, kind, name, local_node_num, created_at) values (1, 'tcp', 'bench', ${FIRST}, 0);
    insert into channels (source_id, channel_index, name, role, identity) values (1, 0, 'LongFast', 'PRIMARY', '8:LongFast');
    insert or ignore into metrics (name) values ('deviceMetrics.batteryLevel'), ('deviceMetrics.channelUtilization');
    ${count(NODES)} insert into nodes (node_num, long_name, first_heard, last_heard, role, is_local, firmware_version,
        latitude, longitude, position_channel, public_key)
      select ${num}, 'Node ' || i, 0, ${now} - i * 20000, iif(i % 20 = 0, 2, 0), i = 0, iif(i % 10 = 0, '2.5.1', '2.7.9'),
        47 + i % 50 * 0.01, 8 + i / 50 * 0.01, 0, printf('%043d=', i / 2) from x;
    ${count(NODES * 8)} insert into neighbors (node_num, neighbor_num, snr, t, channel)
      select ${num}, ${FIRST} + (i + 1 + i / ${NODES} * 37) % ${NODES}, i % 20 - 8, ${now} - i * 10, 0 from x;
    ${count(NODES * 16)} insert into node_receivers (node_num, source_id, gateway, first_at, last_at, packets, direct, snr, via_mqtt)
      select ${num}, 1, iif(i < ${NODES}, 0, ${FIRST} + i / ${NODES}), 0, ${now} - i, 9, i % 2, 3, 0 from x;
    ${count(NODES * 90)} insert into node_days (node_num, day, hours, packets, direct)
      select ${num}, ${today} - i / ${NODES}, '9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9', 216, 9 from x;
    ${count(NODES * 100)} insert into node_changes (node_num, t, field, before, after, channel)
      select ${num}, ${now} - i / ${NODES} * 7200000, iif(i % 3 = 0, 'restarted', 'firmwareVersion'), '600', '5', 0 from x;
    ${count(NODES * DAYS * 24)} insert into positions (node_id, t, latitude, longitude, precision_bits, channel)
      select 1 + i % ${NODES}, ${now} - i / ${NODES} * ${HOUR_MS}, 47, 8, 10 + i % 7, 0 from x;
    ${count(NODES * 90)} insert into telemetry_daily (node_id, metric, t, n, min, max, sum, last, channel)
      select 1 + i % ${NODES}, (select id from metrics where name = 'deviceMetrics.batteryLevel'),
        (${today} - i / ${NODES}) * ${DAY_MS}, 1, 90 - i % 50, 95, 90, 90, 0 from x;
    ${count(NODES * DAYS * 24)} insert into telemetry_hourly (node_id, metric, t, n, min, max, sum, last, channel)
      select 1 + i % ${NODES}, (select id from metrics where name = 'deviceMetrics.channelUtilization'),
        ${now} - i / ${NODES} * ${HOUR_MS}, 1, 10, 30, i % 40, 9, 0 from x;
    ${indexes.map(({ name }) => `drop index "${name}";`).join('')}
    ${triggers.map(({ name }) => `drop trigger "${name}";`).join('')}
    ${count(packets)} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, port, rx_snr,
        hops_away, hop_limit, via_mqtt, pki_encrypted, replayed, payload)
      select 1, ${now} - (${packets} - i) * ${Math.floor((DAYS * DAY_MS) / packets)}, i, ${num}, 4294967295, 0, 1, 3,
        i % 3, 7 - i % 3, 0, 0, 0, '{"kind":"text"}' from x;
    ${indexes.map(({ sql }) => `${sql};`).join('')}
    commit;`)
}

/** The longest slice, the time in total, and the number of slices; a slice ends where others have their turn. */
async function inSlices(work: (pause: () => Promise<boolean>) => Promise<unknown>) {
  const slices: number[] = []
  let begun = cpuMs()
  const end = () => slices.push(cpuMs() - begun)
  const first = begun
  await work(async () => {
    end()
    await setImmediate()
    begun = cpuMs()
    return true
  })
  end()
  return { longest: Math.max(...slices), total: cpuMs() - first }
}

async function measure(work: string, run: (pause: () => Promise<boolean>) => Promise<unknown>): Promise<void> {
  await inSlices(run)
  const found = []
  for (let round = 0; round < ROUNDS; round++) found.push(await inSlices(run))
  const longest = median(found.map((each) => each.longest))
  const total = median(found.map((each) => each.total))
  report(
    work,
    `${longest.toFixed(1)} ms at once, ${(total / 1000).toFixed(1)} s`,
    '≤ 25 ms at once',
    longest <= LOOP_MS,
  )
}

export async function measureFindings(scale: number): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-findings-'))
  const store = openDatabase(join(dir, 'mesh.db'))
  const packets = Math.round(10_000_000 * Math.min(1, scale))
  const now = Date.now()
  try {
    seed(store, packets, now)
    const of = `${NODES} nodes, ${packets / 1_000_000} M packets`
    await measure(`findings: the hourly look, ${of}`, (pause) => lookForFindings(store, now, pause))
    await measure(`findings: a preview of all over 30 days, ${of}`, (pause) =>
      lookBack(store, { names: FINDING_RULES, from: now - DAYS * DAY_MS, to: now }, pause),
    )
    const nums = JSON.stringify(Array.from({ length: 100 }, (_, index) => FIRST + index))
    const rows = JSON.stringify(
      FINDING_RULES.flatMap((rule) => Array.from({ length: 50 }, (_, i) => [rule, FIRST + i])),
    )
    store.sqlite
      .prepare(
        `insert or replace into findings (rule, subject, since, is_likely, nodes, channels, evidence)
          select value ->> 0, value ->> 1, 0, 1, ?, '[0]', '{"lost":9}' from json_each(?)`,
      )
      .run(nums, rows)
    const viewer = { view: WHOLE_VIEW, permissions: ALL_PERMISSIONS }
    await measure('findings: the list, as long as it may become', () => listFindings({ store, viewer }))
    await measure('findings: what alert rules read of them', () => readMeshFindings(store))
  } finally {
    store.close()
    rmSync(dir, { recursive: true })
  }
}
