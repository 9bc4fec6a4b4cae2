import { existsSync } from 'node:fs'
import { openDatabase } from '../src/node/database.ts'

export const NODES = 500
export const MESSAGES = 20_000
export const METRIC_ROWS = 1_000_000

/** A mesh of 500 nodes with 20,000 messages and 1,000,000 metric rows; kept when it is already there. */
export function seed(file: string): void {
  const isSeeded = existsSync(file)
  const store = openDatabase(file)
  if (!isSeeded) {
    const { sqlite } = store
    const now = Date.now()
    sqlite.exec('begin')
    sqlite
      .prepare(
        `with recursive i(n) as (select 1 union all select n + 1 from i where n < ?)
        insert into nodes (node_num, long_name, short_name, hw_model, role, latitude, longitude, altitude, position_time,
          battery_level, voltage, channel_utilization, air_util_tx, uptime_seconds, device_metrics_time, snr, rssi,
          hops_away, last_heard, first_heard, public_key)
        select 2000000000 + n * 7919, 'Node number ' || n, 'N' || n, 43, 0, 52 + n / 1000.0, 13 + n / 700.0, 30 + n % 90,
          ? - n * 1000, n % 102, 3.3 + (n % 90) / 100.0, (n % 40) / 1.7, (n % 9) / 1.3, n * 977, ? - n * 1000, n % 12 - 4.25,
          -60 - n % 60, n % 5, ? - n * 1000, ? - n * 100000, 'T/C5k4GiofgaDu9rK2qudCWkABMxWQ8NsIDg4cJ0VAg=' from i`,
      )
      .run(NODES, now, now, now, now)
    sqlite
      .prepare(
        `with recursive i(n) as (select 1 union all select n + 1 from i where n < ?)
        insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, rx_snr, rx_rssi, hops_away,
          direction)
        select n, 2000000000 + (n % 500 + 1) * 7919, 4294967295, n % 3, 'Message number ' || n || ' over the hills', ? + n * 1000,
          6.25, -84, n % 4, 'in' from i`,
      )
      .run(MESSAGES, now - MESSAGES * 1000)
    const names = ['batteryLevel', 'voltage', 'channelUtilization', 'airUtilTx', 'uptimeSeconds']
    const insertMetric = sqlite.prepare('insert or ignore into metrics (name) values (?)')
    for (const name of names) insertMetric.run(`deviceMetrics.${name}`)
    sqlite
      .prepare(
        `with recursive i(n) as (select 0 union all select n + 1 from i where n < ? - 1)
        insert into telemetry (node_id, metric, t, v)
        select n / 2000 + 1, n / 400 % 5 + 1, ? - (400 - n % 400) * 1800000, (n * 37 % 1000) / 9.0 from i`,
      )
      .run(METRIC_ROWS, now)
    sqlite.exec('insert into telemetry_dirty select distinct node_id, metric, t - t % 3600000 from telemetry')
    sqlite.exec('commit')
    sqlite.pragma('wal_checkpoint(TRUNCATE)')
  }
  store.close()
}
