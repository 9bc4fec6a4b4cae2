import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import { directChannel, UNKNOWN_CHANNEL, WITHHELD } from '../../../shared/mesh/channels.ts'
import { belongsToChannel, isForOneNode } from '../../accounts/access/visible.ts'

/** The channel of a packet's content. For content sent to one node see `FIRST_DIRECT`; see also `WITHHELD`. */
export function channelOnAir(packet: Packet): number {
  const { port, payload, to, channel, isWithheld } = packet
  if (port === null) return UNKNOWN_CHANNEL
  const isReplayOfChannel = payload.kind === 'storeforward' && payload.storeForward.replay?.isDirect === false
  const isOfChannel = belongsToChannel(payload.kind, isReplayOfChannel)
  if (isForOneNode({ ...packet, isOfChannel })) return directChannel(to)
  return isWithheld ? channel + WITHHELD : channel
}

type Said = { readonly packetId: number; readonly to: number; readonly text: string; readonly isReplay: boolean }

/** The text of a packet; a store & forward server repeats texts of other nodes. */
export function readText({ id, to, pkiEncrypted, payload }: Packet): Said | null {
  if (payload.kind === 'text') return { packetId: id, to, text: payload.text, isReplay: false }
  const replay = payload.kind === 'storeforward' ? payload.storeForward.replay : null
  if (replay === null) return null
  const { originalId, isDirect, text } = replay
  // A copy that is encrypted for one node does not show the channel of the original: it counts as a message to that
  // node.
  return { packetId: originalId ?? id, to: isDirect || pkiEncrypted ? to : BROADCAST, text, isReplay: true }
}
