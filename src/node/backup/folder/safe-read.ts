import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { BackupDamage, RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import { hasCode } from '../../disk/error-code.ts'

// O_NONBLOCK: a FIFO opens at once, without a writer, and is refused because it is not a regular file.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Bytes that are read at a time. */
export const CHUNK_BYTES = 64 * 1024

/**
 * Opens a regular file without following a link. Throws BackupDamage naming `label`, and RestoreRefused for a file that
 * we may not read.
 */
export function openRegular(path: string, label: string): { fd: number; size: number } {
  const fd = openAny(path, label)
  const stat = fstatSync(fd)
  if (stat.isFile()) return { fd, size: stat.size }
  closeSync(fd)
  throw new BackupDamage(`${label} is not a regular file`)
}

function openAny(path: string, label: string): number {
  try {
    return openSync(path, FLAGS)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) throw new BackupDamage(`${label} is missing`, { cause: error })
    // ELOOP: a link. ENXIO: a socket or a device without a driver.
    if (hasCode(error, 'ELOOP', 'ENXIO')) throw new BackupDamage(`${label} is not a regular file`, { cause: error })
    throw asUnreadable(path, error)
  }
}

/** A whole small file as UTF-8. Throws BackupDamage if it is not a regular file, too large, or not UTF-8. */
export function readSmallFile(path: string, label: string, maxBytes: number): string {
  const { fd, size } = openRegular(path, label)
  try {
    if (size > maxBytes) throw new BackupDamage(`${label} has ${size} bytes, more than ${maxBytes}`)
    const bytes = Buffer.alloc(size)
    let done = 0
    for (let n = 1; n > 0 && done < size; done += n) n = readSync(fd, bytes, done, size - done, done)
    if (done !== size) throw new BackupDamage(`${label} ends early`)
    return decodeUtf8(bytes, label)
  } finally {
    closeSync(fd)
  }
}

function decodeUtf8(bytes: Uint8Array, label: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    throw new BackupDamage(`${label} is not UTF-8`, { cause: error })
  }
}

// For example in an archive that somebody else extracted.
function asUnreadable(path: string, error: unknown): unknown {
  if (!hasCode(error, 'EACCES', 'EPERM')) return error
  const line = `Restore failed: ${path} can't be read by the user of the service; change its owner or its mode`
  return new RestoreRefused(line, { cause: error })
}

/** Whether the directory exists and is not a link. */
export function isRealDirectory(path: string): boolean {
  try {
    return lstatSync(path).isDirectory()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}

/** When a file or its rights were last changed, in milliseconds; null: it is not there, or hidden from this user. */
export function changedAtMs(path: string): number | null {
  try {
    return lstatSync(path).ctimeMs
  } catch {
    return null
  }
}

/** The names in a directory; null if it does not exist or is a link. */
export function readRealDirectory(path: string): string[] | null {
  try {
    return isRealDirectory(path) ? readdirSync(path) : null
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null
    throw asUnreadable(path, error)
  }
}
