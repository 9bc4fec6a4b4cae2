import type { RouteDiscovery } from '../gen/payloads_pb.ts'
import { BROADCAST } from '../node-id.ts'

const UNKNOWN_SNR = -128

/**
 * Two halves of a traceroute. `route` and `routeBack` hold the nodes between the ends only, null where one did not
 * tell its number. `snrTowards` and `snrBack` hold dB for each hop, so one more, null where unknown. The way back is
 * empty when the answer came without one.
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
