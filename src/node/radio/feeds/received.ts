import { create, toBinary } from '@bufbuild/protobuf'
import { identifyChannel, MAX_HEARD_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { Channel_Role } from '../../../meshtastic/gen/channel_pb.ts'
import type { MeshPacket } from '../../../meshtastic/gen/packet_pb.ts'
import { FromRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import { isFreeOfSecrets } from '../../../meshtastic/link/from-radio.ts'
import { isName, MAX_CHANNEL_NAME } from '../../../meshtastic/plausible.ts'
import { toRadioEvent } from '../../../meshtastic/radio-event.ts'
import { HOUR_MS } from '../../../shared/time.ts'
import type { ReceivedEvent } from '../session.ts'

/** A channel in use is reported again at this interval, so that it is not forgotten. */
const TELL_AGAIN_MS = HOUR_MS

export type HeardPacket = {
  readonly packet: MeshPacket
  /** Null: unknown. */
  readonly channelName: string | null
  /** Whether a packet that is readable was in that channel. */
  readonly isInChannel: boolean
  readonly gateway: number | null
  readonly isReplayed: boolean
}

/** The events of a packet that a feed brought. The name of a channel comes before its first packet. */
export function createFeedReader(clock: { now(): number }): (heard: HeardPacket) => ReceivedEvent[] {
  const named = new Map<number, { readonly name: string; readonly namedAt: number }>()
  // The ingest stores the same number of channels for one source: those heard last. Forgotten ones are reported again
  // when heard.
  const isToTell = (index: number, name: string, now: number): boolean => {
    const known = named.get(index)
    const isKnown = known !== undefined && known.name === name && Math.abs(now - known.namedAt) < TELL_AGAIN_MS
    named.delete(index)
    named.set(index, isKnown ? known : { name, namedAt: now })
    for (const oldest of named.keys()) {
      if (named.size <= MAX_HEARD_CHANNELS) break
      named.delete(oldest)
    }
    return !isKnown
  }
  return ({ packet, channelName, gateway, isReplayed, ...heard }) => {
    const now = clock.now()
    const isNamed = channelName === null || isName(channelName, MAX_CHANNEL_NAME)
    const isInChannel = heard.isInChannel && packet.payloadVariant.case === 'decoded' && !packet.pkiEncrypted
    const news = channelName !== null && isNamed && isInChannel && isToTell(packet.channel, channelName, now)
    return [
      ...(news ? [nameChannel(packet.channel, channelName, now)] : []),
      receive(packet, { gateway, isReplayed, now, refusedAround: isNamed ? [] : ['channelName'] }),
    ]
  }
}

type Around = {
  readonly gateway: number | null
  readonly isReplayed: boolean
  readonly now: number
  readonly refusedAround: readonly string[]
}

function receive(packet: MeshPacket, { gateway, isReplayed, now, refusedAround }: Around): ReceivedEvent {
  const message = create(FromRadioSchema, { payloadVariant: { case: 'packet', value: packet } })
  const told = toRadioEvent(message, now, isReplayed)
  const refused = [...(told.refused ?? []), ...refusedAround]
  const event = refused.length === 0 ? told : { ...told, refused }
  const raw = isFreeOfSecrets(message) ? toBinary(FromRadioSchema, message) : null
  return { event: event.type === 'packet' && gateway !== null ? { ...event, gateway } : event, raw }
}

/** A feed has no channel table. Only the hash of a channel, its name and our matching key are known. */
function nameChannel(index: number, name: string, receivedAt: number): ReceivedEvent {
  const channel = {
    index,
    role: 'SECONDARY',
    name,
    keySize: 0,
    hasKey: true,
    uplinkEnabled: true,
    downlinkEnabled: false,
    positionPrecision: 0,
    identity: identifyChannel(index % 256, name),
  }
  const told = { index, role: Channel_Role.SECONDARY, settings: { name } }
  const message = create(FromRadioSchema, { payloadVariant: { case: 'channel', value: told } })
  return { event: { receivedAt, type: 'channel', channel }, raw: toBinary(FromRadioSchema, message) }
}
