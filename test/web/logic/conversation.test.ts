import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { held, mountHook, pass, serve } from './service.ts'
import { type Conversation, useConversation, type Wanted } from '../../../src/web/state/messages/conversation.ts'
import type { Message } from '../../../src/web/state/mesh/nodes.ts'

const unmounts: (() => void)[] = []
/** The ids of all messages of the service, and the text of each. */
let stored: number[]
let state: string
let asked: string[]

beforeEach(() => {
  vi.useFakeTimers()
  stored = []
  state = 'sent'
  asked = []
  serve((path) => {
    asked.push(path)
    return page(path)
  })
})
afterEach(() => {
  for (const unmount of unmounts.splice(0)) unmount()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const message = (id: number): Message => Object({ id, text: `text ${id}`, deliveryState: state })

/** As `GET /api/messages` answers: the newest first. */
function page(path: string): Response {
  const query = new URL(path, 'https://mesh.example.org').searchParams
  const before = Number(query.get('before') ?? Infinity)
  const limit = Number(query.get('limit'))
  const found = stored.toSorted((a, b) => b - a).filter((id) => id < before)
  const messages = found.slice(0, limit).map(message)
  return Response.json({ messages, nextBefore: found.length > limit ? messages.at(-1)?.id : null })
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

const NEWEST: Wanted = { channel: '0', partner: null, q: '', from: null, range: null }

async function open(wanted = NEWEST): Promise<() => Conversation> {
  const { current, unmount } = mountHook(() => useConversation(wanted))
  unmounts.push(unmount)
  await pass(100)
  return current
}
const idsOf = (conversation: () => Conversation) => conversation().messages?.map(({ id }) => id)

test('it shows the newest in chronological order, and earlier ones stay once they were loaded', async () => {
  stored = range(1, 150)
  const conversation = await open()
  expect([idsOf(conversation), conversation().hasOlder]).toStrictEqual([range(91, 150), true])
  conversation().older()
  await pass(50)
  expect(idsOf(conversation)).toStrictEqual(range(31, 150))
  stored.push(151)
  await pass(4000)
  expect(idsOf(conversation)).toStrictEqual(range(31, 151))
  conversation().older()
  await pass(50)
  expect([idsOf(conversation), conversation().hasOlder]).toStrictEqual([range(1, 151), false])
  expect(asked[0]).toBe('/api/messages?limit=60&channel=0')
})

test('an unchanged message stays the same object, a changed one does not', async () => {
  stored = [1, 2]
  const conversation = await open()
  const before = conversation().messages
  stored = [1, 2, 3]
  await pass(4000)
  const after = conversation().messages
  expect(after?.map((each, n) => each === before?.[n])).toStrictEqual([true, true, false])
  state = 'delivered'
  await pass(4000)
  expect(conversation().messages?.map(({ deliveryState }) => deliveryState)).toStrictEqual(Array(3).fill('delivered'))
})

test('after more than a page of new messages it starts over, without a gap', async () => {
  stored = range(1, 70)
  const conversation = await open()
  expect(idsOf(conversation)).toStrictEqual(range(11, 70))
  stored = range(1, 200)
  await pass(4000)
  expect(idsOf(conversation)).toStrictEqual(range(141, 200))
  conversation().older()
  await pass(50)
  expect(idsOf(conversation)).toStrictEqual(range(81, 200))
})

test('earlier messages requested before it started over are not added above the gap', async () => {
  stored = range(1, 150)
  const conversation = await open()
  const late = held<Response>()
  const older = page('/api/messages?limit=60&before=91')
  serve((path) => (path.includes('before=91') ? late.promise : page(path)))
  conversation().older()
  await pass(0)
  stored = range(1, 400)
  await pass(4000)
  expect(idsOf(conversation)).toStrictEqual(range(341, 400))
  late.resolve(older)
  await pass(50)
  expect(idsOf(conversation)).toStrictEqual(range(341, 400))
})

test('a sent message is shown at once, and not twice when the service reports it', async () => {
  stored = [1, 2]
  const conversation = await open()
  conversation().add(message(3))
  await pass(0)
  expect(idsOf(conversation)).toStrictEqual([1, 2, 3])
  stored = [1, 2, 3]
  await pass(4000)
  expect(idsOf(conversation)).toStrictEqual([1, 2, 3])
})

test('a linked message is searched further up to a limit, and can be continued from there', async () => {
  stored = range(1, 2000)
  const conversation = await open()
  expect((await run(conversation().seek(({ id }) => id === 1700)))?.id).toBe(1700)
  expect(asked).toHaveLength(2)
  expect(await run(conversation().seek(({ id }) => id === 3))).toBeNull()
  expect(asked).toHaveLength(6)
  expect((await run(conversation().seek(({ id }) => id === 3)))?.id).toBe(3)
  expect(await run(conversation().seek(({ id }) => id === 0))).toBeNull()
  expect(idsOf(conversation)).toStrictEqual(range(1, 2000))
})

test('of many messages only the latest stay while they are followed; the earlier ones are loaded again', async () => {
  stored = range(1, 700)
  const conversation = await open()
  const kept = async () => {
    conversation().forgetOlder()
    await pass(50)
    return idsOf(conversation)
  }
  await run(conversation().seek(({ id }) => id === 300))
  expect(idsOf(conversation)).toStrictEqual(range(141, 700))
  expect([await kept(), conversation().hasOlder]).toStrictEqual([range(501, 700), true])
  conversation().older()
  await pass(50)
  expect(idsOf(conversation)).toStrictEqual(range(441, 700))
  expect(await kept()).toStrictEqual(range(441, 700))
  // What is printed is wanted as a whole.
  while (await run(conversation().loadNext()));
  expect(await kept()).toStrictEqual(range(1, 700))
})

test('with more than can be kept, new messages wait until the newest are wanted again', async () => {
  stored = range(1, 11_000)
  const conversation = await open()
  while (await run(conversation().loadNext()));
  state = 'delivered'
  stored.push(11_001)
  await pass(4000)
  expect([idsOf(conversation)?.at(-1), conversation().hasNewer]).toStrictEqual([11_000, true])
  expect(conversation().messages?.at(-1)?.deliveryState).toBe('delivered')
  await run(conversation().restart())
  expect([idsOf(conversation), conversation().hasNewer]).toStrictEqual([range(10_942, 11_001), false])
})

/** Advances the clock until it is done. */
async function run<T>(work: Promise<T>): Promise<T> {
  await pass(50)
  return work
}
