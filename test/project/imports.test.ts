import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')

/** The imports of each file from the others: for values, for types, and dynamic ones. */
async function readGraph(): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = (await readdir(SRC, { recursive: true })).filter((name) => /\.tsx?$/.test(name))
  const entries = names.map(async (name) => {
    const text = await readFile(join(SRC, name), 'utf8')
    const imported = text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
    return [name, Array.from(imported, ([, path = '']) => relative(SRC, join(SRC, name, '..', path)))] as const
  })
  return new Map(await Promise.all(entries))
}

/** The first path from a file back to itself; null: there is none. */
function findCircle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] | null {
  const done = new Set<string>()
  const visit = (name: string, way: readonly string[]): readonly string[] | null => {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name]
    if (done.has(name)) return null
    for (const next of graph.get(name) ?? []) {
      const circle = visit(next, [...way, name])
      if (circle !== null) return circle
    }
    done.add(name)
    return null
  }
  for (const name of graph.keys()) {
    const circle = visit(name, [])
    if (circle !== null) return circle
  }
  return null
}

test('no file imports itself through others, types included', async () => {
  const graph = await readGraph()
  expect(graph.get('app/app.ts')).toContain('app/context.ts')
  expect(findCircle(graph)).toBeNull()
})

test('a cycle is found, with its path', () => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', []],
    ['d', ['b']],
  ])
  expect(findCircle(graph)).toStrictEqual(['b', 'd', 'b'])
})
