import type { GivenCommand, Outgoing, RuleMark } from '../radios/radio.ts'
import type { PacketKey } from '../messages/delivery-records.ts'
import { demandPlace, newPacketId, writeCommand } from '../downlink/commands.ts'
import { findCollector, type InRadio } from '../downlink/listening.ts'
import type { Collector } from '../radios/listener.ts'
import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { messages } from '../../../db/schema.ts'
import { prepareOnce, rawRows, type Statement } from '../../../db/store.ts'
import { BROADCAST, parseNodeId } from '../../../meshtastic/node-id.ts'
import { countTextBytes, encodeText } from '../../../meshtastic/link/to-radio.ts'
import { audit, type AuditContext, SYSTEM } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { canReadMessage, canWriteMessage, placeOfMessage } from '../../accounts/access/visible.ts'
import { AppError } from '../../http/errors.ts'
import { createOnce, type Keyed, type Remember } from '../../http/idempotency.ts'
import { configuredRadios, readChannelTable } from '../radios/channel-table.ts'
import { chooseRadio, requireSender } from '../radios/choose-radio.ts'
import { readSent } from '../live/details.ts'
import { type Message, messageColumns, publicMessage, type RawMessage } from '../messages/messages.ts'
import { MAX_TEXT_BYTES } from '../../../shared/limits.ts'
import { said } from '../../words/words.ts'

/** A node number or `!hex`, in a body. */
export const bodyNodeNum = z.union([
  z.int().min(1).max(BROADCAST),
  z.string().transform((text, issues): number => {
    const nodeNum = parseNodeId(text)
    if (nodeNum !== null && nodeNum > 0) return nodeNum
    issues.addIssue('a node number or !hex')
    return z.NEVER
  }),
])

/** The radio to send with, in a body. */
export const radioName = z
  .string()
  .min(1)
  .max(300)
  .optional()
  .describe('Name of the radio that sends, as in `links` of GET /api/info; default: the most suitable one')

export const newMessageSchema = z
  .strictObject({
    text: z
      .string()
      .refine((text) => text.trim() !== '', 'not empty')
      .refine((text) => text.isWellFormed() && !text.includes('\0'), 'text without NUL or lone surrogates')
      .describe(`At most ${MAX_TEXT_BYTES} bytes of UTF-8`),
    to: bodyNodeNum.default(BROADCAST).describe('Node number or !hex; default: broadcast'),
    channel: z.int().min(0).max(7).default(0).describe('Number as in GET /api/channels'),
    replyId: z.int().min(1).max(0xffffffff).optional().describe('packetId of the message this answers'),
    emoji: z.boolean().default(false).describe('The text is a reaction to replyId'),
    wantAck: z.boolean().optional().describe('Ask for an acknowledgement; true unless hopLimit is 0'),
    radio: radioName,
    hopLimit: z
      .int()
      .min(0)
      .max(7)
      .optional()
      .describe("A value above the radio's own setting has the same effect as that setting"),
  })
  .refine(({ emoji, replyId }) => !emoji || replyId !== undefined, {
    path: ['replyId'],
    message: 'required for a reaction',
  })
  .refine(({ wantAck, hopLimit }) => wantAck !== true || hopLimit !== 0, {
    path: ['wantAck'],
    // With a hop limit of 0, radios send a packet that wants an acknowledgement through the whole mesh.
    message: 'with hopLimit 0 there is no acknowledgement',
  })
export type NewMessage = z.infer<typeof newMessageSchema>

/** What sending needs from a request. Without a viewer, the service itself is the sender. */
export type SendCtx = AuditContext &
  Pick<Ctx, 'radio' | 'events'> & {
    /** Another service asked for it. */
    readonly command?: GivenCommand
  }

/** The rule on whose behalf the service sends. */
export type Automatic = RuleMark & {
  readonly name: string
  /** Whether the rule is on and unchanged. */
  isCurrent(): Promise<boolean>
}

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  byPacket: db
    .select(messageColumns)
    .from(messages)
    .where(and(eq(messages.fromNodeNum, value('nodeNum')), eq(messages.packetId, value('packetId'))))
    .prepare(),
  byId: db
    .select(messageColumns)
    .from(messages)
    .where(eq(messages.id, value('id')))
    .prepare(),
}))

/**
 * Stores a message and gives it to a radio to send. A repeat with the same key returns the first message and sends
 * nothing. Throws `forbidden`, `invalid_request` for an unknown radio, `text_too_long`, `idempotency_key_reused`,
 * `message_not_found` for a repeat whose message is deleted, `radio_unavailable`, `queue_full`, `automation_changed`;
 * nothing is stored then.
 */
export async function sendMessage(
  ctx: SendCtx,
  message: NewMessage,
  keyed: Keyed | null,
  automatic: Automatic | null = null,
): Promise<Message> {
  const bytes = countTextBytes(message.text)
  if (bytes > MAX_TEXT_BYTES) {
    throw new AppError(
      'text_too_long',
      said('The text has {bytes} bytes; at most {most} can be sent', { bytes, most: MAX_TEXT_BYTES }),
      {
        size: { bytes, limit: MAX_TEXT_BYTES },
      },
    )
  }
  refuseUnwritable(ctx, message)
  const { radio } = ctx
  return createOnce(ctx, keyed, {
    async create(remember) {
      const collector = automatic === null ? await findCollector(ctx, 'text', message) : null
      if (collector !== null) return storeAndCommand(ctx, message, collector, remember)
      if (radio === null) throw new AppError('unsupported_on_this_runtime')
      const { command = null } = ctx
      const outgoing = radio.reserve('text', { radio: await findRadio(ctx, message), rule: automatic, command })
      try {
        await refuseStale(automatic)
        const slot = await findChannelIndex(ctx, outgoing, message)
        return await storeAndSend(ctx, message, outgoing, { remember, automatic, slot })
      } finally {
        outgoing.release()
      }
    },
    async repeat(id) {
      const [row] = await rawRows<RawMessage>(queries(ctx.store).byId, { id })
      if (row === undefined) throw new AppError('message_not_found')
      return publicMessage(row)
    },
  })
}

/**
 * Throws `forbidden` for a destination outside the sender's scope, and `invalid_request` for a channel that does not
 * exist for the sender. The service itself may send everywhere.
 */
export function refuseUnwritable(
  { viewer }: Pick<SendCtx, 'viewer'>,
  { to, channel }: Pick<NewMessage, 'to' | 'channel'>,
): void {
  if (viewer === null) return
  const place = placeOfMessage({ channel, to })
  if (canWriteMessage(viewer.scope, place)) return
  if (!place.isDirect && !canReadMessage(viewer.scope, place)) throw noSuchChannel()
  throw new AppError(
    'forbidden',
    place.isDirect ? 'You may not send direct messages' : 'You may not send on this channel',
  )
}

async function findRadio(ctx: SendCtx, { radio, to, channel, replyId }: NewMessage): Promise<string | null> {
  if (radio === undefined) return chooseRadio(ctx, { to, channel, replyId: replyId ?? null })
  requireSender(ctx.radio, radio)
  return radio
}

/**
 * Checked after a place is reserved, because from then on a change of the rule withdraws the packet. Throws
 * `automation_changed`.
 */
export async function refuseStale(automatic: Automatic | null): Promise<void> {
  if (automatic !== null && !(await automatic.isCurrent())) throw new AppError('automation_changed')
}

/** The sender as stored in a row; no username contains a colon. */
export function nameSender({ viewer, command }: SendCtx, automatic: Automatic | null): string | null {
  if (command !== undefined) return `downlink:${command.askedBy}`
  return automatic === null ? (viewer?.user.username ?? SYSTEM.username) : `automation:${automatic.name}`
}

/** For the audit log: who asked for it at which service. */
export function noteCommand({ command }: Pick<SendCtx, 'command'>): object {
  return command === undefined ? {} : { askedBy: command.askedBy, service: command.service }
}

/** Asks a collector to send it. */
async function storeAndCommand(
  ctx: SendCtx,
  message: NewMessage,
  collector: Collector & InRadio,
  remember: Remember,
): Promise<Message> {
  await demandPlace(ctx, collector)
  const { text, to, channel, replyId = null, emoji, hopLimit = null } = message
  const { nodeNum, source } = collector
  const packetId = newPacketId()
  const askedBy = nameSender(ctx, null) ?? ''
  const inRadio = { slot: collector.slot, channel: collector.channel }
  const wantAck = (message.wantAck ?? true) && hopLimit !== 0
  const content = { text, to, ...inRadio, replyId, emoji, wantAck, hopLimit }
  await ctx.store.atomic([
    insertMessage(ctx, message, { source, nodeNum, packetId }, { sentBy: askedBy, state: 'waiting' }),
    writeCommand(ctx, collector, { kind: 'text', content, packetId, askedBy }),
    audit(ctx, 'message_sent', { packetId, to, channel, bytes: countTextBytes(text), radio: source }),
    ...remember(sql`(select id from messages where from_node_num = ${nodeNum} and packet_id = ${packetId})`),
  ])
  return readAndTell(ctx, { nodeNum, packetId })
}

async function readAndTell(ctx: SendCtx, key: PacketKey): Promise<Message> {
  const [row] = await rawRows<RawMessage>(queries(ctx.store).byPacket, key)
  if (row === undefined) throw new Error('the stored message no longer exists')
  ctx.events?.publish([await readSent(ctx.store, key)])
  return publicMessage(row)
}

async function storeAndSend(
  ctx: SendCtx,
  message: NewMessage,
  outgoing: Outgoing,
  { remember, automatic, slot }: { remember: Remember; automatic: Automatic | null; slot: number },
): Promise<Message> {
  const { text, to, channel, replyId = null, emoji } = message
  const { nodeNum, packetId } = outgoing
  const hopLimit = Math.min(message.hopLimit ?? outgoing.hopLimit, outgoing.hopLimit)
  const wantAck = (message.wantAck ?? true) && hopLimit > 0
  const packet = encodeText({ to, channel: slot, id: packetId, hopLimit, wantAck, text, replyId, isEmoji: emoji })
  await ctx.store.atomic([
    insertMessage(ctx, message, outgoing, { sentBy: nameSender(ctx, automatic), state: 'queued' }),
    audit(ctx, 'message_sent', {
      packetId,
      to,
      channel,
      bytes: countTextBytes(text),
      ...(automatic === null ? {} : { automation: automatic.automationId }),
      ...noteCommand(ctx),
    }),
    ...remember(sql`(select id from messages where from_node_num = ${nodeNum} and packet_id = ${packetId})`),
  ])
  const [row] = await rawRows<RawMessage>(queries(ctx.store).byPacket, { nodeNum, packetId })
  if (row === undefined) throw new Error('the stored message no longer exists')
  outgoing.send(packet)
  ctx.events?.publish([await readSent(ctx.store, { nodeNum, packetId })])
  return publicMessage(row)
}

function insertMessage(
  ctx: SendCtx,
  message: NewMessage,
  { source, nodeNum, packetId }: Pick<Outgoing, 'source' | 'nodeNum' | 'packetId'>,
  { sentBy, state }: { readonly sentBy: string | null; readonly state: 'queued' | 'waiting' },
): Statement {
  const { text, to, channel, replyId = null, emoji } = message
  return ctx.store.db.insert(messages).values({
    sourceId: sql`(select id from sources where name = ${source})`,
    packetId,
    fromNodeNum: nodeNum,
    toNodeNum: to,
    channel,
    text,
    replyId,
    emoji,
    timestamp: ctx.now(),
    direction: 'out',
    deliveryState: state,
    sentBy,
  })
}

/** A radio accepts a text for a disabled channel and drops it; another radio may have other channels. */
export async function findChannelIndex(
  ctx: Pick<SendCtx, 'store' | 'radio'>,
  { source }: Pick<Outgoing, 'source'>,
  { to, channel }: Pick<NewMessage, 'to' | 'channel'>,
): Promise<number> {
  const table = await readChannelTable(ctx.store, configuredRadios(ctx.radio))
  const slot = table.indexIn(source, channel)
  if (slot !== null) return slot
  // A direct message is usually in no channel.
  if (to !== BROADCAST && channel === 0) return 0
  throw noSuchChannel()
}

function noSuchChannel(): AppError {
  const message = 'the sending radio has it disabled, or another channel in its place'
  return new AppError('invalid_request', `channel: ${message}`, { issues: [{ path: 'channel', message }] })
}
