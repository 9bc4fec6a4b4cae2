export type TopologyEdge = {
  /** Who sent, and who heard it. */
  readonly from: number
  readonly to: number
  /** dB. */
  readonly snr: number | null
  readonly at: number
  readonly by: readonly ('heard' | 'reported' | 'traced')[]
}
/** Two nodes of which at least one hears the other. */
export type Pair = {
  readonly a: number
  readonly b: number
  /** b hears a; null: not known. */
  readonly there: TopologyEdge | null
  /** a hears b. */
  readonly back: TopologyEdge | null
}

/** Both directions together. */
export function pairsOf(edges: readonly TopologyEdge[]): Pair[] {
  const pairs = new Map<string, Pair>()
  for (const edge of edges) {
    const [a, b] = edge.from < edge.to ? [edge.from, edge.to] : [edge.to, edge.from]
    const key = `${a} ${b}`
    const known = pairs.get(key) ?? { a, b, there: null, back: null }
    pairs.set(key, edge.from === a ? { ...known, there: edge } : { ...known, back: edge })
  }
  return [...pairs.values()]
}

/** The weaker of the directions that are known, in dB; null: unknown. */
export function signalOfPair({ there, back }: Pair): number | null {
  const known = [there?.snr ?? null, back?.snr ?? null].filter((snr) => snr !== null)
  return known.length === 0 ? null : Math.min(...known)
}

export function latestOf({ there, back }: Pair): number {
  return Math.max(there?.at ?? 0, back?.at ?? 0)
}
