import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createStream, eventText, mountHook, pass, serve, signInAs, statusOf, type Stream } from './service.ts'
import { keepLive } from '../../../src/web/state/live.ts'
import {
  forgetNodes,
  isCalled,
  nodeByNum,
  NodeKeeper,
  useNodes,
  nameOf,
  nameOfId,
  type Node,
  nodeName,
  nodes,
  precisionMeters,
  shortNameOf,
} from '../../../src/web/state/mesh/nodes.ts'

/** Only the fields that name a node. */
function named(longName: string | null, shortName: string | null = null): Node {
  return Object({ nodeNum: 0xa0cb0001, nodeId: '!a0cb0001', longName, shortName })
}

afterEach(() => {
  nodes.value = null
})

test.each([
  ['Far Hill', 'Far Hill'],
  ['  Far Hill ', 'Far Hill'],
  ['Far\u202eHill\n', 'FarHill'],
  [' ', null],
  ['\u200b\u2066', null],
  ['', null],
  [null, null],
])('the long name %j is shown as %j', (longName, shown) => {
  const name = nodeName(named(longName))
  if (shown === null) expect(name).toMatch(/^.+ !a0cb0001$/)
  else expect(name).toBe(shown)
})

test('a node with an altered name is shown with its id, wherever it is named', () => {
  const node = { ...named('Hill'), nameAltered: true }
  expect(nodeName(node)).toBe('Hill (!a0cb0001)')
  nodes.value = [node]
  expect(nameOf(node.nodeNum, node.nodeId)).toBe('Hill (!a0cb0001)')
})

test('a search finds a node by its status', () => {
  const node = { ...named('Hill'), status: { text: 'At the Hut', time: 1 } }
  expect([isCalled(node, 'the hut'), isCalled(node, 'the hat')]).toStrictEqual([true, false])
})

test('a node without a short name is shown by the end of its id', () => {
  expect([shortNameOf(named('Far Hill', 'FH')), shortNameOf(named('Far Hill', '\u200b'))]).toStrictEqual(['FH', '0001'])
})

test.each(['far', 'fh', '!a0cb', String(0xa0cb0001)])('a search for %s finds the node', (wanted) => {
  expect(isCalled(named('Far Hill', 'FH'), wanted)).toBe(true)
  expect(isCalled(named('Near', 'N'), `${wanted}x`)).toBe(false)
})

test('a name follows the list of nodes; a node that is not in it is shown by id', () => {
  expect(nameOfId('!a0cb0001')).toBe('!a0cb0001')
  nodes.value = [named('Far Hill')]
  expect([nameOfId('!a0cb0001'), nameOf(7, '!00000007')]).toStrictEqual(['Far Hill', '!00000007'])
  nodes.value = [named('Far Valley')]
  expect(nameOfId('!a0cb0001')).toBe('Far Valley')
})

test('a position of few bits has a cell; an exact one has none', () => {
  expect([precisionMeters(32), precisionMeters(null), precisionMeters(9)]).toStrictEqual([null, null, null])
  expect(precisionMeters(13)).toBeCloseTo(2918, 0)
  expect((precisionMeters(13) ?? 0) / (precisionMeters(14) ?? 1)).toBe(2)
})

describe('the list of nodes', () => {
  const ids = ['!a0cb0001', '!a0cb0002', '!a0cb0003', '!a0cb0004', '!a0cb0005', '!a0cb0006']
  const node = (nodeId: string, lastHeard: number, longName = nodeId): Node =>
    Object({ nodeNum: Number.parseInt(nodeId.slice(1), 16), nodeId, longName, lastHeard })
  let stored: Node[]
  let asked: string[]
  let stream: Stream
  let unmount: (() => void)[]

  beforeEach(async () => {
    vi.useFakeTimers()
    stored = ids.map((id, n) => node(id, 100 - n))
    asked = []
    serve((path, init) => {
      if (path === '/api/auth/status') return Response.json(statusOf(1))
      if (path.startsWith('/api/events')) {
        const { stream: opened, response } = createStream(init)
        stream = opened
        return response
      }
      asked.push(path)
      const [, num] = /^\/api\/nodes\/(\d+)$/.exec(path) ?? []
      if (num !== undefined) {
        const found = stored.find(({ nodeNum }) => nodeNum === Number(num))
        return found === undefined ? Response.json({ code: 'not_found' }, { status: 404 }) : Response.json(found)
      }
      const etag = JSON.stringify(stored.length)
      if (new Headers(init.headers).get('if-none-match') === etag) return new Response(null, { status: 304 })
      return path === '/api/nodes' ? Response.json(stored, { headers: { etag } }) : Response.json({}, { status: 404 })
    })
    signInAs(1)
    unmount = [mountHook(NodeKeeper).unmount, mountHook(useNodes).unmount, keepLive()]
    await pass(100)
    await stream.say(': beat\n\n')
    await pass(2000)
    asked = []
  })
  afterEach(async () => {
    for (const each of unmount) each()
    await pass(100)
    signInAs(null)
    forgetNodes()
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  const tellOf = async (...told: string[]) => {
    const nums = told.map((id) => Number.parseInt(id.slice(1), 16))
    await stream.say(nums.map((nodeNum, n) => eventText(String(n), 'node', { nodeNum })).join(''))
    await pass(2000)
  }

  test('a node that is heard is loaded alone, and moves to the top', async () => {
    stored = stored.map((each) => (each.nodeId === ids[4] ? node(each.nodeId, 200, 'Far Hill') : each))
    await tellOf('!a0cb0005')
    expect(asked).toStrictEqual(['/api/nodes/2697658373'])
    expect(nodes.value?.map(({ nodeId }) => nodeId)).toStrictEqual([ids[4], ...ids.toSpliced(4, 1)])
    expect(nodeByNum(0xa0cb0005)?.longName).toBe('Far Hill')
  })

  test('when more than four changed at once, or one is gone, the list is loaded', async () => {
    stored = stored.slice(1)
    // The first is requested before the others are reported.
    await tellOf(...ids.toReversed())
    expect(asked).toStrictEqual(['/api/nodes/2697658374', '/api/nodes'])
    expect(nodes.value?.map(({ nodeId }) => nodeId)).toStrictEqual(ids.slice(1))
    stored = stored.slice(1)
    asked = []
    await tellOf('!a0cb0002')
    expect(asked).toStrictEqual(['/api/nodes/2697658370', '/api/nodes'])
    expect(nodes.value?.map(({ nodeId }) => nodeId)).toStrictEqual(ids.slice(2))
  })

  test('an unchanged list stays the same object', async () => {
    const before = nodes.value
    await stream.say('event: reset\ndata: {}\n\n')
    await pass(2000)
    expect(asked).toStrictEqual(['/api/nodes'])
    expect(nodes.value).toBe(before)
  })
})
