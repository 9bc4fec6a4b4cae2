import { asc, desc, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodes } from '../../../db/schema.ts'
import { MAX_NODES } from './list/list.ts'
import { type Node, type nodeDetailSchema, nodeNumSchema } from './nodes.ts'
import { readTrack, type trackSchema } from './positions.ts'
import { getNode, nodesSeenBy } from './seen.ts'
import type { Ctx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { integerQuery, timeQuery } from '../../http/validate.ts'
import { blur } from '../../accounts/access/blur.ts'
import { heardInPublic, ofNodesSeenBy, type View, visibleValues } from '../../accounts/access/visible.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { readerFor } from '../../accounts/access/anonymous-reader.ts'
import { detailForAnonymous, nodeForAnonymous } from './anonymous-node.ts'

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

export const nodesForm = { open: '[', close: ']', usual: MAX_NODES }

/** The most recently heard nodes, newest first. */
export async function listNodesShown(ctx: Pick<Ctx, 'store' | 'now'>, view: PublicView): Promise<Node[]> {
  const { store, viewer } = await readerFor(ctx, view)
  const rows = await store.db
    .select()
    .from(nodes)
    .where(ofNodesSeenBy(viewer.view, nodes.nodeNum))
    .orderBy(desc(heardInPublic('nodes', visibleValues(viewer.view).seenChannels)), asc(nodes.nodeNum))
    .limit(MAX_NODES)
    .all()
  const shown: Node[] = []
  for (let from = 0; from < rows.length; from += SLICE) {
    const seen = await nodesSeenBy(store, viewer.view, rows.slice(from, from + SLICE))
    shown.push(...seen.map((node) => nodeForAnonymous(node, view)))
    await nextTurn()
  }
  return shown
}

/** Nodes with these numbers as the list shows them, by number. If there are too many, only the first. */
export async function readNodesShown(
  { store }: Pick<Ctx, 'store'>,
  shown: PublicView,
  { view, nums }: { readonly view: View; readonly nums: readonly number[] },
): Promise<ReadonlyMap<number, Node>> {
  if (nums.length === 0) return new Map()
  const isOneOf = sql`${nodes.nodeNum} in (select value from json_each(${JSON.stringify(nums.slice(0, SLICE))}))`
  const seen = await nodesSeenBy(store, view, await store.db.select().from(nodes).where(isOneOf).all())
  return new Map(seen.map((node) => [node.nodeNum, nodeForAnonymous(node, shown)]))
}

/** One node. Throws `node_not_found`, also for a node that anonymous callers do not see. */
export async function getNodeShown(
  ctx: Ctx,
  view: PublicView,
  { id }: z.output<typeof nodeAsked>,
): Promise<z.infer<typeof nodeDetailSchema>> {
  const { store, viewer } = await readerFor(ctx, view)
  return detailForAnonymous(await getNode(store, viewer.view, id), view)
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
