import { ownedBy } from '../../base/owned.ts'
import type { SessionStore, StoredSession } from './store.ts'

/** The maximum number of known times of use. Beyond it, those not read for the longest time are dropped. */
const MAX_KNOWN = 10_000

const knownUses = ownedBy((_sessions: SessionStore) => new Map<string, number>())

/** Remembers in memory when a session was used, because a write for each use would wear out a memory card. */
export function noteUse(sessions: SessionStore, tokenHash: string, at: number): void {
  const known = knownUses(sessions)
  // Moved to the end, so that the first one is the least recently used.
  known.delete(tokenHash)
  known.set(tokenHash, at)
  const [first] = known.keys()
  if (known.size > MAX_KNOWN && first !== undefined) known.delete(first)
}

/** When this process last saw a session used; null if the store has a later time. */
export function knownUse(sessions: SessionStore, { tokenHash, lastSeenAt }: StoredSession): number | null {
  const known = knownUses(sessions).get(tokenHash)
  return known !== undefined && known >= lastSeenAt ? known : null
}

const ended = ownedBy((_sessions: SessionStore) => new Set<string>())

/** Remembers that a session has ended, even if the store cannot be written. */
export function noteEnd(sessions: SessionStore, tokenHash: string): void {
  ended(sessions).add(tokenHash)
}

export function hasEnded(sessions: SessionStore, tokenHash: string): boolean {
  return ended(sessions).has(tokenHash)
}

/** Ended sessions that may still be in the store. */
export function listEnded(sessions: SessionStore): string[] {
  return [...ended(sessions)]
}

/** Called when the store no longer contains the session. */
export function forgetEnd(sessions: SessionStore, tokenHash: string): void {
  ended(sessions).delete(tokenHash)
}
