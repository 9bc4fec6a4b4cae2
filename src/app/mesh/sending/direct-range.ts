import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { tracerouteAnswers, traceroutes } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { encodeTraceroute } from '../../../meshtastic/link/to-radio.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { canWriteChannel } from '../../../shared/access/scope.ts'
import { ofNodesSeenBy, onChannelSeenBy } from '../../accounts/access/visible.ts'
import { audit } from '../../audit/audit.ts'
import type { Reader, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { nodeIdField, nodeNumField, timeField } from '../../http/fields.ts'
import { chooseRadio, requireSender } from '../radios/choose-radio.ts'
import { publicTraceroute, type Traceroute, tracerouteColumns } from '../topology/traceroutes.ts'
import { nameSender, radioName } from './send.ts'

/** The primary channel of a radio, on which our requests are sent. */
const CHANNEL = 0

export const directRangeSchema = z.strictObject({ radio: radioName })

export const directAnswersSchema = z.object({
  answers: z.array(
    z.object({
      nodeNum: nodeNumField,
      nodeId: nodeIdField,
      timestamp: timeField,
      snrTowards: z.number().nullable().describe('dB: how the node heard the radio'),
      snrBack: z.number().nullable().describe('dB: how the radio heard the node; null: not directly'),
    }),
  ),
})

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  byRequest: db
    .select(tracerouteColumns)
    .from(traceroutes)
    .where(and(eq(traceroutes.fromNodeNum, value('nodeNum')), eq(traceroutes.requestId, value('packetId'))))
    .prepare(),
}))

/**
 * Asks every node that hears the radio directly to answer: a traceroute to all that nobody repeats. Firmware 2.6 and
 * newer answers it, and a radio refuses one with hops. Throws `forbidden`, `invalid_request` for an unknown radio,
 * `radio_unavailable`, `queue_full`; nothing is stored then.
 */
export async function askDirectRange(
  ctx: SignedInCtx,
  { radio }: z.infer<typeof directRangeSchema>,
): Promise<Traceroute> {
  if (ctx.radio === null) throw new AppError('unsupported_on_this_runtime')
  if (!canWriteChannel(ctx.viewer.view, CHANNEL)) {
    throw new AppError('forbidden', 'You may not send on the primary channel')
  }
  if (radio !== undefined) requireSender(ctx.radio, radio)
  const chosen = radio ?? (await chooseRadio(ctx, { to: BROADCAST, channel: CHANNEL, replyId: null }))
  const outgoing = ctx.radio.reserve('traceroute', { radio: chosen })
  try {
    const { source, nodeNum, packetId } = outgoing
    await ctx.store.atomic([
      ctx.store.db.insert(traceroutes).values({
        sourceId: sql`(select id from sources where name = ${source})`,
        requestId: packetId,
        fromNodeNum: nodeNum,
        toNodeNum: BROADCAST,
        timestamp: ctx.now(),
        state: 'queued',
        channel: CHANNEL,
        requestedBy: nameSender(ctx, null),
      }),
      audit(ctx, 'message_sent', { kind: 'traceroute', packetId, to: BROADCAST }),
    ])
    const row = await queries(ctx.store).byRequest.get({ nodeNum, packetId })
    if (row === undefined) throw new Error('the traceroute that was stored is gone')
    // With an acknowledgement, a radio sends a packet without hops through the whole mesh.
    outgoing.send(encodeTraceroute({ to: BROADCAST, channel: CHANNEL, id: packetId, hopLimit: 0, wantAck: false }))
    return publicTraceroute(row, ctx.viewer.view)
  } finally {
    outgoing.release()
  }
}

/** The nodes that answered, the best heard first, as far as the viewer may see them; none of a traceroute that is not seen. */
export async function listDirectAnswers(
  { store, viewer: { view } }: Reader,
  id: number,
): Promise<z.infer<typeof directAnswersSchema>> {
  const { nodeNum, t, snrTowards, snrBack, tracerouteId } = tracerouteAnswers
  const rows = await store.db
    .select({ nodeNum, t, snrTowards, snrBack })
    .from(tracerouteAnswers)
    .innerJoin(traceroutes, eq(traceroutes.id, tracerouteId))
    .where(
      and(
        eq(tracerouteId, id),
        onChannelSeenBy(traceroutes.channel, view),
        ofNodesSeenBy(view, traceroutes.fromNodeNum, nodeNum),
      ),
    )
    .orderBy(sql`${snrTowards} desc nulls last`, nodeNum)
    .all()
  return { answers: rows.map(({ t: timestamp, ...row }) => ({ ...row, nodeId: formatNodeId(row.nodeNum), timestamp })) }
}
