import type { AlertKind } from '../../../shared/alerts/alert-kinds.ts'
import type { AlertTold } from '../../../shared/alerts/destination-kinds.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { cleanText } from '../names.ts'

/** An alert as a message tells it. */
export type ToldAlert = {
  readonly id: number
  readonly what: string
  readonly nodeNum: number | null
  readonly startedAt: number
  readonly firedAt: number | null
  readonly resolvedAt: number | null
}

/** What is sent, before a service's own form is given to it. */
export type ToldMessage = {
  /** The same at each attempt. */
  readonly uid: string
  readonly told: AlertTold
  readonly at: number
  readonly title: string
  readonly text: string
  /** Where to look; null: PUBLIC_URL is not set. */
  readonly url: string | null
  /** A path of this site. */
  readonly path: string
  readonly rule: { readonly id: number; readonly name: string; readonly kind: AlertKind } | null
  /** At most `MOST_LISTED`. */
  readonly alerts: readonly ToldAlert[]
  readonly total: number
}

export const MOST_LISTED = 50
const LINES = 15

type About = Pick<ToldMessage, 'uid' | 'told' | 'at'> & { readonly publicUrl: string | null }

/** What a rule found, in words. */
export function tellAlerts(
  about: About,
  rule: NonNullable<ToldMessage['rule']>,
  alerts: readonly ToldAlert[],
  total: number,
): ToldMessage {
  const { told, publicUrl } = about
  const name = cleanText(rule.name, 80)
  const title = told === 'resolved' ? `Over: ${name}` : told === 'repeated' ? `Still: ${name}` : name
  const [first] = alerts
  const lines = alerts.slice(0, LINES).map(({ what }) => `• ${what}`)
  const more = total > lines.length ? [`… and ${total - lines.length} more`] : []
  const heading =
    rule.kind === 'node_silent' ? `${total} nodes ${told === 'resolved' ? 'were' : 'are'} silent:` : `${total} alerts:`
  const text = total === 1 && first !== undefined ? first.what : [heading, ...lines, ...more].join('\n')
  const path = total === 1 && typeof first?.nodeNum === 'number' ? `/nodes/${formatNodeId(first.nodeNum)}` : '/alerts'
  return {
    uid: about.uid,
    told,
    at: about.at,
    title,
    text: told === 'resolved' && total === 1 ? `No longer: ${text}` : text,
    url: publicUrl === null ? null : publicUrl + path,
    path,
    rule,
    alerts: alerts.slice(0, MOST_LISTED),
    total,
  }
}

/** A message that tells of no alert. */
export function tellPlain(
  { uid, told, at, publicUrl }: About,
  title: string,
  text: string,
  path = '/alerts',
): ToldMessage {
  const url = publicUrl === null ? null : publicUrl + path
  return { uid, told, at, title, text, url, path, rule: null, alerts: [], total: 0 }
}

/** A text with what would call somebody made plain. */
export function withoutMentions(text: string): string {
  return text.replaceAll(/@(?=everyone|here|room|channel|all\b|[!&]?\d)/giu, '@\u200b')
}

/** The text and where to look, within so many characters. */
export function bodyText({ text, url }: ToldMessage, most: number): string {
  const tail = url === null ? '' : `\n${url}`
  const letters = Array.from(withoutMentions(text))
  const room = most - tail.length
  return (letters.length <= room ? letters.join('') : `${letters.slice(0, room - 1).join('')}…`) + tail
}
