/** What a rule found about one node or one radio. */
export type Finding = {
  /** A rule has one open alert for each. */
  readonly subject: string
  /** Identifies this occurrence: it fires once. */
  readonly key: string
  readonly nodeNum: number | null
  /** The channel of the data; null: none. */
  readonly channel: number | null
  /** Start of the condition. */
  readonly since: number
  /** How long the condition must last before it fires, in milliseconds. */
  readonly forMs: number
  /** False: the condition cannot be judged now, and open alerts stay as they are. */
  readonly isKnown: boolean
  /** What happened, as a sentence. */
  readonly what: string
}

/** An alert that is not over. */
export type Open = { readonly startedAt: number; readonly firedAt: number | null }

/** Alerts of one rule that are not over, by subject. */
export type OpenAlerts = ReadonlyMap<string, Open>

export const nodeSubject = (nodeNum: number): string => `node:${nodeNum}`
