import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { mountHook, pass, serve, signInAs } from './service.ts'
import {
  forgetInbox,
  inbox,
  InboxKeeper,
  keepReadMarks,
  markRead,
  muted,
  readUpTo,
  setMuted,
  unread,
  unreadTotal,
} from '../../../src/web/state/messages/inbox.ts'
import { ownName } from '../../../src/web/api.ts'
import { BROADCAST, type Message } from '../../../src/web/state/mesh/nodes.ts'

const { localStorage } = Object(globalThis)
let listeners: Map<string, (event: unknown) => void>
let unmount: () => void
let stored: Message[]

beforeAll(() => {
  listeners = new Map()
  vi.stubGlobal('addEventListener', (kind: string, listener: () => void) => listeners.set(kind, listener))
  keepReadMarks()
})
beforeEach(() => {
  vi.useFakeTimers()
  stored = []
  serve(() => Response.json({ messages: stored.toSorted((a, b) => b.id - a.id), nextBefore: null }))
  for (const id of [1, 2]) localStorage.removeItem(ownName(`read:${id}`))
  unmount = () => {}
})
afterEach(() => {
  unmount()
  signInAs(null)
  forgetInbox()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const message = (id: number, fields: Partial<Message> = {}): Message =>
  Object({
    id,
    toNodeNum: BROADCAST,
    channel: 0,
    direction: 'in',
    emoji: false,
    fromNodeId: '!a',
    toNodeId: '!b',
    ...fields,
  })
const direct = { toNodeNum: 1 } as const

/** A user for whom `read` is the newest message so far. */
async function openAs(id: number, read: Message[]): Promise<void> {
  stored = read
  signInAs(id)
  ;({ unmount } = mountHook(InboxKeeper))
  await pass(100)
}
async function arrive(...messages: Message[]): Promise<void> {
  stored = [...stored, ...messages]
  await pass(10_000)
}

test('a new user has nothing unread; later messages are counted by conversation', async () => {
  await openAs(1, [message(1), message(2)])
  expect([unreadTotal.value, inbox.value?.map(({ id }) => id)]).toStrictEqual([0, [2, 1]])
  await arrive(message(3), message(4, { channel: 2 }), message(5, direct), message(6, direct))
  expect([...unread.value]).toStrictEqual([
    ['with=!a', 2],
    ['channel=2', 1],
    ['channel=0', 1],
  ])
  expect(unreadTotal.value).toBe(4)
})

test('sent messages and reactions are never unread', async () => {
  await openAs(1, [message(1)])
  await arrive(message(2, { direction: 'out' }), message(3, { emoji: true }), message(4))
  expect([...unread.value]).toStrictEqual([['channel=0', 1]])
})

test('a conversation is read up to a message and never less; the view of all reads all of them', async () => {
  await openAs(1, [message(1)])
  await arrive(message(2), message(3), message(4, { channel: 2 }), message(5, direct))
  markRead('channel=0', 3)
  markRead('channel=0', 2)
  expect([readUpTo('channel=0'), readUpTo('channel=2'), unreadTotal.value]).toStrictEqual([3, 1, 2])
  markRead(null, 4)
  expect([...unread.value]).toStrictEqual([['with=!a', 1]])
  markRead(null, 3)
  expect(readUpTo(null)).toBe(4)
})

test('a muted conversation is not counted, in any tab of this browser, until that is ended', async () => {
  await openAs(1, [message(1)])
  setMuted('channel=2', true)
  await arrive(message(2), message(3, { channel: 2 }))
  expect([[...unread.value], unreadTotal.value]).toStrictEqual([[['channel=0', 1]], 1])
  markRead('channel=0', 2)
  unmount()
  await openAs(2, stored)
  expect(muted.value.size).toBe(0)
  unmount()
  await openAs(1, stored)
  expect([...muted.value]).toStrictEqual(['channel=2'])
  setMuted('channel=2', false)
  expect([...unread.value]).toStrictEqual([['channel=2', 1]])
})

test('marks persist for the same user in this browser, are not shared with others, and follow other tabs', async () => {
  await openAs(1, [message(1)])
  await arrive(message(2), message(3))
  markRead('channel=0', 2)
  unmount()
  await openAs(2, stored)
  expect(unreadTotal.value).toBe(0)
  unmount()
  await openAs(1, stored)
  expect([...unread.value]).toStrictEqual([['channel=0', 1]])
  localStorage.setItem(ownName('read:1'), JSON.stringify({ from: 3, read: {} }))
  listeners.get('storage')?.({ key: ownName('read:2') })
  expect(unreadTotal.value).toBe(1)
  listeners.get('storage')?.({ key: ownName('read:1') })
  expect(unreadTotal.value).toBe(0)
})

test.each([
  'no JSON',
  'null',
  '7',
  '{}',
  '{"from":"1","read":{}}',
  '{"from":1,"read":{"channel=0":"x"}}',
  '{"from":1,"read":{},"muted":7}',
])('invalid stored marks are ignored: %s', async (text) => {
  localStorage.setItem(ownName('read:1'), text)
  await openAs(1, [message(1), message(2)])
  expect(unreadTotal.value).toBe(0)
  await arrive(message(3))
  expect(unreadTotal.value).toBe(1)
})
