import { create, toBinary } from '@bufbuild/protobuf'
import { identifyChannel, MAX_HEARD_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { isFreeOfSecrets } from '../../../meshtastic/link/from-radio.ts'
import { Channel_Role } from '../../../meshtastic/gen/channel_pb.ts'
import { type MeshPacket, MeshPacket_TransportMechanism } from '../../../meshtastic/gen/packet_pb.ts'
import { FromRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import {
  type ChannelKey,
  decodeEnvelope,
  DEFAULT_CHANNEL_KEY,
  type OpenDirect,
  openEnvelope,
  parseMqttTopic,
} from '../../../meshtastic/link/mqtt-envelope.ts'
import { isName, MAX_CHANNEL_NAME } from '../../../meshtastic/plausible.ts'
import { toRadioEvent } from '../../../meshtastic/radio-event.ts'
import type { ReceivedEvent } from '../session.ts'
import { HOUR_MS } from '../../../shared/time.ts'

export type MqttReaderOptions = {
  /** Tried before the default key, which every radio knows. */
  readonly keys: readonly ChannelKey[]
  /** Decrypts direct messages to our own radios; without it they stay encrypted. */
  readonly openDirect?: OpenDirect
}

export type MqttMessage = {
  readonly topic: string
  readonly payload: Uint8Array
  /** The broker retained it, so its age is unknown. */
  readonly isRetained: boolean
}

/** The events of a message; none for a message from elsewhere. The name of a channel comes before its first packet. */
export type MqttReader = (message: MqttMessage) => Promise<ReceivedEvent[]>

export function createMqttReader(options: MqttReaderOptions & { readonly clock: { now(): number } }): MqttReader {
  const { clock, openDirect = async () => null } = options
  const keys = [...options.keys, DEFAULT_CHANNEL_KEY]
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
  return async ({ topic: path, payload, isRetained }) => {
    const topic = parseMqttTopic(path)
    const envelope = topic === null ? null : decodeEnvelope(topic, payload)
    if (topic === null || envelope === null) return []
    const packet = { ...(await openEnvelope(envelope, keys, openDirect)), ...BY_MQTT }
    const now = clock.now()
    const isInChannel = packet.payloadVariant.case === 'decoded' && !packet.pkiEncrypted && topic.kind === 'packet'
    const { channelName } = envelope
    const isNamed = isName(channelName, MAX_CHANNEL_NAME)
    const isNews = isInChannel && isNamed && isToTell(packet.channel, channelName, now)
    return [
      ...(isNews ? [nameChannel(packet.channel, channelName, now)] : []),
      receive(packet, envelope.gateway, isRetained, now, isNamed ? [] : ['channelName']),
    ]
  }
}

/** A channel in use is reported again at this interval, so that it is not forgotten. */
const TELL_AGAIN_MS = HOUR_MS

const BY_MQTT = { viaMqtt: true, transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_MQTT } as const

function receive(
  packet: MeshPacket,
  gateway: number | null,
  replayed: boolean,
  now: number,
  refusedAround: readonly string[],
): ReceivedEvent {
  const message = create(FromRadioSchema, { payloadVariant: { case: 'packet', value: packet } })
  const told = toRadioEvent(message, now, replayed)
  const refused = [...(told.refused ?? []), ...refusedAround]
  const event = refused.length === 0 ? told : { ...told, refused }
  const raw = isFreeOfSecrets(message) ? toBinary(FromRadioSchema, message) : null
  return { event: event.type === 'packet' && gateway !== null ? { ...event, gateway } : event, raw }
}

/** The broker has no channel table. Only the hash of a channel, its name and our matching key are known. */
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
