import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  channelsAmong,
  type Eyes,
  HIDDEN,
  isPublic,
  markOf,
  marksFor,
  marksForAnonymous,
  marksIn,
  maySee,
  MESH,
  meshesOn,
  namingOf,
  nodeOf,
  NODES,
  replaces,
  type Said,
  someEyes,
  someNodes,
} from '../../../support/mesh/said.ts'
import { createSeenMesh, type SeenMesh } from '../../../support/mesh/seen-mesh.ts'

let mesh: SeenMesh
beforeAll(async () => {
  mesh = await createSeenMesh()
})
afterAll(() => mesh.app.close())

const VIEWERS: Readonly<Record<string, Eyes>> = {
  'a guest with channel 0': { read: [0], direct: false, seesHidden: false },
  'a member with channels 0 and 2': { read: [0, 2], direct: false, seesHidden: false },
  'a member with all channels': { read: 'all', direct: false, seesHidden: false },
  'a user with no channel and direct messages': { read: [], direct: true, seesHidden: false },
  'a user with channel 1 who may change nodes': { read: [1], direct: false, seesHidden: true },
}

test.each(Object.entries(VIEWERS))(
  '%s sees everything they may see and nothing else, in all answers together',
  async (_, eyes) => {
    const since = await mesh.play(MESH, HIDDEN)
    mesh.open(eyes)
    expect(marksIn(await mesh.everything(mesh.user, since), MESH)).toEqual(marksFor(eyes, MESH, HIDDEN))
  },
)

test('an administrator sees everything', async () => {
  const since = await mesh.play(MESH, HIDDEN)
  expect(marksIn(await mesh.everything(mesh.admin, since), MESH)).toEqual(MESH.map(markOf))
})

test('no answer names a hidden node', async () => {
  const since = await mesh.play(MESH, HIDDEN)
  mesh.open({ read: 'all', direct: true, seesHidden: false })
  const answers = await mesh.everything(mesh.user, since)
  expect(namingOf(answers, HIDDEN)).toEqual([])
  expect(Object(JSON.parse(answers.get('/api/dashboard') ?? '')).counts.nodes).toBe(2)
})

test('the list shows the latest position on the channels that the user may read', async () => {
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

test('a search finds a node by its status only for those who may read the status', async () => {
  const said = (channel: number, more: Partial<Said> = {}): Said => ({
    kind: 'status',
    node: 0,
    channel,
    isDirect: false,
    ...more,
  })
  for (const [status, reader, others] of [
    [said(2), { read: [2] }, { read: [0] }],
    [said(0, { isDirect: true }), { read: [], direct: true }, { read: 'all' }],
    [said(0, { isDirect: true, recipient: 2 }), { direct: true, seesHidden: true }, { direct: true }],
  ] as const) {
    await mesh.play([status], HIDDEN)
    const found = async (eyes: Partial<Eyes>) => {
      mesh.open({ read: [0], direct: false, seesHidden: false, ...eyes })
      const some: { nodeNum: number }[] = Object(await (await mesh.user.send('GET', '/api/nodes?q=STATE0')).json())
      return some.map(({ nodeNum }) => nodeNum)
    }
    expect([await found(reader), await found(others)]).toEqual([[NODES[0]], []])
  }
})

test('no answer contains anything from an unreadable channel, and everything readable is there', async () => {
  await fc.assert(
    fc.asyncProperty(meshesOn(4), someEyes(4), someNodes, async (all, seenWith, hidden) => {
      const since = await mesh.play(all, hidden)
      mesh.open(seenWith)
      const answers = await mesh.everything(mesh.user, since)
      expect(marksIn(answers, all)).toEqual(marksFor(seenWith, all, hidden))
      if (!seenWith.seesHidden) expect(namingOf(answers, hidden)).toEqual([])
      // The list has the latest value that the user may see.
      const listed = answers.get('/api/nodes') ?? ''
      for (const kind of ['position', 'status'] as const) {
        for (const nodeNum of NODES) {
          const last = all.findLastIndex(
            (each) => each.kind === kind && nodeOf(each) === nodeNum && maySee(seenWith, each, hidden),
          )
          const latest = all[last]
          if (latest !== undefined) expect(listed).toContain(markOf(latest, last))
        }
      }
    }),
    { numRuns: Number(process.env['SHARING_RUNS'] ?? 25) },
  )
})

/** The same without earlier statuses: they were in the live events, and later ones have replaced them in the lists. */
function latestIn(answers: ReadonlyMap<string, string>, all: readonly Said[], read: readonly number[]): string[] {
  const isEarlier = (said: Said, index: number) =>
    said.kind === 'status' &&
    isPublic(said, read) &&
    all.some((later, at) => at > index && nodeOf(later) === nodeOf(said) && replaces(later, said, read))
  const earlier = all.flatMap((said, index) => (isEarlier(said, index) ? [markOf(said, index)] : []))
  return marksIn(answers, all).filter((mark) => !earlier.includes(mark))
}

test('an anonymous visitor sees only the chosen channels, and the latest of each value on them', async () => {
  const since = await mesh.play(MESH, HIDDEN)
  mesh.share([0], null)
  const answers = await mesh.everythingPublic(since)
  expect(latestIn(answers, MESH, [0])).toEqual(marksForAnonymous([0], MESH, HIDDEN))
  expect(namingOf(answers, HIDDEN)).toEqual([])
  // The latest position of the node came on channel 2.
  const onFirst = MESH.findIndex(({ kind, channel }) => kind === 'position' && channel === 0)
  expect(answers.get('/api/nodes')).toContain(MESH.map(markOf)[onFirst])
  // The stream has the messages, and values of nodes as they arrived.
  const texts = MESH.flatMap((said, index) => (said.kind === 'text' ? [markOf(said, index)] : []))
  const heard = marksIn(new Map([['/api/events', answers.get('/api/events') ?? '']]), MESH)
  expect(heard.filter((mark) => texts.includes(mark))).toEqual(
    marksForAnonymous([0], MESH, HIDDEN).filter((mark) => texts.includes(mark)),
  )
  expect(heard).toContain(MESH.map(markOf)[onFirst])
  expect(Object(JSON.parse(answers.get('/api/dashboard') ?? '')).counts).toEqual({
    nodes: 2,
    activeNodes: 2,
    messages: 4,
    packets: 0,
  })
})

test('an anonymous visitor gets only rounded positions, and nothing that reveals which radios are ours', async () => {
  const since = await mesh.play(MESH, HIDDEN)
  mesh.share([0, 1, 2], 12)
  const answers = await mesh.everythingPublic(since)
  const places = MESH.flatMap((said, index) => (said.kind === 'position' ? [markOf(said, index)] : []))
  const others = marksForAnonymous([0, 1, 2], MESH, HIDDEN).filter((mark) => !places.includes(mark))
  expect(latestIn(answers, MESH, [0, 1, 2])).toEqual(others)
  const { waypoints } = Object(JSON.parse(answers.get('/api/waypoints') ?? ''))
  expect(waypoints).toHaveLength(4)
  for (const { latitude } of waypoints) expect(latitude).toBe(2 ** 20 / 2 / 1e7)
  expect([...answers].filter(([, body]) => body.includes('radio-1')).map(([path]) => path)).toEqual([])
})

test('an anonymous visitor gets nothing that is not shared', async () => {
  const some = fc.tuple(meshesOn(4), channelsAmong(4), someNodes, someNodes)
  await fc.assert(
    fc.asyncProperty(some, async ([all, channels, hidden, ignored]) => {
      const since = await mesh.play(all, hidden)
      mesh.ignore(ignored)
      mesh.share(channels, null)
      const unseen = new Set([...hidden, ...ignored])
      const answers = await mesh.everythingPublic(since)
      expect(latestIn(answers, all, channels)).toEqual(marksForAnonymous(channels, all, unseen))
      expect(namingOf(answers, unseen)).toEqual([])
    }),
    { numRuns: Number(process.env['SHARING_RUNS'] ?? 15) },
  )
})
