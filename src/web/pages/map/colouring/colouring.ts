import { signal } from '@preact/signals'
import { preference } from '../../../state/preferences.ts'
import type { Token } from '../../../parts/map/colour.ts'
import { place, setQuery } from '../../../router.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { ageOf } from '../filter.ts'
import type { Scale } from './scales.ts'

export const COLOURINGS = ['age', 'snr', 'hops', 'battery', 'role'] as const
/** What the colour of a node says. */
export type ColouringName = (typeof COLOURINGS)[number]

/** The classes into which a property divides the nodes. Those of the last one are hollow: not everybody sees colours. */
export type Colouring = {
  /** The colour of each class. */
  readonly tokens: readonly Token[]
  /** An index of `tokens`. */
  classOf(node: Node, now: number): number
}

export const BY_AGE: Colouring = { tokens: ['--age-0', '--age-1', '--age-2'], classOf: ageOf }

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
