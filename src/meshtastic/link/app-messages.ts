import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { type Data, MeshPacket_Priority, type MeshPacket } from '../gen/packet_pb.ts'
import { type Routing_Error, RoutingSchema } from '../gen/payloads_pb.ts'
import { PortNum } from '../gen/ports_pb.ts'
import { type FromRadio, FromRadioSchema, type ToRadio, ToRadioSchema } from '../gen/stream_pb.ts'
import { decodeStrictly } from '../wire-shape.ts'

// The radio's side of the protocol, for apps that connect to this service as to a radio.

export type FromRadioVariant = NonNullable<
  Exclude<MessageInitShape<typeof FromRadioSchema>, FromRadio>['payloadVariant']
>

/** A message of an app; null for other bytes. A variant that is not in our table, such as a file, is undefined. */
export function decodeToRadio(payload: Uint8Array): ToRadio | null {
  return decodeStrictly(ToRadioSchema, payload)
}

/** The payload of a frame to an app. */
export function encodeFromRadio(payloadVariant: FromRadioVariant): Uint8Array {
  return toBinary(FromRadioSchema, create(FromRadioSchema, { payloadVariant }))
}

type Reply = { readonly own: number; readonly id: number; readonly requestId: number; readonly now: number }

/** A packet of the radio `own` to its app, which answers the app's packet `requestId`. `now` in milliseconds. */
export function encodeReply({ own, id, requestId, now }: Reply, portnum: PortNum, payload: Uint8Array): Uint8Array {
  const value = { portnum, payload, requestId }
  return encodeFromRadio({
    case: 'packet',
    value: {
      from: own,
      to: own,
      id,
      rxTime: Math.floor(now / 1000),
      priority: MeshPacket_Priority.ACK,
      payloadVariant: { case: 'decoded', value },
    },
  })
}

/** The same with the radio's routing answer: an acknowledgement or a refusal. */
export function encodeRoutingReply(reply: Reply, error: Routing_Error): Uint8Array {
  const routing = create(RoutingSchema, { variant: { case: 'errorReason', value: error } })
  return encodeReply(reply, PortNum.ROUTING_APP, toBinary(RoutingSchema, routing))
}

/** XModem's control character that refuses a file. */
export const XMODEM_REFUSAL: Uint8Array = encodeFromRadio({ case: 'xmodemPacket', value: Uint8Array.of(8, 21) })

/**
 * An encoded ToRadio with the packet of an app. Only what an app may decide is passed on: the radio adds the sender and
 * everything about the way.
 */
export function encodeAppPacket(packet: MeshPacket, data: Data, hopLimit: number): Uint8Array {
  const { to, channel, id, wantAck, pkiEncrypted, publicKey } = packet
  const { portnum, payload, wantResponse, replyId, emoji, bitfield } = data
  const value = {
    portnum,
    payload,
    wantResponse,
    replyId,
    emoji,
    ...(bitfield === undefined ? {} : { bitfield }),
  }
  const message = create(ToRadioSchema, {
    payloadVariant: {
      case: 'packet',
      value: {
        to,
        channel,
        id,
        hopLimit,
        wantAck,
        pkiEncrypted,
        publicKey,
        payloadVariant: { case: 'decoded', value },
      },
    },
  })
  return toBinary(ToRadioSchema, message)
}
