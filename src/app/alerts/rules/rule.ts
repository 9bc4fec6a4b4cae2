import * as z from 'zod'
import { matchSchema } from '../../automation/kinds/acknowledge.ts'
import {
  ALERT_KIND_NAMES,
  type AlertKind,
  AREA_EVENTS,
  MAX_DESTINATIONS,
  METRIC_MINUTES,
  SILENT_MINUTES,
} from '../../../shared/alerts/alert-kinds.ts'
import { timeField } from '../../http/fields.ts'
import { plainName } from '../names.ts'
import { watchedList, watchedNode, watchedSchema } from './watched.ts'

const common = {
  name: plainName,
  enabled: z.boolean().default(true),
  destinations: z
    .array(z.int().positive())
    .max(MAX_DESTINATIONS)
    .refine((ids) => new Set(ids).size === ids.length, 'each destination once')
    .default([])
    .describe('IDs of your destinations; with none, alerts are only shown on the page'),
  repeatHours: z
    .int()
    .min(1)
    .max(168)
    .nullable()
    .default(null)
    .describe('Interval at which a firing alert is sent again; null: never'),
  tellResolved: z.boolean().default(true).describe('Also sent when the alert is over'),
  silencedUntil: timeField.nullable().default(null).describe('Nothing is sent before this time'),
  silencedNodes: z
    .array(z.strictObject({ node: watchedNode, until: timeField }))
    .max(50)
    .default([])
    .describe('Nothing is sent about these nodes before this time'),
}

const degrees = (most: number) => z.number().min(-most).max(most)
const placeFields = { latitude: degrees(90), longitude: degrees(180) }

const shapeSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('circle'), ...placeFields, metres: z.number().min(10).max(1_000_000) }),
  z.strictObject({
    kind: z.literal('polygon'),
    points: z
      .array(z.tuple([degrees(90), degrees(180)]))
      .min(3)
      .max(100)
      .describe('Latitude and longitude of each corner; it must not cross the 180th meridian'),
  }),
])

const nodeSilentSchema = z
  .strictObject({
    kind: z.literal('node_silent'),
    ...common,
    nodes: watchedSchema,
    afterMinutes: z.int().min(SILENT_MINUTES.min).max(SILENT_MINUTES.max),
  })
  .meta({ id: 'NodeSilentRule', description: 'A watched node has not been heard for a while' })

const metricSchema = z
  .strictObject({
    kind: z.literal('metric'),
    ...common,
    nodes: watchedSchema,
    metric: z
      .string()
      .regex(/^[A-Za-z]{1,40}\.[A-Za-z0-9]{1,60}$/, 'variant.metric')
      .describe('Name as in GET /api/telemetry, e.g. deviceMetrics.batteryLevel'),
    is: z.enum(['above', 'below']),
    limit: z.number().min(-1e12).max(1e12),
    hysteresis: z
      .number()
      .min(0)
      .max(1e12)
      .default(0)
      .describe('How far the value must return beyond the limit before the alert is over'),
    forMinutes: z.int().min(METRIC_MINUTES.min).max(METRIC_MINUTES.max).default(0),
  })
  .meta({ id: 'MetricRule', description: 'A measurement of a watched node is above or below a limit' })

const nodeNewSchema = z
  .strictObject({ kind: z.literal('node_new'), ...common })
  .meta({ id: 'NodeNewRule', description: 'A node is heard for the first time' })

const nodeRestartedSchema = z
  .strictObject({ kind: z.literal('node_restarted'), ...common, nodes: watchedSchema })
  .meta({ id: 'NodeRestartedRule', description: 'The uptime of a watched node fell, so it has restarted' })

const areaSchema = z
  .strictObject({
    kind: z.literal('area'),
    ...common,
    nodes: watchedSchema,
    when: z.enum(AREA_EVENTS),
    shape: shapeSchema.nullable().default(null).describe('Required for enters and leaves'),
    metres: z
      .int()
      .min(10)
      .max(1_000_000)
      .nullable()
      .default(null)
      .describe('Required for moves: distance from the earlier position'),
  })
  .meta({ id: 'AreaRule', description: 'A watched node enters or leaves an area, or moves' })

const messageSchema = z
  .strictObject({
    kind: z.literal('message'),
    ...common,
    match: matchSchema.nullable().default(null).describe('null: any text'),
    from: watchedList.nullable().default(null).describe('null: any sender'),
    channels: z
      .union([z.literal('all'), z.array(z.int().min(0).max(0xffff)).max(50)])
      .default('all')
      .describe('Numbers as in GET /api/channels'),
    direct: z.boolean().default(true).describe('Direct messages to radios of this service'),
  })
  .meta({ id: 'MessageRule', description: 'A message contains one of the words' })

const keySchema = z.strictObject({ kind: z.literal('key'), ...common, nodes: watchedSchema }).meta({
  id: 'KeyRule',
  description:
    "A watched node's public key changed, is shared with another node or is weak, or somebody sends in its name",
})

const linkSchema = z
  .strictObject({
    kind: z.literal('link'),
    ...common,
    links: z.array(z.string().min(1).max(200)).min(1).max(50).nullable().default(null).describe('Names; null: all'),
    afterMinutes: z.int().min(1).max(SILENT_MINUTES.max),
  })
  .meta({ id: 'LinkRule', description: 'A radio, a broker or a collector has been down for a while' })

const backupSchema = z
  .strictObject({ kind: z.literal('backup'), ...common, afterHours: z.int().min(1).max(8760).default(48) })
  .meta({ id: 'BackupRule', description: 'A backup failed, or none succeeded for a while' })

const signInSchema = z.strictObject({ kind: z.literal('sign_in'), ...common }).meta({
  id: 'SignInRule',
  description: "A sign-in from a new address or by a new browser, or a new password or API token, of the rule's owner",
})

/** A rule as it is stored. */
export const alertRuleSchema = z
  .discriminatedUnion('kind', [
    nodeSilentSchema,
    metricSchema,
    nodeNewSchema,
    nodeRestartedSchema,
    areaSchema,
    messageSchema,
    keySchema,
    linkSchema,
    backupSchema,
    signInSchema,
  ])
  .meta({ id: 'AlertRule', description: 'What is watched, and where alerts are sent' })
export type AlertRule = z.infer<typeof alertRuleSchema>
export type AlertRuleOf<K extends AlertKind> = Extract<AlertRule, { kind: K }>

/** A rule to be saved or previewed. */
export const newAlertRuleSchema = alertRuleSchema.superRefine((rule, issues) => {
  const add = (path: string, message: string) => issues.addIssue({ code: 'custom', path: [path], message })
  if (rule.kind === 'area' && rule.when === 'moves' && rule.metres === null) add('metres', 'needed for moves')
  if (rule.kind === 'area' && rule.when !== 'moves' && rule.shape === null) add('shape', `needed for ${rule.when}`)
  if (rule.kind === 'message' && !rule.direct && rule.channels !== 'all' && rule.channels.length === 0)
    add('channels', 'at least one channel, or direct messages')
})

/** The rule of a row; null if it is damaged or was written by another version. */
export function parseRule(text: string): AlertRule | null {
  try {
    return newAlertRuleSchema.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

const TELLING = ['name', 'enabled', 'destinations', 'repeatHours', 'tellResolved', 'silencedUntil', 'silencedNodes']

/** What a rule watches, without its notifications: a change of it ends its alerts. */
export function watchedBy(rule: AlertRule): string {
  return JSON.stringify(Object.entries(rule).filter(([name]) => !TELLING.includes(name)))
}

/** Whether this node is silenced now. */
export function isSilenced(rule: AlertRule, nodeNum: number | null, now: number): boolean {
  if (rule.silencedUntil !== null && now < rule.silencedUntil) return true
  return rule.silencedNodes.some(({ node, until }) => node === nodeNum && now < until)
}

export const alertKindField = z.enum(ALERT_KIND_NAMES)
