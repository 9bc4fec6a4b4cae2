import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog, type Log } from '../../../src/app/base/log.ts'
import { type BackupOptions, openBackups } from '../../../src/node/backup/backups.ts'
import { diskFiles } from '../../../src/node/backup/folder/files.ts'
import { readManifest } from '../../../src/node/backup/folder/read-manifest.ts'
import type { Stage } from '../../../src/node/backup/restore/stage.ts'
import { latestTag } from '../../../src/node/migrations.ts'
import { restoreBackup, type RestoreOptions } from '../../../src/node/backup/restore/restore.ts'
import { writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { MIGRATIONS_DIR, openDatabase, type SqliteStore } from '../../../src/node/database.ts'

export const MADE_AT = Date.UTC(2026, 0, 15, 12)
export const MADE_NAME = '2026-01-15_120000'
export const SECRET = 'a secret that both sides of a test know'

/** A separate data directory, removed afterwards. */
export function makeDataDir(): { dataDir: string; database: string; backups: string; remove(): void } {
  const dataDir = mkdtempSync(join(tmpdir(), 'mesh-backup-'))
  return {
    dataDir,
    database: join(dataDir, 'mesh.db'),
    backups: join(dataDir, 'system-backups'),
    remove: () => rmSync(dataDir, { recursive: true, force: true }),
  }
}

/** A log that is kept: level and message of each entry. */
export function keptLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const write = (line: string) => {
    const { level, message } = Object(JSON.parse(line))
    lines.push(`${level} ${message}`)
  }
  return { log: createLog({ level: 'debug', format: 'json', now: () => MADE_AT, write }), lines }
}

export function backupOptions(dataDir: string, more: Partial<BackupOptions> = {}): BackupOptions {
  return {
    dataDir,
    database: join(dataDir, 'mesh.db'),
    schema: latestTag(MIGRATIONS_DIR),
    migrations: MIGRATIONS_DIR,
    appVersion: '0.1.0',
    timeZone: 'UTC',
    secrets: [SECRET],
    log: keptLog().log,
    now: () => MADE_AT,
    ...more,
  }
}

export function restoreOptions(dataDir: string, more: Partial<RestoreOptions> = {}): RestoreOptions {
  return {
    dataDir,
    database: join(dataDir, 'mesh.db'),
    migrations: MIGRATIONS_DIR,
    secrets: [SECRET],
    requireSignature: false,
    allowUnsigned: false,
    reapply: null,
    log: keptLog().log,
    now: () => MADE_AT + 60_000,
    ...more,
  }
}

/**
 * Creates a backup of the data directory's database, without the thread of the service: one from source takes ten times
 * as long to start as the backup itself.
 */
export async function makeBackup(dataDir: string, more: Partial<BackupOptions> = {}): Promise<string> {
  const snapshot: BackupOptions['snapshot'] = async (job) => writeSnapshot(job, diskFiles, () => {})
  const backups = openBackups(backupOptions(dataDir, { snapshot, ...more }))
  return (await backups.create('manual', async () => {})).name
}

/** Restores and returns the log; a refusal is its last line, prefixed by `refused`. */
export async function tryRestore(dataDir: string, name: string, more: Partial<RestoreOptions> = {}): Promise<string[]> {
  const { log, lines } = keptLog()
  try {
    await restoreBackup(restoreOptions(dataDir, { log, ...more }), name)
  } catch (error) {
    lines.push(`refused ${error instanceof Error ? error.message : String(error)}`)
  }
  return lines
}

/** What is staged to restore a backup of the data directory. */
export function stageOf(dataDir: string, name = MADE_NAME): Omit<Stage, 'id'> {
  const { sha256 } = readManifest(join(dataDir, 'system-backups', name))
  return { name, manifest: sha256, stagedAt: MADE_AT + 30_000, by: 'root' }
}

/** A database with some rows in every table, plus `extra` telemetry rows. */
export function seedDatabase(file: string, extra = 0): void {
  const store = openDatabase(file)
  const { sqlite } = store
  sqlite.exec(`
    insert into sources (id, kind, name, local_node_num, created_at) values (1, 'tcp', 'radio.local', 4294967295, 1);
    insert into nodes (id, node_num, long_name, short_name, latitude, battery_level, first_heard, notes)
      values (1, 4294967295, 'Hill 😀', 'H', 52.516274600000003, 101, 1, 'one' || char(10) || 'two' || char(0) || 'nul'),
        (2, 2, null, null, null, 9e999, 1, '');
    delete from nodes where id = 2;
    insert into positions (node_id, t, latitude, longitude) values (1, 1, -0.1, 13);
    insert into metrics (id, name) values (1, 'deviceMetrics.batteryLevel');
    insert into telemetry (node_id, metric, t, v) values (1, 1, 1, 5), (1, 1, 2, 3.2999999523162842);
    insert into messages (id, source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
      values (1, 1, 1, 4294967295, 2, 0, '"quoted" \\ ünï', 1, 'in');
    insert into channels (source_id, channel_index, name, role) values (1, 0, '', 'PRIMARY');
    insert into settings (key, value, updated_at) values ('telemetryRetentionDays', '30', 1);
    insert into users (id, username, auth_provider, password_hash, is_admin, session_epoch, created_at)
      values (1, 'root', 'local', '$2b$12$' || hex(zeroblob(20)), 1, 4, 1);
    insert into user_permissions (user_id, resource, can_read, can_write, granted_at, granted_by) values (1, 'nodes', 1, 0, 1, 1);
    insert into api_tokens (user_id, name, prefix, token_hash, scopes, created_at) values (1, 't', 'mm_', 'h', '[]', 1);
    insert into sessions (id, token_hash, user_id, epoch, created_at, last_seen_at, expires_at)
      values (1, 's', 1, 4, 1, 1, 9e15);
    insert into audit_log (timestamp, username, action, resource, details)
      values (${MADE_AT - 10}, 'system', 'admin_bootstrapped', 'users', '{}'),
        (${MADE_AT - 5}, 'root', 'login_success', 'auth', '{}');`)
  if (extra > 0) seedTelemetry(store, extra)
  store.close()
}

export function seedTelemetry({ sqlite }: SqliteStore, rows: number): void {
  sqlite
    .prepare(
      `with recursive i(n) as (select 0 union all select n + 1 from i where n < ? - 1)
        insert into telemetry (node_id, metric, t, v) select n / 2000 + 10, n / 400 % 5 + 1, n % 400, (n * 37 % 1000) / 9.0 from i`,
    )
    .run(rows)
}

/** The contents of a database file by table, without what a restore changes on purpose. */
export function contentOf(file: string): Record<string, unknown[]> {
  const store = openDatabase(file)
  try {
    const tables = store.sqlite
      .prepare(
        "select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite%'",
      )
      .pluck()
      .all()
      .map(String)
      .filter(
        (name) =>
          !['sessions', 'rate_limits', 'revisions', 'text_indexes', 'text_parts', 'audit_log', 'audit_chain'].includes(
            name,
          ),
      )
    return Object.fromEntries(
      tables.map((name) => {
        const rows = store.sqlite.prepare(`select * from "${name}"`).raw().safeIntegers().all()
        return [name, name === 'users' ? rows.map((row) => Object(row).toSpliced(10, 1)) : rows]
      }),
    )
  } finally {
    store.close()
  }
}

/** Every file under a directory with its SHA-256, so that any change shows. */
export function fingerprint(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).toSorted()
  return Object.fromEntries(
    names
      // Locks are empty files that come and go.
      .filter((name) => !/-lock(-journal)?$/.test(name) && statSync(join(directory, name)).isFile())
      .map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(join(directory, name)))
          .digest('hex'),
      ]),
  )
}

/** Rewrites a file of a backup and makes all hashes match again, as somebody with the documentation could. */
export function forge(
  backup: string,
  change: (manifest: Record<string, unknown>) => void,
  keepSignature = false,
): void {
  const file = join(backup, 'manifest.json')
  const manifest: Record<string, unknown> = Object(JSON.parse(readFileSync(file, 'utf8')))
  change(manifest)
  for (const table of Object(manifest['tables'])) {
    const path = join(backup, String(table.file))
    try {
      const bytes = readFileSync(path)
      table.bytes = bytes.length
      table.sha256 = createHash('sha256').update(bytes).digest('hex')
    } catch {
      // A forged name need not lead to a file.
    }
  }
  if (!keepSignature) manifest['signature'] = null
  delete manifest['sha256']
  manifest['sha256'] = createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}
