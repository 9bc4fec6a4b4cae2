import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import {
  createStream,
  eventText as event,
  mountHook,
  pass,
  serve,
  showToAnonymous,
  signInAs,
  statusOf,
  type Stream,
} from './service.ts'
import { api } from '../../../src/web/api.ts'
import { useLoad } from '../../../src/web/state/load.ts'
import { keepLive, type LiveEvent, liveState, watchLive } from '../../../src/web/state/live.ts'

const document: EventTarget & { visibilityState: string } = Object(globalThis).document

let userId = 100
/** Streams that the page opened, how it asked for channels, and the number of its requests for the status. */
let streams: Stream[]
let asked: number
let caches: (string | undefined)[]
/** In place of a stream. */
let refusal: (() => Response) | null
let heard: LiveEvent[]
let stopWatching: () => void

let stopLive: () => void
beforeAll(() => {
  stopLive = keepLive()
})
afterAll(() => stopLive())
beforeEach(() => {
  vi.useFakeTimers()
  userId++
  streams = []
  asked = 0
  caches = []
  refusal = null
  heard = []
  stopWatching = watchLive(['node', 'message'], (event) => heard.push(event))
  serve((path, init) => {
    if (path.startsWith('/api/events')) {
      if (refusal !== null) return refusal()
      const { stream, response } = createStream(init)
      streams.push(stream)
      return response
    }
    if (path === '/api/channels') {
      caches.push(init.cache)
      return Response.json([])
    }
    asked++
    return Response.json(statusOf(userId))
  })
})
afterEach(async () => {
  signInAs(null)
  await pass(0)
  stopWatching()
  document.visibilityState = 'visible'
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

async function last(): Promise<Stream> {
  await pass(0)
  const stream = streams.at(-1)
  if (stream === undefined) throw new Error('no stream')
  return stream
}

async function open(): Promise<Stream> {
  signInAs(userId)
  const stream = await last()
  await stream.say(': beat\n\n')
  return stream
}

test('it is live with the first data, and then all data counts as outdated', async () => {
  signInAs(userId)
  const stream = await last()
  expect([liveState.value, heard]).toStrictEqual(['connecting', []])
  await stream.say(': beat\n\n')
  expect([liveState.value, heard, stream.after]).toStrictEqual(['live', [null], null])
  signInAs(null)
  expect([liveState.value, stream.signal.aborted]).toStrictEqual(['off', true])
})

test.each([1, 2, 7, 1000])(
  'events that arrive in pieces of %i bytes are each reported once, beats and others are not',
  async (size) => {
    const stream = await open()
    const node = { nodeNum: 7, longName: 'Høyden: über 9 m 📡' }
    const bytes = new TextEncoder().encode(
      `${event('1', 'node', node)}: beat\n\n${event('2', 'link', {})}${event('3', 'newer', {})}${event('4', 'message', { id: 3 })}`,
    )
    for (let at = 0; at < bytes.length; at += size) await stream.say(bytes.slice(at, at + size))
    expect(heard).toStrictEqual([null, { kind: 'node', data: node }, { kind: 'message', data: { id: 3 } }])
  },
)

test('what an event lets the page load is the latest state, not that of a replica', async () => {
  const stream = await open()
  await pass(10_000)
  const { current, unmount } = mountHook(() => useLoad(() => api.channels.$get(), [], undefined, ['node']))
  await pass(1000)
  await stream.say(event('5', 'node', { nodeNum: 7 }))
  await stream.say('event: reset\nid: 6\ndata: {}\n\n')
  await pass(10_000)
  await current().reload()
  unmount()
  expect(caches.splice(0)).toStrictEqual([undefined, 'no-cache', 'no-cache', undefined])

  // The same if a list took the event itself.
  const taking = mountHook(() =>
    useLoad(
      () => api.channels.$get(),
      [],
      undefined,
      ['node'],
      (heard) => heard !== null,
    ),
  )
  await pass(1000)
  await stream.say(event('7', 'node', { nodeNum: 7 }))
  await taking.current().reload()
  taking.unmount()
  expect(caches).toStrictEqual([undefined, 'no-cache'])
})

test('people without an account load from the caches on the way, also after an event', async () => {
  await pass(60_000)
  showToAnonymous(true)
  const stream = await last()
  await stream.say(': beat\n\n')
  const { unmount } = mountHook(() => useLoad(() => api.channels.$get(), [], undefined, ['node']))
  await pass(1000)
  await stream.say(event('8', 'node', { nodeNum: 7 }))
  await pass(1000)
  unmount()
  expect([caches.length > 1, new Set(caches)]).toStrictEqual([true, new Set([undefined])])
})

test('a stream that ends is reopened at its position, and reports nothing twice', async () => {
  const stream = await open()
  await stream.say(event('41', 'node', { nodeNum: 7 }))
  await stream.end()
  expect([liveState.value, asked]).toStrictEqual(['cut', 1])
  await pass(1000)
  const again = await last()
  expect([streams.length, again.after, liveState.value]).toStrictEqual([2, '41', 'cut'])
  await again.say(event('42', 'node', { nodeNum: 8 }))
  expect([liveState.value, heard.slice(1)]).toStrictEqual([
    'live',
    [
      { kind: 'node', data: { nodeNum: 7 } },
      { kind: 'node', data: { nodeNum: 8 } },
    ],
  ])
})

test('a hidden page closes its stream, and resumes at its position', async () => {
  const stream = await open()
  await stream.say(event('7', 'node', { nodeNum: 7 }))
  document.visibilityState = 'hidden'
  document.dispatchEvent(new Event('visibilitychange'))
  expect([liveState.value, stream.signal.aborted]).toStrictEqual(['off', true])
  await pass(120_000)
  expect(streams).toHaveLength(1)
  document.visibilityState = 'visible'
  document.dispatchEvent(new Event('visibilitychange'))
  expect((await last()).after).toBe('7')
})

test('another user starts without a position', async () => {
  const stream = await open()
  await stream.say(event('7', 'node', { nodeNum: 7 }))
  signInAs(++userId)
  expect([(await last()).after, streams.length]).toStrictEqual([null, 2])
})

test('after three failures in a row pages poll, and the stream is still tried at growing intervals', async () => {
  let tries = 0
  refusal = () => {
    tries++
    throw new TypeError('fetch failed')
  }
  signInAs(userId)
  await pass(0)
  expect([tries, liveState.value]).toStrictEqual([1, 'cut'])
  await pass(2000)
  expect([tries, liveState.value]).toStrictEqual([2, 'cut'])
  await pass(4000)
  expect([tries, liveState.value]).toStrictEqual([3, 'polling'])
  await pass(600_000)
  // Each pause is at most 30 s, and at least half of that.
  expect(tries).toBeGreaterThanOrEqual(20)
  expect(tries).toBeLessThanOrEqual(45)
  refusal = null
  await pass(30_000)
  await (await last()).say(': beat\n\n')
  expect(liveState.value).toBe('live')
})

test('the first answer after an outage reopens the stream at once, whoever asked', async () => {
  const first = await open()
  let isAway = true
  let returnsAtNextTry = false
  serve((path, init) => {
    const isStream = path.startsWith('/api/events')
    if (isAway) {
      // Between an attempt and the question that follows it.
      isAway = !(isStream && returnsAtNextTry)
      throw new TypeError('unreachable')
    }
    if (!isStream) return Response.json(statusOf(userId))
    const { stream, response } = createStream(init)
    streams.push(stream)
    return response
  })
  await first.end()
  // By now the pauses are the longest ones.
  await pass(10 * 60_000)
  expect([streams.length, liveState.value]).toStrictEqual([1, 'polling'])
  returnsAtNextTry = true
  for (let second = 0; second < 30; second++) {
    await pass(1000)
    // None waits for the end of another pause.
    expect(streams).toHaveLength(isAway ? 1 : 2)
  }
  expect(isAway).toBe(false)
})

test('a user with too many streams polls at once, and waits as long as the answer says', async () => {
  let tries = 0
  refusal = () => {
    tries++
    return Response.json({ code: 'rate_limited' }, { status: 429, headers: { 'retry-after': '60' } })
  }
  signInAs(userId)
  await pass(59_000)
  expect([tries, liveState.value]).toStrictEqual([1, 'polling'])
  await pass(1500)
  expect(tries).toBe(2)
})

test('a stream without a keep-alive for 40 s is dead; one with keep-alives is not', async () => {
  const stream = await open()
  for (let beat = 0; beat < 8; beat++) {
    await pass(15_000)
    await stream.say(': beat\n\n')
  }
  expect([streams.length, stream.signal.aborted]).toStrictEqual([1, false])
  await pass(39_000)
  expect(stream.signal.aborted).toBe(false)
  await pass(3000)
  expect([streams.length, stream.signal.aborted]).toStrictEqual([2, true])
})

test('reset marks all data as outdated; access requests the status', async () => {
  const stream = await open()
  await stream.say('event: reset\ndata: {}\n\n')
  expect([heard, asked]).toStrictEqual([[null, null], 0])
  await stream.say('event: access\ndata: {}\n\n')
  expect(asked).toBe(1)
})

test('an anonymous visitor gets a new stream while public access shows something, and polls when too many are open', async () => {
  const stream = await open()
  await stream.say(event('7', 'node', { nodeNum: 7 }))
  showToAnonymous(true)
  const own = await last()
  expect([streams.length, own.after]).toStrictEqual([2, null])
  await own.say(event('x-1', 'node', { nodeNum: 8 }))
  expect([liveState.value, heard.at(-1)]).toStrictEqual(['live', { kind: 'node', data: { nodeNum: 8 } }])
  document.visibilityState = 'hidden'
  document.dispatchEvent(new Event('visibilitychange'))
  expect([liveState.value, own.signal.aborted]).toStrictEqual(['off', true])
  refusal = () => Response.json({ code: 'rate_limited' }, { status: 429, headers: { 'retry-after': '60' } })
  document.visibilityState = 'visible'
  document.dispatchEvent(new Event('visibilitychange'))
  await pass(0)
  expect(liveState.value).toBe('polling')
  showToAnonymous(false)
  expect(liveState.value).toBe('off')
})

test('an anonymous visitor’s list has a text that was heard while an answer from a cache was loading', async () => {
  showToAnonymous(true)
  const texts: string[] = []
  let kept: { at: number; texts: readonly string[] } = { at: -Infinity, texts: [] }
  const load = async () => {
    if (Date.now() - kept.at > 10_000) kept = { at: Date.now(), texts: [...texts] }
    return kept.texts
  }
  const { current, unmount } = mountHook(() => useLoad(load, [], 4000, ['message'], () => false))
  await pass(100)
  const own = await last()
  await own.say(': beat\n\n')
  texts.push('on the hill')
  await own.say(event('x-1', 'message', { text: 'on the hill' }))
  await pass(1000)
  expect(current().data.value).toEqual([])
  await pass(11_000)
  expect(current().data.value).toEqual(['on the hill'])
  unmount()
})

test('a page about one node asks again after its events alone, and after one that names no node', async () => {
  const stream = await open()
  let loads = 0
  const { unmount } = mountHook(() => useLoad(async () => ++loads, [], 60_000, ['node'], null, '!00000007'))
  const loadsAfter = async (data: object) => {
    await stream.say(event('1', 'node', data))
    await pass(10_000)
    return loads
  }
  await pass(100)
  const before = loads
  expect(await loadsAfter({ nodeNum: 8 })).toBe(before)
  expect(await loadsAfter({ nodeNum: 7 })).toBe(before + 1)
  expect(await loadsAfter({})).toBe(before + 2)
  unmount()
})
