import type { RouteDiscovery } from '../gen/payloads_pb.ts'
import { BROADCAST } from '../node-id.ts'

const UNKNOWN_SNR = -128

/**
 * Two halves of a traceroute. `route` and `routeBack` contain only the nodes between the ends, null for a node that did
 * not report its number. `snrTowards` and `snrBack` contain dB for each hop, so one more, null where unknown. The route
 * back is empty if the answer came without one.
 */
export type Route = {
  readonly route: readonly (number | null)[]
  readonly snrTowards: readonly (number | null)[]
  readonly routeBack: readonly (number | null)[]
  readonly snrBack: readonly (number | null)[]
}

export function decodeRoute(discovery: RouteDiscovery): Route {
  return {
    route: discovery.route.map(knownNode),
    snrTowards: discovery.snrTowards.map(toDecibels),
    routeBack: discovery.routeBack.map(knownNode),
    snrBack: discovery.snrBack.map(toDecibels),
  }
}

function knownNode(nodeNum: number): number | null {
  return nodeNum === BROADCAST || nodeNum === 0 ? null : nodeNum
}

function toDecibels(quarters: number): number | null {
  return quarters === UNKNOWN_SNR ? null : quarters / 4
}
