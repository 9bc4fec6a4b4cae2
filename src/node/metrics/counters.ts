import type { Counters } from '../../app/accounts/sessions/store.ts'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { databaseCounters } from '../../app/accounts/sessions/database-sessions.ts'
import { memoryCounters } from '../../app/accounts/sessions/memory-sessions.ts'
import type { Log } from '../../app/base/log.ts'
import { hasCode } from '../disk/error-code.ts'
import { sqliteStore } from '../database.ts'

export type OpenCounters = { readonly counters: Counters; close(): void }

const UNWRITABLE = 'Attempts are counted in memory: counters.db in DATA_DIR cannot be used'

/**
 * Counters in their own file, shared by all instances on one DATA_DIR and never flushed. If a power cut damages the
 * file, it is created again. While it cannot be used, as on a full disk, this process counts in its own memory.
 */
export function openCounters(dataDir: string, log: Log): OpenCounters {
  try {
    const sqlite = openFile(join(dataDir, 'counters.db'))
    return {
      counters: elseInMemory(databaseCounters(sqliteStore(sqlite)), log),
      close: () => sqlite.close(),
    }
  } catch (error) {
    log.error(UNWRITABLE, { error })
    return { counters: memoryCounters(), close: () => {} }
  }
}

function openFile(file: string): Database.Database {
  try {
    return openWhole(file)
  } catch (error) {
    if (!(error instanceof Ruined) && !hasCode(error, 'SQLITE_CORRUPT', 'SQLITE_NOTADB')) throw error
    for (const part of ['', '-wal', '-shm']) rmSync(`${file}${part}`, { force: true })
    return openWhole(file)
  }
}

class Ruined extends Error {}

/** Throws if the file is not a complete database. */
function openWhole(file: string): Database.Database {
  const sqlite = new Database(file)
  try {
    sqlite.pragma('journal_mode = WAL')
    sqlite.pragma('synchronous = OFF')
    sqlite.pragma('busy_timeout = 5000')
    const found = sqlite.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new Ruined(String(found))
    sqlite.exec(`create table if not exists rate_limits (
      key text primary key, count integer not null, expires_at integer not null) without rowid`)
    return sqlite
  } catch (error) {
    sqlite.close()
    throw error
  }
}

function elseInMemory(file: Counters, log: Log): Counters {
  const memory = memoryCounters()
  let isReported = false
  const either = async <T>(ask: (counters: Counters) => Promise<T>): Promise<T> => {
    try {
      return await ask(file)
    } catch (error) {
      if (!isReported) log.error(UNWRITABLE, { error })
      isReported = true
      return ask(memory)
    }
  }
  return {
    hit: (key, windowMs, now) => either((counters) => counters.hit(key, windowMs, now)),
    forgive: (key, how) => either((counters) => counters.forgive(key, how)),
    clear: (prefix) => either((counters) => counters.clear(prefix)),
    sweep: async (now) => {
      await memory.sweep(now)
      await either((counters) => counters.sweep(now))
    },
  }
}
