/** The design tokens that the map draws with. */
const TOKENS = [
  '--age-0',
  '--age-1',
  '--age-2',
  '--surface',
  '--raised',
  '--text',
  '--accent',
  '--good',
  '--warn',
  '--bad',
  '--faint',
  '--line',
] as const

/** Those that a scale or the built-in map adds are read when they are first drawn. */
export type Token =
  | (typeof TOKENS)[number]
  | `--shade-${0 | 1 | 2 | 3 | 4}`
  | `--map-${'land' | 'coast' | 'border' | 'town'}`
export type Palette = (token: Token) => string

/** The colours of the current scheme, read all at once, because each read costs a layout. */
export function readPalette(): Palette {
  const found = new Map<Token, string>(TOKENS.map((token) => [token, colour(token)]))
  return (token) => {
    const known = found.get(token) ?? colour(token)
    found.set(token, known)
    return known
  }
}

/** A design token as a colour that a canvas accepts, as it is inside `box`. */
export function colour(token: string, box: HTMLElement = document.body): string {
  const probe = document.createElement('span')
  // High contrast would make all colours one; the map tells things apart by them.
  probe.style.forcedColorAdjust = 'none'
  probe.style.color = `var(${token})`
  box.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  return value
}

/** Whether the page is dark, by its own setting or the system's. */
export function isDark(): boolean {
  const scheme = getComputedStyle(document.documentElement).colorScheme
  return scheme === 'dark' || (scheme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
}
