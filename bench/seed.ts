import { existsSync, renameSync, rmSync } from 'node:fs'
import { hashSync } from '@node-rs/bcrypt'
import type Database from 'better-sqlite3'
import { diskFiles } from '../src/node/backup/folder/files.ts'
import { openDatabase } from '../src/node/database.ts'
import { buildTextIndexes } from '../src/app/search/build.ts'
import { DAY_MS, HOUR_MS } from '../src/shared/time.ts'
import { PASSWORD } from './servers/processes.ts'
import { textOf } from './texts.ts'

/** Nodes with a year of measurements, as many as fit in one chart. */
export const CHARTED = 10
const YEAR_DAYS = 365

/** A node with all kinds of history. */
export const NODE = 2_000_000_000 + 100 * 7919

/** The mesh of a club. */
export const NODES = 500
export const MESSAGES = 20_000
/** The packet log of a day, and the traceroutes of some weeks. */
export const PACKETS = 20_000
export const TRACEROUTES = 5000
const SMALL = {
  nodes: NODES,
  messages: MESSAGES,
  measurements: 1_000_000,
  auditEntries: 1000,
  packets: PACKETS,
  traceroutes: TRACEROUTES,
  owners: 0,
  stale: 0,
}

/** The data of several years, multiplied by a scale. */
export const largeSizes = (scale: number) => ({
  nodes: Math.round(20_000 * scale),
  messages: Math.round(10_000_000 * scale),
  measurements: Math.round(15_000_000 * scale),
  auditEntries: Math.round(1_000_000 * scale),
  /** People, each with as many open alerts as they may have. */
  owners: Math.ceil(20 * scale),
  packets: Math.round(1_000_000 * scale),
  traceroutes: Math.round(100_000 * scale),
  /** What the next sweep deletes: of each 1000 messages and measurements, and of sessions in total. */
  stale: 20,
})

type Sizes = ReturnType<typeof largeSizes>

/** Frequent parts that never stand together. */
export const FREQUENT_PHRASE = 'the hill the node the good'
/** Occurs in one of 100,000 messages, and in one of 10,000 entries of the audit log. */
export const RARE_WORD = 'Kestrel'

/** A mesh of 500 nodes with 20,000 messages and 1,000,000 measurements; kept if it already exists. */
export function seedSmall(file: string): Promise<void> {
  return seed(file, SMALL)
}

/** The large database; kept if it already exists. */
export function seedLarge(file: string, scale: number): Promise<void> {
  return seed(file, largeSizes(scale))
}

async function seed(file: string, sizes: Sizes): Promise<void> {
  if (existsSync(file)) return
  const unfinished = `${file}.unfinished`
  rmSync(unfinished, { force: true })
  const store = openDatabase(unfinished)
  const { sqlite, close } = store
  sqlite.function('text_of', { deterministic: true }, (n) => textOf(Number(n)))
  const now = Date.now()
  sqlite.pragma('synchronous = OFF')
  // Each page is written once, in its place.
  sqlite.pragma('journal_mode = OFF')
  sqlite.pragma('cache_size = -200000')
  sqlite.exec('begin')
  const restore = setAside(sqlite)
  insertNodes(sqlite, sizes, now)
  insertMessages(sqlite, sizes, now)
  insertMeasurements(sqlite, sizes, now)
  insertAudit(sqlite, sizes, now)
  insertAlerts(sqlite, sizes, now)
  insertPackets(sqlite, sizes, now)
  insertTraceroutes(sqlite, sizes, now)
  insertSessions(sqlite, sizes, now)
  restore()
  sqlite.exec('commit')
  // As after an upgrade: one part of the index for each month.
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  await buildTextIndexes({ store, log, now: () => now }, async () => true)
  sqlite.pragma('journal_mode = WAL')
  close()
  // Otherwise the service's first checkpoint would wait until all of it is on the disk.
  diskFiles.sync(unfinished)
  renameSync(unfinished, file)
}

/** Secondary indexes after the rows, and the work of triggers once rather than for each row: hours become minutes. */
function setAside(sqlite: Database.Database): () => void {
  const kept = sqlite
    .prepare<[], { type: string; name: string; sql: string }>(
      `select type, name, sql from sqlite_master where sql is not null and (
        type = 'index' and tbl_name in ('messages', 'audit_log', 'sessions') or
        type = 'trigger' and tbl_name in ('messages', 'audit_log', 'telemetry', 'telemetry_hourly') and
          (name like '%_counted' or name like '%_inserted'))`,
    )
    .all()
  for (const { type, name } of kept) sqlite.exec(`drop ${type} "${name}"`)
  return () => {
    for (const { sql } of kept) sqlite.exec(sql)
    // The service merges parts while it builds an index; here FTS5 does, as soon as there are sixteen of a size.
    const mergeAt = (parts: number) =>
      sqlite.exec(`insert into audit_log_text (audit_log_text, rank) values ('crisismerge', ${parts})`)
    mergeAt(16)
    sqlite.exec(`update text_indexes set indexed_from = (select coalesce(max(id), 0) + 1 from messages)
      where table_name = 'messages'`)
    sqlite.exec(`insert into audit_log_text (rowid, text)
      select id, coalesce(username, '') || char(10) || action || char(10) || details || char(10) || coalesce(ip, '')
      from audit_log`)
    mergeAt(64)
    sqlite.exec(`insert into row_counts (table_name, owner, n)
      select 'messages', from_node_num, count(*) from messages where true group by 2
      on conflict do update set n = excluded.n`)
    sqlite.exec(`insert into message_hours select t, json_group_object(place, n) from (
      select timestamp - timestamp % 3600000 as t, iif(to_node_num = 4294967295, channel || '', 'direct') as place,
        count(*) as n from messages group by 1, 2) group by t`)
    for (const table of ['telemetry', 'telemetry_hourly']) {
      sqlite.exec(`insert into row_counts (table_name, owner, n)
        select '${table}', node_id, count(*) from ${table} where true group by 2
        on conflict do update set n = excluded.n`)
    }
  }
}

const COUNT = 'with recursive i(n) as (select 1 union all select n + 1 from i where n < ?)'

/** Heard for 400 days, as long as anything of them is kept. */
function insertNodes(sqlite: Database.Database, { nodes }: Sizes, now: number): void {
  sqlite
    .prepare(
      `${COUNT} insert into nodes (node_num, long_name, short_name, hw_model, role, latitude, longitude, altitude,
        position_time, battery_level, voltage, channel_utilization, air_util_tx, uptime_seconds, device_metrics_time, snr,
        rssi, hops_away, last_heard, first_heard, public_key)
      select 2000000000 + n * 7919, 'Node number ' || n, 'N' || n, 43, 0, 52 + n / 1000.0, 13 + n / 700.0, 30 + n % 90,
        ? - n * 1000, n % 102, 3.3 + (n % 90) / 100.0, (n % 40) / 1.7, (n % 9) / 1.3, n * 977, ? - n * 1000, n % 12 - 4.25,
        -60 - n % 60, n % 5, ? - n * 1000, ? - 34560000000 - n * 100000, 'T/C5k4GiofgaDu9rK2qudCWkABMxWQ8NsIDg4cJ0VAg=' from i`,
    )
    .run(nodes, now, now, now, now)
}

/** The messages of a year; `stale` of each thousand are older, and every tenth is a direct message. */
function insertMessages(sqlite: Database.Database, { messages, nodes, stale }: Sizes, now: number): void {
  const span = stale === 0 ? messages * 1000 : (365 * DAY_MS * 1000) / (1000 - stale)
  const step = Math.floor(span / messages)
  sqlite
    .prepare(
      `${COUNT} insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, rx_snr, rx_rssi,
        hops_away, direction)
      select n, 2000000000 + (n * 31 % ${nodes} + 1) * 7919,
        iif(n % 10, 4294967295, 2000000000 + (n * 17 % ${nodes} + 1) * 7919), n % 3,
        text_of(n) || iif(n % 100000 = 77, ' ${RARE_WORD}', ''),
        ${now} - (${messages} - n) * ${step}, 6.25, -84, n % 4, 'in' from i`,
    )
    .run(messages)
}

/** The measurements of thirty days; `stale` of each thousand are older. The last twelve hours are due for a roll-up. */
function insertMeasurements(sqlite: Database.Database, { measurements, nodes, stale }: Sizes, now: number): void {
  const names = ['batteryLevel', 'voltage', 'channelUtilization', 'airUtilTx', 'uptimeSeconds']
  const addMetric = sqlite.prepare('insert or ignore into metrics (name) values (?)')
  for (const name of names) addMetric.run(`deviceMetrics.${name}`)
  const each = Math.floor(measurements / nodes / names.length)
  const step = Math.floor((30 * DAY_MS * 1000) / (1000 - stale) / each)
  const insert = sqlite.prepare(
    `with recursive i(n) as (select 0 union all select n + 1 from i where n < ${each} - 1)
    insert into telemetry (node_id, metric, t, v)
    select ?, m.id, ${now} - (${each} - n) * ${step}, (n * 37 % 1000) / 9.0 from metrics m, i`,
  )
  for (let node = 1; node <= nodes; node++) insert.run(node)
  sqlite.exec(`insert into telemetry_hourly (node_id, metric, t, n, min, max, sum, last)
    select node_id, metric, t - t % ${HOUR_MS}, count(*), min(v), max(v), sum(v), max(v) from telemetry group by 1, 2, 3`)
  // A year of a few nodes.
  sqlite.exec(`with recursive d(n) as (select 0 union all select n + 1 from d where n < ${YEAR_DAYS - 1})
    insert or ignore into telemetry_daily (node_id, metric, t, n, min, max, sum, last)
    select x.id, m.id, ${now - (now % DAY_MS)} - d.n * ${DAY_MS}, 48, 3, 4, 168, 3.5
    from nodes x, metrics m, d where x.id <= ${CHARTED}`)
  sqlite.exec(`insert into telemetry_dirty (node_id, metric, t)
    select node_id, metric, t from telemetry_hourly where t > ${now - 12 * HOUR_MS}`)
}

function insertAudit(sqlite: Database.Database, { auditEntries }: Sizes, now: number): void {
  sqlite
    .prepare(
      `${COUNT} insert into audit_log (timestamp, user_id, username, action, resource, details, ip, request_id)
      select ${now} - (${auditEntries} - n) * 30000, 1 + n % 7, 'person' || n % 7,
        iif(n % 3, 'login_success', 'node_updated'), iif(n % 3, 'auth', 'nodes'),
        '{"nodeNum":' || (2000000000 + n % 500) || iif(n % 10000 = 77, ',"notes":"${RARE_WORD}"', '') || '}',
        '192.168.1.' || n % 250, printf('req-%08d', n) from i`,
    )
    .run(auditEntries)
}

/** Of each owner 50 rules about 100 silent nodes. A service that finds people makes no administrator. */
function insertAlerts(sqlite: Database.Database, { owners, nodes }: Sizes, now: number): void {
  if (owners === 0) return
  sqlite
    .prepare(`insert into users (username, auth_provider, password_hash, is_admin, created_at)
      values ('admin', 'local', ?, 1, 1)`)
    .run(hashSync(PASSWORD, 12))
  const user = sqlite.prepare(
    "insert into users (username, auth_provider, is_admin, created_at) values (?, 'local', 1, 1)",
  )
  const rule = sqlite.prepare(`insert into alert_rules
    (uid, owner_id, name, kind, enabled, rule, revision, anchor_at, created_at, updated_at)
    values (?, ?, 'Silent', 'node_silent', 1, ?, 1, 1, 1, 1)`)
  const alert = sqlite.prepare(`insert into alerts
    (rule_id, owner_id, rule_name, kind, state, subject, key, node_num, what, started_at, fired_at, step)
    select ?, ?, 'Silent', 'node_silent', 'firing', 'node:' || value, value, value, 'silent', ${now - DAY_MS},
      ${now - DAY_MS}, 'bench' from json_each(?)`)
  for (let owner = 0; owner < owners; owner++) {
    const ownerId = user.run(`owner${owner}`).lastInsertRowid
    for (let n = 0; n < 50; n++) {
      // The others were heard within the last hour.
      const first = nodes > 4000 ? 3600 : 0
      const at = (index: number) =>
        first + 1 + (((((owner * 50 + n) * 100) % (nodes - first)) + index) % (nodes - first))
      const watched = Array.from({ length: Math.min(100, nodes) }, (_, index) => 2_000_000_000 + at(index) * 7919)
      const list = { kind: 'list', nodes: watched }
      const text = JSON.stringify({ name: 'Silent', kind: 'node_silent', nodes: list, afterMinutes: 15 })
      const ruleId = rule.run(`${owner} ${n}`, ownerId, text).lastInsertRowid
      alert.run(ruleId, ownerId, JSON.stringify(watched))
    }
  }
}

/** Eight in ten are telemetry, the others texts. */
function insertPackets(sqlite: Database.Database, { packets, nodes }: Sizes, now: number): void {
  sqlite.prepare("insert into sources (kind, name, created_at) values ('tcp', 'bench', ?)").run(now)
  sqlite
    .prepare(
      `${COUNT} insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, port, rx_snr, rx_rssi,
        hops_away, hop_limit, via_mqtt, pki_encrypted, replayed, payload)
      select (select max(id) from sources), ${now} - (${packets} - n) * 4000, n, 2000000000 + (n * 31 % ${nodes} + 1) * 7919,
        4294967295, 0, iif(n % 5, 67, 1), 6.25, -84, n % 4, 3, 0, 0, 0, iif(n % 5,
          json_object('kind', 'telemetry', 'variant', 'deviceMetrics', 'time', ${now} - n * 4000, 'metrics', json_array(
            json_array('deviceMetrics.batteryLevel', n % 100), json_array('deviceMetrics.voltage', 3.3 + n % 9 / 10.0),
            json_array('deviceMetrics.channelUtilization', n % 40 / 1.7), json_array('deviceMetrics.airUtilTx', n % 9 / 1.3),
            json_array('deviceMetrics.uptimeSeconds', n * 977))),
          json_object('kind', 'text', 'text', text_of(n), 'origin', 'message'))
      from i`,
    )
    .run(packets)
}

/** Half of them are answered. */
function insertTraceroutes(sqlite: Database.Database, { traceroutes, nodes }: Sizes, now: number): void {
  const hop = (by: number) => `2000000000 + (n * ${by} % ${nodes} + 1) * 7919`
  sqlite
    .prepare(
      `${COUNT} insert into traceroutes (source_id, request_id, from_node_num, to_node_num, timestamp, answered_at, state,
        route, channel)
      select (select max(id) from sources), n, ${hop(31)}, ${hop(17)}, ${now} - (${traceroutes} - n) * 60000,
        iif(n % 2, ${now} - (${traceroutes} - n) * 60000 + 9000, null), iif(n % 2, 'delivered', 'sent'), iif(n % 2,
          json_object('route', json_array(${hop(3)}, ${hop(7)}), 'snrTowards', json_array(6.25, -3.5, 1.75),
            'routeBack', json_array(${hop(7)}), 'snrBack', json_array(2.5, -8.25)), null), 0 from i`,
    )
    .run(traceroutes)
}

/** Expired ones. */
function insertSessions(sqlite: Database.Database, { messages, stale }: Sizes, now: number): void {
  if (stale === 0) return
  sqlite
    .prepare(
      `${COUNT} insert into sessions (id, token_hash, user_id, epoch, created_at, last_seen_at, expires_at)
      select n, printf('%064x', n), 999, 0, ${now} - 9000000000 - n, ${now} - 9000000000, ${now} - 1000 from i`,
    )
    .run(Math.round(messages / 100))
}
