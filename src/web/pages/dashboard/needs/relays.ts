import { DAY_MS } from '../../../../shared/time.ts'
import { activeMs, isActive, type Node, nodeName, shortNameOf } from '../../../state/mesh/nodes.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import { nodesWith } from '../../nodes/filters.tsx'
import type { Need } from './need.ts'

/** The roles of nodes that others depend on. */
const RELAYS: ReadonlySet<string> = new Set(['ROUTER', 'ROUTER_LATE', 'ROUTER_CLIENT', 'REPEATER'])
/** After that nobody waits for it any more. */
const GONE_MS = 30 * DAY_MS
const MAX_SHOWN = 5

/** Routers and repeaters of others, but those that somebody ignores. */
export function relaysOf(all: readonly Node[]): readonly Node[] {
  return all.filter(({ role, isIgnored, isLocal }) => RELAYS.has(role ?? '') && !isIgnored && !isLocal)
}

/**
 * Routers and repeaters that fell silent, the latest first. `deafSince`: since when the service has heard nothing at
 * all, so that nobody knows who has been silent since; null: it hears.
 */
export function silentRelays(all: readonly Node[], now: number, deafSince: number | null): readonly Node[] {
  return relaysOf(all)
    .filter((node) => {
      if (node.lastHeard === null || isActive(node, now) || now - node.lastHeard > GONE_MS) return false
      return deafSince === null || node.lastHeard + activeMs.value < deafSince
    })
    .toSorted((a, b) => (b.lastHeard ?? 0) - (a.lastHeard ?? 0))
}

/** Each by its name, the others in one row. */
export function relayNeeds(silent: readonly Node[]): Need[] {
  const rest = silent.length > MAX_SHOWN ? silent.slice(MAX_SHOWN - 1) : []
  const shown = silent.slice(0, silent.length - rest.length)
  return [
    ...shown.map((node): Need => ({
      key: `node ${node.nodeNum}`,
      severity: 'warning',
      text: needTexts.silent(nodeName(node)),
      since: node.lastHeard,
      details: [],
      remedy: { path: `/nodes/${node.nodeId}`, name: needTexts.openNode },
    })),
    ...(rest.length > 0 ? [othersSilent(rest)] : []),
  ]
}

function othersSilent(rest: readonly Node[]): Need {
  return {
    key: 'nodes',
    severity: 'warning',
    text: needTexts.alsoSilent(rest.length, rest.map(shortNameOf).join(', ')),
    since: null,
    details: [],
    remedy: { path: nodesWith({ silent: 'inactive', sort: 'role', order: 'up' }), name: needTexts.openNodes },
  }
}
