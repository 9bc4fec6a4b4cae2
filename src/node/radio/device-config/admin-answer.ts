import type { RadioEvent } from '../../../meshtastic/radio-event.ts'

/** Answered for a packet that the radio did take, by its name for "you keep the buffer". */
const TAKEN: ReadonlySet<number> = new Set([0, 35])

/**
 * The name of the routing error by which the radio `nodeNum` answers our admin packet, `NONE` for success; null for any
 * other event.
 */
export function readAnswer(event: RadioEvent, nodeNum: number, packetId: number): string | null {
  if (event.type === 'queue-status') {
    const isRefused = event.packetId === packetId && !TAKEN.has(event.result)
    return isRefused ? `QUEUE_ERROR_${event.result}` : null
  }
  if (event.type !== 'packet' || event.replayed) return null
  const { from, to, payload, requestId, rssi } = event.packet
  // Our own radio tells us so without a radio wave: a "self" that was heard is somebody else.
  const isOwn = from === nodeNum && to === nodeNum && rssi === null
  return isOwn && payload.kind === 'routing' && requestId === packetId ? payload.error : null
}
