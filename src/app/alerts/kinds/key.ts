import { watcher } from '../rules/watched.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { World, WorldNode } from '../world.ts'
import { type Finding, nodeSubject, type OpenAlerts } from './finding.ts'

/** Watched nodes with a doubtful public key, or in whose name somebody else seems to send. */
export function findKeys({ rule, anchorAt }: WatchingRule<'key'>, world: World, open: OpenAlerts): Finding[] {
  const isWatched = watcher(rule.nodes)
  const sharing = Map.groupBy(
    world.nodes.filter(({ publicKey }) => publicKey !== null),
    ({ publicKey }) => publicKey,
  )
  return world.nodes.flatMap((node) => {
    if (!isWatched(node)) return []
    const problems = problemsOf(node, world, sharing.get(node.publicKey) ?? [])
    if (problems.length === 0) return []
    const { nodeNum, name, publicKey, refusedPublicKey, spoofClaim } = node
    const subject = nodeSubject(nodeNum)
    const key = JSON.stringify([nodeNum, problems, publicKey, refusedPublicKey, spoofClaim, anchorAt])
    const since = open.get(subject)?.startedAt ?? world.now
    return [
      { subject, key, nodeNum, channel: null, since, forMs: 0, isKnown: true, what: `${name}: ${problems.join('; ')}` },
    ]
  })
}

function problemsOf(node: WorldNode, { weakKeys }: World, same: readonly WorldNode[]): string[] {
  const { publicKey, keyMismatch, spoofSuspected, isLocal } = node
  const isShared = same.some((other) => other !== node && overlap(node, other))
  return [
    ...(keyMismatch ? ['another public key was announced'] : []),
    ...(publicKey !== null && weakKeys.has(publicKey) ? ['its public key is known to be weak'] : []),
    ...(isShared ? ['another node has the same public key'] : []),
    ...(spoofSuspected
      ? [isLocal ? 'somebody sends in the name of this radio of the service' : 'somebody seems to send in its name']
      : []),
  ]
}

/** A node that continues under another number is silent under the old one. */
function overlap(a: WorldNode, b: WorldNode): boolean {
  const [older, newer] = a.firstHeard <= b.firstHeard ? [a, b] : [b, a]
  return newer.lastHeard !== null && (older.lastHeard ?? 0) > newer.firstHeard
}
