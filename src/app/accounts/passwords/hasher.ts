/** bcrypt. Passwords arrive normalised and at most 72 bytes long. */
export interface PasswordHasher {
  /** Requests may wait for each other, because this runtime does not drop a request while it waits. */
  readonly mayWait?: true
  hash(password: string): Promise<string>
  /** False for a hash that is not bcrypt. `turn`: strangers wait behind known browsers, in a separate queue. */
  verify(password: string, hash: string, turn: 'known' | 'anonymous'): Promise<boolean>
}
