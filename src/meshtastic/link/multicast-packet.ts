import { presetChannelNames } from '../channel-identity.ts'
import { hashChannel } from '../crypto/channel.ts'
import { type MeshPacket, MeshPacket_TransportMechanism, MeshPacketSchema } from '../gen/packet_pb.ts'
import { BROADCAST } from '../node-id.ts'
import { decodeStrictly } from '../wire-shape.ts'
import { type ChannelKey, type OpenDirect, openEnvelope } from './mqtt-envelope.ts'

/** At most 256 bytes on the air, and some numbers around them. */
const MAX_BYTES = 512

/**
 * The packet in a datagram of the firmware's UDP multicast, without what only the sender could know; null for others.
 * Like the firmware, it takes only encrypted ones.
 */
export function decodeMulticast(bytes: Uint8Array): MeshPacket | null {
  const packet = bytes.length > MAX_BYTES ? null : decodeStrictly(MeshPacketSchema, bytes)
  if (packet === null || packet.from === 0 || packet.from === BROADCAST) return null
  if (packet.payloadVariant.case !== 'encrypted') return null
  const { rxRssi: _, ...told } = packet
  return {
    ...told,
    // Signal, hops and time would be those of the radio that sent the datagram.
    rxSnr: 0,
    rxTime: 0,
    hopStart: 0,
    pkiEncrypted: false,
    publicKey: new Uint8Array(0),
    xeddsaSigned: false,
    transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_MULTICAST_UDP,
  }
}

/** A packet that was opened or not, and the name of its channel; null: unknown. */
export type OpenedMulticast = { readonly packet: MeshPacket; readonly channelName: string | null }

/**
 * The packet as a radio with these keys would report it. A datagram has only the hash of its channel, so a key needs its
 * channel's name; one without a name belongs to the channels that presets name.
 */
export async function openMulticast(
  packet: MeshPacket,
  keys: readonly ChannelKey[],
  openDirect: OpenDirect,
): Promise<OpenedMulticast> {
  if (packet.channel === 0 && packet.to !== BROADCAST) {
    const direct = { packet: { ...packet, pkiEncrypted: true }, channelName: '', gateway: null }
    const opened = await openEnvelope(direct, [], openDirect)
    if (opened.payloadVariant.case === 'decoded') return { packet: opened, channelName: null }
  }
  for (const { name: channelName, key } of keys.flatMap(namedKeys)) {
    if (hashChannel(channelName, key) !== packet.channel) continue
    const opened = await openEnvelope({ packet, channelName, gateway: null }, [{ name: channelName, key }], nothing)
    if (opened.payloadVariant.case === 'decoded') return { packet: opened, channelName }
  }
  return { packet, channelName: null }
}

const nothing: OpenDirect = async () => null

function namedKeys({ name, key }: ChannelKey): readonly ChannelKey[] {
  return name === '' ? presetChannelNames().map((preset) => ({ name: preset, key })) : [{ name, key }]
}
