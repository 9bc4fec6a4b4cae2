/** `pending`: the condition holds, but not long enough yet. */
export const ALERT_STATES = ['pending', 'firing', 'resolved'] as const
export type AlertState = (typeof ALERT_STATES)[number]

/** The states of a watched node, the most urgent first. */
export const WATCHED_STATES = ['firing', 'unknown', 'pending', 'muted', 'unheard', 'well'] as const
export type WatchedState = (typeof WATCHED_STATES)[number]

/** The events of an area that a rule can watch. */
export const AREA_EVENTS = ['enters', 'leaves', 'moves'] as const

/** The maximum number of rules of one user. */
export const MAX_ALERT_RULES = 50
export const MAX_DESTINATIONS = 20
/** The maximum length of a rule's list. */
export const MAX_WATCHED = 200
/** What counts as heard for a rule about silence: any source, or our own radios only. */
export const HEARD_BY = ['any', 'radios'] as const

/** Minutes. */
export const SILENT_MINUTES = { min: 15, max: 43_200 } as const
export const METRIC_MINUTES = { min: 0, max: 1440 } as const
