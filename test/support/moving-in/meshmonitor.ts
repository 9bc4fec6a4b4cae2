import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import type { ImportReport } from '../../../src/app/system/moving-in/report.ts'
import { consoleContext } from '../../../src/node/console-context.ts'
import type { SqliteStore } from '../../../src/node/database.ts'
import { importMeshMonitor, type ImportOptions } from '../../../src/node/moving-in/import.ts'
import { nativePasswordHasher } from '../../../src/node/passwords.ts'

const FIXTURE = join(import.meta.dirname, '../../node/fixtures/meshmonitor/meshmonitor-4.15.1.sqlite.gz')
/** An hour after the last row of the database that MeshMonitor 4.15.1 wrote. */
export const AFTER = 1_795_473_900_000
export const SECRET = 's'.repeat(40)

/** A directory with the database that MeshMonitor wrote. */
export function makeTheirs(): { readonly dir: string; readonly file: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'import-'))
  const file = join(dir, 'meshmonitor.db')
  writeFileSync(file, gunzipSync(readFileSync(FIXTURE)))
  return { dir, file, remove: () => rmSync(dir, { recursive: true, force: true }) }
}

/** Runs SQL on a copy of the database. */
export function change(file: string, sql: string): void {
  const sqlite = new Database(file)
  sqlite.exec(sql)
  sqlite.close()
}

export function runImport(
  store: SqliteStore,
  dataDir: string,
  options: Partial<ImportOptions> & Pick<ImportOptions, 'file'>,
): Promise<ImportReport> {
  const parsed = parseConfig({ SESSION_SECRET: SECRET, DATA_DIR: dataDir })
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  const log = createLog({ level: 'error', format: 'json', now: () => AFTER, write: () => {} })
  const ctx = consoleContext({ config: parsed.config, store, log, passwords: nativePasswordHasher() })
  const given = { isDryRun: false, withKeys: false, oidcIssuer: null, ...options }
  return importMeshMonitor({ ...ctx, store, now: () => AFTER }, given)
}

/** Everything in the tables that an import writes, without ids that only say in which order. */
export function contentsOf(store: SqliteStore): Record<string, unknown[]> {
  const tables: Readonly<Record<string, string>> = {
    users: 'username, password_hash, is_admin, is_active, channels, direct_read, direct_write',
    user_permissions: 'user_id, resource, can_read, can_write',
    sources: 'kind, name',
    channels: 'source_id, channel_index, name, identity',
    nodes: 'node_num, long_name, short_name, last_heard, public_key, latitude, battery_level, is_hidden, notes',
    messages: 'id, from_node_num, packet_id, to_node_num, channel, text, timestamp, direction, delivery_state',
    telemetry:
      '(select node_num from nodes where id = node_id), (select name from metrics where id = metric) , t, v, channel',
    telemetry_daily:
      '(select node_num from nodes where id = node_id), (select name from metrics where id = metric) , t, n, sum',
    positions: '(select node_num from nodes where id = node_id), t, latitude, longitude, altitude, channel',
    traceroutes: 'from_node_num, to_node_num, request_id, route',
    neighbors: 'node_num, neighbor_num, snr, t',
    waypoints: 'id, from_node_num, name, t',
  }
  return Object.fromEntries(
    Object.entries(tables).map(([table, columns]) => [
      table,
      store.sqlite.prepare(`select ${columns} from ${table} order by ${columns}`).raw().all(),
    ]),
  )
}
