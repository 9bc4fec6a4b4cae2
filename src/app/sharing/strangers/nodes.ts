import { asc, desc } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../db/schema.ts'
import { MAX_NODES } from '../../mesh/nodes/list.ts'
import { type Node, type nodeDetailSchema, nodeNumSchema } from '../../mesh/nodes/nodes.ts'
import { readTrack, type trackSchema } from '../../mesh/nodes/positions.ts'
import { getNode, nodesSeenBy } from '../../mesh/nodes/seen.ts'
import type { Ctx } from '../../context.ts'
import { nextTurn } from '../../http/limits/next-turn.ts'
import { integerQuery, timeQuery } from '../../http/validate.ts'
import { blur } from '../blur.ts'
import { ofNodesSeenBy } from '../visible.ts'
import type { PublicView } from '../public-view.ts'
import { readerFor } from './reader.ts'
import { nodeForStrangers } from './rows.ts'

/** Nodes built before other work gets its turn. */
const SLICE = 500
const MAX_POINTS = 1000
const END_OF_TIME = 8_640_000_000_000_000

export const nodesAsked = z.strictObject({ limit: integerQuery(1, MAX_NODES).default(MAX_NODES) })
export const nodeAsked = z.strictObject({ id: nodeNumSchema })
export const trackAsked = z
  .strictObject({
    id: nodeNumSchema,
    from: timeQuery.default(0),
    to: timeQuery.default(END_OF_TIME),
    limit: integerQuery(1, MAX_POINTS).default(MAX_POINTS),
  })
  .refine(({ from, to }) => from <= to, { path: ['from'], message: 'must not be after to' })

/** The most recently heard nodes, newest first. */
export async function listNodesShown(
  ctx: Pick<Ctx, 'store' | 'now'>,
  view: PublicView,
  { limit }: z.output<typeof nodesAsked>,
): Promise<Node[]> {
  const { store, viewer } = await readerFor(ctx, view)
  const rows = await store.db
    .select()
    .from(nodes)
    .where(ofNodesSeenBy(viewer.view, nodes.nodeNum))
    .orderBy(desc(nodes.lastHeard), asc(nodes.nodeNum))
    .limit(limit)
    .all()
  const shown: Node[] = []
  for (let from = 0; from < rows.length; from += SLICE) {
    const seen = await nodesSeenBy(store, viewer.view, rows.slice(from, from + SLICE))
    shown.push(...seen.map((node) => nodeForStrangers(node, view)))
    await nextTurn()
  }
  return shown
}

/** One node. Throws `node_not_found`, also for a node that anonymous callers do not see. */
export async function getNodeShown(
  ctx: Ctx,
  view: PublicView,
  { id }: z.output<typeof nodeAsked>,
): Promise<z.infer<typeof nodeDetailSchema>> {
  const { store, viewer } = await readerFor(ctx, view)
  return {
    ...nodeForStrangers(await getNode(store, viewer.view, id), view),
    formerNodeNums: [],
    previousPublicKey: null,
    refusedPublicKey: null,
    weakKey: false,
    signedAt: null,
    nameSigned: false,
    positionSigned: false,
  }
}

/**
 * The track of a node, each position rounded; of several positions in one cell, the first one counts. Throws
 * `node_not_found`.
 */
export async function readTrackShown(
  ctx: Ctx,
  view: PublicView,
  { id, ...range }: z.output<typeof trackAsked>,
): Promise<z.infer<typeof trackSchema>> {
  const { positions, nextFrom } = await readTrack(await readerFor(ctx, view), id, range)
  const rounded = positions.map((place) => blur(place, view.precisionBits))
  const isSamePlace = (a: (typeof rounded)[number], b: (typeof rounded)[number] | undefined) =>
    a.latitude === b?.latitude && a.longitude === b.longitude
  return { positions: rounded.filter((place, index) => !isSamePlace(place, rounded[index - 1])), nextFrom }
}
