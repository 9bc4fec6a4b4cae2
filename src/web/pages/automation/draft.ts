import type { InferRequestType, InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'
import type { RuleKind } from '../../../shared/rule-kinds.ts'
import { ALL_TOKEN_NAMES, TOKEN_NAMES, type TokenName, widestText } from '../../../shared/tokens.ts'

export type Automation = InferResponseType<typeof api.automation.$get>['automations'][number]
export type Rule = Automation['rule']
/** A rule as the service takes it. */
export type NewRule = InferRequestType<typeof api.automation.$post>['json']
type RuleOf<K extends RuleKind> = Extract<Rule, { kind: K }>

/** Everything that the form asks for, of all kinds: what was typed for one kind is still there after a look at another. */
export type Draft = {
  readonly kind: RuleKind
  readonly name: string
  readonly enabled: boolean
  readonly timeZone: string
  readonly isQuiet: boolean
  readonly quietFrom: string
  readonly quietTo: string
  readonly timing: 'interval' | 'cron'
  readonly hours: string
  readonly announceCron: string
  readonly channels: readonly number[]
  readonly announceText: string
  readonly mode: RuleOf<'acknowledge'>['match']['mode']
  /** One on each line. */
  readonly words: string
  readonly heardOn: readonly number[]
  readonly direct: boolean
  readonly answer: 'tapback' | 'text'
  readonly emoji: string
  readonly answerText: string
  readonly answerDirect: boolean
  readonly everyMinutes: string
  readonly targets: 'oldest' | 'list'
  readonly activeWithinHours: string
  /** Node ids. */
  readonly nodes: readonly string[]
  readonly scheduleCron: string
  readonly action: 'text' | 'traceroute'
  readonly actionText: string
  readonly channel: number
  /** Node id; empty: everybody. */
  readonly to: string
}

/** A new rule, off. */
export function emptyDraft(kind: RuleKind): Draft {
  return {
    kind,
    name: '',
    enabled: false,
    timeZone: ownTimeZone(),
    isQuiet: false,
    quietFrom: '22:00',
    quietTo: '07:00',
    timing: 'interval',
    hours: '24',
    announceCron: '0 8 * * *',
    channels: [0],
    announceText: '',
    mode: 'word',
    words: '',
    heardOn: [0],
    direct: true,
    answer: 'tapback',
    emoji: '👍',
    answerText: '',
    answerDirect: false,
    everyMinutes: '60',
    targets: 'oldest',
    activeWithinHours: '24',
    nodes: [],
    scheduleCron: '0 8 * * *',
    action: 'text',
    actionText: '',
    channel: 0,
    to: '',
  }
}

function ownTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
}

/** All time zones that this browser knows, and `present`. */
export function timeZones(present: string): string[] {
  return [...new Set(['UTC', ownTimeZone(), present, ...Intl.supportedValuesOf('timeZone')])].toSorted()
}

export function nodeIdOf(nodeNum: number): string {
  return `!${nodeNum.toString(16).padStart(8, '0')}`
}

export function draftOf(rule: Rule): Draft {
  const { kind, name, enabled, timeZone, quietHours } = rule
  const quiet = quietHours === null ? {} : { isQuiet: true, quietFrom: quietHours.from, quietTo: quietHours.to }
  return { ...emptyDraft(kind), name, enabled, timeZone, ...quiet, ...draftOfKind(rule) }
}

function draftOfKind(rule: Rule): Partial<Draft> {
  switch (rule.kind) {
    case 'announce': {
      const { when, channels, text } = rule
      const timing = when.kind === 'cron' ? { announceCron: when.cron } : { hours: String(when.hours) }
      return { timing: when.kind, ...timing, channels, announceText: text }
    }
    case 'acknowledge': {
      const { match, channels, direct, answer } = rule
      const how =
        answer.kind === 'tapback' ? { emoji: answer.emoji } : { answerText: answer.text, answerDirect: answer.direct }
      return { mode: match.mode, words: match.words.join('\n'), heardOn: channels, direct, answer: answer.kind, ...how }
    }
    case 'traceroute': {
      const { targets, everyMinutes } = rule
      const whom =
        targets.kind === 'list'
          ? { nodes: targets.nodes.map(nodeIdOf) }
          : { activeWithinHours: String(targets.activeWithinHours) }
      return { everyMinutes: String(everyMinutes), targets: targets.kind, ...whom }
    }
    case 'schedule': {
      const { action, cron } = rule
      const to = action.to === null ? '' : nodeIdOf(action.to)
      const what = action.kind === 'text' ? { actionText: action.text, channel: action.channel } : {}
      return { scheduleCron: cron, action: action.kind, to, ...what }
    }
    default:
      return rule satisfies never
  }
}

/** What the form says, right or wrong: the service tells what is wrong with it. */
export function ruleOf(draft: Draft): NewRule {
  const common = {
    name: draft.name.trim(),
    enabled: draft.enabled,
    timeZone: draft.timeZone,
    quietHours: draft.isQuiet ? { from: draft.quietFrom, to: draft.quietTo } : null,
  }
  switch (draft.kind) {
    case 'announce': {
      const when =
        draft.timing === 'cron'
          ? ({ kind: 'cron', cron: tidy(draft.announceCron) } as const)
          : ({ kind: 'interval', hours: Number(draft.hours) } as const)
      return { kind: 'announce', ...common, when, channels: [...draft.channels], text: draft.announceText }
    }
    case 'acknowledge':
      return {
        kind: 'acknowledge',
        ...common,
        match: { mode: draft.mode, words: wordsOf(draft) },
        channels: [...draft.heardOn],
        direct: draft.direct,
        answer:
          draft.answer === 'tapback'
            ? { kind: 'tapback', emoji: draft.emoji.trim() }
            : { kind: 'text', text: draft.answerText, direct: draft.answerDirect },
      }
    case 'traceroute':
      return {
        kind: 'traceroute',
        ...common,
        everyMinutes: Number(draft.everyMinutes),
        targets:
          draft.targets === 'list'
            ? { kind: 'list', nodes: [...draft.nodes] }
            : { kind: 'oldest', activeWithinHours: Number(draft.activeWithinHours) },
      }
    case 'schedule':
      return { kind: 'schedule', ...common, cron: tidy(draft.scheduleCron), action: actionOf(draft) }
    default:
      return draft.kind satisfies never
  }
}

function actionOf({ action, actionText, channel, to }: Draft) {
  return action === 'traceroute'
    ? ({ kind: 'traceroute', to } as const)
    : ({ kind: 'text', text: actionText, channel, to: to === '' ? null : to } as const)
}

/** Fields one space apart, however they were typed. */
function tidy(cron: string): string {
  return cron.trim().split(/\s+/).join(' ')
}

export function wordsOf({ words }: Draft): string[] {
  return words
    .split('\n')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

/** What can be tried of a draft. `isWhole` false: something stands in for what is missing, but its times are right. */
export type Tryable = { readonly rule: NewRule; readonly isWhole: boolean }

const STAND_IN = '–'

/** What nobody has filled in is not wrong, but missing. Null: nothing can be said yet. */
export function tryableOf(draft: Draft): Tryable | null {
  if (isWhole(draft)) return { rule: ruleOf(draft), isWhole: true }
  if (draft.kind === 'acknowledge') return null
  const text = {
    announceText: STAND_IN,
    channels: [0],
    action: 'text',
    actionText: STAND_IN,
    targets: 'oldest',
  } as const
  return { rule: ruleOf({ ...draft, ...text }), isWhole: false }
}

function isWhole(draft: Draft): boolean {
  switch (draft.kind) {
    case 'announce':
      return draft.announceText.trim() !== '' && draft.channels.length > 0
    case 'acknowledge':
      return (
        wordsOf(draft).length > 0 &&
        (draft.heardOn.length > 0 || draft.direct) &&
        (draft.answer === 'tapback' ? draft.emoji : draft.answerText).trim() !== ''
      )
    case 'traceroute':
      return draft.targets === 'oldest' || draft.nodes.length > 0
    case 'schedule':
      return draft.action === 'text' ? draft.actionText.trim() !== '' : draft.to !== ''
    default:
      return draft.kind satisfies never
  }
}

export function tokensFor(kind: RuleKind): readonly TokenName[] {
  return kind === 'acknowledge' ? ALL_TOKEN_NAMES : TOKEN_NAMES
}

/** Bytes of a text when its tokens are as wide as can be. */
export function widestBytes(text: string): number {
  return new TextEncoder().encode(widestText(text)).length
}
