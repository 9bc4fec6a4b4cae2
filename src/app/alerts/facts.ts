import * as z from 'zod'
import { AREA_EVENTS } from '../../shared/alerts/alert-kinds.ts'
import type { AuditAction } from '../../shared/access/audit-actions.ts'
import { namesOf } from '../../shared/names.ts'
import { unitOf } from '../../shared/mesh/metric-units.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'
import { RETAINED_TABLES } from '../../db/schema.ts'
import { said, type Said, type Words } from '../words/words.ts'
import { findingFacts, tellFinding } from './told-finding.ts'

const name = z.string().describe('The name of the node at that time')
const ms = z.number().describe('Milliseconds')

/** Audit actions that are reported to the owner of an account, with their texts. */
export const ACCOUNT_EVENTS = {
  login_success: said('Somebody signed in to your account from an address or a browser not seen before'),
  password_changed: said('Your password was changed'),
  password_reset: said('An administrator reset your password'),
  second_factor_added: said('A second factor was added to your account'),
  second_factor_removed: said('A second factor of your account was removed'),
  second_factor_reset: said('An administrator removed your second factors'),
  token_created: said('An API token was created in your name'),
  token_revoked: said('One of your API tokens was revoked'),
  alert_destination_updated: said('A destination of your alerts was added, changed or deleted'),
  alert_destinations_held: said('The destinations of your alerts are held until you have looked at them'),
} as const satisfies Partial<Record<AuditAction, Said>>

const KEY_PROBLEMS = {
  changed: said('another public key was announced'),
  weak: said('its public key is known to be weak'),
  shared: said('another node has the same public key'),
  spoofed: said('somebody seems to send in its name'),
  own_spoofed: said('somebody sends in the name of this radio of the service'),
} as const satisfies Record<string, Said>

/** What happened, without words: stored with an alert, and told in the language of each reader. */
export const factSchema = z
  .discriminatedUnion('event', [
    z.object({ event: z.literal('node_silent'), name, ms, byRadio: z.boolean() }),
    z.object({
      event: z.literal('metric'),
      name,
      metric: z.string(),
      value: z.number(),
      is: z.enum(['above', 'below']),
      limit: z.number(),
    }),
    z.object({ event: z.literal('node_new'), name }),
    z.object({ event: z.literal('node_restarted'), name, ms: ms.describe('How long it had run, in milliseconds') }),
    z.object({ event: z.literal('area'), name, when: z.enum(AREA_EVENTS), metres: z.number().nullable() }),
    z.object({
      event: z.literal('message'),
      name,
      channel: z.int().nullable().describe('null: a direct message'),
      text: z.string(),
    }),
    z.object({ event: z.literal('key'), name, problems: z.array(z.enum(namesOf(KEY_PROBLEMS))) }),
    ...findingFacts,
    z.object({ event: z.literal('link_down'), name: z.string(), minutes: z.number() }),
    z.object({ event: z.literal('backup_failed'), place: z.string().optional().describe('The copy there failed') }),
    z.object({ event: z.literal('backup_overdue'), hours: z.number() }),
    z.object({ event: z.literal('retention_late'), table: z.enum(RETAINED_TABLES), hours: z.number() }),
    z.object({
      event: z.literal('retention_short'),
      table: z.enum(RETAINED_TABLES),
      keptDays: z.number(),
      setDays: z.number(),
      maxRows: z.number(),
      reason: z.enum(['disk', 'rows']),
    }),
    z.object({ event: z.literal('database_large'), percent: z.number(), limitBytes: z.number() }),
    z.object({
      event: z.literal('account'),
      action: z.enum(namesOf(ACCOUNT_EVENTS)),
      ip: z.string().nullable(),
      browser: z.string().nullable(),
    }),
  ])
  .meta({ id: 'AlertFact', description: 'What happened: an event and its values' })

export type Fact = z.infer<typeof factSchema>
export type KeyProblem = keyof typeof KEY_PROBLEMS

/** A fact as it was stored; null: another version wrote it, or an earlier one that stored a sentence. */
export function readFact(stored: string | null): Fact | null {
  if (stored === null) return null
  const read = factSchema.safeParse(JSON.parse(stored))
  return read.success ? read.data : null
}

type Told = { readonly fact: string | null; readonly what: string; readonly held: boolean }

/** The sentence of a stored alert. Those of earlier versions stored it, in English. */
export function tellAlert(words: Words, { fact: stored, what, held }: Told): string {
  const fact = readFact(stored)
  if (fact === null) return what === '' ? words.say('A newer version of the service recorded this') : what
  const sentence = tellFact(words, fact)
  return held
    ? words.say('{sentence} (more than {most} times in an hour: muted until it fires less often)', {
        sentence,
        most: MAX_PER_HOUR,
      })
    : sentence
}

/** A rule that fires more often in an hour for the same node is muted for it. */
export const MAX_PER_HOUR = 6

export function tellFact(words: Words, fact: Fact): string {
  switch (fact.event) {
    case 'node_silent': {
      const values = { name: fact.name, time: words.duration(fact.ms) }
      return fact.byRadio
        ? words.say('{name} was not heard by radio for {time}', values)
        : words.say('{name} was not heard for {time}', values)
    }
    case 'metric':
      return tellMetric(words, fact)
    case 'node_new':
      return words.say('{name} was heard for the first time', fact)
    case 'node_restarted':
      return words.say('{name} restarted; it had run for {time}', { name: fact.name, time: words.duration(fact.ms) })
    case 'area':
      return tellArea(words, fact)
    case 'message':
      return fact.channel === null
        ? words.say('{name} in a direct message: “{text}”', fact)
        : words.say('{name} on channel {channel}: “{text}”', { ...fact, channel: fact.channel })
    case 'key':
      return `${fact.name}: ${fact.problems.map((problem) => words.tell(KEY_PROBLEMS[problem])).join('; ')}`
    case 'finding':
      return tellFinding(words, fact)
    case 'link_down':
      return words.say('{name} is down for {time} or more', {
        name: fact.name,
        time: words.duration(fact.minutes * MINUTE_MS),
      })
    case 'backup_failed':
      return fact.place === undefined
        ? words.say('A backup failed')
        : words.say('A backup was not copied to {place}', { place: fact.place })
    case 'backup_overdue':
      return words.say('No backup succeeded for {time}', { time: words.duration(fact.hours * HOUR_MS) })
    case 'retention_late':
      return words.say('{data}: deleted {time} too late', {
        data: words.tell(TABLES[fact.table]),
        time: words.duration(fact.hours * HOUR_MS),
      })
    case 'retention_short': {
      const { keptDays, setDays, maxRows } = fact
      const values = { data: words.tell(TABLES[fact.table]), keptDays, setDays, maxRows }
      return fact.reason === 'disk'
        ? words.say('{data}: kept for {keptDays} of {setDays} days; the disk has room for {maxRows}', values)
        : words.say('{data}: kept for {keptDays} of {setDays} days; the service keeps at most {maxRows}', values)
    }
    case 'database_large':
      return words.say('The database fills {percent} % of the {size} that it can reach', {
        percent: fact.percent,
        size: words.number(fact.limitBytes / 1e9, {
          style: 'unit',
          unit: 'gigabyte',
          minimumFractionDigits: 1,
          maximumFractionDigits: 1,
        }),
      })
    case 'account': {
      const event = words.tell(ACCOUNT_EVENTS[fact.action])
      const by = [fact.ip, fact.browser].filter((part) => part !== null).join(', ')
      return by === '' ? event : `${event} (${by})`
    }
    default:
      return fact satisfies never
  }
}

const TABLES = {
  telemetry: said('Single measurements'),
  telemetry_hourly: said('Hourly summaries of measurements'),
  positions: said('Positions'),
  messages: said('Messages'),
  packets: said('Packets'),
} as const satisfies Record<(typeof RETAINED_TABLES)[number], Said>

function tellMetric(
  words: Words,
  { name: node, metric, value, is, limit }: Extract<Fact, { event: 'metric' }>,
): string {
  const unit = unitOf(metric)
  const shown = (number: number) => words.measure(number, unit, 2)
  const last = metric.slice(metric.indexOf('.') + 1)
  const known = METRICS.get(last)
  const values = {
    name: node,
    metric: known === undefined ? last : words.tell(known),
    value: shown(value),
    limit: shown(limit),
  }
  return is === 'above'
    ? words.say('{name}: {metric} is {value}, above {limit}', values)
    : words.say('{name}: {metric} is {value}, below {limit}', values)
}

/** The measurements that rules usually watch; others are told by the name that the protocol gives them. */
const METRICS: ReadonlyMap<string, Said> = new Map(
  Object.entries({
    batteryLevel: said('battery'),
    voltage: said('voltage'),
    channelUtilization: said('channel use'),
    airUtilTx: said('air time'),
    temperature: said('temperature'),
    relativeHumidity: said('humidity'),
    barometricPressure: said('air pressure'),
    numOnlineNodes: said('nodes online'),
  }),
)

function tellArea(words: Words, { name: node, when, metres }: Extract<Fact, { event: 'area' }>): string {
  switch (when) {
    case 'enters':
      return words.say('{name} entered the area', { name: node })
    case 'leaves':
      return words.say('{name} left the area', { name: node })
    case 'moves':
      return words.say('{name} moved more than {distance}', {
        name: node,
        distance: words.measure(metres ?? 0, 'm', 0),
      })
    default:
      return when satisfies never
  }
}
