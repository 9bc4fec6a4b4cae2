/** How changes reach the disk. */
export type Writes = {
  /** Runs a change, in one transaction or as one statement. It is on the disk when this returns, or resolves. */
  change<T>(run: () => T): T | Promise<T>
  /** See `Store.lazily`. */
  lazily<T>(run: () => T | Promise<T>): T | Promise<T>
  /** Resolves when what has been changed so far is on the disk; null: it is. Changes of `lazily` do not count. */
  pending(): Promise<void> | null
}
