import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { traceroutes } from '../../../db/schema.ts'
import { prepareOnce, type Statement } from '../../../db/store.ts'
import { encodeTraceroute } from '../../../meshtastic/link/to-radio.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { canWriteChannel } from '../../../shared/access/scope.ts'
import { WHOLE_VIEW } from '../../accounts/access/visible.ts'
import { audit } from '../../audit/audit.ts'
import { AppError } from '../../http/errors.ts'
import { demandPlace, newPacketId, writeCommand } from '../downlink/commands.ts'
import { findCollector } from '../downlink/listening.ts'
import type { Collector } from '../radios/listener.ts'
import { readDelivery } from '../live/details.ts'
import type { PacketKey } from '../messages/delivery-records.ts'
import { chooseRadio, requireSender } from '../radios/choose-radio.ts'
import type { Outgoing } from '../radios/radio.ts'
import { publicTraceroute, type Traceroute, tracerouteColumns } from '../topology/traceroutes.ts'
import { type Automatic, bodyNodeNum, nameSender, noteCommand, radioName, refuseStale, type SendCtx } from './send.ts'

/** The primary channel of a radio, on which our requests are sent. */
const CHANNEL = 0

export const newTracerouteSchema = z.strictObject({
  to: bodyNodeNum.refine((nodeNum) => nodeNum < BROADCAST, 'one node').describe('Node number or !hex'),
  radio: radioName,
})
type NewTraceroute = z.infer<typeof newTracerouteSchema>

const queries = prepareOnce((db) => ({
  byRequest: db
    .select(tracerouteColumns)
    .from(traceroutes)
    .where(
      and(
        eq(traceroutes.fromNodeNum, sql.placeholder('nodeNum')),
        eq(traceroutes.requestId, sql.placeholder('packetId')),
      ),
    )
    .prepare(),
}))

/**
 * Traces the route to a node. Throws `forbidden`, `invalid_request` for an unknown radio, `radio_unavailable`,
 * `queue_full`, `automation_changed`; nothing is stored then.
 */
export async function requestTraceroute(
  ctx: SendCtx,
  asked: NewTraceroute,
  automatic: Automatic | null = null,
): Promise<Traceroute> {
  if (ctx.viewer !== null && !canWriteChannel(ctx.viewer.view, CHANNEL)) {
    throw new AppError('forbidden', 'You may not send on the primary channel')
  }
  const { command = null } = ctx
  const collector = automatic === null ? await findCollector(ctx, 'traceroute', { ...asked, channel: CHANNEL }) : null
  if (collector !== null) return storeAndCommand(ctx, asked.to, collector)
  if (ctx.radio === null) throw new AppError('unsupported_on_this_runtime')
  const outgoing = ctx.radio.reserve('traceroute', { radio: await findRadio(ctx, asked), rule: automatic, command })
  try {
    await refuseStale(automatic)
    return await storeAndAsk(ctx, asked.to, outgoing, automatic)
  } finally {
    outgoing.release()
  }
}

async function findRadio(ctx: SendCtx, { to, radio }: NewTraceroute): Promise<string | null> {
  if (radio === undefined) return chooseRadio(ctx, { to, channel: CHANNEL, replyId: null })
  requireSender(ctx.radio, radio)
  return radio
}

async function storeAndAsk(
  ctx: SendCtx,
  to: number,
  outgoing: Outgoing,
  automatic: Automatic | null,
): Promise<Traceroute> {
  const { nodeNum, packetId, hopLimit } = outgoing
  if (to === nodeNum) {
    const message = "must not be the radio's own node"
    throw new AppError('invalid_request', `to: ${message}`, { issues: [{ path: 'to', message }] })
  }
  await ctx.store.atomic([
    insertTraceroute(ctx, to, outgoing, { requestedBy: nameSender(ctx, automatic), state: 'queued' }),
    audit(ctx, 'message_sent', {
      kind: 'traceroute',
      packetId,
      to,
      ...(automatic === null ? {} : { automation: automatic.automationId }),
      ...noteCommand(ctx),
    }),
  ])
  const stored = await readTraceroute(ctx, { nodeNum, packetId })
  outgoing.send(encodeTraceroute({ to, channel: CHANNEL, id: packetId, hopLimit, wantAck: hopLimit > 0 }))
  return stored
}

/** Asks a collector to send it. */
async function storeAndCommand(ctx: SendCtx, to: number, collector: Collector): Promise<Traceroute> {
  await demandPlace(ctx, collector)
  const key = { nodeNum: collector.nodeNum, packetId: newPacketId() }
  const { packetId } = key
  const askedBy = nameSender(ctx, null) ?? ''
  await ctx.store.atomic([
    insertTraceroute(ctx, to, { ...key, source: collector.source }, { requestedBy: askedBy, state: 'waiting' }),
    writeCommand(ctx, collector, { kind: 'traceroute', content: { to }, packetId, askedBy }),
    audit(ctx, 'message_sent', { kind: 'traceroute', packetId, to, radio: collector.source }),
  ])
  ctx.events?.publish(await readDelivery(ctx.store, key))
  return readTraceroute(ctx, key)
}

function insertTraceroute(
  ctx: SendCtx,
  to: number,
  { source, nodeNum, packetId }: Pick<Outgoing, 'source' | 'nodeNum' | 'packetId'>,
  by: { readonly requestedBy: string | null; readonly state: 'queued' | 'waiting' },
): Statement {
  return ctx.store.db.insert(traceroutes).values({
    sourceId: sql`(select id from sources where name = ${source})`,
    requestId: packetId,
    fromNodeNum: nodeNum,
    toNodeNum: to,
    timestamp: ctx.now(),
    channel: CHANNEL,
    ...by,
  })
}

async function readTraceroute(ctx: SendCtx, key: PacketKey): Promise<Traceroute> {
  const row = await queries(ctx.store).byRequest.get(key)
  if (row === undefined) throw new Error('the traceroute that was stored is gone')
  return publicTraceroute(row, ctx.viewer?.view ?? WHOLE_VIEW)
}
