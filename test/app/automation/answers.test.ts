import { describe, expect, test } from 'vitest'
import { MeshPacket_TransportMechanism } from '../../../src/meshtastic/gen/packet_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { auditRows } from '../../support/app.ts'
import {
  ACKNOWLEDGE,
  createTestAutomation,
  HOUR,
  MINUTE,
  SCHEDULE,
  type TestAutomation,
} from '../../support/automation.ts'
import { createSigner } from '../../support/mesh/signer.ts'
import { FAR, heard, LOCAL, nodeInfo, packet, seconds, text, user } from '../../support/mesh/mesh.ts'

const OTHER_NODE = 0xa0cb0003

test("a text signed in another sender's name is not answered and does not block the true one", async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  const node = createSigner(1)
  const liar = createSigner(2, node.nodeNum)
  await t.hear(heard(node.packet(node.user({ longName: 'Hill' })), { at: t.app.clock.now }))
  await t.hear(heard(liar.packet(text('ping'), { id: 78 }), { at: t.app.clock.now }))
  expect(t.radio.sent).toHaveLength(0)
  expect(await t.lastRun(id)).toBe('skipped spoof_suspected')
  t.restart()
  await t.hear(heard(node.packet(text('ping'), { id: 78 }), { at: t.app.clock.now }))
  expect(t.radio.sent).toHaveLength(1)
  t.app.clock.advance(2 * MINUTE)
  await t.say('ping', { from: node.nodeNum })
  expect(await t.lastRun(id)).toBe('skipped spoof_suspected')
})

test('a matching text is answered once, by a reply, and recorded', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  await t.say('Ping?', { id: 77 })
  const { messages } = Object(await (await t.admin.send('GET', '/api/messages?limit=2')).json())
  expect(messages).toMatchObject([
    {
      text: 'heard you, FH',
      replyId: 77,
      channel: 0,
      toNodeId: '!ffffffff',
      direction: 'out',
      deliveryState: 'queued',
      sentBy: 'automation:Ping',
    },
    { text: 'Ping?', packetId: 77, direction: 'in' },
  ])
  expect(t.radio.sent).toHaveLength(1)
  const packets = [{ fromNodeNum: LOCAL, packetId: 1, toNodeNum: 0xffffffff, channel: 0 }]
  expect(await t.runs(id)).toMatchObject([
    { outcome: 'sent', reason: null, triggeredBy: FAR, text: 'heard you, FH', count: 1, packets },
  ])
  expect(auditRows(t.app).filter(({ action }) => action === 'message_sent')).toStrictEqual([
    {
      action: 'message_sent',
      username: 'system',
      details: { packetId: 1, to: 0xffffffff, channel: 0, bytes: 13, automation: id },
    },
  ])
})

test('a direct message is answered directly, also by a reaction', async () => {
  const t = await createTestAutomation()
  await t.add({ ...ACKNOWLEDGE, channels: [], answer: { kind: 'tapback', emoji: '👍' } })
  await t.say('ping', { to: LOCAL, id: 78, channel: 3, pkiEncrypted: true })
  await t.say('ping', { to: OTHER_NODE, id: 79 })
  await t.say('ping', { id: 80 })
  const { messages } = Object(await (await t.admin.send('GET', '/api/messages')).json())
  const answers = messages.filter(({ direction }: { direction: string }) => direction === 'out')
  expect(answers).toMatchObject([{ text: '👍', emoji: true, replyId: 78, toNodeNum: FAR, channel: 0 }])
})

test('a channel message can be answered to its sender alone', async () => {
  const t = await createTestAutomation()
  const answer = {
    kind: 'text',
    direct: true,
    text: '{senderLongName} {senderId} {hops} hops {snr} dB {rssi} dBm {longName}',
  }
  await t.add({ ...ACKNOWLEDGE, channels: [2], answer })
  await t.say('ping', { channel: 2, hopStart: 5, hopLimit: 3 })
  const sent = t.app.store.sqlite
    .prepare("select text, to_node_num, channel from messages where direction = 'out'")
    .all()
  const words = 'Far Hill !a0cb0002 2 hops 6.25 dB -70 dBm Test Radio'
  expect(sent).toStrictEqual([{ text: words, to_node_num: FAR, channel: 2 }])
})

test('a message that came from a broker first is answered when it is heard by air', async () => {
  const t = await createTestAutomation()
  await t.add(ACKNOWLEDGE)
  await t.say('ping', { id: 91, viaMqtt: true })
  expect(t.texts()).toHaveLength(0)
  await t.say('ping', { id: 91 })
  expect(t.texts()).toHaveLength(1)
})

describe('is not answered', () => {
  const byWhat: Record<string, [reason: string, (t: TestAutomation) => Promise<unknown>]> = {
    'a message of our own radio': ['own_message', (t) => t.say('ping', { from: LOCAL })],
    'a packet from the memory of the radio': ['replayed', (t) => t.say('ping', { replayed: true })],
    'what the radio hands down from a broker': ['via_mqtt', (t) => t.say('ping', { viaMqtt: true })],
    'what the radio itself fetches from a broker': [
      'via_mqtt',
      (t) => t.say('ping', { transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_MQTT }),
    ],
    'a packet older than 5 minutes': [
      'too_old',
      (t) => t.say('ping', { rxTime: seconds(t.app.clock.now - 5 * MINUTE - 1000) }),
    ],
    'an ignored node': [
      'ignored_node',
      async (t) => {
        expect((await t.admin.send('PUT', `/api/nodes/${FAR}`, { isIgnored: true })).status).toBe(200)
        await t.say('ping')
      },
    ],
    'a reply': ['is_answer', (t) => t.say('ping', { data: { replyId: 5 } })],
    'a reaction': ['is_answer', (t) => t.say('ping', { data: { replyId: 5, emoji: 1 } })],
    'an unattended device': [
      'bot',
      async (t) => {
        await t.hear(heard(packet(user({ id: '!a0cb0002', longName: 'Far Hill', shortName: 'FH', role: 6 }))))
        await t.say('ping')
      },
    ],
    'what reads like an automatic answer': ['bot', (t) => t.say('🤖 ping back')],
    'the alarm of a sensor': ['bot', (t) => t.say('ping', { data: { portnum: PortNum.DETECTION_SENSOR_APP } })],
    'a busy channel': [
      'channel_busy',
      async (t) => {
        await t.measure(25.1)
        await t.say('ping')
      },
    ],
    'while the radio is away': [
      'radio_unavailable',
      (t) => {
        t.radio.state = 'waiting'
        return t.say('ping')
      },
    ],
    'while the radio must not transmit': [
      'tx_disabled',
      (t) => {
        t.radio.txEnabled = false
        return t.say('ping')
      },
    ],
    'while the queue is full': [
      'queue_full',
      (t) => {
        t.radio.isFull = true
        return t.say('ping')
      },
    ],
  }
  test.each(Object.entries(byWhat))('%s', async (_, [reason, cause]) => {
    const t = await createTestAutomation()
    const id = await t.add(ACKNOWLEDGE)
    await cause(t)
    expect(t.radio.sent).toStrictEqual([])
    expect(await t.runs(id)).toMatchObject([{ outcome: 'skipped', reason }])
    expect(await t.lastRun(id)).toBe(`skipped ${reason}`)
    expect(t.texts()).toStrictEqual([])
  })

  test('in quiet hours, by the time zone of the rule, across midnight', async () => {
    const t = await createTestAutomation()
    // 12:00 UTC in January is 07:00 in New York.
    const quietHours = { from: '22:30', to: '07:01' }
    const id = await t.add({ ...ACKNOWLEDGE, timeZone: 'America/New_York', quietHours })
    await t.say('ping')
    expect(await t.lastRun(id)).toBe('skipped quiet_hours')
    t.app.clock.advance(MINUTE)
    await t.say('ping')
    expect(await t.lastRun(id)).toBe('sent')
  })

  test('from node number 0 or the broadcast number', async () => {
    const t = await createTestAutomation()
    const id = await t.add(ACKNOWLEDGE)
    for (const from of [0, 0xffffffff]) {
      await t.say('ping', { from })
      await t.say('ping', { from, to: LOCAL })
    }
    expect(await t.runs(id)).toStrictEqual([])
    expect(t.radio.sent).toStrictEqual([])
  })

  test('without a match, or heard by another radio or the broker', async () => {
    const t = await createTestAutomation()
    const id = await t.add(ACKNOWLEDGE)
    await t.say('pinging the mesh')
    await t.say('ping', { channel: 1 })
    for (const source of [
      { kind: 'tcp', name: 'radio-2' } as const,
      { kind: 'mqtt', name: 'mqtt://broker' } as const,
    ]) {
      await t.hear(heard(packet(text('ping')), { at: t.app.clock.now, source }))
    }
    expect(await t.runs(id)).toStrictEqual([])
    expect(t.radio.sent).toStrictEqual([])
  })
})

test('a copy is not answered again by this process or the next', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  const once = packet(text('ping'), { id: 4711 })
  await t.hear(heard(once, { at: t.app.clock.now }))
  t.app.clock.advance(2 * MINUTE)
  await t.hear(heard(once, { at: t.app.clock.now }))
  t.restart()
  t.app.clock.advance(2 * MINUTE)
  await t.hear(heard(once, { at: t.app.clock.now }))
  expect(t.radio.sent).toHaveLength(1)
  expect(await t.runs(id)).toMatchObject([
    { outcome: 'skipped', reason: 'duplicate', count: 2 },
    { outcome: 'sent', count: 1 },
  ])
})

test('a message that got no answer when it came gets none when a copy comes', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  await t.say('ping', { from: OTHER_NODE })
  const once = packet(text('ping'))
  await t.hear(heard(once, { at: t.app.clock.now }))
  expect(await t.lastRun(id)).toBe('skipped cooldown')
  t.app.clock.advance(MINUTE)
  await t.hear(heard(once, { at: t.app.clock.now }))
  expect(await t.lastRun(id)).toBe('skipped duplicate')
  expect(t.radio.sent).toHaveLength(1)
})

test('a scheduled message is not an answer', async () => {
  const t = await createTestAutomation()
  await t.add({ ...SCHEDULE, cron: '1 12 * * *' })
  await t.add(ACKNOWLEDGE)
  expect(await t.pass(MINUTE)).toBe(1)
  await t.say('ping')
  expect(t.radio.sent).toHaveLength(2)
  const { answersLastHour } = Object(await (await t.admin.send('GET', '/api/automation')).json())
  expect(answersLastHour).toBe(1)
})

test('a text that the broker delivers before the radio is still answered', async () => {
  const t = await createTestAutomation()
  await t.add(ACKNOWLEDGE)
  const once = packet(text('ping'))
  const at = t.app.clock.now
  await t.hear(heard(once, { at, source: { kind: 'mqtt', name: 'mqtt://broker' } }))
  await t.hear(heard(once, { at }))
  expect(t.radio.sent).toHaveLength(1)
})

test('a copy of an unanswered message is not answered after a restart either', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  await t.say('ping', { id: 77 })
  await t.say('ping', { id: 78 })
  expect(await t.lastRun(id)).toBe('skipped cooldown_sender')
  t.app.clock.now += 2 * MINUTE
  t.restart()
  await t.say('ping', { id: 78, hopLimit: 2 })
  expect(await t.lastRun(id)).toBe('skipped duplicate')
  await t.say('ping', { id: 79 })
  expect(await t.lastRun(id)).toBe('sent')
  expect(t.radio.sent).toHaveLength(2)
})

test('one sender is answered once in 60 seconds, anybody once in 10, also after a restart', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  await t.say('ping')
  t.app.clock.advance(9_999)
  t.restart()
  await t.say('ping', { from: OTHER_NODE })
  expect(await t.lastRun(id)).toBe('skipped cooldown')
  t.app.clock.advance(1)
  await t.say('ping', { from: OTHER_NODE })
  expect(await t.lastRun(id)).toBe('sent')
  t.app.clock.advance(49_999)
  t.restart()
  await t.say('ping')
  expect(await t.lastRun(id)).toBe('skipped cooldown_sender')
  t.app.clock.advance(1)
  await t.say('ping')
  expect(await t.lastRun(id)).toBe('sent')
  expect(t.radio.sent).toHaveLength(3)
  // The row of the first such skip is older than the last answer.
  t.app.clock.advance(1)
  await t.say('ping', { from: 4000 })
  expect(await t.lastRun(id)).toBe('skipped cooldown')
})

test('at most 20 answers an hour over all rules, whatever is saved or deleted', async () => {
  const t = await createTestAutomation()
  const first = await t.add(ACKNOWLEDGE)
  const second = await t.add({ ...ACKNOWLEDGE, name: 'Test', match: { words: ['test'] } })
  for (let n = 0; n < 20; n += 1) {
    await t.say(n % 2 === 0 ? 'ping' : 'test', { from: 1000 + n })
    t.app.clock.advance(MINUTE)
  }
  expect(t.radio.sent).toHaveLength(20)
  await t.say('test', { from: 2000 })
  expect(await t.lastRun(second)).toBe('skipped hourly_limit')
  expect((await t.admin.send('DELETE', `/api/automation/${first}`)).status).toBe(204)
  const third = await t.add(ACKNOWLEDGE)
  t.restart()
  await t.say('ping', { from: 2001 })
  expect(await t.lastRun(third)).toBe('skipped hourly_limit')
  const { answersLastHour } = Object(await (await t.admin.send('GET', '/api/automation')).json())
  expect(answersLastHour).toBe(20)
  // An hour after the first one.
  t.app.clock.advance(HOUR - 20 * MINUTE)
  await t.say('ping', { from: 2002 })
  expect(t.radio.sent).toHaveLength(21)
})

test("an automation is never triggered by an automation's own words, however they return", async () => {
  const t = await createTestAutomation()
  const answer = { kind: 'text', text: 'ping received' }
  const id = await t.add({ ...ACKNOWLEDGE, answer })
  await t.say('ping')
  for (const echo of ['ping received', '[relay] Ping received!']) {
    t.app.clock.advance(MINUTE)
    await t.say(echo, { from: OTHER_NODE })
    expect(await t.lastRun(id)).toBe('skipped echo')
  }
  await t.say('ping', { from: 3000 })
  expect(t.radio.sent).toHaveLength(2)
})

test('a channel that was busy an hour ago does not block an answer now', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  await t.measure(80)
  expect(await t.get(id)).toMatchObject({ state: 'blocked', blockedBy: 'channel_busy' })
  t.app.clock.advance(HOUR)
  await t.say('ping')
  expect(t.radio.sent).toHaveLength(1)
  expect(await t.get(id)).toMatchObject({ state: 'ready', blockedBy: null })
})

test('equal skips within an hour are one row', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ACKNOWLEDGE)
  for (let n = 0; n < 50; n += 1) await t.say('ping', { from: LOCAL })
  const at = t.app.clock.now
  t.app.clock.advance(HOUR)
  await t.say('ping', { from: LOCAL })
  expect(await t.runs(id)).toMatchObject([
    { reason: 'own_message', count: 1, at: at + HOUR },
    { reason: 'own_message', count: 50, at, lastAt: at },
  ])
})

test('an overlong sender name does not make the text too long', async () => {
  const t = await createTestAutomation()
  const id = await t.add({ ...ACKNOWLEDGE, answer: { kind: 'text', text: '{senderLongName}'.repeat(5) } })
  await t.hear(heard(nodeInfo({ num: FAR, user: { longName: 'ä'.repeat(39), shortName: 'FH' } })))
  await t.say('ping')
  expect(await t.lastRun(id)).toBe('sent')
  expect(t.texts()).toStrictEqual(['ä'.repeat(19).repeat(5)])
})
