import { MeshPacket_TransportMechanism } from '../../../meshtastic/gen/packet_pb.ts'
import {
  type ChannelKey,
  decodeEnvelope,
  DEFAULT_CHANNEL_KEY,
  type OpenDirect,
  openEnvelope,
  parseMqttTopic,
} from '../../../meshtastic/link/mqtt-envelope.ts'
import { createFeedReader } from '../feeds/received.ts'
import type { ReceivedEvent } from '../session.ts'

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
  const read = createFeedReader(clock)
  return async ({ topic: path, payload, isRetained }) => {
    const topic = parseMqttTopic(path)
    const envelope = topic === null ? null : decodeEnvelope(topic, payload)
    if (topic === null || envelope === null) return []
    const { gateway, channelName } = envelope
    const packet = { ...(await openEnvelope(envelope, keys, openDirect)), ...BY_MQTT }
    return read({ packet, channelName, gateway, isReplayed: isRetained, isInChannel: topic.kind === 'packet' })
  }
}

const BY_MQTT = { viaMqtt: true, transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_MQTT } as const
