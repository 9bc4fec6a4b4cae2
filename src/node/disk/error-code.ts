/** Whether an error of Node or SQLite carries one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
}

/** Whether the device or the quota is full. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // What a thread found.
  if ('isDiskFull' in error && error.isDiskFull === true) return true
  return hasCode(error, 'ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL') || isDiskFull(error.cause)
}

/**
 * Whether a file could not be read or written; SQLite also reports this for a full disk when its shared memory finds no
 * room.
 */
export function isBrokenDisk(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const isIoError = 'code' in error && typeof error.code === 'string' && error.code.startsWith('SQLITE_IOERR')
  return isIoError || hasCode(error, 'EIO') || isBrokenDisk(error.cause)
}
