import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createSeenMesh,
  type Eyes,
  KINDS,
  markOf,
  maySee,
  nodeOf,
  NODES,
  type Said,
  type SeenMesh,
} from '../../support/mesh/seen-mesh.ts'

let mesh: SeenMesh
beforeAll(async () => {
  mesh = await createSeenMesh()
})
afterAll(() => mesh.app.close())

const MESH: readonly Said[] = [
  ...KINDS.flatMap((kind) => [0, 1, 2].map((channel) => ({ kind, node: 0, channel, isDirect: false }))),
  { kind: 'text', node: 0, channel: 0, isDirect: true },
  // A tracker that tells where it is on the private channel alone.
  { kind: 'position', node: 1, channel: 2, isDirect: false },
  ...KINDS.map((kind) => ({ kind, node: 2, channel: 0, isDirect: false })),
]
const HIDDEN = new Set([NODES[2]])

const VIEWERS: Readonly<Record<string, Eyes>> = {
  'a guest with channel 0': { read: [0], direct: false, seesHidden: false },
  'a member with channels 0 and 2': { read: [0, 2], direct: false, seesHidden: false },
  'a member with all channels': { read: 'all', direct: false, seesHidden: false },
  'a user with no channel and direct messages': { read: [], direct: true, seesHidden: false },
  'a user with channel 1 who may change nodes': { read: [1], direct: false, seesHidden: true },
}

/** The marks that are found in any answer. */
function marksIn(answers: Map<string, string>, all: readonly Said[]): string[] {
  const bytes = [...answers.values()].join('\n')
  return all.map(markOf).filter((mark) => bytes.includes(mark))
}

test.each(Object.entries(VIEWERS))('%s sees just what they may, in all answers together', async (_, eyes) => {
  const since = await mesh.play(MESH, HIDDEN)
  mesh.open(eyes)
  const expected = MESH.flatMap((said, index) => (maySee(eyes, said, HIDDEN) ? [markOf(said, index)] : []))
  expect(marksIn(await mesh.everything(mesh.user, since), MESH)).toEqual(expected)
})

test('an administrator sees everything', async () => {
  const since = await mesh.play(MESH, HIDDEN)
  expect(marksIn(await mesh.everything(mesh.admin, since), MESH)).toEqual(MESH.map(markOf))
})

test('a hidden node is nowhere: no number of it in any byte', async () => {
  const since = await mesh.play(MESH, HIDDEN)
  mesh.open({ read: 'all', direct: true, seesHidden: false })
  const answers = await mesh.everything(mesh.user, since)
  const named = [...answers].filter(([, body]) => body.includes(String(NODES[2]))).map(([path]) => path)
  expect(named).toEqual([])
  expect(Object(JSON.parse(answers.get('/api/dashboard') ?? '')).counts.nodes).toBe(2)
})

test('of a value on another channel, the list has the latest that may be seen', async () => {
  const place = (channel: number): Said => ({ kind: 'position', node: 0, channel, isDirect: false })
  const all = [place(0), place(2), place(1), place(2)]
  await mesh.play(all, new Set())
  const latitude = async (read: Eyes['read']) => {
    mesh.open({ read, direct: false, seesHidden: false })
    const nodes: { nodeNum: number; position: { latitude: number } | null }[] = Object(
      await (await mesh.user.send('GET', '/api/nodes')).json(),
    )
    return nodes.find(({ nodeNum }) => nodeNum === NODES[0])?.position?.latitude.toFixed(5) ?? null
  }
  const mark = (index: number) => markOf(place(0), index)
  expect([await latitude([0]), await latitude([1]), await latitude([0, 1]), await latitude([2])]).toEqual(
    [0, 2, 2, 3].map(mark),
  )
  expect([await latitude([3]), await latitude('all')]).toEqual([null, mark(3)])
})

test('nothing of an unreadable channel is in any byte, and all that is readable is there', async () => {
  const said = fc.record({
    kind: fc.constantFrom(...KINDS),
    node: fc.integer({ min: 0, max: 2 }),
    channel: fc.integer({ min: 0, max: 3 }),
    isDirect: fc.boolean(),
  })
  const eyes = fc.record({
    read: fc.oneof(fc.constant('all' as const), fc.uniqueArray(fc.integer({ min: 0, max: 3 }))),
    direct: fc.boolean(),
    seesHidden: fc.boolean(),
  })
  const meshes = fc.array(said, { minLength: 1, maxLength: 14 })
  const hiding = fc.subarray([...NODES]).map((nums) => new Set(nums))
  await fc.assert(
    fc.asyncProperty(meshes, eyes, hiding, async (all, seenWith, hidden) => {
      const since = await mesh.play(all, hidden)
      mesh.open(seenWith)
      const answers = await mesh.everything(mesh.user, since)
      const readable = all.flatMap((each, index) => (maySee(seenWith, each, hidden) ? [markOf(each, index)] : []))
      expect(marksIn(answers, all)).toEqual(readable)
      const namesHidden = [...answers].filter(([, body]) =>
        [...hidden].some((nodeNum) => body.includes(String(nodeNum))),
      )
      if (!seenWith.seesHidden) expect(namesHidden.map(([path]) => path)).toEqual([])
      // The list has the latest value that may be seen.
      const listed = answers.get('/api/nodes') ?? ''
      for (const nodeNum of NODES) {
        const last = all.findLastIndex(
          (each) => each.kind === 'position' && nodeOf(each) === nodeNum && maySee(seenWith, each, hidden),
        )
        const latest = all[last]
        if (latest !== undefined) expect(listed).toContain(markOf(latest, last))
      }
    }),
    { numRuns: Number(process.env['SHARING_RUNS'] ?? 25) },
  )
})
