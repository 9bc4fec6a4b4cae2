import { and, gte, ne, or, sql } from 'drizzle-orm'
import { nodes } from '../../../../db/schema.ts'
import { formatNodeId } from '../../../../meshtastic/node-id.ts'
import type { ChangedField } from '../../../../shared/mesh/node-changes.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import { ofNodesSeenBy } from '../../../accounts/access/visible.ts'
import type { Case, Found } from './case.ts'

/** Changes this long before the silence may belong to it. */
const BEFORE_MS = 2 * DAY_MS
const MAX_OTHERS = 3

/** How likely a node that changed this is not heard any more, from 0 to 100. A restart follows most other changes. */
const WEIGHTS: Readonly<Partial<Record<ChangedField, number>>> = {
  role: 66,
  publicKey: 64,
  firmwareVersion: 52,
  longName: 50,
  shortName: 48,
  hwModel: 46,
}

/** Another name, key, role or firmware before, or another number since. */
export async function lookAtIdentity({ ctx, node, lastHeard, changes }: Case): Promise<Found[]> {
  const near = changes.filter(({ t }) => t >= lastHeard - BEFORE_MS)
  const [change] = near
    .flatMap((each) => ({ ...each, weight: WEIGHTS[each.field] ?? 0 }))
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
  const { field, before, after, t: at, weight = 0 } = change ?? {}
  const changed: Found[] =
    field === undefined || before === undefined || at === undefined
      ? []
      : [{ weight, reason: { kind: 'changed', isLikely: false, at, field, before, after: after ?? null } }]
  const { publicKey, longName } = node
  if (publicKey === null && longName === null) return changed
  const others = await ctx.store.db
    .select({
      nodeNum: nodes.nodeNum,
      name: nodes.longName,
      firstHeard: nodes.firstHeard,
      publicKey: nodes.publicKey,
    })
    .from(nodes)
    .where(
      and(
        ne(nodes.nodeNum, node.nodeNum),
        or(sql`${nodes.publicKey} = ${publicKey}`, sql`${nodes.longName} = ${longName}`),
        gte(nodes.firstHeard, lastHeard - DAY_MS),
        ofNodesSeenBy(ctx.viewer.view, nodes.nodeNum),
      ),
    )
    .limit(MAX_OTHERS)
    .all()
  return [
    ...changed,
    ...others.map(({ publicKey: key, ...other }): Found => {
      const sameKey = key !== null && key === publicKey
      const nodeId = formatNodeId(other.nodeNum)
      return { weight: sameKey ? 90 : 70, reason: { kind: 'renumbered', isLikely: sameKey, ...other, nodeId, sameKey } }
    }),
  ]
}
