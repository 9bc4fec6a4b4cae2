import { BackupDamage, RestoreRefused } from './damage.ts'
import type { Manifest } from './manifest.ts'
import { backupTables, isEphemeral } from './tables.ts'

/** Tables and their columns, without generated ones. */
export type Known = ReadonlyMap<string, readonly string[]>

/** Throws RestoreRefused for a table or a column that is not known. */
export function refuseUnknownNames(manifest: Manifest, known: Known): void {
  for (const { name, columns } of manifest.tables) {
    const knownColumns = known.get(name)
    if (knownColumns === undefined) {
      throw new RestoreRefused(`Restore failed: there is no table ${name}; upgrade the service first`)
    }
    const foreign = columns.find((column) => !knownColumns.includes(column))
    if (foreign === undefined) continue
    throw new RestoreRefused(`Restore failed: table ${name} has no column ${foreign}; upgrade the service first`)
  }
}

/**
 * Requires the content of a backup of its version, no more and no less. `known`: the tables of that version and their
 * columns. Throws BackupDamage or RestoreRefused.
 */
export function checkShape(manifest: Manifest, known: Known): void {
  const foreign = manifest.tables.find(({ name }) => isEphemeral(name))
  if (foreign !== undefined) throw new BackupDamage(`table ${foreign.name} is never part of a backup`)
  refuseUnknownNames(manifest, known)
  const given = new Map(manifest.tables.map(({ name, columns }) => [name, columns]))
  const missing = backupTables().find(({ name }) => known.has(name) && !given.has(name))
  if (missing !== undefined) throw new BackupDamage(`table ${missing.name} is missing`)
  for (const [name, columns] of given) {
    const lacks = known.get(name)?.find((column) => !columns.includes(column))
    if (lacks !== undefined) throw new BackupDamage(`table ${name} lacks its column ${lacks}`)
  }
}
