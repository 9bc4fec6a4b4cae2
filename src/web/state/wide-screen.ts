import { signal } from '@preact/signals'

const wideScreen = matchMedia('(width > 60rem)')
/** Whether the columns for wide screens are shown. */
export const isWide = signal(wideScreen.matches)
wideScreen.addEventListener('change', ({ matches }) => (isWide.value = matches))
