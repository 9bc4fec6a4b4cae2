import type { Verification } from '../../app/system/backups.ts'
import { BackupDamage, RestoreRefused } from './damage.ts'
import { checkSignature, type Manifest, MANIFEST, readManifest, type Signature, totalRows } from './manifest.ts'
import { readRealDirectory } from './safe-read.ts'
import { rulesFor } from './shape.ts'
import { readTableFile } from './table-file.ts'

const MAX_PROBLEMS = 100

export type Inspection = Verification & { readonly signature: Signature | null }

/** What a backup is checked against: the secrets that may have signed it, and a folder of migrations. */
export type Against = { readonly keys: readonly Uint8Array[]; readonly migrations: string }

/**
 * Reads all of a backup, every row of it; says everything that is wrong, one thing for each table. `onProgress` gets
 * rows.
 */
export function inspectBackup(
  directory: string,
  { keys, migrations }: Against,
  onProgress: (rows: number, of: number) => void,
): Inspection {
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
  if (manifest === null) return { ok: false, tables: 0, rows: 0, problems, signature: null }
  const signature = note(() => checkSignature(manifest, keys))
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
export function readSoundManifest(directory: string, keys: readonly Uint8Array[]): Manifest {
  const manifest = readManifest(directory)
  checkSignature(manifest, keys)
  checkFileList(directory, manifest)
  for (const table of manifest.tables) readTableFile(directory, table, null)
  return manifest
}

function checkFileList(directory: string, { tables }: Manifest): void {
  const known = new Set([MANIFEST, ...tables.map(({ file }) => file)])
  const foreign = readRealDirectory(directory)?.find((name) => !known.has(name))
  if (foreign !== undefined)
    throw new BackupDamage(`${JSON.stringify(foreign.slice(0, 100))} does not belong to the backup`)
}
