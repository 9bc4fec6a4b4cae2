/** The outcome of a change of a radio's settings. */
export const CHANGE_STATES = ['applying', 'applied', 'differs', 'failed', 'unknown'] as const
export type ChangeState = (typeof CHANGE_STATES)[number]
