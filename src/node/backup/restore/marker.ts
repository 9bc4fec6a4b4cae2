import { join } from 'node:path'
import * as z from 'zod'
import { BackupDamage, RestoreRefused } from '../../../app/system/backup/format/damage.ts'
import type { Files } from '../folder/files.ts'
import { readSmallFile } from '../folder/safe-read.ts'
import { existsSync } from 'node:fs'

/** The file that names the backup restored last, so that it is not restored again. */
export const markerFile = (dataDir: string): string => join(dataDir, '.restore-completed')

/** `stage`: the ID of the staged restore that this was. */
const markerSchema = z.object({ name: z.string(), restoredAt: z.int(), stage: z.string().optional() })
type Marker = z.infer<typeof markerSchema>

/** Throws RestoreRefused for an unreadable marker, because restoring once too often would lose data. */
export function readMarker(dataDir: string): Marker | null {
  const file = markerFile(dataDir)
  if (!existsSync(file)) return null
  try {
    return markerSchema.parse(JSON.parse(readSmallFile(file, file, 64 * 1024)))
  } catch (error) {
    if (!(error instanceof BackupDamage || error instanceof z.ZodError || error instanceof SyntaxError)) throw error
    throw new RestoreRefused(`Restore failed: ${file} cannot be read; delete it to restore`, { cause: error })
  }
}

/** Writes a marker and flushes it to the disk. */
export function writeMarker(files: Files, path: string, marker: Marker): void {
  const fd = files.create(path)
  try {
    files.write(fd, Buffer.from(`${JSON.stringify(marker)}\n`))
  } catch (error) {
    files.close(fd)
    throw error
  }
  files.finish(fd)
}
