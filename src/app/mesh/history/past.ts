import * as z from 'zod'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { CHANGED_FIELDS } from '../../../shared/mesh/node-changes.ts'
import { distanceMetres, roughness } from '../../../shared/mesh/distance.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/time.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { readTrack } from '../nodes/positions.ts'
import { seenNode } from '../nodes/seen.ts'
import { listChanges } from './changes.ts'
import { type HeardHour, listDays, listHours } from './days.ts'
import { listReceivers } from './receivers.ts'
import { listSettings } from './settings.ts'

/** The days of the calendar. */
const CALENDAR_MS = 30 * DAY_MS
/** The days whose silences and moves are told. */
const STORY_MS = 90 * DAY_MS
/** A pause that is told. */
const SILENCE_MS = DAY_MS
/** A move that is told, beyond what the rounding of positions can make up. */
const MOVE_METRES = 1000
const MAX_MOVES = 20
const MAX_POSITIONS = 10_000

const eventSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('first_heard'), t: timeField }),
  z.object({
    kind: z.literal('changed'),
    t: timeField,
    field: z.enum(CHANGED_FIELDS).describe('restarted: its uptime fell; the values are seconds'),
    before: z.string(),
    after: z.string().nullable(),
  }),
  z.object({ kind: z.literal('silent'), t: timeField, until: timeField.nullable().describe('Null: until now') }),
  z.object({ kind: z.literal('moved'), t: timeField, metres: z.number() }),
  z.object({
    kind: z.literal('set'),
    t: timeField,
    by: z.string().nullable().describe('Username at that time; null: the service itself'),
    section: z.string().nullable().describe('The section of its configuration; null: what is set about it here'),
    fields: z.array(z.string()).describe('What was changed'),
    isRestart: z.boolean(),
  }),
])

export const pastSchema = z
  .object({
    nodeNum: nodeNumField,
    nodeId: nodeIdField,
    from: timeField.describe('The first hour of the calendar'),
    hours: z
      .array(z.object({ t: timeField.describe('Start of the hour'), packets: z.int() }))
      .describe('The hours of the last 30 days in which it was heard, oldest first'),
    days: z
      .array(
        z.object({
          t: timeField.describe('Start of the day, UTC'),
          packets: z.int(),
          direct: z.int().describe('Packets that came directly, without another node between'),
          minHops: z.int().nullable().describe('The fewest hops; null: unknown'),
          maxHops: z.int().nullable(),
        }),
      )
      .describe('The days of these hours, oldest first'),
    receivers: z
      .array(
        z.object({
          source: z.string().describe('The radio, broker or collector'),
          gateway: nodeNumField.nullable().describe('The gateway that published it; null: the radio itself heard it'),
          gatewayId: nodeIdField.nullable(),
          firstAt: timeField,
          lastAt: timeField,
          packets: z.int(),
          direct: z.int().describe('Packets that came directly, without another node between'),
          snr: z.number().nullable().describe('dB of the latest one of these'),
          hops: z.int().nullable().describe('Of the latest packet'),
        }),
      )
      .describe('By whom it was heard, the latest first'),
    events: z
      .array(eventSchema)
      .describe('What happened to it, the latest first; what was set about it only for administrators'),
  })
  .meta({ id: 'NodePast', description: 'When and by whom a node was heard, and what happened to it' })
type Past = z.infer<typeof pastSchema>
type Event = z.infer<typeof eventSchema>

/** The past of a node, as far as the viewer may see it. Throws `node_not_found`. */
export async function readPast(ctx: SignedInCtx, asked: number): Promise<Past> {
  const { nodeNum, formerNodeNums, firstHeard, lastHeard } = await seenNode(ctx, asked)
  const nums = [nodeNum, ...formerNodeNums]
  const now = ctx.now()
  const from = Math.floor((now - CALENDAR_MS) / HOUR_MS) * HOUR_MS
  // A clock that was ahead has left hours that are not yet here.
  const hours = (await listHours(ctx.store, nums, now - STORY_MS)).filter(({ t }) => t <= now)
  const days = await listDays(ctx.store, nums, from)
  const receivers = await listReceivers(ctx, nums)
  const changes = await listChanges(ctx, nums)
  const settings = await listSettings(ctx, nums, now - STORY_MS)
  const { positions } = await readTrack(ctx, nodeNum, { from: now - STORY_MS, to: now, limit: MAX_POSITIONS })
  const events: Event[] = [
    ...silencesOf(hours, lastHeard, now),
    ...changes.map((change) => ({ kind: 'changed' as const, ...change })),
    ...movesOf(positions),
    ...settings.map((each) => ({ kind: 'set' as const, ...each, fields: [...each.fields] })),
    { kind: 'first_heard', t: firstHeard },
  ]
  return {
    nodeNum,
    nodeId: formatNodeId(nodeNum),
    from,
    hours: hours.filter(({ t }) => t >= from),
    days: days.filter(({ t }) => t <= now),
    receivers: receivers.map(({ source, gateway, firstAt, lastAt, packets, direct, snr, hops }) => {
      const gatewayId = gateway === null ? null : formatNodeId(gateway)
      return { source, gateway, gatewayId, firstAt, lastAt, packets, direct, snr, hops }
    }),
    events: events.toSorted((a, b) => b.t - a.t),
  }
}

/** Pauses of a day or longer. */
function silencesOf(hours: readonly HeardHour[], lastHeard: number | null, now: number): Event[] {
  const found = hours.flatMap(({ t }, index): Event[] => {
    const next = hours[index + 1]
    const begun = t + HOUR_MS
    return next !== undefined && next.t - begun >= SILENCE_MS ? [{ kind: 'silent', t: begun, until: next.t }] : []
  })
  const isSilent = lastHeard !== null && now - lastHeard >= SILENCE_MS
  return isSilent ? [...found, { kind: 'silent', t: lastHeard, until: null }] : found
}

type Fix = Awaited<ReturnType<typeof readTrack>>['positions'][number]

/** The latest moves from one place to another. */
function movesOf(positions: readonly Fix[]): Event[] {
  const moves: Event[] = []
  let [home] = positions
  for (const place of positions) {
    if (home === undefined) break
    const metres = distanceMetres(home, place)
    if (metres - roughness(home.precisionBits) - roughness(place.precisionBits) < MOVE_METRES) continue
    moves.push({ kind: 'moved', t: place.time, metres: Math.round(metres) })
    home = place
  }
  return moves.slice(-MAX_MOVES)
}
