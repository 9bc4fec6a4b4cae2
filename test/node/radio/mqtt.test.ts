import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { numberChannel } from '../../../src/meshtastic/channel-identity.ts'
import { MapReportSchema, ServiceEnvelopeSchema } from '../../../src/meshtastic/gen/mqtt_pb.ts'
import { type MeshPacket, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { BROADCAST } from '../../../src/meshtastic/node-id.ts'
import { createMqttLink, type MqttLinkOptions } from '../../../src/node/radio/mqtt/mqtt.ts'
import { explainMqttError } from '../../../src/node/radio/mqtt/reasons.ts'
import { type MqttBroker, type MqttBrokerOptions, startMqttBroker } from '../../support/radio/mqtt-broker.ts'
import { type WatchedLink, watchLink } from '../../support/radio/watched-link.ts'

const LONG_FAST = numberChannel('8:LongFast')

const running: { stop(): void | Promise<void> }[] = []

afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.stop()
})

async function startBroker(options?: MqttBrokerOptions): Promise<MqttBroker> {
  const broker = await startMqttBroker(options)
  running.push(broker)
  return broker
}

function listenTo(url: string, options: Partial<MqttLinkOptions> = {}): WatchedLink {
  const timings = { backoffFirstMs: 2, backoffMaxMs: 4 }
  const link = watchLink((events) =>
    createMqttLink({ name: 'broker', url, topics: ['msh/#'], keys: [], timings, ...events, ...options }),
  )
  running.push(link)
  link.start()
  return link
}

function text(id: number, words: string): MeshPacket {
  const value = { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode(words) }
  return create(MeshPacketSchema, { from: 5, to: BROADCAST, id, payloadVariant: { case: 'decoded', value } })
}

const untilPacket = (link: WatchedLink, id: number) =>
  link.untilEvent((event) => event.type === 'packet' && event.packet.id === id)

describe('a link to a broker', () => {
  it('reports which gateway heard a packet, one event for each gateway', async () => {
    const broker = await startBroker()
    const link = listenTo(broker.url)
    await link.until('connected')
    for (const gateway of [0xa, 0xb, 0xc]) await broker.publishPacket(text(1, 'hi'), gateway)
    await broker.publishPacket(text(2, 'end'))
    await untilPacket(link, 2)
    const gateways = link.received.flatMap(({ event }) =>
      event.type === 'packet' && event.packet.id === 1 ? [event.gateway] : [],
    )
    expect(gateways).toStrictEqual([0xa, 0xb, 0xc])
  })

  it('stays connected while messages come, however long the answer to a ping waits behind them', async () => {
    const broker = await startBroker()
    const received: number[] = []
    const link = listenTo(broker.url, {
      timings: { heartbeatMs: 1000 },
      onFrames: async (batch) => {
        for (const { event } of batch) if (event.type === 'packet') received.push(event.packet.id)
        await wait(300)
      },
    })
    await link.until('connected')
    for (let id = 1; id <= 12; id++) await broker.publishPacket(text(id, 'slow'))
    await expect.poll(() => received.length).toBe(12)
    expect(broker.connections()).toBe(1)
  })

  it('names a channel before its first packet, once', async () => {
    const broker = await startBroker()
    const link = listenTo(broker.url)
    await link.until('connected')
    await broker.publishPacket(text(1, 'hi'))
    await broker.publishPacket(text(2, 'hi'))
    await untilPacket(link, 2)
    expect(link.received.map(({ event }) => event.type)).toStrictEqual(['channel', 'packet', 'packet'])
    expect(link.received[0]?.event).toMatchObject({
      channel: { index: LONG_FAST, name: 'LongFast', role: 'SECONDARY', identity: '8:LongFast' },
    })
    expect(link.received[1]?.event).toMatchObject({ packet: { channel: LONG_FAST } })
  })

  it('reports nothing new for retained messages', async () => {
    const broker = await startBroker()
    await broker.publishPacket(text(1, 'old'), 0xa, true)
    const link = listenTo(broker.url)
    expect((await untilPacket(link, 1)).event).toMatchObject({ replayed: true })
    await broker.publishPacket(text(2, 'new'))
    expect((await untilPacket(link, 2)).event).toMatchObject({ replayed: false })
  })

  it('passes on undecryptable packets as encrypted', async () => {
    const broker = await startBroker()
    const link = listenTo(broker.url)
    await link.until('connected')
    const packet = {
      from: 6,
      to: 7,
      id: 3,
      payloadVariant: { case: 'encrypted', value: Uint8Array.of(1, 2, 3) },
    } as const
    const envelope = create(ServiceEnvelopeSchema, { packet, channelId: 'PKI', gatewayId: '!0000000a' })
    await broker.publish('msh/2/e/PKI/!0000000a', toBinary(ServiceEnvelopeSchema, envelope))
    expect((await untilPacket(link, 3)).event).toMatchObject({ packet: { payload: { kind: 'encrypted' }, from: 6 } })
    expect(link.received.map(({ event }) => event.type)).toStrictEqual(['packet'])
  })

  it('reads map reports and leaves other topics alone', async () => {
    const broker = await startBroker()
    const link = listenTo(broker.url)
    await link.until('connected')
    await broker.publish('msh/EU_868/2/json/LongFast/!0000000a', new TextEncoder().encode('{"from": 1}'))
    await broker.publish('msh/EU_868/2/stat/!0000000a', new TextEncoder().encode('online'))
    const report = create(MapReportSchema, { longName: 'Far Hill', latitudeI: 498_000_000, longitudeI: 108_000_000 })
    const value = { portnum: PortNum.MAP_REPORT_APP, payload: toBinary(MapReportSchema, report) }
    const packet = { from: 9, to: BROADCAST, id: 4, payloadVariant: { case: 'decoded', value } } as const
    const envelope = create(ServiceEnvelopeSchema, { packet, channelId: 'LongFast', gatewayId: '!00000009' })
    await broker.publish('msh/EU_868/2/map/', toBinary(ServiceEnvelopeSchema, envelope))
    const { event } = await untilPacket(link, 4)
    expect(event).toMatchObject({
      gateway: 9,
      packet: { payload: { kind: 'mapreport', report: { longName: 'Far Hill', latitude: 49.8, longitude: 10.8 } } },
    })
    expect(link.received).toHaveLength(1)
  })

  it.each([
    ['an admin packet', PortNum.ADMIN_APP, 'admin'],
    ['a remote shell', PortNum.REMOTE_SHELL_APP, 'unknown'],
  ])('keeps the content of %s to itself', async (_, portnum, kind) => {
    const broker = await startBroker()
    const link = listenTo(broker.url)
    await link.until('connected')
    const value = { portnum, payload: new TextEncoder().encode('wifi password') }
    const packet = create(MeshPacketSchema, { from: 5, to: 6, id: 5, payloadVariant: { case: 'decoded', value } })
    await broker.publishPacket(packet)
    const { event, raw } = await untilPacket(link, 5)
    expect(event).toMatchObject({ packet: { payload: { kind }, bytes: new Uint8Array(0) } })
    expect(raw).toBeNull()
  })

  it.each([
    ['club', 'hidden-word'],
    ['a club', 'p@ss:w/ord?#%41[ü]:hidden-word'],
  ])('signs in as %s with the password of the URL, and never shows them', async (username, password) => {
    const broker = await startBroker({ login: { username, password } })
    const url = new URL(broker.url)
    url.username = encodeURIComponent(username)
    url.password = encodeURIComponent(password)
    const link = listenTo(String(url))
    await link.until('connected')
    url.password = 'other-word'
    const refused = listenTo(String(url))
    const { reason } = await refused.until('waiting')
    expect(reason).toBe('the broker refuses the user name or password')
    expect(JSON.stringify([link.states, refused.states])).not.toContain('-word')
  })

  it('trusts the configured authority, and explains why it does not trust another', async () => {
    const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8')
    const tls = { key: pem('broker-key'), cert: pem('broker') }
    const broker = await startBroker({ tls })
    const unknown = listenTo(broker.url)
    expect((await unknown.until('waiting')).reason).toBe(
      "the broker's certificate was issued by an unknown authority; add the authority's certificate to the connection",
    )
    const link = listenTo(broker.url, { ca: pem('authority') })
    await link.until('connected')
    await broker.publishPacket(text(1, 'hi'))
    await untilPacket(link, 1)
  })

  it.each([
    ['CERT_HAS_EXPIRED', "the broker's certificate has expired"],
    ['ERR_TLS_CERT_ALTNAME_INVALID', "the broker's certificate is for another host name"],
    [
      'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      'the TLS connection to the broker failed (ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE)',
    ],
  ])('explains %s', (code, reason) => {
    expect(explainMqttError(Object.assign(new Error('of TLS'), { code }))).toBe(reason)
  })

  it('reports that the broker refuses the topic', async () => {
    const broker = await startBroker({ refusesTopics: true })
    const link = listenTo(broker.url)
    expect((await link.until('waiting')).reason).toBe('the broker refuses the topic msh/#')
    expect(link.states.map(({ state }) => state)).not.toContain('connected')
  })
})

describe('variables of the broker', () => {
  const problems = (env: Record<string, string>) => {
    const result = parseConfig(env)
    return result.ok ? [] : result.problems
  }

  it('set URL, topic and keys', () => {
    const result = parseConfig({
      MESHTASTIC_MQTT_URL: 'mqtts://club:word@broker.example:8883',
      MESHTASTIC_MQTT_KEYS: 'Club=AQ==, Open=',
    })
    expect(result.ok && result.config.MESHTASTIC_MQTT_TOPIC).toBe('msh/#')
    expect(result.ok && result.config.MESHTASTIC_MQTT_KEYS.map(({ name, key }) => [name, key.length])).toStrictEqual([
      ['Club', 16],
      ['Open', 0],
    ])
  })

  it.each([
    ['MESHTASTIC_MQTT_URL', 'http://broker.example', '(not shown)'],
    ['MESHTASTIC_MQTT_TOPIC', 'msh/#/LongFast', '"msh/#/LongFast"'],
    ['MESHTASTIC_MQTT_KEYS', 'Club=secret!', '(not shown)'],
    ['MESHTASTIC_MQTT_PRIVATE_KEYS', '!a0cb0001=c2hvcnQ=', '(not shown)'],
  ])('report a wrong %s without its secret', (name, value, shown) => {
    expect(problems({ [name]: value })).toStrictEqual([expect.stringContaining(`${name}: found ${shown}, expected `)])
  })
})
