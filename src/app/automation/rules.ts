import * as z from 'zod'
import { countTextBytes } from '../../meshtastic/link/to-radio.ts'
import { isTimeZone } from '../config/time-zone.ts'
import { cronProblem, isPattern } from './cron.ts'
import { acknowledge } from './kinds/acknowledge.ts'
import { announce } from './kinds/announce.ts'
import type { HeardKind, Kind, Problem, TimedKind, Timing } from './kinds/kind.ts'
import { schedule } from './kinds/schedule.ts'
import { traceroute } from './kinds/traceroute.ts'
import { unknownTokens } from './template.ts'
import { namesOf } from '../../shared/names.ts'
import { widestText } from '../../shared/automation/tokens.ts'
import { MAX_TEXT_BYTES } from '../../shared/limits.ts'

/** The implementation of each kind of rule. The only list of the kinds: the page has a form for each. */
const KINDS = { announce, acknowledge, traceroute, schedule }
type Kinds = typeof KINDS

const [first, ...others] = namesOf(KINDS)
const schemaOf = <Name extends keyof Kinds>(name: Name): Kinds[Name]['schema'] => KINDS[name].schema

/** A rule as stored. Parts that depend on the runtime, such as its time zones, were checked when it was saved. */
export const ruleSchema = z
  .discriminatedUnion('kind', [schemaOf(first), ...others.map(schemaOf)])
  .meta({ id: 'Rule', description: 'What is sent automatically, and when' })
export type Rule = z.infer<typeof ruleSchema>

type RuleBy<How> = {
  [Name in keyof Kinds]: Kinds[Name] extends How ? z.infer<Kinds[Name]['schema']> : never
}[keyof Kinds]
/** Rules that run on a schedule. */
export type TimedRule = RuleBy<{ runs: 'timed' }>
/** Rules that run when a message arrives. */
export type HeardRule = RuleBy<{ runs: 'heard' }>

// A kind's methods may take narrower parameters: they only get rules and messages of their own kind.
function kindOf({ kind }: Rule): Kind<Rule> {
  return KINDS[kind]
}

export function timedKindOf({ kind }: TimedRule): TimedKind<Rule> {
  return KINDS[kind]
}

export function heardKindOf({ kind }: HeardRule): HeardKind<Rule> {
  return KINDS[kind]
}

export function isTimed(rule: Rule): rule is TimedRule {
  return kindOf(rule).runs === 'timed'
}

/** When a scheduled rule runs. */
export function timingOf(rule: TimedRule): Timing {
  return timedKindOf(rule).timingOf(rule)
}

/** Whether this version supports the parts of a stored rule: its pattern, and the tokens in its text. */
export function isUnderstood(rule: Rule): boolean {
  const { tokens, textOf } = kindOf(rule)
  const timing = isTimed(rule) ? timingOf(rule) : null
  const hasPattern = timing === null || !('cron' in timing) || isPattern(timing.cron)
  return hasPattern && unknownTokens(textOf(rule)?.text ?? '', tokens).length === 0
}

/** A rule to save, or to try out. */
export const newRuleSchema = ruleSchema.superRefine((rule, issues) => {
  for (const { path, message } of problemsOf(rule)) issues.addIssue({ code: 'custom', path: [...path], message })
})

/** Any fixed moment will do, because patterns repeat. */
const SOME_TIME = Date.UTC(2026, 0, 1)

function problemsOf(rule: Rule): Problem[] {
  return [
    ...(isTimeZone(rule.timeZone) ? [] : [{ path: ['timeZone'], message: 'not a time zone' }]),
    ...(isTimed(rule) ? timingProblems(timingOf(rule)) : []),
    ...textProblems(rule),
    ...kindOf(rule).problemsOf(rule),
  ]
}

function timingProblems(timing: Timing): Problem[] {
  if ('everyMs' in timing) return []
  const message = cronProblem(timing.cron, timing.minGapMs, SOME_TIME)
  return message === null ? [] : [{ path: timing.path, message }]
}

function textProblems(rule: Rule): Problem[] {
  const { tokens, textOf } = kindOf(rule)
  const template = textOf(rule)
  if (template === null) return []
  const { path, text } = template
  const unknown = unknownTokens(text, tokens)
  if (unknown.length > 0) return [{ path, message: `unknown token ${unknown.join(', ')}` }]
  const bytes = countTextBytes(widestText(text))
  if (bytes <= MAX_TEXT_BYTES) return []
  const message = `may have ${bytes} bytes when its tokens are filled in, at most ${MAX_TEXT_BYTES} can be sent`
  return [{ path, message }]
}
