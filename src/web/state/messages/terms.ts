import { api, ask, askAs } from '../../api.ts'
import { MAX_PARTS } from '../../../shared/limits.ts'
import { MESSAGE_TRAITS, type MessageTrait } from '../../../shared/mesh/message-traits.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import { t } from '../../strings.ts'
import type { Node } from '../mesh/nodes.ts'

export const OPERATORS = ['from', 'in', 'before', 'after', 'has'] as const
export type Operator = (typeof OPERATORS)[number]
export const DIRECT = 'direct'

/** What was typed into the search: texts, and what follows each operator. */
export type Terms = {
  readonly parts: readonly string[]
  readonly without: readonly string[]
  readonly asked: readonly { readonly operator: Operator; readonly value: string }[]
}

/** The reason why a search cannot be made, in words for its user. */
export class SearchProblem extends Error {}

// A minus, a name of an operator, and a text in quotation marks or without a space. Addresses such as https://… and
// times are texts.
const TERM = /(-?)(?:([a-z]+):(?=\S)(?!\/\/))?(?:"([^"]*)"?|(\S+))/giu

/** Takes a search apart. Throws a SearchProblem. */
export function readTerms(text: string): Terms {
  const parts: string[] = []
  const without: string[] = []
  const asked: { operator: Operator; value: string }[] = []
  for (const [whole, minus, name, quoted, word = ''] of text.matchAll(TERM)) {
    const value = quoted ?? word
    const isBare = quoted === undefined && name === undefined
    if (name !== undefined) {
      const operator = OPERATORS.find((one) => one === name.toLowerCase())
      if (operator === undefined) throw new SearchProblem(t.messages.terms.unknown(name, whole.replace(/^-/, '')))
      if (minus !== '') throw new SearchProblem(t.messages.terms.minus)
      if (value.trim() === '') throw new SearchProblem(t.messages.terms.empty(operator))
      asked.push({ operator, value: value.trim() })
    } else if (isBare && OPERATORS.some((one) => `${one}:` === value.toLowerCase())) {
      throw new SearchProblem(t.messages.terms.empty(value.slice(0, -1)))
    } else if (value !== '') {
      // A negative number is a text.
      if (minus !== '' && !/^\d/.test(word)) without.push(value)
      else parts.push(minus + value)
    }
  }
  if (Math.max(parts.length - 1, without.length) > MAX_PARTS) throw new SearchProblem(t.messages.terms.many(MAX_PARTS))
  return { parts, without, asked }
}

/** The terms as parameters of GET /api/messages. */
export type TermQuery = {
  q?: string
  also?: string[]
  without?: string[]
  from?: string
  channel?: string
  direct?: 'true'
  since?: string
  until?: string
  has?: MessageTrait[]
}

/** Looks up the names in a search. Throws a SearchProblem or an ApiError. */
export async function resolveTerms({ parts, without, asked }: Terms): Promise<TermQuery> {
  const [q, ...also] = parts
  const query: TermQuery = {
    ...(q !== undefined && { q }),
    ...(also.length > 0 && { also }),
    ...(without.length > 0 && { without: [...without] }),
  }
  for (const { operator, value } of asked) {
    if (operator === 'has') query.has = [...(query.has ?? []), traitOf(value)]
    else if (isTwice(query, operator)) throw new SearchProblem(t.messages.terms.twice(operator))
    else if (operator === 'from') query.from = await nodeCalled(value)
    else if (operator === 'in' && value.toLowerCase() === DIRECT) query.direct = 'true'
    else if (operator === 'in') query.channel = await channelCalled(value)
    else query[operator === 'before' ? 'until' : 'since'] = String(readMoment(value, operator))
  }
  return query
}

function isTwice(query: TermQuery, operator: Exclude<Operator, 'has'>): boolean {
  if (operator === 'in') return query.channel !== undefined || query.direct !== undefined
  return query[operator === 'before' ? 'until' : operator === 'after' ? 'since' : 'from'] !== undefined
}

function traitOf(value: string): MessageTrait {
  const trait = MESSAGE_TRAITS.find((one) => one === value.toLowerCase())
  if (trait === undefined) throw new SearchProblem(t.messages.terms.trait(value, MESSAGE_TRAITS.join(', ')))
  return trait
}

/** More nodes than this have the same name only if somebody makes them up. */
const NAMESAKES = '50'

/** The id of the node with this long or short name, or id. Nodes that the user may not see have no name here. */
async function nodeCalled(value: string): Promise<string> {
  const wanted = value.toLowerCase()
  if (/^![0-9a-f]{1,8}$/.test(wanted)) return wanted
  const found = await askAs<Node[]>(api.nodes.$get({ query: { q: value, limit: NAMESAKES } })).catch(() => [])
  const called = found.filter(({ longName, shortName }) =>
    [longName, shortName].some((name) => name?.trim().toLowerCase() === wanted),
  )
  const [only, another] = called
  if (only === undefined) throw new SearchProblem(t.messages.terms.node(value))
  if (another !== undefined) throw new SearchProblem(t.messages.terms.nodes(value, `from:${only.nodeId}`))
  return only.nodeId
}

async function channelCalled(value: string): Promise<string> {
  const { channels } = await ask(api.channels.$get())
  const wanted = value.toLowerCase().replace(/^#/, '')
  const named = channels.find(({ name }) => name.toLowerCase() === wanted)
  const found = named ?? channels.find(({ index }) => String(index) === wanted)
  if (found === undefined) throw new SearchProblem(t.messages.terms.channel(value))
  return String(found.index)
}

const UNITS = { h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS, y: 365 * DAY_MS } as const

/**
 * The moment that a date names, in milliseconds: its beginning in the time zone of this device. `7d` is seven days ago.
 * Throws a SearchProblem.
 */
export function readMoment(value: string, operator: string, now = Date.now()): number {
  const text = value.toLowerCase()
  const today = new Date(now)
  const day = (back: number) => new Date(today.getFullYear(), today.getMonth(), today.getDate() - back).getTime()
  if (text === 'today') return day(0)
  if (text === 'yesterday') return day(1)
  const ago = /^(\d{1,4})([hdwy])$/.exec(text)
  const unit = ago?.[2]
  if (unit === 'h' || unit === 'd' || unit === 'w' || unit === 'y')
    return Math.max(0, now - Number(ago?.[1]) * UNITS[unit])
  const [, year, month = '01', date = '01', time] =
    /^(\d{4})(?:-(\d{2})(?:-(\d{2})(t\d{2}:\d{2}(?::\d{2})?(?:z|[+-]\d{2}:\d{2})?)?)?)?$/.exec(text) ?? []
  if (year !== undefined) {
    const begin = new Date(Number(year), Number(month) - 1, Number(date))
    const isReal = begin.getMonth() === Number(month) - 1 && begin.getDate() === Number(date)
    const at = time === undefined ? begin.getTime() : Date.parse(text.toUpperCase())
    if (isReal && at >= 0) return at
  }
  throw new SearchProblem(t.messages.terms.date(value, operator))
}
