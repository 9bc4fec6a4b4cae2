import type { Backup } from '../../../app/system/backup.ts'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { BackupDamage, RestoreRefused } from './damage.ts'
import type { Files } from './files.ts'
import { describeBackup, type Manifest, readManifest } from './manifest.ts'
import { isBackupName } from './names.ts'
import { isRealDirectory, readRealDirectory } from './safe-read.ts'

/** Where the backups of a data directory are. */
export const backupsDirectory = (dataDir: string): string => join(dataDir, 'system-backups')

/** Where a backup is while it is being deleted. */
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

/** Whether there is a directory of that name, itself no link. A name that can't be a backup's is not looked for. */
export function hasBackup(directory: string, name: string): boolean {
  return isBackupName(name) && isRealDirectory(join(directory, name))
}

/** All backups, newest first. Without other files, and without folders that have no readable manifest. */
export async function listBackups(directory: string): Promise<Backup[]> {
  const backups: Backup[] = []
  for (const name of readRealNames(directory)) {
    const manifest = findManifest(directory, name)
    if (manifest !== null) backups.push(describeBackup(name, manifest))
    // Hundreds of manifests must not hold up a request.
    await setImmediate()
  }
  return backups.toSorted((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1))
}

/** Whether there is a backup, other than `except`, that `isOurs` says so of. Damaged ones do not count. */
export function hasBackupOf(directory: string, except: string, isOurs: (manifest: Manifest) => boolean): boolean {
  return readRealNames(directory).some((name) => {
    const manifest = name === except ? null : findManifest(directory, name)
    return manifest !== null && isOurs(manifest)
  })
}

function readRealNames(directory: string): string[] {
  // The directory of backups itself may be a link, to a bigger disk.
  return (readRealDirectory(`${directory}/.`) ?? []).filter(isBackupName)
}

/** Deletes what an interrupted backup or deletion left behind. Only under the backup lock. */
export function sweepBackups(directory: string, files: Files): void {
  for (const entry of readRealDirectory(`${directory}/.`) ?? []) {
    const name = /^\.(.{17})\.(?:partial|deleted)$/.exec(entry)?.[1]
    if (name !== undefined && isBackupName(name)) files.remove(join(directory, entry))
  }
}
