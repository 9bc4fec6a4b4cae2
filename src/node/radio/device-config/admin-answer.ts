import type { RadioEvent } from '../../../meshtastic/radio-event.ts'

/** The routing error for a packet that the radio accepted; its name means "you keep the buffer". */
const TAKEN: ReadonlySet<number> = new Set([0, 35])

/**
 * The name of the routing error with which the radio `nodeNum` answers our admin packet, `NONE` for success; null for
 * any other event.
 */
export function readAnswer(event: RadioEvent, nodeNum: number, packetId: number): string | null {
  if (event.type === 'queue-status') {
    const isRefused = event.packetId === packetId && !TAKEN.has(event.result)
    return isRefused ? `QUEUE_ERROR_${event.result}` : null
  }
  if (event.type !== 'packet' || event.replayed) return null
  const { from, to, payload, requestId, rssi } = event.packet
  // Our own radio reports this without an RSSI. A packet with its own number that was received by radio is forged.
  const isOwn = from === nodeNum && to === nodeNum && rssi === null
  return isOwn && payload.kind === 'routing' && requestId === packetId ? payload.error : null
}
