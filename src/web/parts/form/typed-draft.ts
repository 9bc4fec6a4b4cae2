import { effect, type Signal, useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { keepDraft, readDraft } from '../../state/drafts.ts'
import { user } from '../../state/session.ts'

export type Draft = {
  readonly value: Signal<string>
  /** Whether there was a text already: begun before a reload, on another page, or before another sign-in. */
  readonly wasBegun: boolean
  /** The text was sent, or is no longer wanted. */
  forget(): void
}

/**
 * A text typed into a form, kept in this tab until it is sent, even after the session ends. Not for secrets. `place`
 * distinguishes the texts of a user.
 */
export function useDraft(place: string, initial = ''): Draft {
  const key = useRef(`${user.peek()?.id}:${place}`).current
  const found = useRef(readDraft(key)).current
  const value = useSignal(found === '' ? initial : found.slice(MARK.length))
  const before = useRef(initial)
  useEffect(() => {
    const last = before.current
    before.current = initial
    // Somebody else has changed a text that is not being edited here.
    if (value.peek() === last) value.value = initial
  }, [initial])
  // Immediately, not with the next frame, because the session may end in between.
  useEffect(() => effect(() => keepDraft(key, value.value === before.current ? '' : MARK + value.value)), [])
  return { value, wasBegun: found !== '', forget: () => keepDraft(key, '') }
}

/** The value and the change handler of an input. */
export function typedInto({ value }: Draft): { value: string; onInput(event: TargetedEvent<HTMLInputElement>): void } {
  return { value: value.value, onInput: (event) => (value.value = event.currentTarget.value) }
}

/** Distinguishes an emptied text from a missing one. */
const MARK = '='
