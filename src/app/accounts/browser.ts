/** Searched in this order: Edge also calls itself Chrome, and Chrome also calls itself Safari. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['EdgA', 'Edge'],
  ['EdgiOS', 'Edge'],
  ['OPR', 'Opera'],
  ['SamsungBrowser', 'Samsung Internet'],
  ['Firefox', 'Firefox'],
  ['FxiOS', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['CriOS', 'Chrome'],
  ['Safari', 'Safari'],
] as const

/** Android also calls itself Linux, and an iPhone Mac OS X. */
const SYSTEMS = [
  ['Windows', 'Windows'],
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const

/**
 * The browser and system in a User-Agent header, without versions, such as `Firefox on Linux`. Null if it names no
 * browser, as for scripts.
 */
export function browserOf(userAgent: string | undefined): string | null {
  if (userAgent === undefined) return null
  const browser = BROWSERS.find(([sign]) => userAgent.includes(`${sign}/`))?.[1]
  if (browser === undefined) return null
  const system = SYSTEMS.find(([sign]) => userAgent.includes(sign))?.[1]
  return system === undefined ? browser : `${browser} on ${system}`
}

/** What the audit entry of a sign-in says about the browser; nothing if none is named. */
export function browserDetails({ userAgent }: { readonly userAgent?: string | undefined }): { browser?: string } {
  const browser = browserOf(userAgent)
  return browser === null ? {} : { browser }
}
