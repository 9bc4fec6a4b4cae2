import { DAY_MS } from '../../../../shared/time.ts'

/**
 * Evidence that a node exists: the number of days on which it was heard, by the clock of this service. Node numbers can
 * be made up in seconds; days cannot.
 */
export type Evidence = {
  readonly daysHeard: number | null
  readonly lastHeardDay: number | null
  readonly heardByRadio: boolean
  readonly firstHeard: number
  readonly lastHeard: number | null
}

/** The most days that claims by a collector, a radio's memory or an older database count for. */
const MAX_CLAIMED = 7
/** A node that was silent for more days counts half. */
const SILENT_DAYS = 60

/** Days since the epoch, UTC. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** The known number of days on which a node was heard. */
export function countDays(node: Evidence): number {
  return node.daysHeard ?? claimedDays(node)
}

/** The rank of a node among those that were heard in the same way: more days rank higher. `today` as in `dayOf`. */
export function weigh(node: Evidence, today: number): number {
  const days = countDays(node)
  const lastDay = node.lastHeardDay ?? dayOf(node.lastHeard ?? node.firstHeard)
  return today - lastDay > SILENT_DAYS ? Math.floor(days / 2) : days
}

function claimedDays({ firstHeard, lastHeard }: Evidence): number {
  return Math.min(MAX_CLAIMED, dayOf(lastHeard ?? firstHeard) - dayOf(firstHeard) + 1)
}

const day = (column: string) => `(${column} / ${DAY_MS})`
const LAST = 'coalesce(last_heard, first_heard)'

/** SQL: the days of a row of `nodes`, as in `weigh`. */
export const DAYS_HEARD = `coalesce(days_heard, min(${MAX_CLAIMED}, ${day(LAST)} - ${day('first_heard')} + 1))`

const KNOWN_DAY = `coalesce(last_heard_day, iif(days_heard is null, ${day(LAST)}, -1))`

const evidence = (isAnother: string) => `
  days_heard = iif(excluded.last_heard_day is null, days_heard, ${DAYS_HEARD} + (${isAnother})),
  last_heard_day = iif(excluded.last_heard_day is null or not (${isAnother}), last_heard_day, excluded.last_heard_day),
  heard_by_radio = max(heard_by_radio, excluded.heard_by_radio),
  source_id = coalesce(source_id, excluded.source_id)`

/** SQL of an upsert: a node is heard now. A day far in the future came from a wrong clock. */
export const HEARD_EVIDENCE = evidence(
  `excluded.last_heard_day > ${KNOWN_DAY} or excluded.last_heard_day < ${KNOWN_DAY} - 1`,
)

/** SQL of an upsert: a source reports that it heard a node at this time. */
export const CLAIMED_EVIDENCE = evidence(`excluded.last_heard_day > ${KNOWN_DAY} and ${DAYS_HEARD} < ${MAX_CLAIMED}`)
