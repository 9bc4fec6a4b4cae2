import type { Backup } from '../../../app/system/backup/backup.ts'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { BackupDamage, RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import type { Files } from './files.ts'
import { describeBackup, type Manifest } from '../../../app/system/backup/format/manifest.ts'
import { readManifest } from './read-manifest.ts'
import { MANIFEST } from '../../../app/system/backup/format/names.ts'
import { isBackupName } from '../../../app/system/backup/format/names.ts'
import { changedAtMs, isRealDirectory, readRealDirectory } from './safe-read.ts'

/** The directory of a data directory's backups. */
export const backupsDirectory = (dataDir: string): string => join(dataDir, 'system-backups')

/** The name of a backup while it is being deleted. */
export function deletedName(name: string): string {
  return `.${name}.deleted`
}

/**
 * The manifest of a backup, or null if there is no such backup: an invalid name, no directory, or no readable manifest.
 */
export function findManifest(directory: string, name: string): Manifest | null {
  if (!hasBackup(directory, name)) return null
  try {
    return readManifest(join(directory, name))
  } catch (error) {
    if (error instanceof BackupDamage || error instanceof RestoreRefused) return null
    throw error
  }
}

/**
 * Whether there is a directory with that name that is not a link. Names that cannot be a backup's are not looked up.
 */
export function hasBackup(directory: string, name: string): boolean {
  return isBackupName(name) && isRealDirectory(join(directory, name))
}

/** What was read before, by name, and when the manifest changed then, in milliseconds. */
type Known = Map<string, { readonly changedAt: number | null; readonly backup: Backup | null }>

/**
 * All backups, newest first. Leaves out other files, and folders without a readable manifest. Reads only manifests that
 * `known` does not have, and updates it.
 */
export async function listBackups(directory: string, known: Known = new Map()): Promise<Backup[]> {
  const backups: Backup[] = []
  const names = readRealNames(directory)
  for (const name of names) {
    const changedAt = changedAtMs(join(directory, name, MANIFEST))
    const seen = known.get(name)
    const isSeen = seen !== undefined && changedAt !== null && seen.changedAt === changedAt
    const manifest = isSeen ? null : findManifest(directory, name)
    const backup = isSeen ? seen.backup : manifest && describeBackup(name, manifest)
    known.set(name, { changedAt, backup })
    if (backup !== null) backups.push(backup)
    // Reading hundreds of manifests must not delay requests.
    if (!isSeen) await setImmediate()
  }
  const present = new Set(names)
  for (const name of known.keys()) if (!present.has(name)) known.delete(name)
  return backups.toSorted((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1))
}

/** Whether there is a backup other than `except` for which `isOurs` is true. Damaged ones do not count. */
export function hasBackupOf(directory: string, except: string, isOurs: (manifest: Manifest) => boolean): boolean {
  return readRealNames(directory).some((name) => {
    const manifest = name === except ? null : findManifest(directory, name)
    return manifest !== null && isOurs(manifest)
  })
}

function readRealNames(directory: string): string[] {
  // The directory of backups itself may be a link to a bigger disk.
  return (readRealDirectory(`${directory}/.`) ?? []).filter(isBackupName)
}

/** Deletes what an interrupted backup or deletion left behind. Call it only while holding the backup lock. */
export function sweepBackups(directory: string, files: Files): void {
  for (const entry of readRealDirectory(`${directory}/.`) ?? []) {
    const name = /^\.(.{17})\.(?:partial|deleted)$/.exec(entry)?.[1]
    if (name !== undefined && isBackupName(name)) files.remove(join(directory, entry))
  }
}
