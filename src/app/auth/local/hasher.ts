/** bcrypt. Passwords arrive normalised and at most 72 bytes long. */
export interface PasswordHasher {
  /** Requests may wait for each other: this runtime drops none in the middle. */
  readonly mayWait?: true
  hash(password: string): Promise<string>
  /** False for a hash that is not bcrypt. `turn`: strangers wait behind those who are known, in a queue of their own. */
  verify(password: string, hash: string, turn: 'known' | 'stranger'): Promise<boolean>
}
