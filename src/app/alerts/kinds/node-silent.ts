import * as z from 'zod'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { HEARD_BY, SILENT_MINUTES } from '../../../shared/alerts/alert-kinds.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { findGaps, firesIn, gapsOfAll } from '../past/gaps.ts'
import { readHeard } from '../past/history.ts'
import { type Past, type Range, readNodes } from '../past/past.ts'
import { watchedSchema, watcher } from '../world/watched.ts'
import type { World, WorldLink, WorldNode } from '../world/world.ts'
import type { Fact } from '../facts.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { defineKind, type Finding, nodeSubject, type OpenAlerts, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const nodeSilentSchema = z
  .strictObject({
    kind: z.literal('node_silent'),
    ...common,
    nodes: watchedSchema,
    afterMinutes: z.int().min(SILENT_MINUTES.min).max(SILENT_MINUTES.max),
    heardBy: z
      .enum(HEARD_BY)
      .default('any')
      .describe(
        '`radios`: only what our own radios hear off the air counts. Anybody can publish at a broker in the name of a node that is silent',
      ),
  })
  .meta({ id: 'NodeSilentRule', description: 'A watched node has not been heard for a while' })

type NodeSilentRule = z.infer<typeof nodeSilentSchema>

export const nodeSilent = defineKind(nodeSilentSchema, {
  requires: ALERT_NEEDS.node_silent,
  state: {
    needs: ({ afterMinutes }) => ({ nodes: true, waysAfterMs: afterMinutes * MINUTE_MS }),
    find: findSilent,
  },
  preview: lookBack,
  heading: (words, total, isOver) =>
    isOver
      ? words.count(total, '{n} node was silent:', '{n} nodes were silent:')
      : words.count(total, '{n} node is silent:', '{n} nodes are silent:'),
})

/**
 * Watched nodes that were silent for long enough. The time counts from when the service, or the link by which the node
 * was heard, began to listen. While all those links are down, silence cannot be judged.
 */
function findSilent({ rule }: Watching<NodeSilentRule>, world: World, open: OpenAlerts): Finding[] {
  const isWatched = watcher(rule.nodes)
  const afterMs = rule.afterMinutes * MINUTE_MS
  const isByEar = rule.heardBy === 'radios'
  return world.nodes.flatMap((node) => {
    const { nodeNum } = node
    const lastHeard = isByEar ? node.lastHeardByRadio : node.lastHeard
    if (lastHeard === null || lastHeard > world.now - afterMs || !isWatched(node)) return []
    const subject = nodeSubject(nodeNum)
    const listening = isByEar ? listeningByEar(world) : listeningSince(node, world)
    const known = open.get(subject)
    const isOpen = known !== undefined && lastHeard <= known.startedAt
    if (!isOpen && (listening === null || world.now - Math.max(lastHeard, listening) < afterMs)) return []
    const fact: Fact = { event: 'node_silent', name: node.name, ms: world.now - lastHeard, byRadio: isByEar }
    return [
      {
        subject,
        key: `${nodeNum}@${lastHeard}`,
        nodeNum,
        channel: null,
        since: lastHeard,
        forMs: 0,
        isKnown: listening !== null,
        fact,
      },
    ]
  })
}

/** When the first of the links by which the node was heard began to listen; null: none is listening. */
function listeningSince({ nodeNum }: WorldNode, world: World): number | null {
  const names = world.heardBy.get(nodeNum) ?? []
  const ways = world.links.filter(({ name }) => names.includes(name))
  return firstUp(ways.length > 0 ? ways : world.links, world)
}

/** The same for our own radios, or for the collectors of a service without radios. */
function listeningByEar(world: World): number | null {
  const radios = world.links.filter(({ isRadio }) => isRadio)
  return firstUp(radios.length > 0 ? radios : world.links, world)
}

function firstUp(links: readonly WorldLink[], { startedAt }: World): number | null {
  const up = links.filter(({ isUp }) => isUp)
  return up.length === 0 ? null : Math.max(Math.min(...up.map(({ since }) => since)), startedAt ?? 0)
}

async function lookBack(ctx: SignedInCtx, rule: NodeSilentRule, range: Range): Promise<Past> {
  const isWatched = watcher(rule.nodes)
  const known = new Map((await readNodes(ctx)).filter(isWatched).map((node) => [node.nodeNum, node]))
  const heard = await readHeard(ctx.store, range.from, rule.heardBy)
  const afterMs = rule.afterMinutes * MINUTE_MS
  const deaf = gapsOfAll(heard, range)
  const fires = findGaps(heard, new Set(known.keys()), { ...range, leastMs: afterMs }).flatMap(({ nodeNum, gap }) => {
    const at = firesIn(gap, deaf, afterMs)
    const name = known.get(nodeNum)?.name ?? formatNodeId(nodeNum)
    const resolvedAt = gap.to === range.to ? null : gap.to
    return at === null
      ? []
      : [
          {
            at,
            resolvedAt,
            nodeNum,
            fact: { event: 'node_silent' as const, name, ms: gap.to - gap.from, byRadio: rule.heardBy === 'radios' },
          },
        ]
  })
  const first = heard[0]?.t ?? range.to
  const hours = Math.floor((range.to - first) / HOUR_MS)
  return {
    fires,
    note: first > range.from + DAY_MS ? said('Only packets of the last {hours} h are looked at.', { hours }) : null,
  }
}
