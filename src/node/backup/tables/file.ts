import { createHash } from 'node:crypto'
import { closeSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { Cell } from '../../../app/system/backup/format/cells.ts'
import { BackupDamage } from '../../../app/system/backup/format/damage.ts'
import type { ManifestTable } from '../../../app/system/backup/format/manifest.ts'
import { CHUNK_BYTES, openRegular } from '../folder/safe-read.ts'
import { rowReader, type TableRules } from '../../../app/system/backup/format/rows.ts'

const NO_RULES: TableRules = new Map()

/**
 * Reads a table's file in chunks and checks its size, its hash and, with `onRows`, each of its rows. Rows are passed on
 * before the hash of the whole is known. Columns without a rule may contain anything. Throws BackupDamage.
 */
export function readTableFile(
  directory: string,
  table: ManifestTable,
  onRows: ((rows: Cell[][]) => void) | null,
  rules: TableRules = NO_RULES,
): void {
  const { fd, size } = openRegular(join(directory, table.file), table.file)
  try {
    if (size !== table.bytes) {
      throw new BackupDamage(`${table.file} has ${size} bytes, the manifest says ${table.bytes}`)
    }
    const hash = createHash('sha256')
    const rows = onRows === null ? null : rowReader(table, rules, onRows)
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    for (let n = readSync(fd, chunk); n > 0; n = readSync(fd, chunk)) {
      const bytes = chunk.subarray(0, n)
      hash.update(bytes)
      rows?.feed(bytes)
    }
    if (hash.digest('hex') !== table.sha256) throw new BackupDamage(`${table.file} does not match its SHA-256`)
    rows?.end()
  } finally {
    closeSync(fd)
  }
}
