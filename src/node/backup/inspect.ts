import type { Signature, Verification } from '../../app/system/backup/backup.ts'
import { BackupDamage, RestoreRefused } from '../../app/system/backup/format/damage.ts'
import { checkSignature, type Manifest, totalRows } from '../../app/system/backup/format/manifest.ts'
import { readManifest } from './folder/read-manifest.ts'
import { MANIFEST } from '../../app/system/backup/format/names.ts'
import { readRealDirectory } from './folder/safe-read.ts'
import { rulesFor } from './tables/shape.ts'
import { readTableFile } from './tables/file.ts'

const MAX_PROBLEMS = 100

/** Data to check a backup against: the secrets that may have signed it, and a folder of migrations. */
export type Against = { readonly keys: readonly Uint8Array[]; readonly migrations: string }

/**
 * Reads every row of a backup and returns the first problem of each table. `onProgress` gets
 * rows.
 */
export function inspectBackup(
  directory: string,
  { keys, migrations }: Against,
  onProgress: (rows: number, of: number) => void,
): Verification {
  const problems: string[] = []
  const note = <T>(check: () => T): T | null => {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof BackupDamage || error instanceof RestoreRefused)) throw error
      if (problems.length < MAX_PROBLEMS) problems.push(error.message)
      return null
    }
  }
  const manifest = note(() => readManifest(directory))
  if (manifest === null) return { ok: false, tables: 0, rows: 0, problems, signature: 'none' }
  // A backup that claims our secret without matching it comes from somebody else.
  const signature = note(() => checkSignature(manifest, keys)) ?? 'foreign'
  note(() => checkFileList(directory, manifest))
  const rules = note(() => rulesFor(manifest, migrations))
  const all = totalRows(manifest)
  let rows = 0
  for (const table of manifest.tables) {
    const onRows = (some: unknown[]) => {
      rows += some.length
      onProgress(rows, all)
    }
    note(() => readTableFile(directory, table, onRows, rules?.get(table.name)))
  }
  return { ok: problems.length === 0, tables: manifest.tables.length, rows: all, problems, signature }
}

/** The manifest of a backup whose files all match it by size and hash. Throws BackupDamage, RestoreRefused. */
export function readSoundManifest(
  directory: string,
  keys: readonly Uint8Array[],
): { readonly manifest: Manifest; readonly signature: Signature } {
  const manifest = readManifest(directory)
  const signature = checkSignature(manifest, keys)
  checkFileList(directory, manifest)
  for (const table of manifest.tables) readTableFile(directory, table, null)
  return { manifest, signature }
}

function checkFileList(directory: string, { tables }: Manifest): void {
  const known = new Set([MANIFEST, ...tables.map(({ file }) => file)])
  const foreign = readRealDirectory(directory)?.find((name) => !known.has(name))
  if (foreign !== undefined)
    throw new BackupDamage(`${JSON.stringify(foreign.slice(0, 100))} does not belong to the backup`)
}
