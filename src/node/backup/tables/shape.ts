import { columnRules, type Rules } from './column-rules.ts'
import { BackupDamage, RestoreRefused } from '../folder/damage.ts'
import type { Manifest } from '../folder/manifest.ts'
import { latestTag, migrationTags, openEmpty } from '../../migrations.ts'
import { backupTables, isEphemeral, tablesOf } from './tables.ts'

/**
 * Throws RestoreRefused for a backup of a later version: for a table or a column that this one lacks, if it can be named.
 */
export function refuseUnknownMigration(manifest: Manifest, migrations: string): void {
  if (migrationTags(migrations).includes(manifest.schema)) return
  const database = openEmpty(migrations, latestTag(migrations))
  try {
    refuseUnknownNames(manifest, tablesOf(database))
  } finally {
    database.close()
  }
  throw new RestoreRefused(`Restore failed: there is no migration ${manifest.schema}; upgrade the service first`)
}

function refuseUnknownNames(manifest: Manifest, known: ReadonlyMap<string, readonly string[]>): void {
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
export function checkShape(manifest: Manifest, known: ReadonlyMap<string, readonly string[]>): void {
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

/**
 * The permitted content of a backup's tables, by the migrations of its version. Throws BackupDamage or RestoreRefused
 * for an incomplete backup, or one of a later version.
 */
export function rulesFor(manifest: Manifest, migrations: string): Rules {
  refuseUnknownMigration(manifest, migrations)
  const database = openEmpty(migrations, manifest.schema)
  try {
    checkShape(manifest, tablesOf(database))
    return columnRules(database)
  } finally {
    database.close()
  }
}
