/** A node was heard. */
export type HeardAt = { readonly from: number; readonly t: number }

export type Gap = { readonly from: number; readonly to: number }
type Range = Gap

/** If nothing was heard for this long, it is unknown which nodes were silent. */
const DEAF_MS = 3_600_000

/** Periods in which nothing at all was heard. `heard`: oldest first. */
export function gapsOfAll(heard: readonly HeardAt[], { to }: Range): Gap[] {
  return heard.flatMap(({ t }, index) => {
    const next = heard[index + 1]?.t ?? to
    return next - t >= DEAF_MS ? [{ from: t, to: next }] : []
  })
}

/** The silences of these nodes of at least `leastMs`; the last one up to now. `heard`: oldest first. */
export function findGaps(
  heard: readonly HeardAt[],
  nodes: ReadonlySet<number>,
  { to, leastMs }: Range & { readonly leastMs: number },
): { nodeNum: number; gap: Gap }[] {
  const last = new Map<number, number>()
  const gaps: { nodeNum: number; gap: Gap }[] = []
  const end = (nodeNum: number, from: number, until: number) => {
    if (until - from >= leastMs) gaps.push({ nodeNum, gap: { from, to: until } })
  }
  for (const { from: nodeNum, t } of heard) {
    if (!nodes.has(nodeNum)) continue
    const before = last.get(nodeNum)
    if (before !== undefined) end(nodeNum, before, t)
    last.set(nodeNum, t)
  }
  for (const [nodeNum, t] of last) end(nodeNum, t, to)
  return gaps
}

/** When a silence fires, not counting periods in which nothing at all was heard. Null: never. */
export function firesIn(gap: Gap, deaf: readonly Gap[], afterMs: number): number | null {
  let start = gap.from
  for (const { from, to } of deaf) {
    if (to <= gap.from || from >= gap.to) continue
    if (from - start >= afterMs) return start + afterMs
    start = to
  }
  return gap.to - start >= afterMs ? start + afterMs : null
}
