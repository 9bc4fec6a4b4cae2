import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')

type Graph = ReadonlyMap<string, readonly string[]>

/** Imports of any kind: values, types, and dynamic ones. */
const ANY_IMPORT = /\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g
/** Imports that exist at run time: an import of types alone is left out. */
const VALUE_IMPORT =
  /(?:^(?:import|export)\s+(?!type\b)(?!\{(?:\s*type\s[^,}]+,?)+\s*\})[^'";]*?from\s+|\bimport\()'(\.[^']+)'/gm

/** The imports of each file from the others. */
async function readGraph(kind: RegExp): Promise<Graph> {
  const names = (await readdir(SRC, { recursive: true })).filter((name) => /\.tsx?$/.test(name))
  const entries = names.map(async (name) => {
    const text = await readFile(join(SRC, name), 'utf8')
    return [
      name,
      Array.from(text.matchAll(kind), ([, path = '']) => relative(SRC, join(SRC, name, '..', path))),
    ] as const
  })
  return new Map(await Promise.all(entries))
}

/** One graph for each folder: what stands in it, each of its folders as a whole, and who imports whom. */
function roomsOf(files: Graph): ReadonlyMap<string, Graph> {
  const floors = new Map<string, Map<string, Set<string>>>()
  for (const [file, imported] of files) {
    for (const other of imported) {
      const [from, to] = [file.split('/'), other.split('/')]
      const depth = from.findIndex((part, at) => part !== to[at])
      const [room, neighbour] = [from.slice(0, depth + 1).join('/'), to.slice(0, depth + 1).join('/')]
      const floor = floors.get(from.slice(0, depth).join('/')) ?? new Map<string, Set<string>>()
      floors.set(from.slice(0, depth).join('/'), floor.set(room, (floor.get(room) ?? new Set()).add(neighbour)))
    }
  }
  return new Map(
    Array.from(floors, ([name, floor]) => [name, new Map(Array.from(floor, ([room, seen]) => [room, [...seen]]))]),
  )
}

/** The first path from a file back to itself; null: there is none. */
function findCircle(graph: Graph): readonly string[] | null {
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
  const graph = await readGraph(ANY_IMPORT)
  expect(graph.get('app/app.ts')).toContain('app/base/context.ts')
  expect(findCircle(graph)).toBeNull()
})

test('the rooms of a folder stand in an order: none imports itself through others', async () => {
  const floors = roomsOf(await readGraph(VALUE_IMPORT))
  expect(floors.get('')?.get('node')).toContain('app')
  expect(floors.get('')?.get('app')).toContain('db')
  const circles = Array.from(floors, ([name, rooms]) => [name, findCircle(rooms)] as const)
  expect(circles.filter(([, circle]) => circle !== null)).toStrictEqual([])
})

test('docs/architecture.md lists the rooms of app, accounts and mesh in their order', async () => {
  const text = await readFile(join(SRC, '../docs/architecture.md'), 'utf8')
  const lists = Array.from(text.matchAll(/`[\w-]+`(?:\s·\s`[\w-]+`)+/g), ([list]) =>
    Array.from(list.matchAll(/[\w-]+/g), ([room]) => room),
  )
  const floors = roomsOf(await readGraph(VALUE_IMPORT))
  const wrong = ['app', 'app/accounts', 'app/mesh'].flatMap((folder, at) => {
    const floorOf = (room: string) => (lists[at] ?? []).indexOf(room.slice(folder.length + 1))
    const rooms = Array.from(floors.get(folder) ?? []).filter(([room]) => !room.includes('.'))
    return rooms.flatMap(([room, seen]) => {
      if (floorOf(room) === -1) return `${room} is not listed`
      return seen.filter((other) => floorOf(other) > floorOf(room)).map((other) => `${room} imports ${other}`)
    })
  })
  expect(wrong).toStrictEqual([])
})

test('a circle of rooms is found where no file imports itself', () => {
  const files = new Map([
    ['a/one.ts', ['b/one.ts']],
    ['b/one.ts', []],
    ['b/two.ts', ['a/two.ts']],
    ['a/two.ts', []],
  ])
  expect(findCircle(files)).toBeNull()
  expect(findCircle(roomsOf(files).get('') ?? new Map())).toStrictEqual(['a', 'b', 'a'])
})

test('an import of types alone is none of values', () => {
  const found = (text: string) => Array.from(text.matchAll(VALUE_IMPORT), ([, path]) => path)
  expect(found("import { type A, type B } from './a.ts'\nimport type { C } from './c.ts'")).toStrictEqual([])
  expect(found("import {\n  type A,\n  b,\n} from './a.ts'\nexport { c } from './c.ts'")).toStrictEqual([
    './a.ts',
    './c.ts',
  ])
  expect(found("const later = () => import('./d.ts')\nimport * as e from './e.ts'")).toStrictEqual(['./d.ts', './e.ts'])
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
