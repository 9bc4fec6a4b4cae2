import { cronSlots, type Slots } from './cron.ts'
import type { Rule, TimedRule } from './rules.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'

/** A run that is later than this is skipped: what was due while the service did not run is not made up for. */
export const GRACE_MS = 2 * MINUTE_MS
/** So many runs, and so far, are looked at for one outside of quiet hours. */
const SEARCHED_SLOTS = 50
const SEARCHED_MS = 48 * HOUR_MS

/** Whether nothing changes of when two rules run. */
export function hasSameTiming(a: Rule, b: Rule): boolean {
  return timingOf(a) === timingOf(b)
}

function timingOf(rule: Rule): string {
  switch (rule.kind) {
    case 'announce':
      return rule.when.kind === 'cron' ? `announce ${rule.when.cron} ${rule.timeZone}` : `announce ${rule.when.hours}`
    case 'schedule':
      return `schedule ${rule.cron} ${rule.timeZone}`
    case 'traceroute':
      return `traceroute ${rule.everyMinutes}`
    case 'acknowledge':
      return 'acknowledge'
    default:
      return rule satisfies never
  }
}

/** Milliseconds between two runs; null for a rule with a cron pattern. */
export function intervalOf(rule: TimedRule): number | null {
  if (rule.kind === 'traceroute') return rule.everyMinutes * MINUTE_MS
  return rule.kind === 'announce' && rule.when.kind === 'interval' ? rule.when.hours * HOUR_MS : null
}

/** The run after one that is over; intervals count from there. */
function slotsOf(rule: TimedRule): Slots {
  const interval = intervalOf(rule)
  if (interval !== null) return (after) => after + interval
  if (rule.kind === 'schedule') return cronSlots(rule.cron, rule.timeZone)
  if (rule.kind === 'announce' && rule.when.kind === 'cron') return cronSlots(rule.when.cron, rule.timeZone)
  throw new Error(`no times of a rule of kind ${rule.kind}`)
}

/** The run after one that is over; null: there is none. */
export function followingSlot(rule: TimedRule, slot: number): number | null {
  return slotsOf(rule)(slot)
}

export type Due =
  | { readonly kind: 'due'; readonly slot: number }
  /** It was due too long ago; runs until `slot` are over with that. */
  | { readonly kind: 'missed'; readonly slot: number }
  /** Null: never again. */
  | { readonly kind: 'later'; readonly at: number | null }

/** What a rule is to do at `now`, when runs until `anchorAt` are over. */
export function dueSlot(rule: TimedRule, anchorAt: number, now: number): Due {
  const slot = slotsOf(rule)(anchorAt)
  if (slot === null || slot > now) return { kind: 'later', at: slot }
  return slot >= now - GRACE_MS ? { kind: 'due', slot } : { kind: 'missed', slot: lastMissed(rule, anchorAt, now) }
}

/** The latest moment until which all runs were missed. An interval keeps its pace. */
function lastMissed(rule: TimedRule, anchorAt: number, now: number): number {
  const interval = intervalOf(rule)
  const end = now - GRACE_MS - 1
  return interval === null ? end : anchorAt + Math.floor((end - anchorAt) / interval) * interval
}

/** The runs after `now`, in quiet hours or not, one after the other: each costs a look at the calendar. */
export function* upcomingSlots(rule: TimedRule, anchorAt: number, now: number): Generator<number, void> {
  const slots = slotsOf(rule)
  const anchor = anchorAt < now ? lastMissed(rule, anchorAt, now + GRACE_MS + 1) : anchorAt
  for (let slot = slots(Math.max(anchor, anchorAt)); slot !== null; slot = slots(slot)) yield slot
}

/** When a rule that is on runs next, outside of its quiet hours; null: not at all, or only when something is said. */
export function nextRunAt(rule: Rule, anchorAt: number, now: number): number | null {
  if (!rule.enabled || rule.kind === 'acknowledge') return null
  const isQuiet = quietAt(rule)
  let seen = 0
  for (const slot of upcomingSlots(rule, anchorAt, now)) {
    if (!isQuiet(slot)) return slot
    seen += 1
    // The times of a day come again: when they are all quiet, they always are.
    if (seen > SEARCHED_SLOTS && slot > now + SEARCHED_MS) return null
  }
  return null
}

/** Whether a moment is in the quiet hours of a rule. */
export function quietAt({ quietHours, timeZone }: Rule): (t: number) => boolean {
  if (quietHours === null) return () => false
  const { from, to } = quietHours
  const timeOf = localTime(timeZone)
  return (t) => {
    const time = timeOf(t)
    return from < to ? from <= time && time < to : from <= time || time < to
  }
}

/** HH:MM of a moment. */
export function localTime(timeZone: string): (t: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return (t) => format.format(t)
}

/** YYYY-MM-DD of a moment. */
export function localDate(timeZone: string): (t: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone })
  return (t) => format.format(t)
}
