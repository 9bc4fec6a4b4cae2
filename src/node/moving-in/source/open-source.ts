import { constants, copyFileSync, existsSync, openSync, readSync, closeSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { AppError } from '../../../app/http/errors.ts'
import { freeBytes } from '../../disk/reserve.ts'
import { loadLines } from './json-lines.ts'
import { makeScratch, removeLeftScratch, type Scratch } from './scratch.ts'
import { readDatabase, type Source } from './source.ts'
import type { DatabaseSync } from 'node:sqlite'

/** The last migration of MeshMonitor 4.15.1. Later ones may mean anything. */
const LAST_MIGRATION = 152
const NEEDED = ['nodes', 'messages', 'telemetry', 'settings', 'users', 'permissions'] as const
const HEADER_BYTES = 100
/** What must stay free of the disk beside a copy. */
const SPARE_BYTES = 64_000_000

type Header = { readonly isWal: boolean; readonly bytes: number | null }

/**
 * Opens a database of MeshMonitor, or JSON lines of its rows, without changing it or its directory: a database whose
 * log of writes is not empty is copied below `scratch` first. Throws `invalid_request` with one sentence.
 */
export async function openSource(given: string, scratch: string): Promise<Source> {
  removeLeftScratch(scratch)
  const file = resolve(given)
  const head = readHead(file)
  const name = basename(file)
  const Database = await loadSqlite()
  if (head.subarray(0, 15).toString('latin1') === 'SQLite format 3') {
    const copy = copyWithLog(file, scratch)
    const header = readHeader(head)
    checkWhole(file, header, copy !== null)
    const seen = stateOf(file)
    let sqlite: DatabaseSync
    try {
      sqlite =
        copy === null
          ? new Database(new URL(`${pathToFileURL(file).href}?mode=ro&immutable=1`), { readOnly: true })
          : new Database(join(copy.dir, name))
    } catch {
      copy?.remove()
      throw refused(`${file} cannot be opened as an SQLite database`)
    }
    return finish(sqlite, { file, header, copy, seen })
  }
  if (/^\s*\{/.test(head.toString('utf8'))) {
    const copy = makeScratch(scratch)
    const seen = stateOf(file)
    try {
      await loadLines(file, join(copy.dir, 'rows.sqlite'))
    } catch (error) {
      copy.remove()
      throw error
    }
    const header = { isWal: false, bytes: null }
    return finish(new Database(join(copy.dir, 'rows.sqlite')), { file, header, copy, seen })
  }
  throw refused(whatElse(file, head))
}

// better-sqlite3 opens no file as immutable, and would write beside one that was in use.
async function loadSqlite() {
  try {
    const { DatabaseSync: Database, StatementSync: Statement } = await import('node:sqlite')
    if ('setReturnArrays' in Statement.prototype) return Database
  } catch {
    // An older Node has no such module.
  }
  throw refused(`An import needs Node 22.16 or newer, and this is ${process.versions.node}`)
}

type Opened = {
  readonly file: string
  readonly header: Header
  readonly copy: Scratch | null
  readonly seen: string
}

function finish(sqlite: DatabaseSync, { file, header, copy, seen }: Opened): Source {
  const close = () => {
    sqlite.close()
    copy?.remove()
  }
  try {
    const database = readDatabase(sqlite)
    const migration = checkKind(sqlite, database, { file, header, copy })
    return {
      ...database,
      name: basename(file),
      migration,
      close,
      checkUnchanged() {
        if (stateOf(file) !== seen) {
          throw refused(`${file} was changed during the import: stop MeshMonitor, and start the import again`)
        }
      },
    }
  } catch (error) {
    close()
    if (error instanceof AppError) throw error
    throw refused(damaged(file, header, copy))
  }
}

function checkKind(
  sqlite: DatabaseSync,
  source: ReturnType<typeof readDatabase>,
  opened: Pick<Opened, 'file' | 'header' | 'copy'>,
): number {
  const { file, header, copy } = opened
  const check = sqlite.prepare('pragma quick_check(1)').get()
  if (check?.['quick_check'] !== 'ok') throw refused(damaged(file, header, copy))
  const missing = NEEDED.filter((table) => !source.has(table))
  if (
    missing.length === NEEDED.length &&
    header.isWal &&
    copy === null &&
    source.one('select 1 from sqlite_master') === undefined
  ) {
    throw refused(
      `${file} is empty without its ${basename(file)}-wal: copy both files, or stop MeshMonitor before copying`,
    )
  }
  if (missing.length > 0) throw refused(`${file} is not a database of MeshMonitor: it has no table ${missing[0]}`)
  if (!source.has('sources') || !source.hasColumn('nodes', 'sourceId')) {
    throw refused(`${file} was written by a MeshMonitor before 4.0: start MeshMonitor 4 with it once`)
  }
  const keys = Array.from(source.rows('settings', ['key'], "where key like 'migration_%'"), ({ key }) => String(key))
  const migration = Math.max(0, ...keys.map((key) => Number(/^migration_(\d{3})_/.exec(key)?.[1] ?? 0)))
  if (migration > LAST_MIGRATION) {
    throw refused(
      `${file} was written by a MeshMonitor after 4.15: it has migration ${migration}, and this service knows those up to ${LAST_MIGRATION}`,
    )
  }
  return migration
}

function damaged(file: string, { isWal }: Header, copy: Scratch | null): string {
  return isWal && copy === null
    ? `${file} is damaged, or its ${basename(file)}-wal is missing: stop MeshMonitor, and copy its files again`
    : `${file} is damaged: stop MeshMonitor, and copy its files again`
}

function readHead(file: string): Buffer {
  if (!existsSync(file)) throw refused(`${file} does not exist`)
  const stat = statSync(file)
  if (stat.isDirectory()) throw refused(`${file} is a directory: name the database in it, such as meshmonitor.db`)
  if (!stat.isFile()) throw refused(`${file} is not a file`)
  const head = Buffer.alloc(HEADER_BYTES)
  const fd = openReadable(file)
  try {
    return head.subarray(0, readSync(fd, head, 0, HEADER_BYTES, 0))
  } finally {
    closeSync(fd)
  }
}

function openReadable(file: string): number {
  try {
    return openSync(file, 'r')
  } catch {
    throw refused(`${file} cannot be read: this user has no right to`)
  }
}

/** The format of SQLite files: sqlite.org/fileformat.html, 1.3. */
function readHeader(head: Buffer): Header {
  if (head.length < HEADER_BYTES) return { isWal: false, bytes: Number.POSITIVE_INFINITY }
  const size = head.readUInt16BE(16)
  const isCounted = head.readUInt32BE(24) === head.readUInt32BE(92)
  return { isWal: head[18] === 2, bytes: isCounted ? head.readUInt32BE(28) * (size === 1 ? 65_536 : size) : null }
}

function checkWhole(file: string, { bytes }: Header, hasLog: boolean): void {
  if (!hasLog && existsSync(`${file}-shm`)) {
    throw refused(`${file} is incomplete: its ${basename(file)}-wal is missing beside it`)
  }
  if (bytes !== null && statSync(file).size < bytes) throw refused(`${file} is cut off: copy it again`)
}

/** A copy of a database with its log of writes, in a directory of its own; null: it has none, or an empty one. */
function copyWithLog(file: string, scratch: string): Scratch | null {
  const logs = ['-wal', '-journal'].map((end) => `${file}${end}`).filter((log) => sizeOf(log) > 0)
  if (logs.length === 0) return null
  const all = [file, ...logs]
  const needed = all.reduce((sum, one) => sum + sizeOf(one), SPARE_BYTES)
  if (freeBytes(scratch) < needed) {
    throw refused(`${file} has to be copied first, and ${scratch} has no room for ${Math.ceil(needed / 1e6)} MB`)
  }
  const copy = makeScratch(scratch)
  const before = all.map(stateOf).join()
  try {
    for (const one of all) copyFileSync(one, join(copy.dir, basename(one)), constants.COPYFILE_FICLONE)
  } catch {
    copy.remove()
    throw refused(`${file} cannot be copied to ${scratch}`)
  }
  if (all.map(stateOf).join() === before) return copy
  copy.remove()
  throw refused(`${file} is being written to: stop MeshMonitor first`)
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0
}

function stateOf(file: string): string {
  const { size, mtimeMs } = statSync(file)
  return `${size} ${mtimeMs}`
}

const MAGICS: readonly (readonly [string, string])[] = [
  ['\u001f\u008b', 'is compressed: unpack it first'],
  ['PK\u0003\u0004', 'is an archive: unpack it first'],
  ['age-encryption.org', 'is encrypted: decrypt it first'],
]

function whatElse(file: string, head: Buffer): string {
  if (head.length === 0) return `${file} is empty`
  const start = head.toString('latin1')
  const known = MAGICS.find(([magic]) => start.startsWith(magic))
  if (known !== undefined) return `${file} ${known[1]}`
  return `${file} is neither an SQLite database nor JSON lines, or it is encrypted`
}

function refused(sentence: string): AppError {
  return new AppError('invalid_request', sentence)
}
