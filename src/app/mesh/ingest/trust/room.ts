import type { Disk } from '../../../base/disk.ts'
import { AppError, DISK_FULL } from '../../../http/errors.ts'

/** Keeps the last disk space for administrators by refusing packets first. Throws `database_unavailable`. */
export function demandRoom(disk: Disk | null): void {
  if (disk?.isFull() === true) throw new AppError('database_unavailable', DISK_FULL)
}
