import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { waypoints } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { countTextBytes } from '../../../meshtastic/link/to-radio.ts'
import { encodeWaypoint, NO_END, type WaypointToSend } from '../../../meshtastic/link/waypoint.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { removeHidden } from '../../../shared/hidden-characters.ts'
import { MAX_WAYPOINT_DESCRIPTION, MAX_WAYPOINT_NAME } from '../../../shared/limits.ts'
import { FIRST_DIRECT, WITHHELD } from '../../../shared/mesh/channels.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import { audit } from '../../audit/audit.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { timeInput } from '../../http/validate.ts'
import { chooseRadio, listSenders, requireSender } from '../radios/choose-radio.ts'
import type { Waypoint } from '../topology/topology.ts'
import { findChannelIndex, radioName, refuseUnwritable } from './send.ts'

const LAST_END_MS = NO_END * 1000

const text = (most: number, isFine: (given: string) => boolean) =>
  z
    .string()
    .refine((given) => countTextBytes(given) <= most, `at most ${most} bytes of UTF-8`)
    .refine((given) => given.isWellFormed() && isFine(given), 'no control characters and no invisible ones')
    .describe(`At most ${most} bytes of UTF-8`)

const fields = {
  name: text(MAX_WAYPOINT_NAME, (name) => removeHidden(name) === name),
  description: text(MAX_WAYPOINT_DESCRIPTION, (lines) => /^(?:\n|\P{Cc})*$/u.test(lines)).default(''),
  icon: z
    .string()
    .regex(/^\P{C}\ufe0f?$/u, 'one emoji of one code point')
    .nullable()
    .default(null)
    .describe('One emoji of a single code point'),
  latitude: z.number().min(-90).max(90).describe('Degrees, north is positive'),
  longitude: z.number().min(-180).max(180).describe('Degrees, east is positive'),
  expiresAt: timeInput
    .refine((ms) => ms <= LAST_END_MS, 'at most 2038-01-19')
    .nullable()
    .default(null)
    .describe('Null: it has no end'),
  locked: z.boolean().default(false).describe('Only the node of the sending radio may change it'),
}

const channel = z.int().min(0).max(7).describe('Number as in GET /api/channels')

export const newWaypointSchema = z.strictObject({ ...fields, channel: channel.default(0), radio: radioName })
export const changedWaypointSchema = z.strictObject({
  ...fields,
  channel: channel.optional().describe('Default: the channel that it is on'),
  radio: radioName,
})
type Changes = z.infer<typeof changedWaypointSchema>

type Row = typeof waypoints.$inferSelect

const queries = prepareOnce((db) => ({
  one: db
    .select()
    .from(waypoints)
    .where(eq(waypoints.id, sql.placeholder('id')))
    .prepare(),
}))

/**
 * Shares a waypoint on a channel. It is stored once the radio has it. Throws `forbidden`, `invalid_request` for an
 * unknown radio or channel, `radio_unavailable`, `queue_full`.
 */
export async function createWaypoint(ctx: SignedInCtx, input: z.infer<typeof newWaypointSchema>): Promise<Waypoint> {
  return share(ctx, input, null)
}

/** Changes a waypoint for everybody on its channel. Throws as above, and `not_found`. */
export async function changeWaypoint(ctx: SignedInCtx, id: number, input: Changes): Promise<Waypoint> {
  const known = await findWaypoint(ctx, id)
  return share(ctx, { ...input, channel: input.channel ?? channelOf(known) }, known)
}

/** Deletes a waypoint for everybody on its channel, by an end in the past. Throws as above. */
export async function deleteWaypoint(ctx: SignedInCtx, id: number): Promise<void> {
  const known = await findWaypoint(ctx, id)
  const { name, description, icon, latitude, longitude, lockedTo } = known
  const place = { name, description, icon, latitude, longitude, locked: lockedTo !== null }
  await share(ctx, { ...place, expiresAt: null, channel: channelOf(known) }, known, true)
}

/** One that the viewer sees. */
async function findWaypoint({ store, viewer, now }: SignedInCtx, id: number): Promise<Row> {
  const row = await queries(store).one.get({ id })
  const isSeen =
    row !== undefined &&
    viewer.permissions.nodes.read &&
    canReadChannel(viewer.view, row.channel) &&
    seesNodes(viewer.view, [row.fromNodeNum]) &&
    (row.expiresAt === null || row.expiresAt > now())
  if (!isSeen) throw new AppError('not_found', 'There is no such waypoint')
  return row
}

/** The channel on which others have it. */
function channelOf({ channel: number }: Row): number {
  const known = number !== null && number >= WITHHELD && number < FIRST_DIRECT ? number - WITHHELD : number
  if (known !== null && known >= 0 && known < WITHHELD) return known
  const message = 'needed, because this waypoint came on no channel that is known'
  throw new AppError('invalid_request', `channel: ${message}`, { issues: [{ path: 'channel', message }] })
}

type Shared = Omit<Changes, 'channel'> & { readonly channel: number }

async function share(ctx: SignedInCtx, input: Shared, known: Row | null, isDeleted = false): Promise<Waypoint> {
  if (ctx.radio === null) throw new AppError('unsupported_on_this_runtime')
  const { channel: number } = input
  // Radios count seconds.
  const expiresAt = input.expiresAt === null ? null : Math.floor(input.expiresAt / 1000) * 1000
  refuseUnwritable(ctx, { to: BROADCAST, channel: number })
  if (expiresAt !== null && expiresAt <= ctx.now()) {
    const message = 'must not be in the past'
    throw new AppError('invalid_request', `expiresAt: ${message}`, { issues: [{ path: 'expiresAt', message }] })
  }
  const outgoing = ctx.radio.reserve('waypoint', { radio: await findRadio(ctx, input, known) })
  try {
    const { nodeNum, packetId, hopLimit } = outgoing
    if (isOfAnother(known, nodeNum)) throw lockedToAnother()
    const slot = await findChannelIndex(ctx, outgoing, { to: BROADCAST, channel: number })
    const waypoint: WaypointToSend = {
      ...input,
      id: known?.id ?? packetId,
      icon: input.icon === null ? null : String.fromCodePoint(input.icon.codePointAt(0) ?? 0),
      expiresAt: isDeleted ? 'deleted' : expiresAt,
      lockedTo: input.locked ? nodeNum : null,
      rest: isDeleted || known === null ? '' : known.rest,
    }
    const way = { to: BROADCAST, channel: slot, id: packetId, hopLimit, wantAck: hopLimit > 0 }
    const message = encodeWaypoint(way, waypoint)
    if (message === null) throw tooLong()
    const details = { kind: 'waypoint', packetId, to: BROADCAST, channel: number, waypoint: waypoint.id }
    await ctx.store.atomic([audit(ctx, 'message_sent', { ...details, ...(isDeleted ? { deleted: true } : {}) })])
    outgoing.send(message)
    const { id, name, description, icon, latitude, longitude, lockedTo } = waypoint
    const sender = { fromNodeNum: nodeNum, fromNodeId: formatNodeId(nodeNum), timestamp: ctx.now() }
    return { id, ...sender, name, description, icon, latitude, longitude, expiresAt, lockedTo }
  } finally {
    outgoing.release()
  }
}

function isOfAnother(known: Row | null, nodeNum: number): boolean {
  return known !== null && known.lockedTo !== null && known.lockedTo !== nodeNum
}

function lockedToAnother(): AppError {
  return new AppError('forbidden', 'The waypoint is locked: only the node that locked it may change it')
}

/** Only with fields of a later version of the apps, which are kept. */
function tooLong(): AppError {
  const message = 'too long beside what an app has stored in this waypoint'
  return new AppError('invalid_request', `description: ${message}`, { issues: [{ path: 'description', message }] })
}

/** One that is locked to a radio of ours is sent by that radio. */
async function findRadio(ctx: SignedInCtx, { radio, channel: number }: Shared, known: Row | null) {
  if (known !== null && known.lockedTo !== null) {
    const owner = listSenders(ctx.radio).find(({ nodeNum }) => nodeNum === known.lockedTo)
    if (owner === undefined) throw lockedToAnother()
    return owner.source
  }
  if (radio === undefined) return chooseRadio(ctx, { to: BROADCAST, channel: number, replyId: null })
  requireSender(ctx.radio, radio)
  return radio
}
