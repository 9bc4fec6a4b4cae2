import { accessSync, constants, mkdirSync, readdirSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Log } from '../../app/base/log.ts'
import type { Config } from '../../app/config/config.ts'
import { shownValue } from '../../app/config/shown.ts'
import { hasCode, isBrokenDisk, isDiskFull } from '../disk/error-code.ts'
import { networkFileSystem } from '../disk/network.ts'
import { freeBytes } from '../disk/reserve.ts'

/** The machine does not match the configuration. The message is one line in the format of `parseConfig`. */
export class StartRefused extends Error {
  override name = 'StartRefused'
}

/** With less free space than this, an otherwise unexplained failure is attributed to the full disk. */
const LITTLE_BYTES = 1024 * 1024

// Our own files. A volume may also contain others, such as lost+found.
const OURS = /^(?:mesh\.db|counters\.db|session-secret$|system-backups$|\.restore)/

/**
 * Throws StartRefused when the data directory is on a network file system, where SQLite can lose data, or warns if that
 * is allowed. Backups may be mounted from one below it.
 */
export function refuseNetwork(
  { DATA_DIR, ALLOW_NETWORK_FILE_SYSTEM }: Pick<Config, 'DATA_DIR' | 'ALLOW_NETWORK_FILE_SYSTEM'>,
  log: Pick<Log, 'warn'>,
): void {
  // The database may be a link to another place.
  const type = networkFileSystem(join(DATA_DIR, 'mesh.db'))
  if (type === null) return
  if (!ALLOW_NETWORK_FILE_SYSTEM) {
    throw new StartRefused(
      `DATA_DIR: found ${shownValue(DATA_DIR)} on a network file system (${type}), expected a disk of this machine because SQLite's locks and the shared memory of its log do not work across hosts; move it to a local disk, or set ALLOW_NETWORK_FILE_SYSTEM=true if only this host ever opens it`,
    )
  }
  log.warn('DATA_DIR is on a network file system: a second host that opens the database damages it', {
    dataDir: DATA_DIR,
    type,
    remedy: 'move it to a local disk; backups may stay there',
  })
}

/**
 * Creates the data directory unless it exists. Throws StartRefused when it, or a file in it, cannot be read and
 * written.
 */
export function prepareDataDir(directory: string): void {
  try {
    makeDirectory(resolve(directory))
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const expected = isDiskFull(error) ? 'space on its disk' : 'a directory that can be created and written'
    refuse(`DATA_DIR: found ${shownValue(directory)}, expected ${expected}${ownerOf(directory)}`, error)
  }
  for (const name of readdirSync(directory).filter((each) => OURS.test(each))) {
    const path = join(directory, name)
    try {
      accessSync(path, constants.R_OK | constants.W_OK)
    } catch (error) {
      // Another instance may have removed it meanwhile.
      if (!hasCode(error, 'ENOENT')) {
        refuse(
          `${path}: found a file that this user can't read and write, expected one that it can${ownerOf(path)}`,
          error,
        )
      }
    }
  }
}

/** A remedy for a path that belongs to another user, as the end of a line; empty if it is this user's own. */
function ownerOf(path: string): string {
  const user = process.getuid?.()
  const found = statOf(path)
  if (user === undefined || found === undefined || found.uid === user) return ''
  const directory = found.isDirectory() ? path : dirname(path)
  return `; it belongs to user ${found.uid} and the service runs as user ${user}: chown -R ${user} ${shownValue(directory)}`
}

/** Undefined for a path where nothing can be, such as one that is too long. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

// `recursive: true` never returns in a directory that refuses new ones, such as /proc.
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (hasCode(error, 'EEXIST') && statSync(path).isDirectory()) return
    if (!hasCode(error, 'ENOENT') || dirname(path) === path) throw error
    makeDirectory(dirname(path))
    mkdirSync(path, { mode: 0o700 })
  }
}

/** Explains why a database can't be opened. Throws StartRefused, or an unknown error unchanged. */
export function refuseDatabase(file: string, error: unknown): never {
  // SQLite does not report why its shared memory fails.
  if (isDiskFull(error) || (isBrokenDisk(error) && freeBytes(dirname(file)) < LITTLE_BYTES)) {
    refuse(
      `${file}: found a full disk, expected space for the database; nothing was changed: delete old backups in ${join(dirname(file), 'system-backups')} or other files and start again`,
      error,
    )
  }
  if (hasCode(error, 'SQLITE_NOTADB') || isCorrupt(error)) {
    const backups = join(dirname(file), 'system-backups')
    refuse(
      `${file}: found a damaged database, expected an undamaged one; restore a backup of ${backups} with RESTORE_FROM_BACKUP=<its name>`,
      error,
    )
  }
  if (isBrokenDisk(error)) refuse(`${file}: found a disk that fails, expected one that can be read and written`, error)
  if (error instanceof Error && 'code' in error && /^SQLITE_(?:CANTOPEN|READONLY|PERM)/.test(String(error.code))) {
    refuse(`${file}: found a file that can't be opened and written, expected one that can${ownerOf(file)}`, error)
  }
  throw error
}

function isCorrupt(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_CORRUPT')
}

/** Explains why the service can't listen on the address. Throws StartRefused, or an unknown error unchanged. */
export function refuseAddress({ PORT, HOST }: Pick<Config, 'PORT' | 'HOST'>, error: unknown): never {
  const found = `found ${PORT} on ${shownValue(HOST)}`
  if (hasCode(error, 'EADDRINUSE')) refuse(`PORT: ${found}, expected a port that no other program listens on`, error)
  if (hasCode(error, 'EACCES')) refuse(`PORT: ${found}, expected a port that this user may listen on`, error)
  if (hasCode(error, 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT', 'EINVAL')) {
    refuse(`HOST: found ${shownValue(HOST)}, expected an address of this machine`, error)
  }
  throw error
}

function refuse(line: string, cause: unknown): never {
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
  throw new StartRefused(`${line}${code}`, { cause })
}
