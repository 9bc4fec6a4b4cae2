/** The outcome of a change of a radio's settings. `waiting`: for the collector of that radio. */
export const CHANGE_STATES = ['waiting', 'applying', 'applied', 'differs', 'failed', 'unknown'] as const
export type ChangeState = (typeof CHANGE_STATES)[number]

/** Whether the outcome is still to come. */
export function isUnderWay(state: ChangeState | undefined): boolean {
  return state === 'waiting' || state === 'applying'
}
