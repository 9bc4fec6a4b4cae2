import { ownName } from '../api.ts'

/** Unsent texts, kept in this tab through a reload and another sign-in. */
const PREFIX = ownName('draft:')
/** Used if the browser stores nothing. */
const fallback = new Map<string, string>()

/** `place` distinguishes drafts: user and conversation. */
export function readDraft(place: string): string {
  try {
    return sessionStorage.getItem(PREFIX + place) ?? ''
  } catch {
    return fallback.get(place) ?? ''
  }
}

export function keepDraft(place: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(PREFIX + place)
    else sessionStorage.setItem(PREFIX + place, text)
  } catch {
    fallback.set(place, text)
  }
}

/** Deletes a user's drafts when they sign out. */
export function dropDrafts(): void {
  fallback.clear()
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key)
  } catch {
    // Storage is blocked, so nothing is stored there.
  }
}
