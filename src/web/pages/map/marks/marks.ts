import { signal } from '@preact/signals'
import type { Link } from '../layers/lines.ts'

/** What the address of the map marks. `key` changes with it. `links`: the lines that are shown then; null: as usual. */
export type Marks = {
  readonly key: string
  readonly nodeNums: ReadonlySet<number>
  readonly links: readonly Link[] | null
}

/** Null: nothing is marked. Set by `marked.tsx`, which is loaded when an address marks something. */
export const marks = signal<Marks | null>(null)
