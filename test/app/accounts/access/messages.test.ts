import { afterEach, beforeEach, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { MESSAGE_TRAITS } from '../../../../src/shared/mesh/message-traits.ts'
import { listMessages } from '../../../../src/app/mesh/messages/messages.ts'
import { BROADCAST } from '../../../../src/meshtastic/node-id.ts'
import { messages } from '../../../../src/db/schema.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { type Client, START } from '../../../support/app.ts'
import { createTestMesh, FAR, LOCAL, myInfo, packet, store, type TestMesh, text } from '../../../support/mesh/mesh.ts'

let mesh: TestMesh
let admin: Client
let anna: Client & { id: number }
beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
  anna = await mesh.app.user('anna')
  await store(mesh.ingest, [
    myInfo,
    packet(text('on the first'), { channel: 0 }),
    packet(text('on the second'), { channel: 2 }),
    packet(text('to one on the first'), { channel: 0, to: LOCAL }),
    packet(text('sealed'), { channel: 0, to: LOCAL, pkiEncrypted: true }),
  ])
})
afterEach(() => mesh.app.close())

const NONE = { read: false, write: false }
const READ = { read: true, write: false }
const ALL_WORDS = ['sealed', 'to one on the first', 'on the second', 'on the first']

const give = (channels: unknown, direct = NONE) =>
  admin.send('PUT', `/api/users/${anna.id}/permissions`, { permissions: {}, scope: { channels, direct } })

async function words(client: Client, query = ''): Promise<string[]> {
  const answer = await client.send('GET', `/api/messages${query}`)
  const { messages } = Object(await answer.json())
  return messages.map((message: { text: string }) => message.text)
}

test.each([
  ['all', NONE, ['on the second', 'on the first']],
  ['all', READ, ALL_WORDS],
  [{ read: [0], write: [] }, NONE, ['on the first']],
  [{ read: [2], write: [] }, READ, ['sealed', 'to one on the first', 'on the second']],
  [{ read: [], write: [] }, NONE, []],
])('with %j and direct messages %j the list has %j', async (channels, direct, expected) => {
  await give(channels, direct)
  expect(await words(anna)).toEqual(expected)
  expect(await words(anna, '?q=o')).toEqual(expected.filter((said) => said.includes('o')))
  expect(await words(anna, '?channel=2')).toEqual(expected.filter((said) => said.includes('second')))
  expect(await words(anna, `?with=${FAR}`)).toEqual(expected.filter((said) => /sealed|to one/.test(said)))
  expect(await words(admin)).toEqual(ALL_WORDS)
})

test('a page is full and says where the next one starts, however many messages are left out in between', async () => {
  await give({ read: [0], write: [] })
  await store(mesh.ingest, [packet(text('again'), { channel: 0 }), packet(text('hidden'), { channel: 2 })])
  const first = Object(await (await anna.send('GET', '/api/messages?limit=1')).json())
  expect(first.messages.map((message: { text: string }) => message.text)).toEqual(['again'])
  expect(await words(anna, `?limit=1&before=${first.nextBefore}`)).toEqual(['on the first'])
})

test('the since filter holds even if thousands of later messages are hidden', async () => {
  await give({ read: [0], write: [] })
  const { store: database } = mesh.app
  const said = (index: number, timestamp: number) => ({
    packetId: 0x70000000 + index,
    fromNodeNum: FAR,
    toNodeNum: BROADCAST,
    channel: 2,
    text: 'hidden',
    timestamp,
    direction: 'in' as const,
  })
  const later = START + 3_600_000
  for (let at = 0; at < 5100; at += 300) {
    await database.db.insert(messages).values(Array.from({ length: 300 }, (_, index) => said(at + index, later)))
  }
  expect(await words(anna, `?since=${later}`)).toEqual([])
  expect(await words(anna)).toEqual(['on the first'])
})

test('the receptions of an invisible message are answered as if it did not exist', async () => {
  await give({ read: [0], write: [] })
  const outcomes: string[] = []
  for (const id of [1, 2, 3, 4, 5]) outcomes.push(await outcomeOf(anna.send('GET', `/api/messages/${id}/receptions`)))
  const none = '404 message_not_found'
  expect(outcomes).toEqual(['200', none, none, none, none])
})

const HIDDEN = FAR + 1

test('the pages together have all visible messages, newest first, and nothing else', async () => {
  const { app } = mesh
  const said = fc.record({
    channel: fc.integer({ min: 0, max: 3 }),
    isDirect: fc.boolean(),
    word: fc.constantFrom('abc', 'xyz', 'abc 52.5200, 13.4050'),
    /** Reacts to the message so many before it. */
    reactsTo: fc.option(fc.integer({ min: 1, max: 5 }), { nil: 0 }),
    isHidden: fc.boolean(),
    isFailed: fc.boolean(),
  })
  const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 4 }))
  const channels = fc.oneof(
    fc.constant('all' as const),
    numbers.map((read) => ({ read, write: [] })),
  )
  const query = fc.record({
    limit: fc.integer({ min: 1, max: 5 }),
    q: fc.constantFrom(undefined, 'abc', 'b'),
    channel: fc.constantFrom(undefined, undefined, 1),
    with: fc.constantFrom(undefined, undefined, LOCAL),
    from: fc.constantFrom(undefined, undefined, FAR, HIDDEN),
    direct: fc.constantFrom(undefined, undefined, true as const),
    also: fc.constantFrom(undefined, undefined, ['b', 'c'], ['5']),
    without: fc.constantFrom(undefined, undefined, ['y', '13.4']),
    has: fc.constantFrom(undefined, ...MESSAGE_TRAITS.map((trait) => [trait]), ['reaction' as const, 'error' as const]),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(said, { maxLength: 30 }),
      channels,
      fc.boolean(),
      query,
      async (all, read, direct, asked) => {
        app.store.sqlite.exec('delete from messages')
        const insert = app.store.sqlite.prepare(`insert into messages
        (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction, emoji, reply_id, routing_error)
        values (?, ?, ?, ?, ?, 1, 'in', ?, ?, ?)`)
        const ids = all.map(({ channel, isDirect, word, reactsTo, isHidden, isFailed }, index) =>
          Number(
            insert.run(
              index + 1,
              isHidden ? HIDDEN : FAR,
              isDirect ? LOCAL : BROADCAST,
              channel,
              word,
              reactsTo > 0 ? 1 : 0,
              reactsTo > 0 ? index + 1 - reactsTo : null,
              isFailed ? 'NO_ACK' : null,
            ).lastInsertRowid,
          ),
        )
        const isSeen = ({ channel, isDirect, isHidden }: (typeof all)[number]) =>
          !isHidden && (isDirect ? direct : read === 'all' || read.read.includes(channel))
        const expected = all.flatMap((message, index) => {
          const { channel, isDirect, word, isFailed } = message
          const has = {
            position: word.includes('52'),
            // A reaction that is not seen is not to be noticed either.
            reaction: all.some((other, at) => other.reactsTo > 0 && at - other.reactsTo === index && isSeen(other)),
            error: isFailed,
          }
          const isAsked =
            (asked.q === undefined || word.includes(asked.q)) &&
            (asked.channel === undefined || asked.channel === channel) &&
            (asked.with === undefined || isDirect) &&
            asked.from !== HIDDEN &&
            (asked.direct === undefined || isDirect) &&
            (asked.also ?? []).every((part) => word.includes(part)) &&
            !(asked.without ?? []).some((part) => word.includes(part)) &&
            (asked.has ?? []).every((trait) => has[trait])
          return isSeen(message) && isAsked ? [ids[index]] : []
        })
        const scope = { channels: read, direct: { read: direct, write: false }, hidden: new Set([HIDDEN]) }
        const found: unknown[] = []
        for (let before: number | undefined; ;) {
          const page = JSON.parse(await listMessages(app.store, { ...asked, before }, scope))
          found.push(...page.messages.map(({ id }: { id: number }) => id))
          if (page.nextBefore === null) break
          before = page.nextBefore
        }
        expect(found).toEqual(expected.toReversed())
      },
    ),
    { numRuns: 150 },
  )
})
