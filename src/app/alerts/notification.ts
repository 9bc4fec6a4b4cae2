import type { NotificationKind } from '../../shared/alerts/destination-kinds.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import type { Words } from '../words/words.ts'
import type { Fact } from './facts.ts'
import { type AlertKind, kindOf } from './kinds/kinds.ts'
import { cleanText } from './names.ts'

/** An alert as shown in a message. */
export type NotifiedAlert = {
  readonly id: number
  /** A sentence in the language of the receiver. */
  readonly what: string
  /** The same without words; null: an earlier version recorded the alert. */
  readonly fact: Fact | null
  readonly nodeNum: number | null
  readonly startedAt: number
  readonly firedAt: number | null
  readonly resolvedAt: number | null
}

/** The contents of a message, before it is formatted for a service. */
export type AlertNotification = {
  /** The same for each attempt. */
  readonly uid: string
  readonly notification: NotificationKind
  readonly at: number
  readonly title: string
  readonly text: string
  /** The address of the page; null: PUBLIC_URL is not set. */
  readonly url: string | null
  /** A path of this site. */
  readonly path: string
  readonly rule: { readonly id: number; readonly name: string; readonly kind: AlertKind } | null
  /** At most `MAX_LISTED`. */
  readonly alerts: readonly NotifiedAlert[]
  readonly total: number
}

export const MAX_LISTED = 50
const LINES = 15

type About = Pick<AlertNotification, 'uid' | 'notification' | 'at'> & {
  readonly publicUrl: string | null
  readonly words: Words
}

/** The message about what a rule found. */
export function tellAlerts(
  about: About,
  rule: NonNullable<AlertNotification['rule']>,
  alerts: readonly NotifiedAlert[],
  total: number,
): AlertNotification {
  const { notification, publicUrl, words } = about
  const name = cleanText(rule.name, 80)
  const title = titleOf(words, notification, name)
  const [first] = alerts
  const heading =
    kindOf(rule.kind).heading?.(words, total, notification === 'resolved') ??
    words.count(total, '{n} alert:', '{n} alerts:')
  const text =
    total === 1 && first !== undefined
      ? first.what
      : [
          heading,
          ...listed(
            words,
            alerts.map(({ what }) => what),
            total,
          ),
        ].join('\n')
  const path = total === 1 && typeof first?.nodeNum === 'number' ? `/nodes/${formatNodeId(first.nodeNum)}` : '/alerts'
  return {
    uid: about.uid,
    notification,
    at: about.at,
    title,
    text: notification === 'resolved' && total === 1 ? words.say('No longer: {what}', { what: text }) : text,
    url: publicUrl === null ? null : publicUrl + path,
    path,
    rule,
    alerts: alerts.slice(0, MAX_LISTED),
    total,
  }
}

/** The first of several texts, each on its line, and how many more there are. */
export function listed(words: Words, texts: readonly string[], total = texts.length): readonly string[] {
  const lines = texts.slice(0, LINES).map((text) => `• ${text}`)
  return total > lines.length ? [...lines, words.say('… and {n} more', { n: total - lines.length })] : lines
}

function titleOf(words: Words, notification: NotificationKind, name: string): string {
  if (notification === 'resolved') return words.say('Over: {name}', { name })
  return notification === 'repeated' ? words.say('Still: {name}', { name }) : name
}

/** A message without an alert. */
export function tellPlain(
  { uid, notification, at, publicUrl }: About,
  title: string,
  text: string,
  path = '/alerts',
): AlertNotification {
  const url = publicUrl === null ? null : publicUrl + path
  return { uid, notification, at, title, text, url, path, rule: null, alerts: [], total: 0 }
}

/** The message that *Test* sends to a destination. */
export function testMessage(about: Parameters<typeof tellPlain>[0]): AlertNotification {
  const { words } = about
  return tellPlain(about, words.say('Test'), words.say('This is a test. Alerts of your mesh will arrive here.'))
}

/** A text in which mentions are made harmless. */
export function withoutMentions(text: string): string {
  return text.replaceAll(/@(?=everyone|here|room|channel|all\b|[!&]?\d)|(?<![\p{L}\p{N}_.])@(?=[\p{L}_])/giu, '@\u200b')
}

/** The length of a text as a service counts it. */
export type Measure = (text: string) => number
export const inUtf16: Measure = ({ length }) => length
export const inCodePoints: Measure = (text) => Array.from(text).length
const utf8 = new TextEncoder()
export const inUtf8: Measure = (text) => utf8.encode(text).length

const CUT = ' […]'

/** As much of a text as a service accepts, without half a character; a cut text ends with an ellipsis. */
export function fit(text: string, most: number, measure: Measure): string {
  if (measure(text) <= most) return text
  let room = most - measure(CUT)
  let end = 0
  for (const letter of text) {
    room -= measure(letter)
    if (room < 0) break
    end += letter.length
  }
  return text.slice(0, end) + CUT
}

/** The text and the address of the page, up to the length that a service accepts. */
export function bodyText(
  { text, url }: Pick<AlertNotification, 'text' | 'url'>,
  most: number,
  measure: Measure,
): string {
  const tail = url === null ? '' : `\n${url}`
  return fit(withoutMentions(text), most - measure(tail), measure) + tail
}
