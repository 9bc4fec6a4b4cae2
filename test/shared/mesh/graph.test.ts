import cytoscape from 'cytoscape'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { lostWithout } from '../../../src/shared/mesh/graph.ts'

const goOn = async () => true

type Edge = { readonly from: number; readonly to: number }

/** Those that are reached from the roots, without one node. */
function reached(edges: readonly Edge[], roots: readonly number[], without: number | null): Set<number> {
  const found = new Set(roots.filter((root) => root !== without))
  for (let size = -1; size !== found.size;) {
    size = found.size
    for (const { from, to } of edges) {
      if (from === without || to === without) continue
      if (found.has(from)) found.add(to)
      if (found.has(to)) found.add(from)
    }
  }
  return found
}

const someNode = fc.integer({ min: 1, max: 12 })
const someEdges = fc.array(fc.record({ from: someNode, to: someNode }), { maxLength: 30 })
const someRoots = fc.uniqueArray(someNode, { minLength: 1, maxLength: 3 })

it('names those that are not reached any more when a node is taken away', async () => {
  await fc.assert(
    fc.asyncProperty(someEdges, someRoots, async (edges, roots) => {
      const all = reached(edges, roots, null)
      const expected = [...all]
        .filter((node) => !roots.includes(node))
        .map((node) => {
          const left = reached(edges, roots, node)
          return [
            node,
            [...all].filter((other) => other !== node && !left.has(other)).toSorted((a, b) => a - b),
          ] as const
        })
        .filter(([, lost]) => lost.length > 0)
      const found = Array.from(
        await lostWithout(edges, roots, goOn),
        ([node, { some }]) => [node, [...some].toSorted((a, b) => a - b)] as const,
      )
      expect(new Map(found)).toEqual(new Map(expected))
    }),
  )
})

it('a chain of thousands that somebody made up is counted, and few of it are named', async () => {
  const chain = Array.from({ length: 5000 }, (_, index) => ({ from: index + 1, to: index + 2 }))
  const lost = await lostWithout(chain, [1], goOn)
  expect(lost.size).toBe(4999)
  expect(lost.get(2)).toEqual({ count: 4999, some: Array.from({ length: 100 }, (_, index) => index + 3) })
})

// Cytoscape's is an implementation of its own: biconnected components after Hopcroft and Tarjan, with recursion.
it('finds the same articulation points as a library of graphs', async () => {
  await fc.assert(
    fc.asyncProperty(someEdges, async (edges) => {
      const nums = [...new Set(edges.flatMap(({ from, to }) => [from, to]))]
      const graph = cytoscape({
        headless: true,
        elements: [
          ...nums.map((num) => ({ data: { id: `n${num}` } })),
          ...edges
            .filter(({ from, to }) => from !== to)
            .map(({ from, to }) => ({ data: { source: `n${from}`, target: `n${to}` } })),
        ],
      })
      const cut = graph
        .elements()
        .hopcroftTarjanBiconnected()
        .cut.map((node) => Number(node.id().slice(1)))
      // One root in each part of the graph, so that all is reached. The library does not know roots: they are left out.
      const roots = graph
        .elements()
        .components()
        .map((part) => Number(part.nodes()[0]?.id().slice(1)))
      const found = [...(await lostWithout(edges, roots, goOn)).keys()]
      const byNumber = (nodes: readonly number[]) => nodes.toSorted((a, b) => a - b)
      expect(byNumber(found)).toEqual(byNumber(cut.filter((num) => !roots.includes(num))))
      graph.destroy()
    }),
  )
})
