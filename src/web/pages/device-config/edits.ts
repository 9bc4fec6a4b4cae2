import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { user } from '../../state/session.ts'
import { differencesOf, type Edits, NO_EDITS, type Section } from './model.ts'

/** Edits that are not sent yet, by user, radio and section. They survive a visit to another page. */
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

export function isEdited(source: string, section: string): boolean {
  const { values, secrets } = editsOf(source, section)
  return values.size > 0 || [...secrets.values()].some((secret) => secret !== '')
}

/** Changes that were sent from this page. */
const sent = new Set<string>()

export function noteSent(changeId: string): void {
  sent.add(changeId)
}

/** Drops edits that the radio now has: equal values, and secrets that it accepted from this page. */
export function usePruning(section: Section): void {
  const { source, section: name, lastChange } = section
  useEffect(() => {
    const edits = editsOf(source, name)
    if (edits === NO_EDITS) return
    const differences = new Set(differencesOf(section, edits).map(({ leaf }) => leaf.path))
    const isTaken = lastChange?.state === 'applied' && sent.delete(lastChange.id)
    const taken = isTaken ? lastChange.fields : []
    const values = new Map([...edits.values].filter(([path]) => differences.has(path)))
    const secrets = new Map([...edits.secrets].filter(([path]) => !taken.includes(path)))
    const isLess = values.size < edits.values.size || secrets.size < edits.secrets.size
    if (isLess) keepEdits(source, name, { values, secrets })
  }, [section])
}

/** New secrets are forgotten when the page on which they were typed closes. */
export function useSecretsForgotten(): void {
  useEffect(
    () => () => {
      kept.value = new Map([...kept.peek()].map(([key, { values }]) => [key, { values, secrets: new Map() }]))
    },
    [],
  )
}
