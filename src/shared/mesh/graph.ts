type Edge = { readonly from: number; readonly to: number }

/** Those that are lost: how many, and the first of them. */
export type Lost = { readonly count: number; readonly some: readonly number[] }

/** As many of those that are lost are named. */
const MAX_NAMED = 100
/** Stands for all of our radios, which reach each other here. */
const ROOT = -1
/** Steps of a slice. */
const SLICE = 4000

/**
 * For each node without which others are not reached from `roots` any more: those others. Links count in both
 * directions. Articulation points after Hopcroft and Tarjan, without recursion; in steps as nodes plus links.
 * `pause` is awaited after each slice, and returns whether to continue; nothing is lost if it does not.
 */
export async function lostWithout(
  links: readonly Edge[],
  roots: readonly number[],
  pause: () => Promise<boolean>,
): Promise<ReadonlyMap<number, Lost>> {
  const near = new Map<number, Set<number>>()
  const join = (a: number, b: number) => {
    const known = near.get(a)
    if (known === undefined) near.set(a, new Set([b]))
    else known.add(b)
  }
  let steps = 0
  const isSliceFull = () => ++steps % SLICE === 0
  for (const { from, to } of [...links, ...roots.map((root) => ({ from: ROOT, to: root }))]) {
    if (isSliceFull() && !(await pause())) return new Map()
    if (from === to) continue
    join(from, to)
    join(to, from)
  }
  /** In the order in which they are visited: those below a node follow it. */
  const visited = [ROOT]
  const place = new Map([[ROOT, 0]])
  const low = new Map([[ROOT, 0]])
  const lost = new Map<number, Lost>()
  const stack = [{ node: ROOT, parent: ROOT, rest: [...(near.get(ROOT) ?? [])] }]
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    if (isSliceFull() && !(await pause())) return new Map()
    const { node, parent, rest } = top
    const next = rest.pop()
    if (next === undefined) {
      stack.pop()
      const begun = place.get(node) ?? 0
      low.set(parent, Math.min(low.get(parent) ?? 0, low.get(node) ?? 0))
      const isCut = node !== ROOT && parent !== ROOT && (low.get(node) ?? 0) >= (place.get(parent) ?? 0)
      if (!isCut) continue
      const before = lost.get(parent) ?? { count: 0, some: [] }
      const room = MAX_NAMED - before.some.length
      lost.set(parent, {
        count: before.count + visited.length - begun,
        some: [...before.some, ...visited.slice(begun, begun + room)],
      })
    } else if (place.has(next)) {
      if (next !== parent) low.set(node, Math.min(low.get(node) ?? 0, place.get(next) ?? 0))
    } else {
      place.set(next, visited.length)
      low.set(next, visited.length)
      visited.push(next)
      stack.push({ node: next, parent: node, rest: [...(near.get(next) ?? [])] })
    }
  }
  for (const root of roots) lost.delete(root)
  return lost
}
