import type { Outgoing, RuleMark } from '../radios/radio.ts'
import { and, eq, lte, sql } from 'drizzle-orm'
import * as z from 'zod'
import { idempotencyKeys, messages } from '../../../db/schema.ts'
import { bind, prepareOnce, rawRows, type Statement } from '../../../db/store.ts'
import { BROADCAST, parseNodeId } from '../../../meshtastic/node-id.ts'
import { countTextBytes, encodeText } from '../../../meshtastic/link/to-radio.ts'
import { audit, type AuditContext, SYSTEM } from '../../audit/audit.ts'
import type { Ctx } from '../../base/context.ts'
import { canReadMessage, canWriteMessage, placeOfMessage } from '../../accounts/access/visible.ts'
import { AppError } from '../../http/errors.ts'
import { configuredRadios, readChannelTable } from '../radios/channel-table.ts'
import { chooseRadio, requireSender } from '../radios/choose-radio.ts'
import { readSent } from '../live/details.ts'
import { type Message, messageColumns, publicMessage, type RawMessage } from '../messages/messages.ts'
import { MAX_TEXT_BYTES } from '../../../shared/limits.ts'
import { DAY_MS } from '../../../shared/time.ts'

const IDEMPOTENCY_MS = DAY_MS

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

/** What sending needs from a request; without a viewer the service itself sends. */
export type SendCtx = AuditContext & Pick<Ctx, 'radio' | 'events'>

/** The rule on whose behalf the service sends. */
export type Automatic = RuleMark & {
  readonly name: string
  /** Whether the rule is on and unchanged. */
  isCurrent(): Promise<boolean>
}

/** The form of an Idempotency-Key: one word of printable ASCII. */
export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, '1–255 visible ASCII characters')
  .describe('Repeating the key within a day sends nothing and returns the first message')

type Remembered = readonly [requestHash: string, ...RawMessage]

const value = sql.placeholder

const queries = prepareOnce((db) => ({
  byPacket: db
    .select(messageColumns)
    .from(messages)
    .where(and(eq(messages.fromNodeNum, value('nodeNum')), eq(messages.packetId, value('packetId'))))
    .prepare(),
  byKey: db
    .select({ requestHash: idempotencyKeys.requestHash, ...messageColumns })
    .from(idempotencyKeys)
    .innerJoin(messages, eq(messages.id, idempotencyKeys.messageId))
    .where(
      and(
        eq(idempotencyKeys.userId, value('userId')),
        eq(idempotencyKeys.key, value('key')),
        sql`${idempotencyKeys.createdAt} > ${value('since')}`,
      ),
    )
    .prepare(),
  forget: db
    .delete(idempotencyKeys)
    .where(lte(idempotencyKeys.createdAt, value('before')))
    .prepare(),
}))

/**
 * Stores a message and gives it to a radio to send. With a `key` that the same user gave before for the same message,
 * returns that message and sends nothing. Throws `forbidden`, `invalid_request` for an unknown radio, `text_too_long`,
 * `idempotency_key_reused`, `radio_unavailable`, `queue_full`, `automation_changed`; nothing is stored then.
 */
export async function sendMessage(
  ctx: SendCtx,
  message: NewMessage,
  key: string | null,
  automatic: Automatic | null = null,
): Promise<Message> {
  const bytes = countTextBytes(message.text)
  if (bytes > MAX_TEXT_BYTES) {
    throw new AppError('text_too_long', `The text has ${bytes} bytes; at most ${MAX_TEXT_BYTES} can be sent`, {
      size: { bytes, limit: MAX_TEXT_BYTES },
    })
  }
  if (ctx.radio === null) throw new AppError('unsupported_on_this_runtime')
  refuseUnwritable(ctx, message)
  const idempotency = await readIdempotency(ctx, message, key)
  const earlier = idempotency === null ? null : await findEarlier(ctx, idempotency)
  if (earlier !== null) return earlier
  const outgoing = ctx.radio.reserve('text', { radio: await findRadio(ctx, message), rule: automatic })
  try {
    await refuseStale(automatic)
    const slot = await findSlot(ctx, outgoing, message)
    return await storeAndSend(ctx, message, outgoing, { idempotency, automatic, slot })
  } finally {
    outgoing.release()
  }
}

/**
 * Throws `forbidden` for what the sender's scope does not permit, and `invalid_request` for a channel that does not
 * exist for the sender. The service itself may send everywhere.
 */
function refuseUnwritable({ viewer }: SendCtx, { to, channel }: NewMessage): void {
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

/** Checked with a reserved place: from then on a change of the rule withdraws it. Throws `automation_changed`. */
export async function refuseStale(automatic: Automatic | null): Promise<void> {
  if (automatic !== null && !(await automatic.isCurrent())) throw new AppError('automation_changed')
}

type Idempotency = { readonly userId: number; readonly key: string; readonly requestHash: string }

async function readIdempotency(
  { viewer }: SendCtx,
  message: NewMessage,
  key: string | null,
): Promise<Idempotency | null> {
  if (key === null || viewer === null) return null
  return { userId: viewer.user.id, key, requestHash: await hashRequest(message) }
}

type Origin = { readonly idempotency: Idempotency | null; readonly automatic: Automatic | null }

/** The sender as stored in a row; no username contains a colon. */
export function nameSender({ viewer }: SendCtx, automatic: Automatic | null): string | null {
  return automatic === null ? (viewer?.user.username ?? SYSTEM.username) : `automation:${automatic.name}`
}

async function storeAndSend(
  ctx: SendCtx,
  message: NewMessage,
  outgoing: Outgoing,
  { idempotency, automatic, slot }: Origin & { readonly slot: number },
): Promise<Message> {
  const { text, to, channel, replyId = null, emoji } = message
  const { nodeNum, packetId } = outgoing
  const hopLimit = Math.min(message.hopLimit ?? outgoing.hopLimit, outgoing.hopLimit)
  const wantAck = (message.wantAck ?? true) && hopLimit > 0
  const packet = encodeText({ to, channel: slot, id: packetId, hopLimit, wantAck, text, replyId, isEmoji: emoji })
  try {
    await ctx.store.atomic([
      insertMessage(ctx, message, outgoing, nameSender(ctx, automatic)),
      ...(idempotency === null ? [] : rememberKey(ctx, idempotency, outgoing)),
      audit(ctx, 'message_sent', {
        packetId,
        to,
        channel,
        bytes: countTextBytes(text),
        ...(automatic === null ? {} : { automation: automatic.automationId }),
      }),
    ])
  } catch (error) {
    // The same key at the same time: one request has won, and its message is the answer to both.
    const winner = idempotency === null ? null : await findEarlier(ctx, idempotency)
    if (winner !== null) return winner
    throw error
  }
  const [row] = await rawRows<RawMessage>(queries(ctx.store).byPacket, { nodeNum, packetId })
  if (row === undefined) throw new Error('the stored message no longer exists')
  outgoing.send(packet)
  ctx.events?.publish([await readSent(ctx.store, { nodeNum, packetId })])
  return publicMessage(row)
}

function insertMessage(
  ctx: SendCtx,
  message: NewMessage,
  { source, nodeNum, packetId }: Outgoing,
  sentBy: string | null,
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
    deliveryState: 'queued',
    sentBy,
  })
}

function rememberKey(
  ctx: SendCtx,
  { userId, key, requestHash }: Idempotency,
  { nodeNum, packetId }: Outgoing,
): Statement[] {
  const messageId = sql`(select id from messages where from_node_num = ${nodeNum} and packet_id = ${packetId})`
  const row = { userId, key, requestHash, messageId, createdAt: ctx.now() }
  return [
    bind(queries(ctx.store).forget, { before: ctx.now() - IDEMPOTENCY_MS }),
    ctx.store.db.insert(idempotencyKeys).values(row),
  ]
}

async function findEarlier(ctx: SendCtx, { userId, key, requestHash }: Idempotency): Promise<Message | null> {
  const since = ctx.now() - IDEMPOTENCY_MS
  const [found] = await rawRows<Remembered>(queries(ctx.store).byKey, { userId, key, since })
  if (found === undefined) return null
  const [hash, ...message] = found
  if (hash !== requestHash) throw new AppError('idempotency_key_reused')
  return publicMessage(message)
}

async function hashRequest(message: NewMessage): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(message, Object.keys(message).toSorted()))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A radio accepts a text for a disabled channel and drops it; another radio may have other channels. */
async function findSlot(ctx: SendCtx, { source }: Outgoing, { to, channel }: NewMessage): Promise<number> {
  const table = await readChannelTable(ctx.store, configuredRadios(ctx.radio))
  const slot = table.slotOf(source, channel)
  if (slot !== null) return slot
  // A direct message is usually in no channel.
  if (to !== BROADCAST && channel === 0) return 0
  throw noSuchChannel()
}

function noSuchChannel(): AppError {
  const message = 'the sending radio has it disabled, or another channel in its place'
  return new AppError('invalid_request', `channel: ${message}`, { issues: [{ path: 'channel', message }] })
}
