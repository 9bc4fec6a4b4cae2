import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readDelivery } from '../../../../src/app/mesh/live/details.ts'
import type { Radio } from '../../../../src/app/mesh/radios/radio.ts'
import { announce } from '../../../../src/app/mesh/ingest/announce.ts'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { createEvents } from '../../../../src/app/mesh/live/events.ts'
import type { Events } from '../../../../src/app/mesh/live/event.ts'
import { MAX_PUBLIC_STREAMS, MAX_PUBLIC_STREAMS_OF_ADDRESS } from '../../../../src/shared/limits.ts'
import { outcomeOf } from '../../../support/answers.ts'
import { type Client, createTestApp, NO_RADIO, START, type TestApp } from '../../../support/app.ts'
import { type EventStream, openEventStream } from '../../../support/event-stream.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { type At, FAR, heard, LOCAL, myInfo, packet, position, RADIO, text, user } from '../../../support/mesh/mesh.ts'
import { OPEN } from '../../../support/public-access.ts'

const NONE = { read: false, write: false }
const TOGETHER_MS = 1000
const KEEP_ALIVE_MS = 15_000

let app: TestApp
let events: Events
let clock: ReturnType<typeof createManualClock>
let admin: Client
let anonymous: Client
const open: EventStream[] = []

beforeEach(async () => {
  clock = createManualClock(START)
  events = createEvents(clock)
  app = await createTestApp({ ports: { events, radio: sender(), now: () => clock.now() } })
  admin = await app.admin()
  anonymous = app.client()
  await hear([heard(myInfo)])
})
afterEach(async () => {
  for (const stream of open.splice(0)) await stream.end()
  app.close()
})

/** A radio that accepts whatever it shall send. */
function sender(): Radio {
  let packetId = 0x5000_0000
  return {
    ...NO_RADIO,
    reserve: () => ({
      source: RADIO.name,
      nodeNum: LOCAL,
      packetId: ++packetId,
      hopLimit: 3,
      send: () => {},
      release: () => {},
    }),
  }
}

async function hear(batch: readonly ReturnType<typeof heard>[]): Promise<void> {
  await announce(app.ports, await createIngest(app.store).store(batch))
}

async function put(changes: object): Promise<void> {
  expect((await admin.send('PUT', '/api/public-access', changes)).status).toBe(200)
}

async function connect(lastEventId?: string): Promise<EventStream> {
  const stream = await openEventStream(anonymous, lastEventId)
  open.push(stream)
  return stream
}

/** Lets the stream send what has happened. */
const tellAll = () => clock.advance(TOGETHER_MS)
const ask = (method = 'GET', headers: Record<string, string> = {}) =>
  outcomeOf(anonymous.send(method, '/api/events', undefined, headers))
const said = (
  words: string,
  { bitfield, ...more }: { bitfield?: number; [field: string]: unknown } = {},
  at: At = {},
) => heard(packet(text(words, bitfield === undefined ? {} : { bitfield }), more), at)

describe('the stream for anonymous callers', () => {
  test('is open while public access is on, and ends when it is switched off', async () => {
    expect([await ask(), (await anonymous.send('HEAD', '/api/events')).status]).toEqual(['401 unauthenticated', 401])
    await put(OPEN)
    const answer = await anonymous.send('GET', '/api/events')
    const shown = ['content-type', 'cache-control', 'x-robots-tag', 'x-accel-buffering']
    expect(shown.map((name) => answer.headers.get(name))).toEqual(['text/event-stream', 'no-store', 'noindex', 'no'])
    await answer.body?.cancel()
    expect(await ask('HEAD')).toBe('200')
    expect(await ask('GET', { authorization: 'Bearer mm_bad' })).toBe('401 unauthenticated')
    const stream = await connect()
    await stream.next()
    await put({ enabled: false })
    await hear([said('too late')])
    tellAll()
    expect(await stream.next()).toBeNull()
    expect(await ask()).toBe('401 unauthenticated')
  })

  test('sends heard nodes and messages of the shown channels as the lists show them, and nothing else', async () => {
    await put(OPEN)
    const stream = await connect()
    const { id } = Object(await stream.next())
    expect(id).toMatch(/^[0-9a-f]{8}-0$/)
    await hear([
      heard(packet(user({ id: 'x', longName: 'Far away', shortName: 'FAR' }))),
      heard(packet(position({ latitudeI: 501_234_567, longitudeI: 87_654_321 }), { channel: 0 })),
      said('for the town'),
    ])
    const [listed] = Object(await (await anonymous.send('GET', `/api/nodes?limit=1`)).json())
    const { messages } = Object(await (await anonymous.send('GET', '/api/messages')).json())
    await hear([said('for the family', { channel: 2 }), said('for one alone', { to: LOCAL }, { at: START + 500 })])
    await hear([said('for nobody else', { bitfield: 2 }, { at: START + 600 })])
    await hear([said('for the town again', {}, { at: START + 300 })])
    await hear([said('from the family', { from: FAR + 1, channel: 2 }, { at: START + 700 })])
    events.publish([
      { kind: 'link', data: { name: 'tower' } },
      { kind: 'delivery', data: { fromNodeNum: LOCAL, packetId: 5 }, place: { channel: 0, isDirect: false } },
      { kind: 'configuration', data: { source: 'tower' } },
      { kind: 'alert', data: {}, userId: 1 },
    ])
    tellAll()
    const node = { nodeNum: FAR, nodeId: '!a0cb0002', heardAt: START, signed: false }
    const [first, second, third] = [await stream.next(), await stream.next(), await stream.next()]
    expect(first).toMatchObject({ event: 'node', data: { ...node, changes: { longName: 'Far away', notes: '' } } })
    expect(Object(first?.data).changes).toEqual({ ...listed, lastHeard: START + 300 })
    expect(second).toMatchObject({ event: 'message', data: { text: 'for the town', message: messages[0] } })
    // Of the packets on the private channel and of the direct message, nothing is told: not even that there were any.
    const later = { ...node, heardAt: START + 300, changes: { lastHeard: START + 300 } }
    expect(third).toEqual({ id: expect.stringMatching(/-3$/), event: 'node', data: later })
    expect(await stream.next()).toMatchObject({ event: 'message', data: { text: 'for the town again' } })
    const [again] = Object(await (await anonymous.send('GET', `/api/nodes?limit=1`)).json())
    expect(again).toMatchObject({ lastHeard: START + 300, channel: 0 })
    await put({ permissions: { ...OPEN.permissions, nodes: NONE } })
    tellAll()
    expect(await stream.next()).toBeNull()
    const messagesAlone = await connect()
    await messagesAlone.next()
    await hear([said('only this', {}, { at: START + 900 })])
    tellAll()
    expect(await messagesAlone.next()).toMatchObject({ event: 'message', data: { text: 'only this' } })
  })

  test('contains nothing that only users may see, and names no deleted node', async () => {
    await hear([said('here')])
    await put(OPEN)
    const stream = await connect()
    await stream.next()
    await admin.send('PUT', `/api/nodes/${FAR}`, { notes: 'under the roof', isFavorite: true })
    await hear([said('still here')])
    tellAll()
    const [told] = [await stream.next()]
    expect(told).toMatchObject({ id: expect.stringMatching(/-1$/), event: 'message', data: { text: 'still here' } })
    await admin.send('DELETE', `/api/nodes/${FAR}`)
    tellAll()
    expect(await stream.next()).toEqual({ id: expect.stringMatching(/-2$/), event: 'reset', data: {} })
  })

  test('reports a text sent on a shown channel as the list shows it, and no other text', async () => {
    await put(OPEN)
    const stream = await connect()
    await stream.next()
    const send = async (text: string, more: object) =>
      expect((await admin.send('POST', '/api/messages', { text, ...more })).status).toBe(202)
    await send('of the family', { channel: 2 })
    await send('for one alone', { to: '!a0cb0002' })
    await send('from the town hall', { channel: 0 })
    tellAll()
    const { messages } = Object(await (await anonymous.send('GET', '/api/messages')).json())
    expect(messages).toHaveLength(1)
    const told = await stream.next()
    expect(told).toMatchObject({ id: expect.stringMatching(/-1$/), event: 'message', data: { message: messages[0] } })
    expect(Object(told?.data).text).toBe('from the town hall')
    // What becomes of it is for users.
    const { fromNodeNum: nodeNum, packetId } = messages[0]
    events.publish(await readDelivery(app.store, { nodeNum, packetId }))
    await hear([said('heard afterwards')])
    tellAll()
    expect(await stream.next()).toMatchObject({ event: 'node' })
    expect(await stream.next()).toMatchObject({ event: 'message', data: { text: 'heard afterwards' } })
  })

  test('reports no text of a hidden node, nor one that may no longer be read', async () => {
    await hear([heard({ case: 'nodeInfo', value: { num: LOCAL, user: { longName: 'Town Hall', shortName: 'TH' } } })])
    await put(OPEN)
    const stream = await connect()
    await stream.next()
    expect((await admin.send('POST', '/api/messages', { text: 'too late', channel: 0 })).status).toBe(202)
    await put({ channels: [] })
    tellAll()
    expect(await stream.next()).toBeNull()
    await put(OPEN)
    expect((await admin.send('PUT', `/api/nodes/${LOCAL}`, { hidden: true })).status).toBe(200)
    const later = await connect()
    await later.next()
    expect((await admin.send('POST', '/api/messages', { text: 'in secret', channel: 0 })).status).toBe(202)
    await hear([said('heard afterwards')])
    tellAll()
    expect(await later.next()).toMatchObject({ id: expect.stringMatching(/-1$/), event: 'node' })
    expect(await later.next()).toMatchObject({ event: 'message', data: { text: 'heard afterwards' } })
  })

  test.each([
    ['a channel is no longer shown', () => put({ channels: [] })],
    ['positions are rounded more', () => put({ positionPrecisionBits: 12 })],
    ['a node is hidden', async () => expect((await changeFar({ hidden: true })).status).toBe(200)],
    ['a node is ignored', async () => expect((await changeFar({ isIgnored: true })).status).toBe(200)],
  ])('ends when %s, and sends no earlier event', async (_, narrow) => {
    await hear([said('here')])
    await put(OPEN)
    const stream = await connect()
    const { id } = Object(await stream.next())
    await narrow()
    await hear([said('a secret')])
    tellAll()
    expect(await stream.next()).toBeNull()
    const again = await connect(id)
    expect(await again.next()).toMatchObject({ event: 'reset', id: expect.not.stringContaining(id.slice(0, 8)) })
  })

  test('tells pages to reload the lists when a hidden node is shown again, and during a flood', async () => {
    await hear([said('here')])
    await changeFar({ hidden: true })
    await put(OPEN)
    const stream = await connect()
    await stream.next()
    await changeFar({ hidden: false })
    tellAll()
    expect(await stream.next()).toMatchObject({ event: 'reset' })
    await hear(Array.from({ length: 40 }, (__, n) => said(`text ${n}`, { from: 1000 + n })))
    await hear(Array.from({ length: 40 }, (__, n) => said(`text ${n}`, { from: 2000 + n })))
    tellAll()
    expect(await stream.next()).toMatchObject({ event: 'reset', id: expect.stringMatching(/-2$/) })
  })

  test('is serialised once for all readers, and resumes where a reader left off', async () => {
    await put(OPEN)
    const bodies = []
    for (let n = 0; n < 3; n++) bodies.push((await anonymous.send('GET', '/api/events')).body?.getReader())
    for (const body of bodies) await body?.read()
    const { id } = Object(await (await connect()).next())
    await hear([said('one'), said('two')])
    tellAll()
    const chunks: (Uint8Array | undefined)[] = []
    for (const body of bodies) chunks.push((await body?.read())?.value)
    expect(new TextDecoder().decode(chunks[0])).toContain('"text":"two"')
    expect(chunks.every((chunk) => chunk === chunks[0])).toBe(true)
    const resumed = await connect(id.replace('-0', '-2'))
    expect(await resumed.next()).toEqual({ comment: 'open', id: id.replace('-0', '-2') })
    expect(await resumed.next()).toMatchObject({ data: { text: 'two' } })
    for (const wrong of [id.replace('-0', '-9'), `${events.epoch}-1`, 'x', '-', `${id}5`.replace('-05', '--1')]) {
      expect(await (await connect(wrong)).next()).toMatchObject({ event: 'reset' })
      await open.pop()?.end()
    }
    for (const body of bodies) await body?.cancel()
  })

  test('ends at once when the service stops, and by itself after ten minutes', async () => {
    await put(OPEN)
    const stream = await connect()
    await stream.next()
    for (let keepAlive = 1; keepAlive < 40; keepAlive++) {
      clock.advance(KEEP_ALIVE_MS)
      expect(await stream.next()).toEqual({ comment: 'keep-alive' })
    }
    clock.advance(KEEP_ALIVE_MS)
    expect(await stream.next()).toBeNull()
    const next = await connect()
    await next.next()
    events.close()
    expect(await next.next()).toBeNull()
  })

  test('a reader that does not read is dropped, together with the events that waited for it', async () => {
    await put(OPEN)
    const body = (await anonymous.send('GET', '/api/events')).body?.getReader()
    for (const words of ['one', 'two', 'three']) {
      await hear([said(words)])
      tellAll()
      await app.request('/api/health')
    }
    await put({ enabled: false })
    tellAll()
    await app.request('/api/health')
    let all = ''
    for (let part = await body?.read(); part?.done === false; part = await body?.read()) {
      all += new TextDecoder().decode(part.value)
    }
    expect(all).toMatch(/^: open/)
    expect(all).not.toContain('three')
  })
})

describe('the number of streams', () => {
  const connectAll = async (count: number) => {
    for (let n = 0; n < count; n++) await connect()
  }

  test('is limited for each address, whatever headers it sends', async () => {
    await put(OPEN)
    await connectAll(MAX_PUBLIC_STREAMS_OF_ADDRESS)
    const answer = await anonymous.send('GET', '/api/events', undefined, { 'x-forwarded-for': '198.51.100.7' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '60'])
    app.ip = '192.0.2.2'
    await connect()
    app.ip = '192.0.2.1'
    await open[3]?.end()
    await connect()
    expect(await ask()).toBe('429 rate_limited')
    expect(await outcomeOf(admin.send('HEAD', '/api/events'))).toBe('200')
  })

  test('has a total limit, at which the address with the most streams gives up places to newcomers', async () => {
    await put(OPEN)
    for (let n = 0; n < MAX_PUBLIC_STREAMS / MAX_PUBLIC_STREAMS_OF_ADDRESS; n++) {
      app.ip = `198.51.100.${n}`
      await connectAll(MAX_PUBLIC_STREAMS_OF_ADDRESS)
    }
    app.ip = '192.0.2.9'
    const mine = await connect()
    expect(await mine.next()).toMatchObject({ comment: 'open' })
    const [displaced] = open
    await displaced?.next()
    expect(await displaced?.next()).toBeNull()
    await connectAll(8)
    expect(await ask()).toBe('429 rate_limited')
  })

  test('opening counts as a request, so that opening and closing in a loop ends at the limit', async () => {
    await put(OPEN)
    const outcomes = new Map<string, number>()
    for (let n = 0; n < 200; n++) {
      const answer = await anonymous.send('GET', '/api/events')
      outcomes.set(String(answer.status), (outcomes.get(String(answer.status)) ?? 0) + 1)
      await answer.body?.cancel()
    }
    expect(Object.fromEntries(outcomes)).toEqual({ '200': 120, '429': 80 })
  })
})

test('on a runtime without live events the stream is 501, and 401 while public access is off', async () => {
  const elsewhere = await createTestApp()
  expect(await outcomeOf(elsewhere.request('/api/events'))).toBe('401 unauthenticated')
  const changed = await (await elsewhere.admin()).send('PUT', '/api/public-access', OPEN)
  expect(changed.status).toBe(200)
  expect(await outcomeOf(elsewhere.request('/api/events'))).toBe('501 unsupported_on_this_runtime')
  elsewhere.close()
})

async function changeFar(changes: object): Promise<Response> {
  return admin.send('PUT', `/api/nodes/${FAR}`, changes)
}
