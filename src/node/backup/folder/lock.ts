import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { hasCode } from '../../disk/error-code.ts'

// SQLite's own file locks. They work across processes, and end with their process, however it ends.

/** One backup at a time. */
export const backupLockFile = (dataDir: string): string => join(dataDir, '.backup-lock')
/** Shared by processes that keep the database open, exclusive for those that replace it. */
export const databaseLockFile = (dataDir: string): string => join(dataDir, '.database-lock')

/** Held while a starting process checks and migrates the schema. */
export const startLockFile = (dataDir: string): string => join(dataDir, '.start-lock')

export type Lock = { release(): void }

/** Takes the lock, or returns null when another process still holds it after `waitMs`. */
export function lockExclusively(file: string, waitMs = 0): Lock | null {
  return take(file, waitMs, (lock) => lock.exec('begin exclusive'))
}

/** Takes a shared lock; waits at most `waitMs` for an exclusive holder. */
export function lockShared(file: string, waitMs: number): Lock | null {
  return take(file, waitMs, (lock) => {
    lock.exec('begin')
    lock.prepare('select count(*) from sqlite_schema').get()
  })
}

function take(file: string, waitMs: number, begin: (lock: Database.Database) => void): Lock | null {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const lock = new Database(file, { timeout: waitMs })
  try {
    begin(lock)
    return { release: () => lock.close() }
  } catch (error) {
    lock.close()
    if (hasCode(error, 'SQLITE_BUSY')) return null
    throw error
  }
}
