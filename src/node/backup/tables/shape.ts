import type { Rules } from '../../../app/system/backup/format/column-rules.ts'
import { checkShape, refuseUnknownNames } from '../../../app/system/backup/format/shape.ts'
import { columnRules } from './column-rules.ts'
import { RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import type { Manifest } from '../../../app/system/backup/format/manifest.ts'
import { latestTag, migrationTags, openEmpty } from '../../migrations.ts'
import { tablesOf } from './tables-of.ts'

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
