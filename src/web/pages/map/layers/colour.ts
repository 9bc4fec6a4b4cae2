/** A design token as a colour that a canvas understands. */
export function colour(token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  document.body.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  return value
}

/** Whether the page is dark, by its own setting or the system's. */
export function isDark(): boolean {
  const scheme = getComputedStyle(document.documentElement).colorScheme
  return scheme === 'dark' || (scheme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
}
