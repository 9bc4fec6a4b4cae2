import { signal } from '@preact/signals'

export const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'theme'

/** The choice made in this browser; `auto` follows the system. */
export const theme = signal<Theme>(THEMES.find((known) => known === readStored()) ?? 'auto')

function readStored(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    // Storage is blocked: the system's choice applies.
    return null
  }
}

/** Applies the chosen theme to the page, and stores the choice in this browser. */
export function applyTheme(): void {
  theme.subscribe((chosen) => {
    document.documentElement.style.colorScheme = chosen === 'auto' ? 'light dark' : chosen
    try {
      localStorage.setItem(KEY, chosen)
    } catch {
      // Storage is blocked: the choice lasts until the page is closed.
    }
  })
}
