import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { user } from '../session.ts'
import { type Edits, NO_EDITS } from './configuration-model.ts'

/** What was typed and not sent, by user, radio and section: it is still there after a look at another page. */
const kept = signal<ReadonlyMap<string, Edits>>(new Map())

function keyOf(source: string, section: string): string {
  return JSON.stringify([user.value?.id, source, section])
}

export function editsOf(source: string, section: string): Edits {
  return kept.value.get(keyOf(source, section)) ?? NO_EDITS
}

export function keepEdits(source: string, section: string, edits: Edits): void {
  const next = new Map(kept.peek())
  if (edits.values.size === 0 && edits.secrets.size === 0) next.delete(keyOf(source, section))
  else next.set(keyOf(source, section), edits)
  kept.value = next
}

/** New secrets do not outlive the page that they were typed on. */
export function useSecretsForgotten(): void {
  useEffect(
    () => () => {
      kept.value = new Map([...kept.peek()].map(([key, { values }]) => [key, { values, secrets: new Map() }]))
    },
    [],
  )
}
