import * as z from 'zod'
import {
  DEFAULT_PRESET,
  type Modulation,
  modulationOf,
  presetModulation,
  timeOnAirMs,
} from '../../meshtastic/airtime.ts'
import { BROADCAST, formatNodeId } from '../../meshtastic/node-id.ts'
import { seesNodes } from '../accounts/access/visible.ts'
import type { Ctx, SignedInCtx } from '../base/context.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { findSender } from '../mesh/radios/choose-radio.ts'
import { bodyNodeNum } from '../mesh/sending/send.ts'
import { listFacts, readFacts, readSpeaker, type SpeakerFacts, UNKNOWN_SPEAKER } from './facts.ts'
import { answerBlock, blockEverywhere, MAX_ANSWERS_PER_HOUR } from './guards.ts'
import type { Said } from './kinds/kind.ts'
import type { Planned } from './kinds/planned.ts'
import { quietAt } from './local-time.ts'
import { PACKET_KINDS, packetsOf } from './packets.ts'
import { heardKindOf, type HeardRule, isTimed, type Rule, timedKindOf, type TimedRule } from './rules.ts'
import { readAnswers, readSaid, reasonSchema } from './runs.ts'
import { upcomingSlots } from './slots.ts'
import { DAY_MS, MINUTE_MS } from '../../shared/time.ts'
import { nodeIdField, nodeNumField, timeField } from '../http/fields.ts'
import { MAX_SAMPLE } from '../../shared/limits.ts'

const SHOWN_RUNS = 5
/** Runs are counted over a week, because a pattern may apply to some days only. */
const COUNTED_DAYS = 7
const MAX_COUNTED = DAY_MS / (5 * MINUTE_MS)
/** Runs that are counted before other work gets its turn: a few milliseconds. */
const SLICE = 50

/** An example of a message, to show how a rule of kind `acknowledge` would answer it. */
export const sampleSchema = z.strictObject({
  text: z.string().max(MAX_SAMPLE),
  from: bodyNodeNum
    .refine((nodeNum) => nodeNum < BROADCAST, 'one node')
    .default(1)
    .describe('Node number or !hex of the sender; without it an unknown node'),
  channel: z.int().min(0).max(7).default(0),
  direct: z.boolean().default(false),
  isReply: z.boolean().default(false),
  ageSeconds: z.int().min(0).max(86_400).default(0),
  hopsAway: z.int().min(0).max(7).nullable().default(null),
  snr: z.number().min(-99).max(99).nullable().default(null),
  rssi: z.int().min(-200).max(0).nullable().default(null),
})
export type Sample = z.infer<typeof sampleSchema>

const messageSchema = z.object({
  kind: z.enum(PACKET_KINDS),
  toNodeNum: nodeNumField.describe('4294967295: broadcast'),
  toNodeId: nodeIdField,
  channel: z.int(),
  text: z.string().nullable(),
  bytes: z.int().describe('Bytes of the text; at most 200 can be sent'),
  airtimeMs: z.number(),
})

export const dryRunSchema = z
  .object({
    messages: z
      .array(messageSchema)
      .describe('The messages that a run would send now; for acknowledge, the answer to the sample'),
    blockedBy: reasonSchema.nullable().describe('Why nothing would be sent right now, even if a run were due'),
    nextRuns: z
      .array(z.object({ at: timeField, skippedBy: z.literal('quiet_hours').nullable() }))
      .describe('If it were switched on now; empty for acknowledge'),
    estimate: z
      .object({
        runsPerDay: z.number(),
        packetsPerDay: z.number(),
        airtimeMsPerDay: z.number(),
        isUpperBound: z.boolean().describe('True for acknowledge: as many answers as are allowed'),
      })
      .describe('Airtime of this radio, without retransmissions by it or by others'),
    modem: z.object({
      preset: z.string().describe('Name of the modem preset, or custom'),
      isAssumed: z.boolean().describe('The radio did not report it'),
      spreadFactor: z.int(),
      bandwidthKhz: z.number(),
      codingRate: z.int(),
    }),
    sample: z
      .object({
        isHeard: z.boolean().describe('The message matches the rule'),
        skippedBy: reasonSchema.nullable().describe('Why it would still not be answered'),
      })
      .nullable(),
  })
  .meta({ id: 'DryRun', description: 'What a rule would do' })
export type DryRun = z.infer<typeof dryRunSchema>

type Tried = { readonly rule: Rule; readonly anchorAt: number }

/**
 * Shows what a rule would do, without doing it.
 * Decision: docs/decisions/short-decisions.md#a-dry-run-of-an-unsaved-rule-needs-write-of-a-saved-rule-read
 */
export async function dryRun(ctx: SignedInCtx, { rule, anchorAt }: Tried, sample: Sample | null): Promise<DryRun> {
  const now = ctx.now()
  const modem = readModem(ctx)
  const facts = await listFacts(ctx, now)
  const said = sample === null ? SOMETHING : sample
  const planned = isTimed(rule)
    ? await timedKindOf(rule).plan({ ...ctx, view: ctx.viewer.view }, rule, now)
    : [await planSample(ctx, rule, said)]
  const messages = planned.map((packet) => describePacket(packet, modem))
  return {
    messages,
    blockedBy: blockEverywhere(rule, facts, now),
    nextRuns: nextRuns(rule, rule.enabled ? anchorAt : now, now),
    estimate: await estimate(rule, now, messages),
    modem,
    sample: !isTimed(rule) && sample !== null ? await trySample(ctx, rule, sample) : null,
  }
}

const SOMETHING: Sample = sampleSchema.parse({ text: '' })

function readModem({ radio }: Ctx): DryRun['modem'] {
  const lora = radio?.lora() ?? null
  const known = lora === null ? null : modulationOf(lora)
  const { preset, modulation } = known ?? { preset: DEFAULT_PRESET, modulation: presetModulation(DEFAULT_PRESET) }
  return { preset, isAssumed: known === null, ...modulation }
}

/** The sender of a sample, as far as the viewer may know it: a sample may name any node. */
async function readSender({ store, viewer }: SignedInCtx, { from }: Sample): Promise<SpeakerFacts> {
  return viewer.permissions.nodes.read && seesNodes(viewer.view, [from]) ? readSpeaker(store, from) : UNKNOWN_SPEAKER
}

async function planSample(ctx: SignedInCtx, rule: HeardRule, sample: Sample): Promise<Planned> {
  const speaker = await readSender(ctx, sample)
  const { hopsAway, snr, rssi } = sample
  const signal = { packetId: 1, hopsAway, snr, rssi }
  return heardKindOf(rule).answer(ctx, rule, {
    said: toSaid(sample, ctx.now()),
    speaker,
    signal,
    now: ctx.now(),
    radio: findSender(ctx.radio)?.source ?? null,
  })
}

function toSaid({ from, direct: isDirect, channel, text, isReply, ageSeconds }: Sample, now: number): Said {
  const receivedAt = now - ageSeconds * 1000
  const sure = { isSensor: false, isReplayed: false, isSuspected: false, isViaMqtt: false }
  return { from, isDirect, channel, text, isReply, rxTime: receivedAt, receivedAt, ...sure }
}

async function trySample(ctx: SignedInCtx, rule: HeardRule, sample: Sample): Promise<NonNullable<DryRun['sample']>> {
  const now = ctx.now()
  const said = toSaid(sample, now)
  if (!heardKindOf(rule).listensTo(rule, said)) return { isHeard: false, skippedBy: null }
  const past = {
    isKnown: false,
    answers: await readAnswers(ctx.store, now),
    ownTexts: await readSaid(ctx.store, now),
  }
  const speaker = await readSender(ctx, sample)
  const facts = await readFacts(ctx, now)
  return { isHeard: true, skippedBy: answerBlock(rule, said, { speaker, past, facts, now }) }
}

function describePacket(packet: Planned, modulation: Modulation): DryRun['messages'][number] {
  const { kind, to: toNodeNum } = packet
  const { textOf, describe } = packetsOf(packet)
  const { channel, bytes, size } = describe(packet)
  const airtimeMs = airtime(size, modulation)
  return { kind, toNodeNum, toNodeId: formatNodeId(toNodeNum), channel, text: textOf(packet), bytes, airtimeMs }
}

function airtime(bytes: number, modulation: Modulation): number {
  return Math.round(timeOnAirMs(bytes, modulation))
}

function nextRuns(rule: Rule, anchorAt: number, now: number): DryRun['nextRuns'] {
  if (!isTimed(rule)) return []
  const isQuiet = quietAt(rule)
  const runs: DryRun['nextRuns'] = []
  for (const at of upcomingSlots(rule, anchorAt, now)) {
    runs.push({ at, skippedBy: isQuiet(at) ? 'quiet_hours' : null })
    if (runs.length === SHOWN_RUNS) break
  }
  return runs
}

async function estimate(rule: Rule, now: number, messages: DryRun['messages']): Promise<DryRun['estimate']> {
  const runs = isTimed(rule) ? await runsPerDay(rule, now) : MAX_ANSWERS_PER_HOUR * loudHours(rule, now)
  const airtimeMs = messages.reduce((sum, { airtimeMs }) => sum + airtimeMs, 0)
  return {
    runsPerDay: rounded(runs),
    packetsPerDay: rounded(runs * messages.length),
    airtimeMsPerDay: Math.round(runs * airtimeMs),
    isUpperBound: !isTimed(rule),
  }
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

/** Runs per day outside quiet hours, counted over a week or over the shorter time that this many runs take. */
async function runsPerDay(rule: TimedRule, now: number): Promise<number> {
  const isQuiet = quietAt(rule)
  const end = now + COUNTED_DAYS * DAY_MS
  let seen = 0
  let loud = 0
  for (const slot of upcomingSlots(rule, now, now)) {
    if (slot > end) break
    seen += 1
    if (!isQuiet(slot)) loud += 1
    if (seen % SLICE === 0) await nextTurn()
    if (seen === MAX_COUNTED) return (loud * DAY_MS) / (slot - now)
  }
  return loud / COUNTED_DAYS
}

/** Hours of a day that are not quiet. */
function loudHours(rule: Rule, now: number): number {
  const isQuiet = quietAt(rule)
  const samples = DAY_MS / (5 * MINUTE_MS)
  const loud = Array.from({ length: samples }, (_, n) => now + n * 5 * MINUTE_MS).filter((t) => !isQuiet(t))
  return (24 * loud.length) / samples
}
