import { listDeleted } from '../../../app/mesh/nodes/deletion/deleted.ts'
import type { Store } from '../../../db/store.ts'
import { encodeAdminPacket, encodeRemoveNode } from '../../../meshtastic/link/admin-packets.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import { createPacketIds } from '../../../meshtastic/link/to-radio.ts'
import type { Link } from '../link.ts'

/**
 * The maximum number of deletions per connection, because a radio rewrites its memory for each. The remaining nodes are
 * deleted at the next connection.
 */
const MAX_AT_ONCE = 20

/** Deletes nodes from a radio's memory: when they are deleted here, and when a radio connects that still has them. */
export type Forgetting = {
  observe(event: RadioEvent): void
  /** False: the radio is not connected, or is this node. */
  forget(nodeNum: number): boolean
}

export function createForgetting(options: {
  readonly store: Store
  readonly link: Pick<Link, 'info' | 'send'>
  readonly random: () => number
  /** Runs a task later, after those added before. */
  later(run: () => Promise<void>): void
}): Forgetting {
  const { store, link } = options
  const nextId = createPacketIds(options.random)
  let listed = new Map<number, number | null>()
  const forget = (nodeNum: number) => {
    const own = link.info().radio?.nodeNum ?? nodeNum
    return own !== nodeNum && link.send(encodeAdminPacket(own, nextId(), encodeRemoveNode(nodeNum)))
  }
  return {
    forget,
    observe(event) {
      if (event.type === 'my-info') listed = new Map()
      if (event.type === 'node-info') listed.set(event.node.nodeNum, event.node.lastHeard)
      if (event.type !== 'config-complete') return
      const words = [...listed].map(([nodeNum, lastHeard]) => ({ nodeNum, lastHeard }))
      listed = new Map()
      options.later(async () => {
        const deleted = await listDeleted(store, words)
        for (const { nodeNum } of deleted.slice(0, MAX_AT_ONCE)) forget(nodeNum)
      })
    },
  }
}
