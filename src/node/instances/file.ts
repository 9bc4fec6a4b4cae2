import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'

/**
 * A file in DATA_DIR. It is not part of the database, because a lease is renewed every few seconds and is useless in a
 * backup.
 */
const fileIn = (dataDir: string): string => join(dataDir, 'instances.db')

/** Messages between the instances on one DATA_DIR. */
export type InstancesFile = {
  readonly sqlite: Database.Database
  /** Identifies this instance among all that ever ran. */
  readonly id: string
  /** Whether another instance has written since the last call. */
  hasNews(): boolean
  close(): void
}

// The rows are useless once all instances have ended, so writes do not wait for the disk. If a power cut damages the
// file, the next instance that starts alone replaces it.
const TABLES = `
create table if not exists lease (
  id integer primary key check (id = 1), owner text, token integer not null, expires_at integer not null,
  has_radios integer not null) strict;
insert or ignore into lease values (1, null, 0, 0, 0);
create table if not exists instances (id text primary key, alive_at integer not null) strict, without rowid;
create table if not exists news (id integer primary key autoincrement, origin text not null, body text not null) strict;
create table if not exists state (id integer primary key check (id = 1), token integer not null, body text not null) strict;
create table if not exists requests (
  id integer primary key autoincrement, origin text not null, made_at integer not null, body text not null,
  token integer, answer text) strict;
`

/** Deletes what ended instances left behind. Call it only while no other instance can be running. */
export function forgetInstances(dataDir: string): void {
  for (const part of ['', '-wal', '-shm']) rmSync(`${fileIn(dataDir)}${part}`, { force: true })
}

// Decision: docs/decisions/lease-in-a-file-of-its-own.md
export function openInstancesFile(dataDir: string): InstancesFile {
  const sqlite = new Database(fileIn(dataDir))
  sqlite.pragma('busy_timeout = 500')
  sqlite.pragma('journal_mode = WAL')
  sqlite.pragma('synchronous = OFF')
  sqlite.transaction(() => sqlite.exec(TABLES)).immediate()
  const version = sqlite.prepare<[], number>('pragma data_version').pluck()
  let seen: number | undefined
  return {
    sqlite,
    id: randomUUID(),
    hasNews() {
      const now = version.get()
      const isNew = now !== seen
      seen = now
      return isNew
    },
    close: () => sqlite.close(),
  }
}
