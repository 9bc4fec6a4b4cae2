import { afterEach, describe, expect, it } from 'vitest'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { auditRows } from '../../support/app.ts'
import { fromRadio, queueStatus } from '../../support/radio/device.ts'
import { FAR, LORA, MAY_SEND, OWN, type RadioService, startRadioService, until } from '../../support/radio/service.ts'

const running: RadioService[] = []

afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
})

async function startService(extra?: readonly Uint8Array[]): Promise<RadioService> {
  const service = await startRadioService(extra)
  running.push(service)
  return service
}

function countMessages({ store }: RadioService): unknown {
  return Object(store.sqlite.prepare('select count(*) n from messages').get()).n
}

describe('POST /api/messages', () => {
  it('stores the message, answers 202 queued, and gives the radio the text', async () => {
    const service = await startService()
    const { status, body } = await service.send({ text: 'Grüße 🦉', channel: 0 })
    expect(status).toBe(202)
    const packet = await service.sent()
    expect(body['message']).toMatchObject({
      packetId: packet.id,
      fromNodeNum: OWN,
      fromNodeId: '!a0cb0001',
      toNodeNum: BROADCAST,
      channel: 0,
      text: 'Grüße 🦉',
      timestamp: service.clock.now(),
      direction: 'out',
      deliveryState: 'queued',
      routingError: null,
      sentBy: 'sender',
      radio: `127.0.0.1:${service.device.port}`,
    })
    expect(packet).toMatchObject({ to: BROADCAST, channel: 0, hopLimit: 2, wantAck: true })
    expect(packet.payloadVariant.value).toMatchObject({ payload: new TextEncoder().encode('Grüße 🦉'), portnum: 1 })
    await service.untilState('sent')
    expect(auditRows(service.app).filter(({ action }) => action === 'message_sent')).toStrictEqual([
      {
        action: 'message_sent',
        username: 'sender',
        details: { packetId: packet.id, to: BROADCAST, channel: 0, bytes: 12 },
      },
    ])
  })

  it('passes on destination, reply, reaction and hop limit, which never exceeds that of the radio', async () => {
    const service = await startService()
    await service.send({ text: '👍', to: '!a0cb0002', channel: 0, replyId: 77, emoji: true, hopLimit: 7 })
    const packet = await service.sent()
    expect(packet).toMatchObject({ to: FAR, hopLimit: 2 })
    expect(packet.payloadVariant.value).toMatchObject({ replyId: 77, emoji: 1 })
    await service.send({ text: 'near', to: FAR, hopLimit: 0 })
    service.clock.advance(2200)
    expect(await service.sent()).toMatchObject({ hopLimit: 0, wantAck: false })
  })

  it('follows a direct message to its destination; its state never goes back', async () => {
    const service = await startService()
    await service.send({ text: 'hi', to: FAR })
    const { id } = await service.sent()
    await service.untilState('sent')
    service.answer(id, OWN, 5)
    await service.untilState('failed', 'MAX_RETRANSMIT')
    service.answer(id, OWN)
    await service.untilState('relayed')
    service.answer(id, FAR)
    await service.untilState('delivered')
    service.answer(id, FAR, 2)
    await service.send({ text: 'the next one', to: FAR })
    service.clock.advance(2200)
    const next = await service.sent()
    service.answer(next.id, FAR, 35)
    await service.untilState('failed', 'PKI_UNKNOWN_PUBKEY')
    const rows = service.store.sqlite.prepare('select delivery_state state from messages order by id').all()
    expect(rows).toStrictEqual([{ state: 'delivered' }, { state: 'failed' }])
  })

  it('ignores acknowledgements from nodes that pretend to be our radio', async () => {
    const service = await startService()
    await service.send({ text: 'hi' })
    const { id } = await service.sent()
    service.answer(id, OWN, 0, true)
    service.answer(id, OWN, 9)
    await service.untilState('failed', 'DUTY_CYCLE_LIMIT')
  })

  it('calls a message unknown if nothing was heard for 120 s, or the link broke', async () => {
    const service = await startService()
    await service.send({ text: 'into the void' })
    await service.sent()
    await service.untilState('sent')
    service.clock.advance(120_000)
    await service.untilState('unknown')
    await service.send({ text: 'again' })
    await service.sent()
    await service.untilState('sent')
    service.device.kick()
    await service.untilState('unknown')
  })

  it('knows after a restart what was not sent, and accepts a late answer for what was', async () => {
    const service = await startService()
    await service.send({ text: 'one', to: FAR })
    await service.send({ text: 'two', to: FAR })
    const { id } = await service.sent()
    await service.untilState('queued')
    const again = await service.restart()
    await service.untilState('failed', 'NOT_SENT')
    const states = () => service.store.sqlite.prepare('select delivery_state s from messages order by id').pluck().all()
    expect(states()).toStrictEqual(['unknown', 'failed'])
    expect(service.store.sqlite.prepare('select routing_error from messages order by id').pluck().all()).toStrictEqual([
      null,
      'NOT_SENT',
    ])
    await until(() => expect(again.links()[0]?.state).toBe('connected'))
    service.answer(id, FAR)
    await until(() => expect(states()).toStrictEqual(['delivered', 'failed']))
  })

  it('sends no waiting packet by another radio at the same address', async () => {
    const extra = [LORA]
    const service = await startService(extra)
    await service.send({ text: 'one' })
    await service.send({ text: 'two' })
    await service.sent()
    extra.push(fromRadio({ case: 'myInfo', value: { myNodeNum: 0xa0cb0009 } }))
    service.device.kick()
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    service.clock.advance(5000)
    await until(() => expect(service.radio.links()[0]?.state).toBe('connected'))
    await service.untilState('failed', 'NO_INTERFACE')
    expect((await service.send({ text: 'three' })).body).toMatchObject({ message: { fromNodeNum: 0xa0cb0009 } })
    expect((await service.sent()).payloadVariant.value).toMatchObject({ payload: new TextEncoder().encode('three') })
  })

  it('shows the sender what the radio reports about a packet, with the reason', async () => {
    const service = await startService()
    const { body } = await service.send({ text: 'one' })
    const { id: replyId } = await service.sent()
    const said = 'Duty cycle limit exceeded. You can send again in 12 mins'
    service.device.send(fromRadio({ case: 'clientNotification', value: { replyId, level: 30, message: said } }))
    await service.untilState('failed', 'DUTY_CYCLE_LIMIT')
    const { id } = Object(body['message'])
    const told = await (await service.sender.send('GET', `/api/messages`)).json()
    expect(told).toMatchObject({ messages: [{ id, notice: said, deliveryState: 'failed' }] })
    service.answer(replyId, OWN)
    await service.untilState('relayed')
    expect(await (await service.sender.send('GET', `/api/messages`)).json()).toMatchObject({
      messages: [{ id, notice: said, deliveryState: 'relayed' }],
    })
  })

  it('keeps a report of the radio about a packet that it sends anyway', async () => {
    const service = await startService()
    await service.send({ text: 'one' })
    const { id: replyId } = await service.sent()
    const word = { replyId, level: 20, message: 'A\u0007 new\u202e kind of word' } as const
    service.device.send(fromRadio({ case: 'clientNotification', value: word }))
    const notice = () => service.store.sqlite.prepare('select notice from messages').pluck().get()
    await until(() => expect(notice()).toBe('A new kind of word'))
    await service.untilState('sent')
  })

  it('reports a traceroute that the radio dropped', async () => {
    const service = await startService()
    await service.sender.send('POST', '/api/traceroutes', { to: FAR })
    const { id: replyId } = await service.sent()
    const said = 'TraceRoute can only be sent once every 30 seconds'
    service.device.send(fromRadio({ case: 'clientNotification', value: { replyId, level: 30, message: said } }))
    await until(async () =>
      expect(await (await service.sender.send('GET', '/api/traceroutes')).json()).toMatchObject({
        traceroutes: [{ state: 'failed', routingError: 'RATE_LIMIT_EXCEEDED', notice: said }],
      }),
    )
  })

  it('shows what the radio reports about itself', async () => {
    const service = await startService()
    const message = 'Compromised keys were detected and regenerated.'
    service.device.send(fromRadio({ case: 'clientNotification', value: { level: 30, message } }))
    await until(async () =>
      expect(await (await service.sender.send('GET', '/api/info')).json()).toMatchObject({
        links: [{ notice: { at: service.clock.now(), level: 'WARNING', message } }],
      }),
    )
  })

  it('leaves 2.2 s between two texts', async () => {
    const service = await startService()
    await service.send({ text: 'one' })
    await service.send({ text: 'two' })
    await service.sent()
    service.clock.advance(2199)
    service.device.send(queueStatus())
    await until(() => expect(service.radio.links()[0]?.lastFrameAt).toBe(service.clock.now()))
    expect(service.device.received.filter(({ payloadVariant }) => payloadVariant.case === 'packet')).toHaveLength(1)
    service.clock.advance(1)
    expect((await service.sent()).payloadVariant.value).toMatchObject({ payload: new TextEncoder().encode('two') })
  })

  it.each([
    ['a'.repeat(200), 202],
    ['ü'.repeat(100), 202],
    ['a'.repeat(201), 413],
    [`${'ü'.repeat(100)}a`, 413],
    ['🦉'.repeat(3000), 413],
  ])('accepts 200 bytes of text and refuses more (%#)', async (text, status) => {
    const service = await startService()
    const answer = await service.send({ text })
    expect(answer.status).toBe(status)
    if (status === 202) return
    const bytes = new TextEncoder().encode(text).length
    expect(answer.body).toMatchObject({ code: 'text_too_long', bytes, limit: 200 })
    expect(countMessages(service)).toBe(0)
  })

  it('holds 50, then refuses and stores nothing', async () => {
    const service = await startService()
    // The first one is sent at once.
    for (let n = 0; n < 51; n += 1) expect((await service.send({ text: `text ${n}` })).status).toBe(202)
    const full = await service.send({ text: 'one more' })
    expect(full).toMatchObject({ status: 429, body: { code: 'queue_full' } })
    expect(countMessages(service)).toBe(51)
    service.clock.advance(2200)
    expect((await service.send({ text: 'one more' })).status).toBe(202)
  })

  it('refuses without a radio, stores nothing and forgets the key', async () => {
    const service = await startService()
    service.device.kick()
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    const key = { 'Idempotency-Key': 'later' }
    const down = await service.send({ text: 'hello?' }, key)
    expect(down).toMatchObject({ status: 503, body: { code: 'radio_unavailable' } })
    expect(countMessages(service)).toBe(0)
    expect(auditRows(service.app).map(({ action }) => action)).not.toContain('message_sent')
    service.clock.advance(5000)
    await until(() => expect(service.radio.links()[0]?.state).toBe('connected'))
    expect((await service.send({ text: 'hello?' }, key)).status).toBe(202)
  })

  it('refuses while transmitting is switched off', async () => {
    const off = { payloadVariant: { case: 'lora', value: { hopLimit: 3, txEnabled: false } } } as const
    const service = await startService([fromRadio({ case: 'config', value: off })])
    expect(await service.send({ text: 'hi' })).toMatchObject({ status: 503, body: { code: 'radio_unavailable' } })
  })

  it('refuses a disabled channel', async () => {
    const service = await startService([LORA])
    service.device.send(fromRadio({ case: 'channel', value: { index: 3, role: 0 } }))
    await until(() => expect(service.radio.links()[0]?.lastFrameAt).toBeGreaterThan(0))
    await until(() => {
      service.clock.advance(100)
      expect(service.store.sqlite.prepare('select count(*) n from channels').get()).toStrictEqual({ n: 2 })
    })
    const answer = await service.send({ text: 'hi', channel: 3 })
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: 'channel' }] } })
    expect(countMessages(service)).toBe(0)
  })

  it('gives the answer of the first request to every other one with the same key', async () => {
    const service = await startService()
    const key = { 'Idempotency-Key': 'abc-1' }
    const first = await service.send({ text: 'once', to: FAR }, key)
    const again = await service.send({ to: FAR, text: 'once' }, key)
    expect(again.status).toBe(202)
    expect(Object(again.body['message']).id).toBe(Object(first.body['message']).id)
    const racing = await Promise.all(
      [1, 2, 3].map(() => service.send({ text: 'race' }, { 'Idempotency-Key': 'abc-2' })),
    )
    expect(new Set(racing.map(({ body }) => Object(body['message']).id)).size).toBe(1)
    expect(await service.send({ text: 'twice' }, key)).toMatchObject({
      status: 422,
      body: { code: 'idempotency_key_reused' },
    })
    expect(countMessages(service)).toBe(2)
    expect(auditRows(service.app).filter(({ action }) => action === 'message_sent')).toHaveLength(2)
    const other = await service.app.user('other', MAY_SEND)
    const theirs = await other.send('POST', '/api/messages', { text: 'once' }, key)
    expect([theirs.status, countMessages(service)]).toStrictEqual([202, 3])
    service.store.sqlite.exec('update idempotency_keys set created_at = created_at - 86400000')
    expect([(await service.send({ text: 'once', to: FAR }, key)).status, countMessages(service)]).toStrictEqual([
      202, 4,
    ])
  })

  it.each([
    ['no text', {}],
    ['an empty text', { text: ' ' }],
    ['a NUL', { text: 'a\0b' }],
    ['half a character', { text: 'a\ud800' }],
    ['an unknown field', { text: 'hi', priority: 1 }],
    ['node 0', { text: 'hi', to: 0 }],
    ['a node number beyond u32', { text: 'hi', to: 2 ** 32 }],
    ['an invalid node id', { text: 'hi', to: 'FAR' }],
    ['channel 8', { text: 'hi', channel: 8 }],
    ['a hop limit of 8', { text: 'hi', hopLimit: 8 }],
    ['a reaction to nothing', { text: '👍', emoji: true }],
    ['an acknowledgement without hops', { text: 'hi', wantAck: true, hopLimit: 0 }],
  ])('refuses %s', async (_what, body) => {
    const service = await startService()
    expect(await service.send(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(countMessages(service)).toBe(0)
  })

  it('refuses an invalid Idempotency-Key', async () => {
    const service = await startService()
    const answer = await service.send({ text: 'hi' }, { 'Idempotency-Key': 'two words' })
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: 'Idempotency-Key' }] } })
  })

  it('needs the permission', async () => {
    const service = await startService()
    const reader = await service.app.user('reader', { messages: { read: true, write: false } })
    const statuses = await Promise.all(
      [service.app.client(), reader, await service.app.admin()].map(
        async (client) => (await client.send('POST', '/api/messages', { text: 'hi' })).status,
      ),
    )
    expect(statuses).toStrictEqual([401, 403, 202])
    expect(countMessages(service)).toBe(1)
  })

  it("does not mistake its own message for another node's when it comes back", async () => {
    const service = await startService()
    await service.send({ text: 'echo' })
    const { id, payloadVariant } = await service.sent()
    const value = { from: OWN, to: BROADCAST, id, viaMqtt: true, hopStart: 3, hopLimit: 2, payloadVariant }
    const end = fromRadio({ case: 'queueStatus', value: { free: 3, maxlen: 16, meshPacketId: id } })
    service.device.send(fromRadio({ case: 'packet', value }), end)
    await until(() => expect(service.radio.links()[0]?.queue?.free).toBe(3))
    await service.untilState('sent')
    service.clock.advance(100)
    await until(() => expect(service.radio.waiting()).toBe(0))
    await service.send({ text: 'end' })
    expect(countMessages(service)).toBe(2)
    const [own] = service.store.sqlite.prepare('select direction, sent_by, hops_away from messages order by id').all()
    expect(own).toStrictEqual({ direction: 'out', sent_by: 'sender', hops_away: null })
  })
})

describe('POST /api/traceroutes', () => {
  it('traces the route to a node', async () => {
    const service = await startService()
    const answer = await service.sender.send('POST', '/api/traceroutes', { to: '!a0cb0002' })
    const packet = await service.sent()
    expect([answer.status, await answer.json()]).toStrictEqual([
      202,
      {
        traceroute: {
          id: 1,
          requestId: packet.id,
          fromNodeNum: OWN,
          fromNodeId: '!a0cb0001',
          toNodeNum: FAR,
          toNodeId: '!a0cb0002',
          timestamp: service.clock.now(),
          answeredAt: null,
          state: 'queued',
          routingError: null,
          route: null,
          snrTowards: null,
          routeBack: null,
          snrBack: null,
          requestedBy: 'sender',
          radio: `127.0.0.1:${service.device.port}`,
        },
      },
    ])
    expect(packet).toMatchObject({ to: FAR, hopLimit: 2, wantAck: true })
    expect(packet.payloadVariant.value).toMatchObject({ portnum: PortNum.TRACEROUTE_APP, wantResponse: true })
    expect(auditRows(service.app).at(-1)).toStrictEqual({
      action: 'message_sent',
      username: 'sender',
      details: { kind: 'traceroute', packetId: packet.id, to: FAR },
    })
    service.answer(packet.id, OWN, 8)
    const states = () => service.store.sqlite.prepare('select state, routing_error error from traceroutes').all()
    await until(() => expect(states()).toStrictEqual([{ state: 'failed', error: 'NO_RESPONSE' }]))
  })

  it.each([{ to: OWN }, { to: BROADCAST }, {}, { to: FAR, channel: 1 }])('refuses %j', async (body) => {
    const service = await startService()
    expect((await service.sender.send('POST', '/api/traceroutes', body)).status).toBe(400)
    expect(service.radio.reserve('traceroute').packetId).toBeGreaterThan(0)
  })
})
