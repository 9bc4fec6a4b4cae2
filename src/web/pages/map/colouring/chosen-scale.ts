import { signal } from '@preact/signals'
import { place, setQuery } from '../../../router.ts'
import { preference } from '../../../state/preferences.ts'
import { type ColouringName, COLOURINGS, type Scale } from './colouring.ts'

const isName = (found: unknown): found is ColouringName => COLOURINGS.some((known) => known === found)

/** What this user chose; an address with `colour` goes before it. */
const chosen = preference<ColouringName>('map-colour', 'age', (found) => (isName(found) ? found : null))

export function colouringName(): ColouringName {
  const asked = place.value.query.get('colour')
  return isName(asked) ? asked : chosen.value.value
}

export function chooseColouring(name: ColouringName): void {
  chosen.keep(name)
  setQuery({ colour: name === 'age' ? '' : name })
}

const scales = signal<((name: Exclude<ColouringName, 'age'>) => Scale) | null>(null)
let isLoading = false

/** The scale of the nodes' colours, whose code is loaded on first use; null: they are coloured by age. */
export function shownScale(): Scale | null {
  const name = colouringName()
  if (name === 'age') return null
  if (scales.value === null && !isLoading) void load()
  return scales.value?.(name) ?? null
}

async function load(): Promise<void> {
  isLoading = true
  try {
    const { scaleOf } = await import('./scales.ts')
    scales.value = scaleOf
  } catch (cause) {
    // The nodes keep the colours of their age, and the legend says so. The next choice tries again.
    console.error(cause)
  }
  isLoading = false
}
