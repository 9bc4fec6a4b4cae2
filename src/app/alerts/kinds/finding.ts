/** What a rule found to be so, about one node or one radio. */
export type Finding = {
  /** One alert of a rule is open for each. */
  readonly subject: string
  /** Names this occurrence: it fires once. */
  readonly key: string
  readonly nodeNum: number | null
  /** On which channel came what it tells; null: on none. */
  readonly channel: number | null
  /** Since when it is so. */
  readonly since: number
  /** For how long it must be so before it fires, in milliseconds. */
  readonly forMs: number
  /** False: nobody can tell now, and what is open stays as it is. */
  readonly isKnown: boolean
  /** A plain sentence. */
  readonly what: string
}

/** An alert that is not over. */
export type Open = { readonly startedAt: number; readonly firedAt: number | null }

/** Alerts of one rule that are not over, by subject. */
export type OpenAlerts = ReadonlyMap<string, Open>

export const nodeSubject = (nodeNum: number): string => `node:${nodeNum}`
