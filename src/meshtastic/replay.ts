import { type MeshPacket, MeshPacket_TransportMechanism } from './gen/packet_pb.ts'
import type { FromRadio } from './gen/stream_pb.ts'
import { isSentFromMemory } from './payload/payload.ts'

/** How long after a handshake, or after the previous replayed packet, another one is expected. */
const REPLAY_WINDOW_MS = 60_000

export type ReplayDetector = {
  /** Takes all messages of one connection in order. Returns whether this one is a replayed packet. */
  isReplayed(message: FromRadio, now: number): boolean
}

/**
 * After a handshake, firmware 2.8 sends stored positions and telemetry as packets received by LoRa. They lack the
 * signal strength and the relaying node that every packet off the air has, and they were heard before the connection.
 * Use one detector for each connection; `now` in milliseconds.
 */
export function createReplayDetector(): ReplayDetector {
  let ownNodeNum: number | null = null
  let windowEnd = Number.POSITIVE_INFINITY
  /** Seconds. The radio's clock may be ahead of ours: its node database was filled before the connection, too. */
  let connectedAt = Number.POSITIVE_INFINITY
  return {
    isReplayed(message, now) {
      const { case: variant, value } = message.payloadVariant
      if (variant === 'myInfo') {
        ownNodeNum = value.myNodeNum
        windowEnd = Number.POSITIVE_INFINITY
        connectedAt = Math.floor(now / 1000)
      }
      if (variant === 'nodeInfo') connectedAt = Math.max(connectedAt, value.lastHeard)
      if (variant === 'configCompleteId') windowEnd = now + REPLAY_WINDOW_MS
      if (variant !== 'packet' || now > windowEnd) return false
      const isRemembered = value.from !== ownNodeNum && value.rxTime <= connectedAt && isOutOfMemory(value)
      if (isRemembered && windowEnd !== Number.POSITIVE_INFINITY) windowEnd = now + REPLAY_WINDOW_MS
      return isRemembered
    },
  }
}

function isOutOfMemory({ rxRssi, relayNode, viaMqtt, transportMechanism, payloadVariant }: MeshPacket): boolean {
  return (
    payloadVariant.case === 'decoded' &&
    isSentFromMemory(payloadVariant.value.portnum) &&
    rxRssi === undefined &&
    relayNode === 0 &&
    !viaMqtt &&
    transportMechanism === MeshPacket_TransportMechanism.TRANSPORT_LORA
  )
}
