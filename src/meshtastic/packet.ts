import { parseDeviceTime } from './device-time.ts'
import { enumName } from './enum-name.ts'
import {
  type Data,
  type MeshPacket,
  MeshPacket_PrioritySchema,
  MeshPacket_TransportMechanism,
  MeshPacket_TransportMechanismSchema,
} from './gen/packet_pb.ts'
import { PortNumSchema } from './gen/ports_pb.ts'
import { decodePayload, mayHoldSecrets, type Payload } from './payload/payload.ts'
import { encodePublicKey } from './payload/user.ts'

/** A packet as the radio reported it. Node numbers and ids are u32, times milliseconds; null is "absent". */
export type Packet = {
  /** 0: unknown. */
  readonly from: number
  /** 0xFFFFFFFF: broadcast. */
  readonly to: number
  /** Unique for one sender for some hours. 0: none. */
  readonly id: number
  /**
   * The radio's channel index, or the result of `numberChannel`; for an encrypted packet the hash of an unknown
   * channel.
   */
  readonly channel: number
  /** When the radio heard it, by the radio's clock. */
  readonly rxTime: number | null
  /** dB and dBm of the last transmitter, which is the sender itself only at `hopsAway` 0. */
  readonly snr: number | null
  readonly rssi: number | null
  readonly hopStart: number
  readonly hopLimit: number
  readonly hopsAway: number | null
  /** Passed through the internet somewhere on its way. */
  readonly viaMqtt: boolean
  /** E.g. `TRANSPORT_LORA`; firmware before 2.7 always reports `TRANSPORT_INTERNAL`. */
  readonly transport: string
  readonly priority: string
  readonly wantAck: boolean
  /** Last byte of the number of the node that relayed it, and of the next one. */
  readonly relayNode: number | null
  readonly nextHop: number | null
  readonly pkiEncrypted: boolean
  /** Base64 of the key the packet was encrypted with. */
  readonly publicKey: string | null
  /** Null when the radio could not decrypt it. */
  readonly port: number | null
  /** E.g. `TEXT_MESSAGE_APP`. */
  readonly portName: string | null
  readonly wantResponse: boolean
  readonly requestId: number | null
  readonly replyId: number | null
  /** The text is a reaction to `replyId`. */
  readonly isEmoji: boolean
  readonly bitfield: number | null
  /**
   * The sender does not allow it to be passed on by MQTT: *OK to MQTT* is off. Firmware before 2.5 does not report
   * this.
   */
  readonly isWithheld: boolean
  /** XEdDSA signature by the sender's key, as received: neither its validity nor its length of 64 bytes is checked. */
  readonly signature: Uint8Array | null
  /** The radio reports that it verified the signature. Worthless if the report does not come from our own radio. */
  readonly isVerifiedByRadio: boolean
  /** Payload, or cipher text if encrypted. Empty for admin packets, which may hold secrets. */
  readonly bytes: Uint8Array
  readonly payload: Payload
}

/** `now` is the time of receipt, in milliseconds. Never throws: undecodable content is a kind of payload. */
export function decodePacket(packet: MeshPacket, now: number): Packet {
  const { hopStart, hopLimit } = packet
  return {
    from: packet.from,
    to: packet.to,
    id: packet.id,
    channel: packet.channel,
    rxTime: parseDeviceTime(packet.rxTime, now),
    snr: knownSnr(packet),
    rssi: packet.rxRssi ?? null,
    hopStart,
    hopLimit,
    hopsAway: countHops(hopStart, hopLimit),
    viaMqtt: packet.viaMqtt || packet.transportMechanism === MeshPacket_TransportMechanism.TRANSPORT_MQTT,
    transport: enumName(MeshPacket_TransportMechanismSchema, packet.transportMechanism),
    priority: enumName(MeshPacket_PrioritySchema, packet.priority),
    wantAck: packet.wantAck,
    relayNode: packet.relayNode || null,
    nextHop: packet.nextHop || null,
    pkiEncrypted: packet.pkiEncrypted,
    publicKey: encodePublicKey(packet.publicKey),
    isVerifiedByRadio: packet.xeddsaSigned,
    ...decodeContent(packet, now),
  }
}

/** Hops travelled. The sender itself and old firmware leave `hopStart` 0; then the number is unknown. */
export function countHops(hopStart: number, hopLimit: number): number | null {
  return hopStart > 0 && hopStart >= hopLimit ? hopStart - hopLimit : null
}

/** The field does not distinguish 0 from absent: 0 counts only together with a signal strength. */
function knownSnr({ rxSnr, rxRssi }: MeshPacket): number | null {
  if (!Number.isFinite(rxSnr)) return null
  return rxSnr === 0 && rxRssi === undefined ? null : rxSnr
}

/** The bit of `bitfield` with which a sender allows MQTT gateways to pass its packet on. */
const OK_TO_MQTT = 1

/** Whether the sender of this content does not allow it to be passed on. */
export function isKeptFromOthers({ bitfield }: Data): boolean {
  return bitfield !== undefined && (bitfield & OK_TO_MQTT) === 0
}

type Content = Pick<
  Packet,
  | 'port'
  | 'portName'
  | 'wantResponse'
  | 'requestId'
  | 'replyId'
  | 'isEmoji'
  | 'bitfield'
  | 'isWithheld'
  | 'signature'
  | 'bytes'
  | 'payload'
>

function decodeContent(packet: MeshPacket, now: number): Content {
  if (packet.payloadVariant.case !== 'decoded') {
    const bytes = packet.payloadVariant.value ?? new Uint8Array(0)
    return { ...NOTHING_DECODED, bytes }
  }
  const data = packet.payloadVariant.value
  return {
    port: data.portnum,
    portName: enumName(PortNumSchema, data.portnum),
    wantResponse: data.wantResponse,
    requestId: data.requestId || null,
    replyId: data.replyId || null,
    isEmoji: data.emoji !== 0,
    bitfield: data.bitfield ?? null,
    isWithheld: isKeptFromOthers(data),
    signature: data.xeddsaSignature.length === 0 ? null : data.xeddsaSignature,
    bytes: mayHoldSecrets(data.portnum) ? new Uint8Array(0) : data.payload,
    payload: decodePayload(data, now),
  }
}

const NOTHING_DECODED = {
  port: null,
  portName: null,
  wantResponse: false,
  requestId: null,
  replyId: null,
  isEmoji: false,
  bitfield: null,
  isWithheld: false,
  signature: null,
  payload: { kind: 'encrypted' },
} as const
