/** Whether an error of Node or SQLite carries one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
}

/** Whether the device or the quota is full. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return hasCode(error, 'ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL') || isDiskFull(error.cause)
}
