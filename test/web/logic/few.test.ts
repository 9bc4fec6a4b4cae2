import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createStream, eventText, mountHook, pass, serve, signInAs, type Stream } from './service.ts'
import '../../../src/web/state/mesh/few.ts'
import '../../../src/web/state/messages/senders.ts'
import { online, reconnects } from '../../../src/web/api.ts'
import { useFoundNodes } from '../../../src/web/state/mesh/find-nodes.ts'
import { keepLive } from '../../../src/web/state/live.ts'
import { forgetNodes, nameOf, type Node, nodeByNum, NodeKeeper } from '../../../src/web/state/mesh/nodes.ts'

const named = (nodeNum: number, longName: string): Node => Object({ nodeNum, nodeId: `!${nodeNum}`, longName })

let asked: string[]
let isUp: boolean
let streams: Stream[]
beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  streams = []
  isUp = true
  signInAs(1)
  serve((path, init) => {
    if (!isUp) throw new TypeError('unreachable')
    if (path.startsWith('/api/events')) {
      const { stream, response } = createStream(init)
      streams.push(stream)
      return response
    }
    asked.push(decodeURIComponent(path))
    return Response.json([named(7, 'Hill'), named(8, 'Hut')])
  })
})
afterEach(() => {
  forgetNodes()
  signInAs(null)
  online.value = true
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

test('nodes that a page names are loaded together and only once; an unknown one is shown by its ID', async () => {
  expect([nameOf(7, '!7'), nameOf(8, '!8'), nameOf(9, '!9')]).toEqual(['!7', '!8', '!9'])
  await vi.dynamicImportSettled()
  await pass(100)
  expect([nameOf(7, '!7'), nodeByNum(8)?.longName, nameOf(9, '!9')]).toEqual(['Hill', 'Hut', '!9'])
  await pass(100)
  expect(asked).toEqual(['/api/nodes?ids=7,8,9'])
})

test('the name of a sender that comes with a message is not loaded, unless it has changed since', async () => {
  const stopLive = keepLive()
  const { unmount } = mountHook(() => NodeKeeper())
  await pass(100)
  expect(streams).toHaveLength(1)
  await streams[0]?.say(eventText('1', 'message', { fromNodeNum: 7, senderName: 'Summit' }))
  expect(nameOf(7, '!7')).toBe('Summit')
  await streams[0]?.say(eventText('2', 'node', { nodeNum: 7, changes: { lastHeard: 5 } }))
  expect(nameOf(7, '!7')).toBe('Summit')
  await pass(1000)
  expect(asked.filter((path) => path.startsWith('/api/nodes'))).toEqual([])
  await streams[0]?.say(eventText('3', 'node', { nodeNum: 7, changes: { longName: 'Hill' } }))
  expect(nameOf(7, '!7')).toBe('!7')
  await vi.dynamicImportSettled()
  await pass(100)
  expect([nameOf(7, '!7'), asked.filter((path) => path.startsWith('/api/nodes'))]).toEqual([
    'Hill',
    ['/api/nodes?ids=7'],
  ])
  unmount()
  stopLive()
})

test('names that could not be loaded come when the service is back', async () => {
  isUp = false
  expect(nameOf(7, '!7')).toBe('!7')
  await vi.dynamicImportSettled()
  await pass(100)
  isUp = true
  reconnects.value++
  await pass(100)
  expect(nameOf(7, '!7')).toBe('Hill')
})

test('the service is asked for nodes once typing has stopped; matches that begin with the words come first', async () => {
  let wanted: string | null = null
  const { current, unmount } = mountHook(() => useFoundNodes(wanted))
  await pass(1000)
  expect([current(), asked]).toEqual([null, []])
  unmount()
  wanted = 'hu'
  const typed = mountHook(() => useFoundNodes(wanted))
  await pass(100)
  expect([typed.current(), asked]).toEqual([null, []])
  await pass(1000)
  expect(typed.current()?.map(({ longName }) => longName)).toEqual(['Hut', 'Hill'])
  expect(asked).toEqual(['/api/nodes?limit=50&q=hu'])
  typed.unmount()
})
