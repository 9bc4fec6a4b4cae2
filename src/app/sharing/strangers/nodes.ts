import { and, asc, desc, eq, gte, lte } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, positions } from '../../../db/schema.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { MAX_NODES } from '../../mesh/nodes/list.ts'
import { type Node, type nodeDetailSchema, nodeNumSchema, publicNode } from '../../mesh/nodes/nodes.ts'
import type { trackSchema } from '../../mesh/nodes/positions.ts'
import type { Ctx } from '../../context.ts'
import { AppError } from '../../http/errors.ts'
import { nextTurn } from '../../http/limits/next-turn.ts'
import { integerQuery, timeQuery } from '../../http/validate.ts'
import { blur } from '../blur.ts'
import { onChannelSeenBy } from '../visible.ts'
import type { PublicView } from '../public-view.ts'
import { isShown, nodeForStrangers } from './rows.ts'

/** Nodes built before other work gets its turn. */
const SLICE = 500
const MAX_POINTS = 1000
const END_OF_TIME = 8_640_000_000_000_000

type Row = typeof nodes.$inferSelect

export const nodesAsked = z.strictObject({ limit: integerQuery(1, MAX_NODES).default(MAX_NODES) })
export const nodeAsked = z.strictObject({ id: nodeNumSchema })
export const trackAsked = z
  .strictObject({
    id: nodeNumSchema,
    from: timeQuery.default(0),
    to: timeQuery.default(END_OF_TIME),
    limit: integerQuery(1, MAX_POINTS).default(MAX_POINTS),
  })
  .refine(({ from, to }) => from <= to, { path: ['from'], message: 'not after to' })

/** The most recently heard nodes, newest first. */
export async function listNodesShown(
  { store, now }: Pick<Ctx, 'store' | 'now'>,
  view: PublicView,
  { limit }: z.output<typeof nodesAsked>,
): Promise<Node[]> {
  const rows = await store.db
    .select()
    .from(nodes)
    .where(and(eq(nodes.isHidden, false), eq(nodes.isIgnored, false)))
    .orderBy(desc(nodes.lastHeard), asc(nodes.nodeNum))
    .limit(limit)
    .all()
  const shown: Node[] = []
  for (const [index, row] of rows.entries()) {
    const node = showNode(row, view, now())
    if (node !== null) shown.push(node)
    if (index % SLICE === SLICE - 1) await nextTurn()
  }
  return shown
}

/** Null for a node that is hidden from anonymous callers. */
function showNode(row: Row, view: PublicView, now: number): Node | null {
  if (row.isHidden) return null
  const node = publicNode(row)
  if (!isShown(node, view, now)) return null
  const isPlaceShown = canReadChannel(view.scope, row.positionChannel)
  const areMetricsShown = canReadChannel(view.scope, row.metricsChannel)
  const position = isPlaceShown ? node.position : null
  return nodeForStrangers({ ...node, position, deviceMetrics: areMetricsShown ? node.deviceMetrics : null }, view)
}

/** Throws `node_not_found`, also for a node that is hidden from anonymous callers. */
async function findShown({ store, now }: Pick<Ctx, 'store' | 'now'>, view: PublicView, nodeNum: number) {
  const row = await store.db.select().from(nodes).where(eq(nodes.nodeNum, nodeNum)).get()
  const node = row === undefined ? null : showNode(row, view, now())
  if (row === undefined || node === null) throw new AppError('node_not_found')
  return { id: row.id, node }
}

/** One node. Throws `node_not_found`. */
export async function getNodeShown(
  ctx: Ctx,
  view: PublicView,
  { id }: z.output<typeof nodeAsked>,
): Promise<z.infer<typeof nodeDetailSchema>> {
  const { node } = await findShown(ctx, view, id)
  return {
    ...node,
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
  { id: nodeNum, from, to, limit }: z.output<typeof trackAsked>,
): Promise<z.infer<typeof trackSchema>> {
  const { id } = await findShown(ctx, view, nodeNum)
  const { nodeId, t, latitude, longitude, altitude, precisionBits, channel } = positions
  const rows = await ctx.store.db
    .select({ time: t, latitude, longitude, altitude, precisionBits })
    .from(positions)
    .where(and(eq(nodeId, id), gte(t, from), lte(t, to), onChannelSeenBy(channel, view.scope)))
    .orderBy(asc(t))
    .limit(limit + 1)
    .all()
  const rounded = rows.slice(0, limit).map((row) => blur(row, view.precisionBits))
  const isSamePlace = (a: (typeof rounded)[number], b: (typeof rounded)[number] | undefined) =>
    a.latitude === b?.latitude && a.longitude === b.longitude
  const moved = rounded.filter((place, index) => !isSamePlace(place, rounded[index - 1]))
  return { positions: moved, nextFrom: rows[limit]?.time ?? null }
}
