/** bcrypt. Passwords arrive normalised and at most 72 bytes long. */
export interface PasswordHasher {
  /** Requests may wait for each other, because this runtime does not drop waiting requests. */
  readonly mayWait?: true
  hash(password: string): Promise<string>
  /**
   * False for a hash that is not bcrypt. `turn`: requests from unknown browsers wait behind those from known ones, in a
   * separate queue.
   */
  verify(password: string, hash: string, turn: 'known' | 'anonymous'): Promise<boolean>
}
