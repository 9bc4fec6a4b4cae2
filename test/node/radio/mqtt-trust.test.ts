import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { connectAsync as connectMqtt } from 'mqtt'
import { createMqttLink, type MqttLinkOptions } from '../../../src/node/radio/mqtt/mqtt.ts'
import { textPacket } from '../../support/mesh/mesh.ts'
import { envelopeOf } from '../../support/radio/mqtt-broker.ts'
import { type WatchedLink, watchLink } from '../../support/radio/watched-link.ts'
import { type Mosquitto, type MosquittoOptions, startMosquitto } from '../../support/servers/mosquitto.ts'

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8')
const authority = pem('authority')
const tls = { key: pem('broker-key'), cert: pem('broker') }
const { fingerprint256: fingerprint } = new X509Certificate(tls.cert)
const other = new X509Certificate(authority).fingerprint256
const login = { username: 'club', password: 'a word with @ and /' }

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

async function startBroker(options: MosquittoOptions = {}): Promise<Mosquitto> {
  const broker = await startMosquitto(options)
  endings.push(() => broker.stop())
  return broker
}

function listenTo(broker: Mosquitto, options: Partial<MqttLinkOptions> = {}): WatchedLink {
  const timings = { backoffFirstMs: 2, backoffMaxMs: 4 }
  const link = watchLink((events) =>
    createMqttLink({ name: 'broker', url: broker.url, topics: ['msh/#'], keys: [], timings, ...events, ...options }),
  )
  endings.push(() => link.stop())
  link.start()
  return link
}

/** Publishes one text as a gateway at each topic. */
async function publish(broker: Mosquitto, ids: Readonly<Record<string, number>>, options: object = {}): Promise<void> {
  const client = await connectMqtt(broker.url, options)
  for (const [topic, id] of Object.entries(ids)) {
    await client.publishAsync(topic, Buffer.from(await envelopeOf(textPacket(id, 'hi'), 0xa)), { qos: 1 })
  }
  await client.endAsync()
}

const idsOf = (link: WatchedLink) =>
  link.received.flatMap(({ event }) => (event.type === 'packet' ? event.packet.id : []))
const untilPacket = (link: WatchedLink, id: number) =>
  link.untilEvent((event) => event.type === 'packet' && event.packet.id === id)

it('listens to several topics, and to no other', async () => {
  const broker = await startBroker()
  const link = listenTo(broker, { topics: ['msh/EU_868/#', 'club/+/2/e/#'] })
  await link.until('connected')
  await publish(broker, {
    'msh/EU_868/2/e/LongFast/!0000000a': 1,
    'msh/US/2/e/LongFast/!0000000a': 2,
    'club/north/2/e/LongFast/!0000000a': 3,
  })
  await untilPacket(link, 3)
  expect(idsOf(link)).toStrictEqual([1, 3])
})

it('signs in with a name and a password that stand beside the address', async () => {
  const broker = await startBroker({ login })
  const link = listenTo(broker, { login })
  await link.until('connected')
  const wrong = listenTo(broker, { login: { ...login, password: 'wrong' } })
  expect((await wrong.until('waiting')).reason).toBe('the broker refuses the user name or password')
  expect(JSON.stringify([link.states, wrong.states])).not.toContain('a word')
})

it('says which topic the broker does not let it read', async () => {
  const acl = [`user ${login.username}`, 'topic read msh/EU_868/#', 'topic write #']
  const broker = await startBroker({ login, acl })
  const link = listenTo(broker, { login, topics: ['msh/EU_868/#'] })
  await link.until('connected')
  await publish(broker, { 'msh/US/2/e/LongFast/!0000000a': 1, 'msh/EU_868/2/e/LongFast/!0000000a': 2 }, login)
  await untilPacket(link, 2)
  expect(idsOf(link)).toStrictEqual([2])
})

it.each<[string, Partial<MqttLinkOptions>]>([
  ['its authority is the own one', { ca: authority }],
  ['it is the pinned one', { fingerprint }],
  ['it is the pinned one, written without colons', { fingerprint: fingerprint.replaceAll(':', '').toLowerCase() }],
])('accepts the certificate of a broker if %s', async (_name, options) => {
  const broker = await startBroker({ tls, login })
  const link = listenTo(broker, { login, ...options })
  await link.until('connected')
  const topic = 'msh/EU_868/2/e/LongFast/!0000000a'
  await publish(broker, { [topic]: 1 }, { ...login, ca: authority })
  await untilPacket(link, 1)
})

it.each<[string, Partial<MqttLinkOptions>, RegExp]>([
  ['nobody known has signed', {}, /was issued by an unknown authority/],
  ['another authority has signed', { ca: makeOther() }, /was issued by an unknown authority/],
  ['is not the pinned one', { fingerprint: other }, /is not the one that is pinned/],
  ['is not the pinned one, although its authority is known', { fingerprint: other, ca: authority }, /is not the one/],
])('does not accept a certificate that %s', async (_name, options, reason) => {
  const broker = await startBroker({ tls, login })
  const link = listenTo(broker, { login, ...options })
  expect((await link.until('waiting')).reason).toMatch(reason)
  expect((await link.until('waiting')).reason).toMatch(reason)
  expect(link.states.map(({ state }) => state)).not.toContain('connected')
})

/** A certificate that has signed nothing. */
function makeOther(): string {
  return tls.cert
}
