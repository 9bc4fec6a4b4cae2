import type { Disk } from '../../../base/pacing/disk.ts'
import { AppError, DISK_FULL } from '../../../http/errors.ts'

/** Refuses packets when disk space runs low, so that administrators keep the rest. Throws `database_unavailable`. */
export function demandRoom(disk: Disk | null): void {
  if (disk?.isFull() === true) throw new AppError('database_unavailable', DISK_FULL)
}
