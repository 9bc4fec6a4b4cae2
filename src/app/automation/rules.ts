import * as z from 'zod'
import { BROADCAST } from '../../meshtastic/node-id.ts'
import { countTextBytes } from '../../meshtastic/link/to-radio.ts'
import { bodyNodeNum } from '../mesh/messages/send.ts'
import { CRON_PATTERN, cronProblem, isPattern, isTimeZone } from './cron.ts'
import { unknownTokens } from './template.ts'
import { MATCH_MODES, type RuleKind } from '../../shared/rule-kinds.ts'
import { widestText } from '../../shared/tokens.ts'
import { MAX_TEXT_BYTES } from '../../shared/limits.ts'
import { HOUR_MS } from '../../shared/time.ts'

/** Least time between two announcements, in hours. */
export const MIN_ANNOUNCE_HOURS = 3
/** Least time between two runs of a traceroute or a schedule, in minutes. */
export const MIN_RUN_MINUTES = 5

const printable = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'no control characters and no half characters')

const nameSchema = printable(64).refine((name) => name === name.trim(), 'no space at the ends')
const cronSchema = z
  .string()
  .regex(CRON_PATTERN, 'five fields: minute, hour, day of month, month, day of week')
  .describe('Minute, hour, day of month, month, day of week, e.g. `30 8 * * 1-5`; read in timeZone')
const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time HH:MM')
const channel = z.int().min(0).max(7)
const eachOnce = (values: readonly number[]) => new Set(values).size === values.length
const channelsSchema = z.array(channel).max(8).refine(eachOnce, 'each channel once')
const targetNode = bodyNodeNum.refine((nodeNum) => nodeNum < BROADCAST, 'one node')
const templateSchema = z
  .string()
  .max(400)
  .refine((text) => text.trim() !== '', 'not empty')
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'text without NUL and half characters')
  .describe(`May hold tokens such as {longName}; at most ${MAX_TEXT_BYTES} bytes when they are filled in`)

const quietHoursSchema = z
  .strictObject({ from: timeOfDay, to: timeOfDay })
  .refine(({ from, to }) => from !== to, 'from and to differ')
  .describe('Nothing is sent from `from` to before `to`, in timeZone; may cross midnight')
  .meta({ id: 'QuietHours' })

const common = {
  name: nameSchema.describe('Unique without regard to case'),
  enabled: z.boolean().default(false),
  timeZone: z
    .string()
    .max(64)
    .default('UTC')
    .describe('IANA name; of cron patterns, quiet hours, and the tokens {date} and {time}'),
  quietHours: quietHoursSchema.nullable().default(null),
}

const timingSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('interval'), hours: z.int().min(MIN_ANNOUNCE_HOURS).max(720) }),
  z.strictObject({ kind: z.literal('cron'), cron: cronSchema }),
])

const announceSchema = z
  .strictObject({
    kind: z.literal('announce'),
    ...common,
    when: timingSchema.describe(`At least ${MIN_ANNOUNCE_HOURS} hours apart`),
    channels: channelsSchema.min(1),
    text: templateSchema,
  })
  .meta({ id: 'AnnounceRule', description: 'Sends a text to channels again and again' })

const matchSchema = z.strictObject({
  mode: z
    .enum(MATCH_MODES)
    .default('word')
    .describe('word: stands alone in the text; wildcard: the whole text, * any characters, ? one'),
  words: z
    .array(printable(64).refine((word) => word.trim() !== '', 'not empty'))
    .min(1)
    .max(20)
    .describe('One of them is enough; upper and lower case are the same'),
})

const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('tapback'),
    emoji: printable(16).refine((emoji) => emoji.trim() !== '' && countTextBytes(emoji) <= 32, 'one emoji'),
  }),
  z.strictObject({
    kind: z.literal('text'),
    text: templateSchema,
    direct: z
      .boolean()
      .default(false)
      .describe('Answer what was said on a channel to its sender alone; a direct message is always answered directly'),
  }),
])

const acknowledgeSchema = z
  .strictObject({
    kind: z.literal('acknowledge'),
    ...common,
    match: matchSchema,
    channels: channelsSchema.default([]),
    direct: z.boolean().default(false).describe('Direct messages to the radio'),
    answer: answerSchema,
  })
  .meta({ id: 'AcknowledgeRule', description: 'Answers certain words' })

const targetsSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('list'),
    nodes: z.array(targetNode).min(1).max(50).refine(eachOnce, 'each node once').describe('Node numbers or !hex'),
  }),
  z.strictObject({
    kind: z.literal('oldest'),
    activeWithinHours: z
      .int()
      .min(1)
      .max(720)
      .default(24)
      .describe('Of nodes heard in the last so many hours, the one whose last traceroute is the longest ago'),
  }),
])

const tracerouteRuleSchema = z
  .strictObject({
    kind: z.literal('traceroute'),
    ...common,
    everyMinutes: z.int().min(MIN_RUN_MINUTES).max(10_080),
    targets: targetsSchema,
  })
  .meta({ id: 'TracerouteRule', description: 'Traces routes to nodes in turn' })

const actionSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('text'),
    text: templateSchema,
    channel: channel.default(0),
    to: targetNode.nullable().default(null).describe('Node number or !hex; null: everybody'),
  }),
  z.strictObject({ kind: z.literal('traceroute'), to: targetNode }),
])

const scheduleSchema = z
  .strictObject({
    kind: z.literal('schedule'),
    ...common,
    cron: cronSchema,
    action: actionSchema,
  })
  .meta({ id: 'ScheduleRule', description: 'Sends a text or traces a route at certain times' })

/** A rule as it is stored. What depends on the runtime, such as its time zones, was checked when it was saved. */
export const ruleSchema = z
  .discriminatedUnion('kind', [announceSchema, acknowledgeSchema, tracerouteRuleSchema, scheduleSchema])
  .meta({ id: 'Rule', description: 'What is sent by itself, and when' })
export type Rule = z.infer<typeof ruleSchema>
export type RuleOf<K extends RuleKind> = Extract<Rule, { kind: K }>
/** Rules that run by the clock. */
export type TimedRule = Exclude<Rule, { kind: 'acknowledge' }>

/** Whether this version knows what a stored rule is made of: its pattern, and the tokens of its text. */
export function isUnderstood(rule: Rule): boolean {
  const cron = cronOf(rule)
  const text = templateOf(rule)?.text ?? ''
  return (cron === null || isPattern(cron)) && unknownTokens(text, rule.kind === 'acknowledge').length === 0
}

function cronOf(rule: Rule): string | null {
  if (rule.kind === 'schedule') return rule.cron
  return rule.kind === 'announce' && rule.when.kind === 'cron' ? rule.when.cron : null
}

/** A rule that somebody wants to save, or to try. */
export const newRuleSchema = ruleSchema.superRefine((rule, issues) => {
  for (const { path, message } of problemsOf(rule)) issues.addIssue({ code: 'custom', path: [...path], message })
})

type Problem = { readonly path: readonly (string | number)[]; readonly message: string }

/** A fixed moment will do: patterns come round again. */
const SOME_TIME = Date.UTC(2026, 0, 1)

function problemsOf(rule: Rule): Problem[] {
  return [
    ...(isTimeZone(rule.timeZone) ? [] : [{ path: ['timeZone'], message: 'not a time zone' }]),
    ...timingProblems(rule),
    ...textProblems(rule),
    ...(rule.kind === 'acknowledge' && rule.channels.length === 0 && !rule.direct
      ? [{ path: ['channels'], message: 'a channel, or direct messages' }]
      : []),
  ]
}

function timingProblems(rule: Rule): Problem[] {
  if (rule.kind === 'schedule') return cronProblems(['cron'], rule.cron, MIN_RUN_MINUTES * 60_000)
  if (rule.kind !== 'announce' || rule.when.kind !== 'cron') return []
  return cronProblems(['when', 'cron'], rule.when.cron, MIN_ANNOUNCE_HOURS * HOUR_MS)
}

function cronProblems(path: Problem['path'], cron: string, minGapMs: number): Problem[] {
  const message = cronProblem(cron, minGapMs, SOME_TIME)
  return message === null ? [] : [{ path, message }]
}

function textProblems(rule: Rule): Problem[] {
  const template = templateOf(rule)
  if (template === null) return []
  const { path, text } = template
  const unknown = unknownTokens(text, rule.kind === 'acknowledge')
  if (unknown.length > 0) return [{ path, message: `unknown token ${unknown.join(', ')}` }]
  const bytes = countTextBytes(widestText(text))
  if (bytes <= MAX_TEXT_BYTES) return []
  const message = `may have ${bytes} bytes when its tokens are filled in, at most ${MAX_TEXT_BYTES} can be sent`
  return [{ path, message }]
}

/** The text of a rule with its tokens, and where it stands; null for one that sends no text. */
export function templateOf(rule: Rule): { readonly path: Problem['path']; readonly text: string } | null {
  switch (rule.kind) {
    case 'announce':
      return { path: ['text'], text: rule.text }
    case 'acknowledge':
      return rule.answer.kind === 'text' ? { path: ['answer', 'text'], text: rule.answer.text } : null
    case 'schedule':
      return rule.action.kind === 'text' ? { path: ['action', 'text'], text: rule.action.text } : null
    case 'traceroute':
      return null
    default:
      return rule satisfies never
  }
}
