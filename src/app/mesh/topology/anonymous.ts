import * as z from 'zod'
import type { Ctx } from '../../base/context.ts'
import { integerQuery } from '../../http/validate.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'
import { listNeighbors, listWaypoints, type Neighbor, type Waypoint } from './topology.ts'
import { readTraceroutes, type Traceroute } from './traceroutes.ts'
import type { PublicView } from '../../accounts/access/public-view.ts'
import { readerFor } from '../../accounts/access/anonymous-reader.ts'
import { blur } from '../../accounts/access/blur.ts'
import { publicId } from '../../accounts/access/public-id.ts'

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
  const traceroutes = await readTraceroutes(reader, { node, limit: MAX_ROUTES, answered: true })
  return traceroutes.map(tracerouteForAnonymous).toSorted((a, b) => b.id - a.id)
}

/** Who hears whom. */
export async function listNeighborsShown(ctx: Ctx, view: PublicView): Promise<{ neighbors: Neighbor[] }> {
  return { neighbors: await listNeighbors(await readerFor(ctx, view)) }
}

/** Waypoints of the shown channels, at rounded places. */
export async function listWaypointsShown(ctx: Ctx, view: PublicView): Promise<{ waypoints: Waypoint[] }> {
  const found = await listWaypoints({ ...(await readerFor(ctx, view)), now: ctx.now })
  return { waypoints: found.map((waypoint) => waypointForAnonymous(waypoint, view)) }
}

// The part of a row for anonymous callers: each field is listed here, or it is not shown.

/** A waypoint at a rounded place. */
function waypointForAnonymous(waypoint: Waypoint, { precisionBits: bits }: PublicView): Waypoint {
  const { id, fromNodeNum, fromNodeId, timestamp, name, description, icon, expiresAt, lockedTo } = waypoint
  const { latitude, longitude } = blur({ ...waypoint, altitude: null, precisionBits: null }, bits)
  return { id, fromNodeNum, fromNodeId, timestamp, name, description, icon, latitude, longitude, expiresAt, lockedTo }
}

/** A traceroute that does not show whether it was requested here. Its id reveals nothing about hidden ones. */
function tracerouteForAnonymous(traceroute: Traceroute): Traceroute {
  const { requestId, fromNodeNum, fromNodeId, toNodeNum, toNodeId, route, snrTowards, routeBack, snrBack } = traceroute
  const timestamp = traceroute.answeredAt ?? traceroute.timestamp
  return {
    id: publicId(timestamp, `${fromNodeNum} ${requestId}`),
    requestId,
    fromNodeNum,
    fromNodeId,
    toNodeNum,
    toNodeId,
    timestamp,
    answeredAt: timestamp,
    state: 'delivered',
    routingError: null,
    route,
    snrTowards,
    routeBack,
    snrBack,
    requestedBy: null,
    radio: null,
  }
}
