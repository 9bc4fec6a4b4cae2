import { decimal, duration, humanize } from '../../format.ts'
import { a } from '../../strings/automation.ts'
import type { Channels } from './channels.ts'
import { viewOf } from './kinds/kinds.ts'
import type { DryRun, Rule } from './rule.ts'
import { MINUTE_MS } from '../../../shared/time.ts'

/** An airtime in words. */
export function airtime(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < MINUTE_MS ? `${decimal(ms / 1000)} s` : duration(ms / 1000)
}

/** The airtime of a rule per day. */
export function airADay({ packetsPerDay, airtimeMsPerDay, isUpperBound }: DryRun['estimate']): string {
  if (packetsPerDay === 0) return a.quietAir
  const text = a.airADay(decimal(packetsPerDay), airtime(airtimeMsPerDay))
  return isUpperBound ? a.atMost(text) : a.about(text)
}

export function modemName(preset: string): string {
  return preset === 'custom' ? a.customModem : humanize(preset)
}

/** A rule in one line. */
export function summary(rule: Rule, channels: Channels): string {
  return viewOf(rule.kind).summary(rule, channels).join(' · ')
}
