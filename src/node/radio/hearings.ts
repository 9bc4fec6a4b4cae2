import type { RadioEvent } from '../../meshtastic/radio-event.ts'

/** Nodes remembered for one radio: more than a radio itself remembers. */
const MAX_NODES = 5000

type Heard = {
  readonly at: number
  /** Null: unknown, or heard through a broker. */
  readonly hopsAway: number | null
}

/** When each radio last heard each node, and over how many hops. A radio reports its memory again at each handshake. */
export type Hearings = {
  observe(event: RadioEvent): void
  find(nodeNum: number): Heard | null
}

export function createHearings(): Hearings {
  const byNode = new Map<number, Heard>()
  let own: number | null = null
  const note = (nodeNum: number, heard: Heard) => {
    const known = byNode.get(nodeNum)
    if (nodeNum === own || (known !== undefined && known.at > heard.at)) return
    // The node that has not been heard for the longest time comes first.
    byNode.delete(nodeNum)
    byNode.set(nodeNum, heard)
    const [oldest] = byNode.keys()
    if (byNode.size > MAX_NODES && oldest !== undefined) byNode.delete(oldest)
  }
  return {
    find: (nodeNum) => byNode.get(nodeNum) ?? null,
    observe(event) {
      if (event.type === 'my-info' && event.nodeNum !== own) {
        own = event.nodeNum
        byNode.clear()
      }
      if (event.type === 'node-info') {
        const { nodeNum, lastHeard, hopsAway, viaMqtt } = event.node
        // The clock of a radio may be ahead.
        if (lastHeard !== null)
          note(nodeNum, { at: Math.min(lastHeard, event.receivedAt), hopsAway: viaMqtt ? null : hopsAway })
      }
      if (event.type === 'packet') {
        const { from, rxTime, hopsAway, viaMqtt } = event.packet
        const at = event.replayed ? Math.min(rxTime ?? 0, event.receivedAt) : event.receivedAt
        note(from, { at, hopsAway: viaMqtt ? null : hopsAway })
      }
    },
  }
}
