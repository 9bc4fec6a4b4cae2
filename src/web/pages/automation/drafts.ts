import { type Signal, useSignal, useSignalEffect } from '@preact/signals'
import { user } from '../../state/session.ts'
import { type Draft, draftOf } from './draft.ts'
import type { Automation } from './rule.ts'

type StoredDraft = { readonly draft: Draft; readonly seen: number }

/** Rules that were begun and not saved, by user and rule. They survive a visit to another page. */
const storedDrafts = new Map<string, StoredDraft>()

/** The draft was saved. */
export function forgetDraft(saved: Automation | null): void {
  storedDrafts.delete(keyOf(saved))
}

function keyOf(saved: Automation | null): string {
  return `${user.peek()?.id} ${saved?.id ?? 'new'}`
}

export type Begun = {
  readonly draft: Signal<Draft>
  /** Revision of the version on which the draft is based; 0: none. */
  readonly seen: Signal<number>
}

/** A draft that is kept until it equals the saved rule. */
export function useStoredDraft(saved: Automation | null, initial: Draft): Begun {
  const key = keyOf(saved)
  const found = storedDrafts.get(key)
  const draft = useSignal(found?.draft ?? initial)
  const seen = useSignal(found?.seen ?? saved?.revision ?? 0)
  const base = JSON.stringify(saved === null ? initial : draftOf(saved.rule))
  useSignalEffect(() => {
    if (JSON.stringify(draft.value) === base) storedDrafts.delete(key)
    else storedDrafts.set(key, { draft: draft.value, seen: seen.value })
  })
  return { draft, seen }
}
