import type Database from 'better-sqlite3'
import { hasCode } from '../disk/error-code.ts'

/** Pages in the write-ahead log, and how many of them are also in the database, on the disk. */
export type LogState = { readonly pages: number; readonly copied: number }

/** Copies as much of the log into the database as no reader still needs; waits for no reader or writer. */
export function copyLog(database: Database.Database): LogState {
  return stateOf(database, 'passive')
}

/**
 * Copies the rest of the log and begins it anew, unless a reader needs it or another process writes: SQLite begins it at the
 * next commit and flushes its head. Here that is a commit that changes nothing, so that no commit of the service waits
 * for it. Nothing else of this process may write meanwhile.
 */
export function beginAnew(database: Database.Database): LogState & { readonly isNew: boolean } {
  const before = copyLog(database)
  if (before.copied < before.pages) return { ...before, isNew: false }
  if (before.pages === 0) return { ...before, isNew: true }
  const version = Number(database.pragma('user_version', { simple: true }))
  try {
    database.transaction(() => database.pragma(`user_version = ${version}`)).immediate()
  } catch (error) {
    if (!hasCode(error, 'SQLITE_BUSY')) throw error
  }
  const after = logState(database)
  return { ...after, isNew: after.copied === 0 }
}

/** Writes nothing, and takes a few microseconds. */
export function logState(database: Database.Database): LogState {
  return stateOf(database, 'noop')
}

function stateOf(database: Database.Database, how: 'passive' | 'noop'): LogState {
  const [row] = database.prepare<[], { log: number; checkpointed: number }>(`pragma wal_checkpoint(${how})`).all()
  // -1: another connection copies it.
  return { pages: Math.max(row?.log ?? 0, 0), copied: row?.checkpointed ?? 0 }
}
