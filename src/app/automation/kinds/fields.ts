import * as z from 'zod'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { bodyNodeNum } from '../../mesh/sending/send.ts'
import { CRON_PATTERN } from '../cron.ts'
import { MAX_RULE_NAME, MAX_TEMPLATE, MAX_TEXT_BYTES } from '../../../shared/limits.ts'

/** The minimum time between two runs of a traceroute or a schedule, in minutes. */
export const MIN_RUN_MINUTES = 5

export const printable = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'no control characters or lone surrogates')

const nameSchema = printable(MAX_RULE_NAME).refine((name) => name === name.trim(), 'no spaces at the ends')
export const cronSchema = z
  .string()
  .regex(CRON_PATTERN, 'five fields: minute, hour, day of month, month, day of week')
  .describe('Minute, hour, day of month, month, day of week, e.g. `30 8 * * 1-5`; read in timeZone')
const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time HH:MM')
export const channel = z.int().min(0).max(7)
export const eachOnce = (values: readonly number[]) => new Set(values).size === values.length
export const channelsSchema = z.array(channel).max(8).refine(eachOnce, 'each channel once')
export const targetNode = bodyNodeNum.refine((nodeNum) => nodeNum < BROADCAST, 'one node')
export const templateSchema = z
  .string()
  .max(MAX_TEMPLATE)
  .refine((text) => text.trim() !== '', 'not empty')
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'text without NUL or lone surrogates')
  .describe(`May contain tokens such as {longName}; at most ${MAX_TEXT_BYTES} bytes when they are filled in`)

const quietHoursSchema = z
  .strictObject({ from: timeOfDay, to: timeOfDay })
  .refine(({ from, to }) => from !== to, 'from and to must differ')
  .describe('Nothing is sent from `from` until `to`, in timeZone; may cross midnight')
  .meta({ id: 'QuietHours' })

/** Settings of rules of every kind. */
export const common = {
  name: nameSchema.describe('Unique without regard to case'),
  enabled: z.boolean().default(false),
  timeZone: z
    .string()
    .max(64)
    .default('UTC')
    .describe('IANA name; applies to cron patterns, quiet hours, and the tokens {date} and {time}'),
  quietHours: quietHoursSchema.nullable().default(null),
}
