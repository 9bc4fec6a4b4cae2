import * as z from 'zod'
import { lookAtPresent } from '../past/past.ts'
import { ownerOf } from '../rights.ts'
import { readWorldOfKeys } from '../world/read-world.ts'
import { watchedSchema, watcher } from '../world/watched.ts'
import type { World, WorldNode } from '../world/world.ts'
import type { KeyProblem } from '../facts.ts'
import { findMeeting } from '../../mesh/nodes/key-health.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, nodeSubject, type OpenAlerts, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const keySchema = z.strictObject({ kind: z.literal('key'), ...common, nodes: watchedSchema }).meta({
  id: 'KeyRule',
  description:
    "A watched node's public key changed, is shared with another node or is weak, or somebody sends in its name",
})

type KeyRule = z.infer<typeof keySchema>

const NEEDS = { nodes: true, weakKeys: true } as const

export const key = defineKind(keySchema, {
  requires: ALERT_NEEDS.key,
  state: {
    needs: () => NEEDS,
    find: findKeys,
    changes: {
      fields: ['publicKey', 'refusedPublicKey', 'spoofClaim'],
      watches: ({ nodes }) => watcher(nodes),
      readWorld: (store, _rules, changed) => readWorldOfKeys(store, changed),
    },
  },
  async preview(ctx, rule, range) {
    const watching = { id: 0, ownerId: ctx.viewer.user.id, anchorAt: range.from, rule, owner: ownerOf(ctx.viewer) }
    return {
      fires: await lookAtPresent(ctx, range, NEEDS, (world) => findKeys(watching, world, new Map())),
      note: said('Only the present state is stored, not the history.'),
    }
  },
  endsAcknowledged: true,
})

/** Watched nodes with a doubtful public key, or in whose name another sender seems to transmit. */
function findKeys({ rule, anchorAt }: Watching<KeyRule>, world: World, open: OpenAlerts): Finding[] {
  const isWatched = watcher(rule.nodes)
  const byKey = Map.groupBy(
    world.nodes.filter(({ publicKey }) => publicKey !== null),
    ({ publicKey }) => publicKey,
  )
  const sharing = new Set([...byKey.values()].flatMap((nodes) => [...findMeeting(nodes)]))
  return world.nodes.flatMap((node) => {
    if (!isWatched(node)) return []
    const problems = problemsOf(node, world, sharing.has(node))
    if (problems.length === 0) return []
    const { nodeNum, name, publicKey, refusedPublicKey, spoofClaim } = node
    const subject = nodeSubject(nodeNum)
    const key = JSON.stringify([nodeNum, problems, publicKey, refusedPublicKey, spoofClaim, anchorAt])
    const since = open.get(subject)?.startedAt ?? world.now
    return [
      { subject, key, nodeNum, channel: null, since, forMs: 0, isKnown: true, fact: { event: 'key', name, problems } },
    ]
  })
}

function problemsOf(node: WorldNode, { weakKeys }: World, isShared: boolean): KeyProblem[] {
  const { publicKey, keyMismatch, spoofSuspected, isLocal } = node
  return [
    ...(keyMismatch ? ['changed' as const] : []),
    ...(publicKey !== null && weakKeys.has(publicKey) ? ['weak' as const] : []),
    ...(isShared ? ['shared' as const] : []),
    ...(spoofSuspected ? [isLocal ? ('own_spoofed' as const) : ('spoofed' as const)] : []),
  ]
}
