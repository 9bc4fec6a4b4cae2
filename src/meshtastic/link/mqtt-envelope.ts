import { clone } from '@bufbuild/protobuf'
import { identifyChannel, numberChannel } from '../channel-identity.ts'
import { applyChannelKey, expandPsk, hashChannel } from '../crypto/channel.ts'
import { decodeDecrypted } from '../crypto/decrypted-data.ts'
import { ServiceEnvelopeSchema } from '../gen/mqtt_pb.ts'
import { type Data, type MeshPacket, MeshPacketSchema } from '../gen/packet_pb.ts'
import { BROADCAST, parseNodeId } from '../node-id.ts'
import { decodeStrictly } from '../wire-shape.ts'

/** A packet has at most 256 bytes on the air, and the names around it are short. */
const MAX_ENVELOPE_BYTES = 1024

/** The channel name that gateways use for direct messages that only the two ends can read. */
const PKI_CHANNEL = 'PKI'

/** Where a message was published. */
export type MqttTopic = {
  /** `map`: reports of gateways about themselves, never encrypted. */
  readonly kind: 'packet' | 'map'
  readonly channelName: string
  /** Node number of the radio that heard the packet; null when the topic does not end with one. */
  readonly gateway: number | null
}

/** `ROOT/2/e/CHANNEL/!gateway` or `ROOT/2/map/`; before 2.4, `c` stood for `e`. Null for all other topics. */
export function parseMqttTopic(topic: string): MqttTopic | null {
  const match = /(?:^|\/)2\/(?:(map)\/?|[ec]\/(.+)\/([^/]*))$/.exec(topic)
  if (match === null) return null
  const [, map, channelName = '', gateway = ''] = match
  return { kind: map === undefined ? 'packet' : 'map', channelName, gateway: parseGateway(gateway) }
}

/** Anybody can publish under any number. Neither 0 nor the broadcast number can be a gateway. */
function parseGateway(text: string): number | null {
  const nodeNum = parseNodeId(text)
  return nodeNum === 0 || nodeNum === BROADCAST ? null : nodeNum
}

/** A packet that a gateway heard or sent, and the gateway's data about it. */
export type Envelope = {
  readonly packet: MeshPacket
  readonly channelName: string
  readonly gateway: number | null
}

/** The message published at `topic`, or null for other formats, noise, and packets without a sender. */
export function decodeEnvelope(topic: MqttTopic, bytes: Uint8Array): Envelope | null {
  const envelope = bytes.length > MAX_ENVELOPE_BYTES ? null : decodeStrictly(ServiceEnvelopeSchema, bytes)
  if (envelope === null) return null
  const { packet, channelId, gatewayId } = envelope
  if (packet === undefined || packet.from === 0 || packet.payloadVariant.case === undefined) return null
  return { packet, channelName: channelId || topic.channelName, gateway: parseGateway(gatewayId) ?? topic.gateway }
}

/** `name` empty: any channel with this key. `key` from `expandPsk`. */
export type ChannelKey = { readonly name: string; readonly key: Uint8Array<ArrayBuffer> }

export const DEFAULT_CHANNEL_KEY: ChannelKey = { name: '', key: expandPsk(Uint8Array.of(1)) }

/** A decrypted direct message: its encoded `Data`, and the sender's public key that decrypted it, 32 bytes. */
export type Opened = { readonly data: Uint8Array; readonly publicKey: Uint8Array }

/** Decrypts a direct message; null without the right key. */
export type OpenDirect = (packet: MeshPacket, cipherText: Uint8Array) => Promise<Opened | null>

/**
 * The packet as a radio with these keys would report it: decrypted if one of the keys fits, else unchanged. A readable
 * packet gets the number of its channel, even if the gateway sent its own channel index; a direct message contains the
 * key that decrypted it.
 */
export async function openEnvelope(
  { packet, channelName }: Envelope,
  keys: readonly ChannelKey[],
  openDirect: OpenDirect,
): Promise<MeshPacket> {
  const { case: variant, value } = packet.payloadVariant
  // A packet that is readable at a broker was not encrypted for one node, whatever its publisher says.
  if (variant !== 'encrypted')
    return { ...clone(MeshPacketSchema, packet), channel: channelOf(channelName, keys), pkiEncrypted: false }
  const isDirect = packet.pkiEncrypted || channelName === PKI_CHANNEL
  if (isDirect) {
    const opened = packet.to === BROADCAST ? null : await openDirect(packet, value)
    const data = opened === null ? null : decodeDecrypted(opened.data)
    if (opened === null || data === null) return packet
    return { ...withData(packet, data), pkiEncrypted: true, publicKey: opened.publicKey }
  }
  for (const { name, key } of keys) {
    if (hashChannel(name || channelName, key) !== packet.channel) continue
    const data = decodeDecrypted(await applyChannelKey(key, packet, value))
    if (data !== null)
      return { ...withData(packet, data), channel: numberChannel(identifyChannel(packet.channel, channelName)) }
  }
  return packet
}

/** The number of the channel of this name, with the key configured for it, else with the default key. */
function channelOf(channelName: string, keys: readonly ChannelKey[]): number {
  const { key } = keys.find(({ name }) => name === channelName) ?? DEFAULT_CHANNEL_KEY
  return numberChannel(identifyChannel(hashChannel(channelName, key), channelName))
}

function withData(packet: MeshPacket, value: Data): MeshPacket {
  return { ...clone(MeshPacketSchema, packet), payloadVariant: { case: 'decoded', value } }
}
