import * as z from 'zod'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import type { Ctx } from '../../base/context.ts'
import { integerQuery } from '../../http/validate.ts'
import { listMessages, type Message } from './messages.ts'
import { listChannels, type channelSchema } from '../topology/topology.ts'
import { configuredRadios } from '../radios/channel-table.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { readerFor } from '../../accounts/access/anonymous-reader.ts'
import { publicId } from '../../accounts/access/public-id.ts'

/** There are no earlier pages and no search, because both cost time that is reserved for users with an account. */
const MAX_SHOWN = 500
const USUALLY = 100

export const messagesAsked = z.strictObject({
  limit: integerQuery(1, MAX_SHOWN).default(USUALLY),
  channel: integerQuery(0, MAX_NUMBER).optional(),
})

/** `nextBefore` is always null. */
export const messagesForm = { open: '{"messages":[', close: '],"nextBefore":null}', usual: USUALLY }

/** The latest messages of the shown channels, newest first. */
export async function listMessagesShown(
  ctx: Ctx,
  view: PublicView,
  { channel }: Pick<z.output<typeof messagesAsked>, 'channel'>,
): Promise<Message[]> {
  const { store, viewer } = await readerFor(ctx, view)
  const asked = { limit: MAX_SHOWN, channel }
  const page: { messages: Message[] } = JSON.parse(await listMessages(store, asked, viewer.view))
  return page.messages.map(messageForAnonymous).toSorted((a, b) => b.id - a.id)
}

/** The shown channels, without their radio or broker. */
export async function listChannelsShown(
  { store, radio }: Ctx,
  view: PublicView,
): Promise<{
  channels: z.infer<typeof channelSchema>[]
}> {
  const shown = await listChannels(store, configuredRadios(radio), view.scope)
  return { channels: shown.map(({ index, name, role }) => ({ source: '', index, name, role })) }
}

/**
 * A message without its handling by our radios and users: each field is listed here, or it is not shown. Its id reveals
 * nothing about hidden messages.
 */
export function messageForAnonymous(message: Message): Message {
  const { packetId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, channel } = message
  const { text, replyId, emoji, timestamp, hopsAway, viaMqtt, signed, conflicting } = message
  return {
    id: publicId(timestamp, `${fromNodeNum} ${packetId}`),
    packetId,
    fromNodeNum,
    fromNodeId,
    toNodeNum,
    toNodeId,
    channel,
    text,
    replyId,
    emoji,
    timestamp,
    rxSnr: null,
    rxRssi: null,
    hopsAway,
    viaMqtt,
    pkiEncrypted: false,
    keyDoubt: null,
    signed,
    conflicting,
    direction: 'in',
    deliveryState: null,
    routingError: null,
    sentBy: null,
    radio: null,
  }
}
