import { join } from 'node:path'
import { type Manifest, parseManifest } from '../../../app/system/backup/format/manifest.ts'
import { MANIFEST } from '../../../app/system/backup/format/names.ts'
import { readSmallFile } from './safe-read.ts'

const MAX_MANIFEST_BYTES = 4 * 1024 * 1024

/** Reads the manifest of a backup. Throws BackupDamage, or RestoreRefused for a format of a later version. */
export function readManifest(directory: string): Manifest {
  return parseManifest(readSmallFile(join(directory, MANIFEST), MANIFEST, MAX_MANIFEST_BYTES))
}
