import { isRecord } from '../../api.ts'
import { senderNames } from '../mesh/known-nodes.ts'
import { type LiveEvent, watchLive } from '../live.ts'
import { legible } from '../mesh/nodes.ts'

/** Names that are remembered; beyond, the earliest are loaded again where they are shown. */
const MAX_NAMES = 1000

// From the first page of messages on.
watchLive(['node', 'message'], noteSender)

/** Notes the name of a message's sender, until the node may be called otherwise. */
function noteSender(event: LiveEvent): void {
  const known = senderNames.peek()
  if (event === null) {
    if (known.size > 0) senderNames.value = new Map()
    return
  }
  const { kind, data } = event
  const nodeNum = Number(kind === 'message' ? data['fromNodeNum'] : data['nodeNum'])
  if (kind === 'message') {
    const name = typeof data['senderName'] === 'string' ? legible(data['senderName']) : null
    if (name === null || known.get(nodeNum) === name) return
    const kept = known.size < MAX_NAMES ? known : [...known].slice(MAX_NAMES / 2)
    senderNames.value = new Map(kept).set(nodeNum, name)
  } else if (known.has(nodeNum) && mayBeRenamed(data)) {
    const others = new Map(known)
    others.delete(nodeNum)
    senderNames.value = others
  }
}

function mayBeRenamed({ changes }: Readonly<Record<string, unknown>>): boolean {
  return !isRecord(changes) || 'longName' in changes || 'nameAltered' in changes
}
