import * as z from 'zod'
import type { Ctx } from '../../base/context.ts'
import { integerQuery } from '../../http/validate.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { listNeighbors, listWaypoints, type neighborSchema, type Waypoint } from './topology.ts'
import { listTraceroutes, type Traceroute } from './traceroutes.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { readerFor } from '../../accounts/access/anonymous-reader.ts'
import { tracerouteForAnonymous, waypointForAnonymous } from '../../accounts/access/anonymous-rows.ts'

const MAX_ROUTES = 100

export const traceroutesAsked = z.strictObject({
  limit: integerQuery(1, MAX_ROUTES).default(MAX_ROUTES),
  node: nodeNumSchema.optional(),
})

/** There are no earlier pages: `nextBefore` is always null. */
export const traceroutesForm = {
  open: '{"traceroutes":[',
  close: '],"nextBefore":null}',
  usual: MAX_ROUTES,
}

/** The latest answered traceroutes, newest first. */
export async function listTraceroutesShown(
  ctx: Ctx,
  view: PublicView,
  { node }: Pick<z.output<typeof traceroutesAsked>, 'node'>,
): Promise<Traceroute[]> {
  const reader = await readerFor(ctx, view)
  const { traceroutes } = await listTraceroutes(reader, { node, limit: MAX_ROUTES, isAnswered: true })
  return traceroutes.map(tracerouteForAnonymous).toSorted((a, b) => b.id - a.id)
}

/** Who hears whom. */
export async function listNeighborsShown(
  ctx: Ctx,
  view: PublicView,
): Promise<{ neighbors: z.infer<typeof neighborSchema>[] }> {
  return { neighbors: await listNeighbors(await readerFor(ctx, view)) }
}

/** Waypoints of the shown channels, at rounded places. */
export async function listWaypointsShown(ctx: Ctx, view: PublicView): Promise<{ waypoints: Waypoint[] }> {
  const found = await listWaypoints({ ...(await readerFor(ctx, view)), now: ctx.now })
  return { waypoints: found.map((waypoint) => waypointForAnonymous(waypoint, view)) }
}
