import { create, toBinary } from '@bufbuild/protobuf'
import { NeighborInfoSchema, RouteDiscoverySchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import type { NewEvent, Events } from '../../../../src/app/mesh/live/event.ts'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createEvents, newsEvents } from '../../../../src/app/mesh/live/events.ts'
import { announce } from '../../../../src/app/mesh/ingest/announce.ts'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { type EventStream, openEventStream } from '../../../support/event-stream.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { FAR, heard, LOCAL, myInfo, packet, position, text, user } from '../../../support/mesh/mesh.ts'

const KEEP_ALIVE_MS = 15_000
const READ = { read: true, write: false }
const NONE = { read: false, write: false }

let app: TestApp
let events: Events
let clock: ReturnType<typeof createManualClock>
const open: EventStream[] = []

beforeEach(async () => {
  clock = createManualClock(START)
  events = createEvents(clock)
  app = await createTestApp({ ports: { events, now: () => clock.now() } })
})
afterEach(async () => {
  for (const stream of open.splice(0)) await stream.end()
  app.close()
})

async function connect(client: Client, lastEventId?: string, query?: string): Promise<EventStream> {
  const stream = await openEventStream(client, lastEventId, query)
  open.push(stream)
  return stream
}

const node = (nodeNum: number): NewEvent => ({ kind: 'node', data: { nodeNum } })
const route = (requestId: number) => ({
  portnum: PortNum.TRACEROUTE_APP,
  payload: toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, { route: [FAR + 1], snrTowards: [4, 4] })),
  requestId,
})
const report = () => ({
  portnum: PortNum.NEIGHBORINFO_APP,
  payload: toBinary(
    NeighborInfoSchema,
    create(NeighborInfoSchema, { nodeId: FAR, neighbors: [{ nodeId: FAR + 1, snr: 5 }] }),
  ),
})
const message = (words: string): NewEvent => ({ kind: 'message', data: { text: words } })
const id = (seq: number) => `${events.epoch}-${seq}`

it('reports stored data, with ids: each node once and each text', async () => {
  const stream = await connect(await app.user('reader'))
  expect(await stream.next()).toStrictEqual({ comment: 'open', id: id(0) })
  const { news } = await createIngest(app.store).store([
    heard(packet(text('one'))),
    heard(packet(text('line\n\ndata: two'))),
    heard(packet(text('old')), { replayed: true }),
  ])
  events.publish(newsEvents(news))
  const ends = { fromNodeNum: FAR, fromNodeId: '!a0cb0002', toNodeNum: 0xffffffff, toNodeId: '!ffffffff' }
  const said = { packetId: expect.any(Number), ...ends, channel: 0, replyId: null, emoji: false, signed: false }
  const told = [await stream.next(), await stream.next(), await stream.next()]
  expect(told).toStrictEqual([
    { id: id(1), event: 'node', data: { nodeNum: FAR, nodeId: '!a0cb0002', heardAt: START, signed: false } },
    { id: id(2), event: 'message', data: { ...said, text: 'one' } },
    { id: id(3), event: 'message', data: { ...said, text: 'line\n\ndata: two' } },
  ])
  expect(events.last()).toBe(3)
})

it('shows each event to readers who may read it at that time', async () => {
  const reader = await app.user('reader', { nodes: READ, messages: NONE, info: NONE })
  const admin = await app.admin()
  const stream = await connect(reader)
  await stream.next()
  events.publish([message('secret'), { kind: 'link', data: {} }, { kind: 'delivery', data: {} }, node(1)])
  expect(await stream.next()).toMatchObject({ id: id(4), event: 'node' })
  const grant = (permissions: object) => admin.send('PUT', `/api/users/${reader.id}/permissions`, { permissions })
  expect((await grant({ nodes: NONE, messages: READ })).status).toBe(200)
  events.publish([node(2), message('open')])
  expect(await stream.next()).toStrictEqual({ event: 'access', data: {} })
  expect(await stream.next()).toMatchObject({ id: id(6), data: { text: 'open' } })
})

it('gives readers at the same position only what each may read, even when events are shared', async () => {
  const streams = [
    await connect(await app.user('all', { nodes: READ, messages: READ })),
    await connect(await app.user('nodes', { nodes: READ, messages: NONE })),
    await connect(await app.user('messages', { nodes: NONE, messages: READ })),
    await connect(await app.user('again', { nodes: READ, messages: READ })),
  ]
  for (const stream of streams) await stream.next()
  events.publish([node(1), message('one'), node(2)])
  const [all, nodes, messages, again] = streams
  const read = async (stream: EventStream | undefined, count: number) => {
    const found: unknown[] = []
    while (found.length < count) found.push((await stream?.next())?.id)
    return found
  }
  expect(await Promise.all([read(all, 3), read(nodes, 2), read(messages, 1), read(again, 3)])).toStrictEqual([
    [id(1), id(2), id(3)],
    [id(1), id(3)],
    [id(2)],
    [id(1), id(2), id(3)],
  ])
})

it('leaves out on request what only reports that a node was heard, and what is said twice', async () => {
  const admin = await app.admin()
  const brief = await connect(admin, undefined, '?brief=true')
  const unheard = await connect(admin, undefined, '?heard=false')
  for (const stream of [brief, unheard]) await stream.next()
  const ingest = createIngest(app.store)
  const hear = async (...packets: Parameters<typeof ingest.store>[0]) =>
    announce(app.ports, await ingest.store(packets))
  await hear(heard(packet(position({ latitudeI: 10, longitudeI: 10 }))))
  await hear(heard(packet(position({ latitudeI: 20, longitudeI: 20 })), { at: START + 1000 }))
  await hear(heard(packet(text('on the hill')), { at: START + 2000 }))
  const [first, second, third, said] = [await brief.next(), await brief.next(), await brief.next(), await brief.next()]
  expect([first, second, third, said].map((block) => Object.keys(Object(block?.data)))).toStrictEqual([
    ['nodeNum', 'changes'],
    ['nodeNum', 'changes'],
    ['nodeNum', 'changes'],
    ['message'],
  ])
  expect(said?.data).toMatchObject({ message: { text: 'on the hill', fromNodeNum: FAR } })
  // The whole new node, but none of what followed.
  expect(await unheard.next()).toMatchObject({
    event: 'node',
    data: { nodeId: '!a0cb0002', changes: { nodeNum: FAR } },
  })
  expect(await unheard.next()).toMatchObject({ id: id(4), event: 'message', data: { text: 'on the hill' } })
  expect((await admin.send('PUT', `/api/nodes/${FAR}`, { isFavorite: true })).status).toBe(200)
  expect(await unheard.next()).toMatchObject({ event: 'node', data: { changes: { isFavorite: true } } })
  expect((await admin.send('GET', '/api/events?heard=perhaps')).status).toBe(400)
})

it('reports routes and neighbours to those who may see their channel and both ends, and to nobody else', async () => {
  const admin = await app.admin()
  const town = await app.user('town', { info: READ, nodes: READ })
  const scope = { channels: { read: [0], write: [] }, direct: { read: true, write: false } }
  expect((await admin.send('PUT', `/api/users/${town.id}/permissions`, { permissions: {}, scope })).status).toBe(200)
  const all = await connect(admin, undefined, '?heard=false')
  const some = await connect(town, undefined, '?heard=false')
  const deaf = await connect(await app.user('deaf', { info: NONE, nodes: READ }), undefined, '?heard=false')
  for (const stream of [all, some, deaf]) await stream.next()
  const ingest = createIngest(app.store)
  const hear = async (...packets: Parameters<typeof ingest.store>[0]) =>
    announce(app.ports, await ingest.store(packets))
  await hear(heard(packet(user({ longName: 'Far away', shortName: 'FAR' }))))
  for (const stream of [all, some, deaf]) await stream.next()
  await hear(heard(packet(route(71), { to: FAR + 1, channel: 2 })), heard(packet(report(), { channel: 2 })))
  await hear(heard(packet(route(72), { to: FAR + 1 })), heard(packet(report()), { at: START + 1000 }))
  const route71 = { id: 1, fromNodeNum: FAR + 1, requestId: 71 }
  const route72 = { id: 2, fromNodeNum: FAR + 1, requestId: 72 }
  const by = { nodeNum: FAR, nodeId: '!a0cb0002' }
  const take = async (stream: EventStream, count: number) => {
    const found: unknown[] = []
    while (found.length < count) {
      const block = await stream.next()
      if (block?.comment === undefined) found.push([block?.event, block?.data])
    }
    return found
  }
  expect(await take(all, 4)).toStrictEqual([
    ['traceroute', route71],
    ['neighbors', by],
    ['traceroute', route72],
    ['neighbors', by],
  ])
  expect(await take(some, 2)).toStrictEqual([
    ['traceroute', route72],
    ['neighbors', by],
  ])
  expect((await admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })).status).toBe(200)
  await hear(heard(packet(route(73), { to: FAR + 1 })), heard(packet(report()), { at: START + 2000 }))
  events.publish([message('the end')])
  expect(await take(some, 2)).toMatchObject([
    ['reset', {}],
    ['message', { text: 'the end' }],
  ])
  expect(await take(deaf, 2)).toMatchObject([
    ['reset', {}],
    ['message', { text: 'the end' }],
  ])
})

it('tells who heard a packet to those who may know, without hidden nodes and unreadable channels', async () => {
  const admin = await app.admin()
  const town = await app.user('town', { info: READ, nodes: READ }, { channels: { read: [0], write: [] }, direct: NONE })
  const plain = await app.user('plain', { info: NONE, nodes: READ })
  const streams = await Promise.all([admin, town, plain].map((client) => connect(client, undefined, '?packets=true')))
  const usual = await connect(admin)
  for (const stream of [...streams, usual]) await stream.next()
  const ingest = createIngest(app.store)
  const hear = async (...packets: Parameters<typeof ingest.store>[0]) =>
    announce(app.ports, await ingest.store(packets))
  const packetsOf = async (stream: EventStream | undefined) => {
    for (;;) {
      const block = await stream?.next()
      if (block?.event === 'node') return Object(block.data).packets
    }
  }
  const told = () => Promise.all(streams.map(packetsOf))
  await hear(heard(myInfo))
  await hear(heard(packet(text('one'), { hopStart: 3, hopLimit: 2 })))
  const byUs = [{ receiver: LOCAL, hopsAway: 1, viaMqtt: false }]
  expect(await told()).toStrictEqual([byUs, byUs, undefined])
  expect(await packetsOf(usual)).toBeUndefined()
  await hear(heard(packet(text('two'), { channel: 2, hopStart: 3, hopLimit: 3 }), { at: START + 1 }))
  const direct = [{ receiver: LOCAL, hopsAway: 0, viaMqtt: false }]
  expect(await told()).toStrictEqual([direct, [], undefined])
  // To a hidden node, and then by one.
  await hear(heard(packet(text('here'), { from: FAR + 1 }), { at: START + 2 }))
  await told()
  expect((await admin.send('PUT', `/api/nodes/${FAR + 1}`, { hidden: true })).status).toBe(200)
  await hear(heard(packet(text('three'), { to: FAR + 1, hopStart: 3, hopLimit: 3 }), { at: START + 3 }))
  expect((await told())[1]).toStrictEqual([])
  await admin.send('DELETE', `/api/nodes/${FAR + 1}`)
})

it('names the sender of a text to those who may read nodes, and to nobody else', async () => {
  const readers = [await app.user('reader'), await app.user('deaf', { messages: READ, nodes: NONE })]
  const [reader, deaf] = [await connect(readers[0] ?? app.client()), await connect(readers[1] ?? app.client())]
  for (const stream of [deaf, reader]) await stream.next()
  const ingest = createIngest(app.store)
  await announce(app.ports, await ingest.store([heard(packet(user({ longName: 'Far away', shortName: 'FAR' })))]))
  await reader.next()
  await announce(app.ports, await ingest.store([heard(packet(text('on the hill')))]))
  // Both at the same position, where chunks are shared.
  const told = await deaf.next()
  expect(told).toMatchObject({ event: 'message', data: { text: 'on the hill' } })
  expect(JSON.stringify(told)).not.toContain('Far away')
  expect(await reader.next()).toMatchObject({ event: 'node' })
  expect(await reader.next()).toMatchObject({ event: 'message', data: { senderName: 'Far away' } })
})

it("reports a change of the reader's permissions once, at the next keep-alive at the latest", async () => {
  const reader = await app.user('reader')
  const admin = await app.admin()
  const stream = await connect(reader)
  await stream.next()
  expect((await admin.send('PUT', `/api/users/${reader.id}/admin`, { isAdmin: true })).status).toBe(200)
  clock.advance(KEEP_ALIVE_MS)
  // An administrator sees direct messages too: earlier events may be missing.
  expect([await stream.next(), await stream.next(), await stream.next()]).toStrictEqual([
    { event: 'access', data: {} },
    { event: 'reset', data: {} },
    { comment: 'keep-alive', id: id(0) },
  ])
  clock.advance(KEEP_ALIVE_MS)
  expect(await stream.next()).toStrictEqual({ comment: 'keep-alive', id: id(0) })
})

it("gives a token the events of its scopes and its owner's permissions", async () => {
  const owner = await app.user('owner', { nodes: READ, messages: NONE })
  const made = await owner.send('POST', '/api/tokens', { name: 't', scopes: ['nodes:read', 'messages:read'] })
  const { token, id: tokenId } = Object(await made.json())
  const bearer = app.client()
  const stream = await connect({
    ...bearer,
    send: (method, path) => bearer.send(method, path, undefined, { authorization: `Bearer ${token}` }),
  })
  await stream.next()
  events.publish([message('secret'), { kind: 'link', data: {} }, node(3)])
  expect(await stream.next()).toMatchObject({ event: 'node', id: id(3) })
  expect((await owner.send('DELETE', `/api/tokens/${tokenId}`)).status).toBe(204)
  events.publish([node(4)])
  expect(await stream.next()).toBeNull()
})

it('resumes after the last event that was seen, and reports a gap', async () => {
  const reader = await app.user('reader')
  events.publish([node(1), node(2), node(3)])
  const resumed = await connect(reader, id(1))
  const told = [await resumed.next(), await resumed.next(), await resumed.next()]
  expect(told).toMatchObject([{ comment: 'open', id: id(1) }, { data: { nodeNum: 2 } }, { data: { nodeNum: 3 } }])
  for (const unknown of ['another-2', id(4), 'x', `${events.epoch}-`, id(-1), `${id(1)}e1`]) {
    const first = await (await connect(await app.admin(), unknown)).next()
    expect(first, unknown).toStrictEqual({ event: 'reset', data: {}, id: id(3) })
    for (const stream of open.splice(1)) await stream.end()
  }
  events.publish(Array.from({ length: 1001 }, (_, n) => node(n)))
  const late = await connect(reader, id(3))
  expect(await late.next()).toStrictEqual({ event: 'reset', data: {}, id: id(1004) })
  const edge = await connect(reader, id(4))
  expect([await edge.next(), await edge.next()]).toMatchObject([{ id: id(4) }, { id: id(5), data: { nodeNum: 1 } }])
})

it('sends a keep-alive every 15 seconds, with its position', async () => {
  const stream = await connect(await app.user('reader', { nodes: NONE, messages: NONE, info: NONE }))
  await stream.next()
  events.publish([node(1)])
  clock.advance(KEEP_ALIVE_MS - 1)
  clock.advance(1)
  expect(await stream.next()).toStrictEqual({ comment: 'keep-alive', id: id(1) })
  clock.advance(KEEP_ALIVE_MS)
  expect(await stream.next()).toStrictEqual({ comment: 'keep-alive', id: id(1) })
})

const ENDINGS: Record<string, (client: Client & { id: number }, admin: Client) => unknown> = {
  'the user signs out': (client) => client.send('POST', '/api/auth/logout'),
  'the user is deactivated': ({ id }, admin) => admin.send('DELETE', `/api/users/${id}`),
  'the password is reset': ({ id }, admin) => admin.send('POST', `/api/users/${id}/reset-password`),
  'the session is too old': () => clock.advance(86_400_000 - KEEP_ALIVE_MS),
}

it.each(Object.entries(ENDINGS))('ends at the next keep-alive or event when %s', async (_, end) => {
  const admin = await app.admin()
  const user = await app.user('somebody')
  for (const wake of [() => clock.advance(KEEP_ALIVE_MS), () => events.publish([node(1)])]) {
    const client = Object.assign(await app.signIn('somebody'), { id: user.id })
    const stream = await connect(client)
    await stream.next()
    await end(client, admin)
    wake()
    let last = await stream.next()
    // The keepAlives while the session grew old.
    while (last?.comment === 'keep-alive') last = await stream.next()
    expect(last).toBeNull()
    if (end !== ENDINGS['the user signs out']) return
  }
})

it('ends when the service stops', async () => {
  const stream = await connect(await app.admin())
  await stream.next()
  const ended = stream.next()
  events.close()
  expect(await ended).toBeNull()
})

it('drops a reader that reads nothing, and keeps no event for it', async () => {
  const answer = await (await app.admin()).send('GET', '/api/events')
  const reader = answer.body?.getReader()
  for (let n = 0; n < 4; n++) {
    events.publish([node(n)])
    // The stream does its own work while another request is answered.
    await app.request('/api/health')
    clock.advance(KEEP_ALIVE_MS)
  }
  const texts = []
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    texts.push(new TextDecoder().decode(part.value))
  }
  expect(texts).toHaveLength(1)
  expect(texts.join('')).not.toContain('"nodeNum":3')
})

it('lets other work go on while it wakes many readers, and wakes each for what came meanwhile', async () => {
  const own = createEvents(clock)
  const seen = Array.from({ length: 60 }, () => 0)
  for (const reader of seen.keys()) own.subscribe(reader + 1, () => (seen[reader] = own.last()))
  const woken = (seq: number) => seen.filter((last) => last === seq).length
  own.publish([node(1)])
  expect(woken(1)).toBeGreaterThan(0)
  expect(woken(0)).toBeGreaterThan(0)
  own.publish([node(2)])
  await expect.poll(() => woken(2)).toBe(60)
  own.publish([node(3)])
  own.close()
  expect(woken(3)).toBe(60)
})

it('is limited to ten streams per user at a time', async () => {
  const user = await app.user('somebody')
  const streams = []
  for (let n = 0; n < 10; n++) streams.push(await connect(user))
  const refused = await user.send('GET', '/api/events')
  expect([refused.status, refused.headers.get('retry-after')]).toStrictEqual([429, '15'])
  expect((await connect(await app.admin())) !== null).toBe(true)
  expect((await user.send('HEAD', '/api/events')).status).toBe(200)
  await streams[4]?.end()
  await connect(user)
  expect((await user.send('GET', '/api/events')).status).toBe(429)
})

it('is for signed-in users, and 501 on a runtime without live events', async () => {
  expect((await app.request('/api/events')).status).toBe(401)
  const elsewhere = await createTestApp()
  const answer = await (await elsewhere.admin()).send('GET', '/api/events')
  expect([answer.status, await answer.json()]).toMatchObject([501, { code: 'unsupported_on_this_runtime' }])
})
