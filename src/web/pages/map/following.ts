import { signal } from '@preact/signals'

/** The number of the node that the map keeps in its middle, until the user moves the map; null: none. */
export const followed = signal<number | null>(null)
