import { signal } from '@preact/signals'
import { MAX_CHART_NODES } from '../../../shared/mesh/boards.ts'

/** At most this many nodes are compared: more lines in a chart can't be told apart. */
export const MAX_COMPARED = MAX_CHART_NODES

/** The IDs of the nodes that are picked for a comparison; null: none is being made. */
export const picked = signal<readonly string[] | null>(null)

/** Picks a node, or takes it out again. */
export function togglePick(nodeId: string): void {
  const known = picked.peek() ?? []
  picked.value = known.includes(nodeId) ? known.filter((id) => id !== nodeId) : [...known, nodeId]
}

/** The address of a comparison, which others can open, too. */
export function comparisonOf(nodeIds: readonly string[]): string {
  return `/nodes/compare?${new URLSearchParams({ ids: nodeIds.join(',') }).toString()}`
}
