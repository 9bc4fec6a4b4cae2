import { MeshPacket_TransportMechanism } from './gen/packet_pb.ts'
import { PortNum } from './gen/ports_pb.ts'
import type { FromRadio } from './gen/stream_pb.ts'

/** How long after a handshake, or after the previous replayed packet, another one is expected. */
const REPLAY_WINDOW_MS = 60_000

const REPLAYED_PORTS: ReadonlySet<number> = new Set([
  PortNum.POSITION_APP,
  PortNum.TELEMETRY_APP,
  PortNum.NODE_STATUS_APP,
])

export type ReplayDetector = {
  /** Takes all messages of one connection in order; says whether this one is a replayed packet. */
  isReplayed(message: FromRadio, now: number): boolean
}

/**
 * Firmware 2.8 follows a handshake with the positions and telemetry it remembers, as packets. They look like live ones
 * except that no signal strength stands in them, although they came from another node and no other way of arrival
 * is told. One detector for each connection; `now` in milliseconds.
 */
export function createReplayDetector(): ReplayDetector {
  let ownNodeNum: number | null = null
  let windowEnd = Number.POSITIVE_INFINITY
  return {
    isReplayed(message, now) {
      const { case: variant, value } = message.payloadVariant
      if (variant === 'myInfo') {
        ownNodeNum = value.myNodeNum
        windowEnd = Number.POSITIVE_INFINITY
      }
      if (variant === 'configCompleteId') windowEnd = now + REPLAY_WINDOW_MS
      if (variant !== 'packet' || now > windowEnd) return false
      const { from, rxRssi, viaMqtt, transportMechanism, payloadVariant } = value
      const isRemembered =
        payloadVariant.case === 'decoded' &&
        REPLAYED_PORTS.has(payloadVariant.value.portnum) &&
        from !== ownNodeNum &&
        rxRssi === undefined &&
        !viaMqtt &&
        transportMechanism === MeshPacket_TransportMechanism.TRANSPORT_INTERNAL
      if (isRemembered && windowEnd !== Number.POSITIVE_INFINITY) windowEnd = now + REPLAY_WINDOW_MS
      return isRemembered
    },
  }
}
