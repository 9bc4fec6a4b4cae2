import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'
import { decimal, duration, humanize } from '../../format.ts'
import { nameOfId } from '../../state/mesh.ts'
import { a } from '../../strings/automation.ts'
import type { Channels } from './channels.ts'
import { nodeIdOf, type Rule } from './draft.ts'
import { MINUTE_MS } from '../../../shared/time.ts'

export type DryRun = Extract<InferResponseType<(typeof api.automation)['dry-run']['$post']>, { messages: unknown }>

/** A time on the air, in words. */
export function airtime(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < MINUTE_MS ? `${decimal(ms / 1000)} s` : duration(ms / 1000)
}

/** What a rule takes of the air in a day. */
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
  const on = (indexes: readonly number[]) => indexes.map(channels.name)
  switch (rule.kind) {
    case 'announce':
      return [
        rule.when.kind === 'cron' ? rule.when.cron : a.every(duration(rule.when.hours * 3600)),
        ...on(rule.channels),
      ].join(' · ')
    case 'acknowledge':
      return [
        rule.match.words.map((word) => `“${word}”`).join(', '),
        ...on(rule.channels),
        ...(rule.direct ? [a.directly] : []),
      ].join(' · ')
    case 'traceroute':
      return [
        a.every(duration(rule.everyMinutes * 60)),
        rule.targets.kind === 'oldest'
          ? a.targetKinds.oldest
          : rule.targets.nodes.map((nodeNum) => nameOfId(nodeIdOf(nodeNum))).join(', '),
      ].join(' · ')
    case 'schedule': {
      const { cron, action } = rule
      const whom = action.to === null ? null : nameOfId(nodeIdOf(action.to))
      if (action.kind === 'traceroute') return [cron, a.routeTo(whom ?? '')].join(' · ')
      return [cron, whom ?? channels.name(action.channel)].join(' · ')
    }
    default:
      return rule satisfies never
  }
}
