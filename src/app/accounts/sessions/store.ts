import type { Reading } from '../../../db/store.ts'

export type StoredSession = {
  /** Public number of the session, unique in the store. */
  readonly id: number
  /** SHA-256 of the token, hexadecimal. */
  readonly tokenHash: string
  readonly userId: number
  /** The user's `sessionEpoch` when the password or the provider's answer was checked. */
  readonly epoch: number
  readonly createdAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  readonly ip: string | null
  readonly userAgent: string | null
  /** Issuer that signed the user in; null for a local sign-in. */
  readonly oidcIssuer: string | null
  /** When the user last proved who they are; null: when the session began. */
  readonly authenticatedAt: number | null
  /** The number of factors used; null: unknown. */
  readonly factors: number | null
  /** When the user last proved a second factor of this service; null: never in this session. */
  readonly factorAt: number | null
}

/** Keyed by SHA-256 of the token, never the token. `test/contract/session-store.ts` tests every store. */
export interface SessionStore extends Counters {
  /** The sessions are in a table of the database, beside the users. */
  readonly isInDatabase?: true
  /** Returns the live sessions of its user afterwards, as `list` does. */
  insert(session: StoredSession): Promise<StoredSession[]>
  /** The session whose `expiresAt` is after `now`. */
  find(tokenHash: string, now: number): Promise<StoredSession | null> | StoredSession | null
  /** Does nothing if the session no longer exists. */
  extend(tokenHash: string, lastSeenAt: number, expiresAt: number): Promise<void>
  /** Returns whether the session existed: of several simultaneous calls, one returns true. */
  remove(tokenHash: string): Promise<boolean>
  /** Ends all sessions of a user, except the one with the token hash `except`. Returns their number. */
  removeForUser(userId: number, except?: string): Promise<number>
  /** Live sessions of a user, the most recently seen first. */
  list(userId: number, now: number): Promise<StoredSession[]>
  /** Rejects while the store does not answer. Absent: the store answers whenever the database does. */
  probe?(): Promise<void>
}

/** Counts events in time windows: password attempts, used-up sign-ins. */
export interface Counters {
  /**
   * Counts one attempt against `key`, atomically across all instances. The first one opens a window of `windowMs`.
   * Returns the count in the window including this one, and when the window ends.
   */
  hit(key: string, windowMs: number, now: number): Promise<{ count: number; resetAt: number }>
  /**
   * As `hit` for each key in turn, until a count is above its `most`, which is then the last result. The rows of
   * `reading` come in the same round trip. Absent if a `hit` needs no round trip.
   */
  hits?<T>(
    limits: readonly { readonly key: string; readonly most: number }[],
    window: { readonly ms: number; readonly now: number },
    reading: Reading<T> | null,
  ): Promise<{ readonly counts: readonly { count: number; resetAt: number }[]; readonly rows: T | null }>
  /** Takes attempts back: `all` of them, or the latest one. */
  forgive(key: string, how: 'all' | 'one'): Promise<void>
  /** As `forgive` for each, in one round trip. Absent if `hits` is. */
  forgives?(all: readonly { readonly key: string; readonly how: 'all' | 'one' }[]): Promise<void>
  /** Deletes every count whose key has this prefix. */
  clear(prefix: string): Promise<void>
  /** Deletes expired entries. Called now and then; stores that expire entries themselves do nothing. */
  sweep(now: number): Promise<void>
}
