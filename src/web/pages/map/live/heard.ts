import { isRecord } from '../../../api.ts'
import type { LiveEvent } from '../../../state/live.ts'

/** Packets of a node that were just heard, and by whom, as far as the viewer may know. */
export type HeardNode = {
  readonly nodeNum: number
  /** `isDirect`: off the air, with no node in between. */
  readonly receivers: readonly { readonly nodeNum: number; readonly isDirect: boolean }[]
}

/** What changes only by a packet of the node; a user, or a radio's list, changes other fields. */
const HEARD = ['lastHeard', 'lastHeardByRadio', 'lastHeardByBroker'] as const

/** Null: the event does not say that the node was heard. */
export function heardIn(event: LiveEvent): HeardNode | null {
  const { nodeNum, changes, packets, heardAt } = event?.data ?? {}
  if (typeof nodeNum !== 'number') return null
  const all: readonly unknown[] = Array.isArray(packets) ? packets : []
  const receivers = all.flatMap((packet) =>
    isRecord(packet) && typeof packet['receiver'] === 'number'
      ? [{ nodeNum: packet['receiver'], isDirect: packet['hopsAway'] === 0 && packet['viaMqtt'] !== true }]
      : [],
  )
  const isHeard =
    receivers.length > 0 ||
    typeof heardAt === 'number' ||
    (isRecord(changes) && HEARD.some((name) => typeof changes[name] === 'number'))
  return isHeard ? { nodeNum, receivers } : null
}
