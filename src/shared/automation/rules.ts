/** How `words` are searched in a text, regardless of case. */
export const MATCH_MODES = ['exact', 'prefix', 'word', 'contains', 'wildcard'] as const
export type MatchMode = (typeof MATCH_MODES)[number]

/** The outcome of a run. */
export const OUTCOMES = ['sending', 'sent', 'skipped', 'failed'] as const
export type Outcome = (typeof OUTCOMES)[number]
/** How a run ended. */
export type RunEnd = Exclude<Outcome, 'sending'>
