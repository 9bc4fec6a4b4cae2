import Database from 'better-sqlite3'
import { openDatabase, sqliteStore, type SqliteStore } from '../../src/node/database.ts'

let migrated: Buffer | undefined

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
