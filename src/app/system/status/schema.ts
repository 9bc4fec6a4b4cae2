import * as z from 'zod'
import { MAX_COUNTED } from '../../../shared/limits.ts'
import { LINK_KINDS } from '../../../shared/mesh/link-kinds.ts'
import { namesOf } from '../../../shared/names.ts'
import { SYSTEM_PROBLEM_NAMES } from '../../../shared/system-problems.ts'
import { CLOCK_STATES } from '../../base/pacing/clock.ts'
import { timeField } from '../../http/fields.ts'
import { COLLECTOR_STATES } from '../../mesh/collector/state.ts'
import { LINK_STATES } from '../../mesh/radios/radio.ts'
import { backupSchema, progressSchema } from '../backup/backup.ts'
import { lastRunSchema } from '../backup/schedule.ts'
import { retentionSchema } from '../../retention/state.ts'
import { JOBS } from './runs.ts'
import { MAX_SAMPLES } from './storage.ts'

export const problemSchema = z
  .object({
    code: z.enum(SYSTEM_PROBLEM_NAMES),
    severity: z.enum(['error', 'warning', 'info']),
    subject: z
      .string()
      .nullable()
      .describe('The link, table, job or version that it is about; null: there is only one'),
  })
  .meta({ id: 'SystemProblem' })
export type Problem = z.infer<typeof problemSchema>

const bytes = z.number().describe('Bytes')
const counted = z.int().max(MAX_COUNTED).describe(`Counted up to ${MAX_COUNTED}`)

const storageSchema = z.object({
  databaseBytes: bytes.nullable().describe('Null: unknown on this runtime'),
  limitBytes: bytes.nullable().describe('The largest database that the platform allows; null: only the disk limits it'),
  disk: z
    .object({ totalBytes: bytes, freeBytes: bytes, isFull: z.boolean().describe('No packets are stored') })
    .nullable()
    .describe('The disk of the data directory; null: there is none'),
  roomBytes: bytes.nullable().describe('For new rows: free on the disk and inside the database'),
  forecast: z
    .object({
      bytesPerDay: z.int().describe('By how much the room shrinks; negative: it grows'),
      fullAt: timeField.nullable().describe('When no room is left at this rate; null: not within ten years'),
    })
    .nullable()
    .describe('From the samples of the last week; null: less than a day is known'),
  samples: z
    .array(z.object({ at: timeField, databaseBytes: bytes, roomBytes: bytes }))
    .max(MAX_SAMPLES)
    .describe('Every three hours, oldest first'),
})

const backupsSchema = z.object({
  count: z.int(),
  sizeBytes: bytes.describe('Of all backups together'),
  last: backupSchema.pick({ name: true, createdAt: true, kind: true, sizeBytes: true }).nullable(),
  running: progressSchema.nullable(),
  enabled: z.boolean().describe('Whether there is a daily schedule'),
  since: timeField.describe('Since when the schedule is enabled for this time of day; 0: it never was'),
  nextRunAt: timeField.nullable(),
  lastRun: lastRunSchema,
  lastSuccessAt: timeField.nullable().describe('When the latest successful run of the schedule began'),
  restoreError: z.string().nullable().describe('Why the latest staged restore failed; null: none, or it is forgotten'),
})

const linkSchema = z
  .object({
    name: z.string(),
    kind: z.enum(LINK_KINDS),
    state: z.enum(LINK_STATES),
    since: timeField,
    lastFrameAt: timeField.nullable(),
    reconnects: z.int(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'SystemLink' })

const collectorSchema = z.object({
  target: z.string(),
  state: z.enum(COLLECTOR_STATES),
  lastDeliveredAt: timeField.nullable(),
  reason: z.string().nullable(),
})

const releaseStateSchema = z.object({
  host: z.string().describe('Who was asked'),
  askedAt: timeField.nullable(),
  latest: z.string().nullable().describe('The version that the host names. Nothing proves it'),
  isNewer: z.boolean(),
  problem: z.string().nullable().describe('Why the latest answer says nothing'),
})

const queuesSchema = z.object({
  ingest: z.int().nullable().describe('Events that are heard but not stored yet; null: no radio on this runtime'),
  sending: z.int().nullable().describe('Packets that wait to be passed to a radio; null: no radio on this runtime'),
  collector: z.int().nullable().describe('Messages to be delivered to another service; null: no collector'),
  anchor: z.int().nullable().describe('Anchors and entries of the audit log to be delivered; null: not anchored'),
  alerts: counted.describe(`Alert messages to be sent, counted up to ${MAX_COUNTED}`),
  alertsFailingSince: timeField.nullable().describe('When the oldest of these that failed before was made'),
})

export const systemSchema = z
  .object({
    now: timeField,
    version: z.string(),
    startedAt: timeField,
    problems: z.array(problemSchema).describe('What an administrator should look at, errors first'),
    release: releaseStateSchema.nullable().describe('Null: UPDATE_CHECK_URL is not set'),
    clock: z
      .object({ state: z.enum(CLOCK_STATES), confirmed: timeField })
      .nullable()
      .describe('Null: the clock of this runtime is always right'),
    storage: storageSchema,
    retention: retentionSchema,
    backups: backupsSchema.nullable().describe('Null: this runtime has no backups'),
    links: z.array(linkSchema),
    collector: collectorSchema.nullable(),
    anchor: z
      .object({ failures: z.int().describe('Since the latest delivery'), deliveredAt: timeField.nullable() })
      .nullable()
      .describe('The delivery of the audit log to AUDIT_ANCHOR_URL; null: not set, or none was tried'),
    instances: z
      .array(
        z.object({
          id: z.string(),
          isSelf: z.boolean().describe('The instance that answers'),
          hasLease: z.boolean().describe('It has the radios and the schedules'),
          seenAt: timeField,
        }),
      )
      .max(100)
      .nullable()
      .describe('The processes on the same data directory; null on a runtime without'),
    queues: queuesSchema,
    signIns: z.object({ failed: counted.describe(`In the last 24 hours, counted up to ${MAX_COUNTED}`) }),
    runs: z
      .array(z.object({ job: z.enum(namesOf(JOBS)), at: timeField, ok: z.boolean() }))
      .describe('The latest runs of jobs that the platform triggers; empty where the service runs them itself'),
  })
  .meta({ id: 'System', description: 'The state of the service itself' })
export type System = z.infer<typeof systemSchema>
