import { effect, type Signal, useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { keepDraft, readDraft } from '../../state/drafts.ts'
import { user } from '../../state/session.ts'

export type Kept = {
  readonly value: Signal<string>
  /** Whether it was there already: begun before a reload, another page, or another sign-in. */
  readonly wasBegun: boolean
  /** It is sent, or not wanted any more. */
  forget(): void
}

/**
 * A text that somebody types into a form, kept in this tab until it is sent: also through the end of the session. Not
 * for secrets. `place` tells the texts of one user apart.
 */
export function useKept(place: string, initial = ''): Kept {
  const key = useRef(`${user.peek()?.id}:${place}`).current
  const found = useRef(readDraft(key)).current
  const value = useSignal(found === '' ? initial : found.slice(MARK.length))
  const before = useRef(initial)
  useEffect(() => {
    const last = before.current
    before.current = initial
    // Somebody else has changed what nobody edits here.
    if (value.peek() === last) value.value = initial
  }, [initial])
  // At once, not with the next frame: the session may end in between.
  useEffect(() => effect(() => keepDraft(key, value.value === before.current ? '' : MARK + value.value)), [])
  return { value, wasBegun: found !== '', forget: () => keepDraft(key, '') }
}

/** What an input needs to show the text and to change it. */
export function typedInto({ value }: Kept): { value: string; onInput(event: TargetedEvent<HTMLInputElement>): void } {
  return { value: value.value, onInput: (event) => (value.value = event.currentTarget.value) }
}

/** Tells a text that was emptied from none. */
const MARK = '='
