import { isBackupName } from '../../../../app/system/backup/format/names.ts'
import type { Stored } from './place.ts'
import { CopyFailure } from './problems.ts'

/** Names of a copy's file at every place. */
export const fileNameOf = (name: string): string => `${name}.tar.gz.age`

/** The name of the backup in the name of a file; null: it is not the file of a copy. */
export function backupNameOf(file: string): string | null {
  const name = /^(.{17})\.tar\.gz\.age$/.exec(file)?.[1]
  return name !== undefined && isBackupName(name) ? name : null
}

/** Of one service; it has some dozens. */
const MAX_COPIES = 10_000

/** Whether a file at a place may be a copy: nothing else there is kept in a list. */
export const isCopy = (name: string): boolean => backupNameOf(name) !== null

/** A list that is whole. Throws `tooMany`. */
export function demandWhole(found: Stored[], isTruncated = false): Stored[] {
  if (isTruncated || found.length > MAX_COPIES) throw new CopyFailure('tooMany')
  return found
}
