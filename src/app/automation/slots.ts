import { cronSlots, type Slots } from './cron.ts'
import { GRACE_MS } from './kinds/kind.ts'
import { quietAt } from './local-time.ts'
import { isTimed, type Rule, type TimedRule, timingOf } from './rules.ts'
import { HOUR_MS } from '../../shared/time.ts'

/** How many runs, and how far ahead, are searched for one outside quiet hours. */
const SEARCHED_SLOTS = 50
const SEARCHED_MS = 48 * HOUR_MS

/** Whether two rules run at the same times. */
export function hasSameTiming(a: Rule, b: Rule): boolean {
  return timesOf(a) === timesOf(b)
}

function timesOf(rule: Rule): string {
  if (!isTimed(rule)) return rule.kind
  const timing = timingOf(rule)
  return 'cron' in timing ? `${rule.kind} ${timing.cron} ${rule.timeZone}` : `${rule.kind} ${timing.everyMs}`
}

/** Milliseconds between two runs; null for a rule with a cron pattern. */
function intervalOf(rule: TimedRule): number | null {
  const timing = timingOf(rule)
  return 'everyMs' in timing ? timing.everyMs : null
}

/** The run after a finished one; intervals count from its time. */
function slotsOf(rule: TimedRule): Slots {
  const timing = timingOf(rule)
  return 'cron' in timing ? cronSlots(timing.cron, rule.timeZone) : (after) => after + timing.everyMs
}

/** The run after a finished one; null: there is none. */
export function followingSlot(rule: TimedRule, slot: number): number | null {
  return slotsOf(rule)(slot)
}

export type Due =
  | { readonly kind: 'due'; readonly slot: number }
  /** The run was due too long ago: all runs until `slot` are over. */
  | { readonly kind: 'missed'; readonly slot: number }
  /** Null: never again. */
  | { readonly kind: 'later'; readonly at: number | null }

/** What the rule has to do at `now`, if all runs until `anchorAt` are finished. */
export function dueSlot(rule: TimedRule, anchorAt: number, now: number): Due {
  const slot = slotsOf(rule)(anchorAt)
  if (slot === null || slot > now) return { kind: 'later', at: slot }
  return slot >= now - GRACE_MS ? { kind: 'due', slot } : { kind: 'missed', slot: lastMissed(rule, anchorAt, now) }
}

/** The latest moment until which all runs were missed. An interval keeps its rhythm. */
function lastMissed(rule: TimedRule, anchorAt: number, now: number): number {
  const interval = intervalOf(rule)
  const end = now - GRACE_MS - 1
  return interval === null ? end : anchorAt + Math.floor((end - anchorAt) / interval) * interval
}

/** The runs after `now`, including those in quiet hours, one after the other. Each costs a calendar look-up. */
export function* upcomingSlots(rule: TimedRule, anchorAt: number, now: number): Generator<number, void> {
  const slots = slotsOf(rule)
  const anchor = anchorAt < now ? lastMissed(rule, anchorAt, now + GRACE_MS + 1) : anchorAt
  for (let slot = slots(Math.max(anchor, anchorAt)); slot !== null; slot = slots(slot)) yield slot
}

/** When an enabled rule runs next, outside its quiet hours; null: never, or only when a message arrives. */
export function nextRunAt(rule: Rule, anchorAt: number, now: number): number | null {
  if (!rule.enabled || !isTimed(rule)) return null
  const isQuiet = quietAt(rule)
  let seen = 0
  for (const slot of upcomingSlots(rule, anchorAt, now)) {
    if (!isQuiet(slot)) return slot
    seen += 1
    // The times of a day repeat: if all of them are in quiet hours, they always are.
    if (seen > SEARCHED_SLOTS && slot > now + SEARCHED_MS) return null
  }
  return null
}
