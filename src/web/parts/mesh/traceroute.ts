import type { Traceroute, TraceroutePage } from '../../../app/mesh/topology/traceroutes.ts'

export type { Traceroute, TraceroutePage }

/** One direction: the nodes in order, including both ends, and the signal of each hop. */
export type Way = {
  readonly direction: 'towards' | 'back'
  /** Null: a node that did not report its number. */
  readonly nodes: readonly (number | null)[]
  /** One less than nodes; null: unknown. */
  readonly snr: readonly (number | null)[]
}

/** The directions in the answer; none while there is no answer. */
export function waysOf(trace: Traceroute): Way[] {
  const { route, snrTowards, routeBack, snrBack, fromNodeNum, toNodeNum } = trace
  const ways: Way[] = []
  if (route !== null) ways.push(wayOf('towards', [fromNodeNum, ...route, toNodeNum], snrTowards))
  // An answer without any signal of its return path has no return path.
  if (routeBack !== null && (snrBack?.length ?? 0) > 0) {
    ways.push(wayOf('back', [toNodeNum, ...routeBack, fromNodeNum], snrBack))
  }
  return ways
}

function wayOf(direction: Way['direction'], nodes: Way['nodes'], snr: readonly (number | null)[] | null): Way {
  return { direction, nodes, snr: nodes.slice(1).map((_, hop) => snr?.[hop] ?? null) }
}

export const ANSWERED = 'delivered' satisfies Traceroute['state']
