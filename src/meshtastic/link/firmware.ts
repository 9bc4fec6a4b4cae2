/** The oldest firmware whose messages are understood. */
const OLDEST = { major: 2, minor: 3 } as const

/** Whether a version such as `2.2.24.e6a2c06` is too old; an unknown form is not. */
export function isFirmwareTooOld(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined || minor === undefined) return false
  return Number(major) < OLDEST.major || (Number(major) === OLDEST.major && Number(minor) < OLDEST.minor)
}
