import * as z from 'zod'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import type { Ctx } from '../../context.ts'
import { integerQuery } from '../../http/validate.ts'
import { listMessages, type Message, type messagePageSchema } from '../../mesh/messages/messages.ts'
import { listChannels, type channelSchema } from '../../mesh/topology/topology.ts'
import { configuredRadios } from '../../mesh/radios/channel-table.ts'
import type { PublicView } from '../public-view.ts'
import { readerFor } from './reader.ts'
import { messageForStrangers } from './rows.ts'

/** There are no earlier pages and no search: each costs time that is reserved for users with an account. */
const MAX_SHOWN = 500

export const messagesAsked = z.strictObject({
  limit: integerQuery(1, MAX_SHOWN).default(100),
  channel: integerQuery(0, MAX_NUMBER).optional(),
})

/** The latest messages of the shown channels, newest first. */
export async function listMessagesShown(
  ctx: Ctx,
  view: PublicView,
  { limit, channel }: z.output<typeof messagesAsked>,
): Promise<z.infer<typeof messagePageSchema>> {
  const { store, viewer } = await readerFor(ctx, view)
  const page: { messages: Message[] } = JSON.parse(await listMessages(store, { limit, channel }, viewer.view))
  return { messages: page.messages.map(messageForStrangers).toSorted((a, b) => b.id - a.id), nextBefore: null }
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
