/** Something that a user should look at, in one sentence. */
export type Need = {
  readonly key: string
  readonly severity: 'error' | 'warning' | 'info'
  readonly text: string
  /** Since when it has been so, in milliseconds since the epoch; null: unknown. */
  readonly since: number | null
  /** More about it, each in a few words. */
  readonly details: readonly string[]
  /** Where something can be done about it; null: nowhere in these pages. */
  readonly remedy: Remedy | null
  /** The alert that can be acknowledged. */
  readonly alertId?: number
}

export type Remedy = { readonly path: string; readonly name: string }
