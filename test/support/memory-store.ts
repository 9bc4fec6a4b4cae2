import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { SQLiteSyncDialect } from 'drizzle-orm/sqlite-core'
import { selectWithin } from '../../src/db/packet-log.ts'
import { openDatabase, sqliteStore, type SqliteStore } from '../../src/node/database.ts'

const { raw } = sql

let migrated: Buffer | undefined

const ALL_PACKETS = new SQLiteSyncDialect().sqlToQuery(selectWithin(raw('0'), raw('9e15')).inlineParams()).sql

/** `PACKED=1` runs the tests on the form that the edge writes. */
const PACKS = process.env['PACKED'] === '1'

/**
 * As `openDatabase(':memory:')`, whose migrations run once for all stores of the process. `content`: what another one
 * serialized.
 */
export function openMemoryStore(content?: Buffer): SqliteStore {
  migrated ??= image()
  const sqlite = new Database(content ?? migrated)
  sqlite.pragma('foreign_keys = ON')
  // For tests that look at the log themselves, in whichever form it is.
  sqlite.exec(`create temp view logged as ${ALL_PACKETS}`)
  return sqliteStore(sqlite, undefined, PACKS)
}

function image(): Buffer {
  const store = openDatabase(':memory:')
  try {
    return store.sqlite.serialize()
  } finally {
    store.close()
  }
}
