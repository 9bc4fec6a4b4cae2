import { effect, type ReadonlySignal, signal } from '@preact/signals'
import { ownName } from '../api.ts'
import { user } from './session.ts'

export type Preference<T> = {
  readonly value: ReadonlySignal<T>
  keep(next: T): void
}

/**
 * A user's choice, stored in this browser under the user's id. `read` checks the stored value; if it returns null,
 * `fallback` is used.
 */
export function preference<T>(name: string, fallback: T, read: (found: unknown) => T | null): Preference<T> {
  const value = signal(fallback)
  const keyOf = (id: number | undefined) => (id === undefined ? null : ownName(`${name}:${id}`))
  const load = (key: string | null) => {
    try {
      const found: unknown = key === null ? null : JSON.parse(localStorage.getItem(key) ?? 'null')
      return read(found) ?? fallback
    } catch {
      // Storage is blocked, or contains something else.
      return fallback
    }
  }
  effect(() => {
    value.value = load(keyOf(user.value?.id))
  })
  return {
    value,
    keep: (next) => {
      value.value = next
      const key = keyOf(user.peek()?.id)
      try {
        if (key !== null) localStorage.setItem(key, JSON.stringify(next))
      } catch {
        // Storage is blocked: the choice lasts as long as the page.
      }
    },
  }
}

/** `found` if it is a list and `isOne` accepts every element. */
export function readList<T>(found: unknown, isOne: (item: unknown) => item is T): readonly T[] | null {
  return Array.isArray(found) && found.every(isOne) ? found : null
}
