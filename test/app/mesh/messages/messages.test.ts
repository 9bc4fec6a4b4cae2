import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import {
  StoreAndForward_RequestResponse as Word,
  StoreAndForwardSchema,
} from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../../src/meshtastic/node-id.ts'
import { auditRows, type Client, START } from '../../../support/app.ts'
import {
  createTestMesh,
  FAR,
  LOCAL,
  myInfo,
  packet,
  seconds,
  store,
  type TestMesh,
  text,
} from '../../../support/mesh/mesh.ts'

let mesh: TestMesh
let admin: Client

beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
})
afterEach(() => mesh.app.close())

type Page = { messages: Record<string, unknown>[]; nextBefore: number | null }

async function list(query = ''): Promise<Page> {
  const answer = await admin.send('GET', `/api/messages${query}`)
  expect(answer.status).toBe(200)
  return Object(await answer.json())
}

const texts = ({ messages }: Page) => messages.map((message) => message['text'])

describe('the first page', () => {
  it('has an ETag that a new message changes; other pages have none', async () => {
    const ask = async (query: string, etag = '') =>
      mesh.app.request(`/api/messages${query}`, { headers: { cookie: admin.cookie ?? '', 'if-none-match': etag } })
    await store(mesh.ingest, [packet(text('one'))])
    const etag = (await ask('')).headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[^"]+"$/)
    const unchanged = await ask('', etag)
    expect([unchanged.status, await unchanged.text()]).toStrictEqual([304, ''])
    await store(mesh.ingest, [packet(text('two'))])
    const changed = await ask('', etag)
    expect([changed.status, texts(Object(await changed.json()))]).toStrictEqual([200, ['two', 'one']])
    expect((await ask('?limit=1', etag)).status).toBe(200)
    expect((await ask('?channel=0')).headers.get('etag')).toBeNull()
  })
})

describe('received texts', () => {
  it('show how they were received', async () => {
    await store(mesh.ingest, [
      packet(text('über den Hügel 👍', { replyId: 5, emoji: 1 }), {
        id: 77,
        to: LOCAL,
        channel: 2,
        hopLimit: 1,
        rxSnr: -3.5,
        rxRssi: -99,
        rxTime: seconds(START - 60_000),
        pkiEncrypted: true,
      }),
    ])
    expect(await list()).toStrictEqual({
      messages: [
        {
          id: 1,
          packetId: 77,
          fromNodeNum: FAR,
          fromNodeId: '!a0cb0002',
          toNodeNum: LOCAL,
          toNodeId: '!a0cb0001',
          channel: 2,
          text: 'über den Hügel 👍',
          replyId: 5,
          emoji: true,
          timestamp: START - 60_000,
          rxSnr: -3.5,
          rxRssi: -99,
          hopsAway: 2,
          viaMqtt: false,
          pkiEncrypted: true,
          keyDoubt: null,
          signed: false,
          conflicting: false,
          direction: 'in',
          deliveryState: null,
          routingError: null,
          sentBy: null,
          radio: null,
        },
      ],
      nextBefore: null,
    })
  })

  it('have the server’s time if the radio’s is wrong', async () => {
    const times = [0, 1_000_000_000, seconds(START + 11 * 60_000), seconds(START + 60_000)]
    await store(
      mesh.ingest,
      times.map((rxTime) => packet(text('x'), { rxTime })),
    )
    expect((await list()).messages.map((message) => message['timestamp'])).toStrictEqual([START, START, START, START])
  })

  it('are one message with the fewest hops, also after a restart', async () => {
    const copy = (hopLimit: number, rxSnr: number) => packet(text('once'), { id: 80, hopLimit, rxSnr })
    await store(mesh.ingest, [copy(1, -9)])
    await store(mesh.ingest, [copy(0, -12), copy(2, -1)], { at: START + 1000 })
    expect((await list()).messages).toMatchObject([{ hopsAway: 1, rxSnr: -1, timestamp: START }])
    const restarted = createIngest(mesh.app.store)
    expect(await store(restarted, [copy(1, -8), copy(3, 7)], { at: START + 2000 })).toStrictEqual([])
    expect((await list()).messages).toMatchObject([{ hopsAway: 0, rxSnr: 7, timestamp: START }])
  })

  it('are one message even if two processes store at once, and a sent one is not changed', async () => {
    const other = createIngest(mesh.app.store)
    await store(other, [packet(text('before'), { from: 7, id: 1 })])
    await store(mesh.ingest, [
      packet(text('once'), { id: 81, hopLimit: 2 }),
      packet(text('sent'), { id: 82, hopLimit: 2 }),
    ])
    mesh.app.store.sqlite.exec("update messages set direction = 'out', hops_away = null where packet_id = 82")
    await store(other, [packet(text('once'), { id: 81, hopLimit: 1 }), packet(text('sent'), { id: 82, hopLimit: 1 })])
    expect((await list()).messages).toMatchObject([
      { packetId: 82, direction: 'out', hopsAway: null },
      { packetId: 81, hopsAway: 1 },
      { packetId: 1 },
    ])
  })

  it('may share an id between senders, and are always new without an id', async () => {
    await store(mesh.ingest, [packet(text('a'), { id: 5 }), packet(text('b'), { id: 5, from: 9 })])
    await store(mesh.ingest, [packet(text('c'), { id: 0 })], { at: START + 1 })
    await store(mesh.ingest, [packet(text('d'), { id: 0 })], { at: START + 2 })
    const page = await list()
    expect(texts(page)).toStrictEqual(['d', 'c', 'b', 'a'])
    expect(page.messages.map((message) => message['packetId'])).toStrictEqual([0, 0, 5, 5])
  })

  it('keep every character, also NUL', async () => {
    const odd = 'a\0b"\\\u2028\u{1F44D}\r\n'
    await store(mesh.ingest, [packet(text(odd))])
    expect(texts(await list())).toStrictEqual([odd])
  })

  it('are ours when our radio reports them, but not when they are heard or come by MQTT', async () => {
    await store(mesh.ingest, [myInfo])
    await store(mesh.ingest, [
      packet(text('ours'), { from: LOCAL, rxRssi: undefined }),
      packet(text('fake'), { from: LOCAL }),
      packet(text('flagged as by MQTT'), { from: LOCAL, viaMqtt: true }),
      packet(text('by MQTT'), { from: LOCAL, viaMqtt: true, rxRssi: undefined }),
    ])
    expect((await list()).messages).toMatchObject([{ text: 'ours', direction: 'out', hopsAway: null }])
  })

  it('are stored once when a store & forward server repeats them', async () => {
    const again = (words: string, rr: Word) =>
      toBinary(
        StoreAndForwardSchema,
        create(StoreAndForwardSchema, { rr, variant: { case: 'text', value: new TextEncoder().encode(words) } }),
      )
    const replay = (words: string, rr: Word) => ({ portnum: PortNum.STORE_FORWARD_APP, payload: again(words, rr) })
    await store(mesh.ingest, [packet(text('heard'), { id: 90 })])
    await store(mesh.ingest, [
      packet(replay('heard', Word.ROUTER_TEXT_BROADCAST), { id: 90, to: LOCAL }),
      packet(replay('missed', Word.ROUTER_TEXT_BROADCAST), { id: 91, to: LOCAL, rxTime: seconds(START - 9000) }),
      packet(replay('for you', Word.ROUTER_TEXT_DIRECT), { id: 92, to: LOCAL }),
    ])
    expect((await list()).messages).toMatchObject([
      { text: 'for you', toNodeNum: LOCAL },
      { text: 'missed', toNodeNum: BROADCAST, timestamp: START },
      { text: 'heard' },
    ])
  })
})

describe('GET /api/messages', () => {
  beforeEach(async () => {
    const words = ['one', 'two', 'three', 'four', 'FIVE%']
    for (const [index, word] of words.entries()) {
      await store(mesh.ingest, [packet(text(word), { channel: index % 2 })], { at: START + index })
    }
  })

  it('pages by id, newest first, to the end', async () => {
    const first = await list('?limit=2')
    expect(texts(first)).toStrictEqual(['FIVE%', 'four'])
    const second = await list(`?limit=2&before=${first.nextBefore}`)
    expect(texts(second)).toStrictEqual(['three', 'two'])
    const third = await list(`?limit=2&before=${second.nextBefore}`)
    expect(third).toMatchObject({ messages: [{ text: 'one' }], nextBefore: null })
    expect((await list('?limit=5')).nextBefore).toBeNull()
  })

  it('shows each change at once', async () => {
    expect(texts(await list())).toHaveLength(5)
    await store(mesh.ingest, [packet(text('six'), { id: 600, hopLimit: 0 })])
    expect((await list()).messages[0]).toMatchObject({ text: 'six', hopsAway: 3 })
    await store(mesh.ingest, [packet(text('six'), { id: 600, hopLimit: 2 })])
    expect((await list()).messages[0]).toMatchObject({ text: 'six', hopsAway: 1 })
  })

  it('filters by time, channel, words and partner', async () => {
    await store(mesh.ingest, [
      packet(text('to us'), { to: LOCAL, channel: 5 }),
      packet(text('from us'), { from: LOCAL, to: FAR, channel: 5 }),
      packet(text('to others'), { from: 8, to: 9, channel: 5 }),
    ])
    expect(texts(await list(`?since=${START + 3}`))).toStrictEqual(['FIVE%', 'four'])
    expect(texts(await list(`?since=${START + 1}&until=${START + 3}`))).toStrictEqual(['three', 'two'])
    expect(texts(await list('?channel=1'))).toStrictEqual(['four', 'two'])
    expect(texts(await list(`?from=${LOCAL}`))).toStrictEqual(['from us'])
    expect(texts(await list('?from=8&q=TO'))).toStrictEqual(['to others'])
    expect(texts(await list(`?from=!a0cb0002&with=${LOCAL}`))).toStrictEqual(['to us'])
    expect(texts(await list('?q=five%25'))).toStrictEqual(['FIVE%'])
    expect(texts(await list('?q=o%25'))).toStrictEqual([])
    expect(texts(await list('?with=!a0cb0002'))).toStrictEqual(['from us', 'to us'])
    expect(texts(await list(`?with=${FAR}&limit=1`))).toStrictEqual(['from us'])
  })

  it.each([
    'limit=0',
    'limit=1001',
    'limit=x',
    'before=-0',
    'before=x',
    'since=-1',
    'until=x',
    'from=x',
    'channel=1048832',
    'with=x',
    'q=',
  ])('refuses %s', async (query) => {
    const answer = await admin.send('GET', `/api/messages?${query}`)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'invalid_request' })
  })

  it('needs read access to messages', async () => {
    const before = auditRows(mesh.app).length
    expect((await mesh.app.request('/api/messages')).status).toBe(401)
    const reader = await mesh.app.user('reader', { messages: { read: true, write: false } })
    const other = await mesh.app.user('other', { messages: { read: false, write: false } })
    const made = auditRows(mesh.app).length
    expect(made).toBeGreaterThan(before)
    expect((await reader.send('GET', '/api/messages')).status).toBe(200)
    const refused = await other.send('GET', '/api/messages')
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({ required: { resource: 'messages', action: 'read' } })
    expect(auditRows(mesh.app)).toHaveLength(made)
  })
})
