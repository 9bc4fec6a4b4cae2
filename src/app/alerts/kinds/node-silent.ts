import { MINUTE_MS } from '../../../shared/time.ts'
import { watcher } from '../rules/watched.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { World, WorldLink, WorldNode } from '../world.ts'
import { inWords } from './durations.ts'
import { type Finding, nodeSubject, type OpenAlerts } from './finding.ts'

/**
 * Watched nodes that were not heard for long enough. The time counts from the moment when the service, or the link by
 * which the node was heard, began to listen. While all those links are down the silence cannot be judged.
 */
export function findSilent({ rule }: WatchingRule<'node_silent'>, world: World, open: OpenAlerts): Finding[] {
  const isWatched = watcher(rule.nodes)
  const afterMs = rule.afterMinutes * MINUTE_MS
  return world.nodes.flatMap((node) => {
    const { nodeNum, lastHeard } = node
    if (lastHeard === null || lastHeard > world.now - afterMs || !isWatched(node)) return []
    const subject = nodeSubject(nodeNum)
    const listening = listeningSince(node, world)
    const known = open.get(subject)
    const isOpen = known !== undefined && lastHeard <= known.startedAt
    if (!isOpen && (listening === null || world.now - Math.max(lastHeard, listening) < afterMs)) return []
    const what = `${node.name} was not heard for ${inWords(world.now - lastHeard)}`
    return [
      {
        subject,
        key: `${nodeNum}@${lastHeard}`,
        nodeNum,
        channel: null,
        since: lastHeard,
        forMs: 0,
        isKnown: listening !== null,
        what,
      },
    ]
  })
}

/** Since when any link by which the node was heard has been listening; null: none is. */
function listeningSince({ nodeNum }: WorldNode, { links, heardBy, startedAt }: World): number | null {
  const names = heardBy.get(nodeNum) ?? []
  const ways = links.filter(({ name }) => names.includes(name))
  const up = (ways.length > 0 ? ways : links).filter(({ isUp }: WorldLink) => isUp)
  if (up.length === 0) return null
  return Math.max(Math.min(...up.map(({ since }) => since)), startedAt ?? 0)
}
