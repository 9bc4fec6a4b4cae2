import { afterEach, expect, it } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { openRadio } from '../../../src/node/radio/radio.ts'
import { type Client, createTestApp, START } from '../../support/app.ts'
import { textPacket } from '../../support/mesh/mesh.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { type MqttBroker, startMqttBroker } from '../../support/radio/mqtt-broker.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

type Sources = {
  readonly devices: readonly [RadioDevice, RadioDevice]
  readonly broker: MqttBroker
  readonly admin: Client
  readonly logged: readonly string[]
  get(path: string): Promise<Record<string, unknown>>
  /** Until everything heard so far is stored. */
  stored(count: number): Promise<void>
}

/** Two radios and a broker at once. */
async function startSources(): Promise<Sources> {
  const devices = [await startRadioDevice(), await startRadioDevice()] as const
  const broker = await startMqttBroker({ login: { username: 'club', password: 'hidden-word' } })
  endings.push(() => Promise.all([...devices.map((device) => device.stop()), broker.stop()]))
  const url = new URL(broker.url)
  Object.assign(url, { username: 'club', password: 'hidden-word' })
  const parsed = parseConfig({
    MESHTASTIC_TCP: devices.map(({ port }) => `127.0.0.1:${port}`).join(','),
    MESHTASTIC_MQTT_URL: String(url),
  })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const clock = createManualClock(START)
  const store = openMemoryStore()
  endings.push(() => store.close())
  const logged: string[] = []
  const tell = (...line: unknown[]) => logged.push(JSON.stringify(line))
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const radio = openRadio({ config: parsed.config, store, log, clock })
  radio.start()
  endings.push(() => radio.close())
  const app = await createTestApp({ store, ports: { radio } })
  await until(() => expect(radio.links().map(({ state }) => state)).toStrictEqual(Array(3).fill('connected')))
  const admin = await app.admin()
  return {
    devices,
    broker,
    admin,
    logged,
    get: async (path) => Object(await (await admin.send('GET', path)).json()),
    stored: (count) =>
      until(() => {
        clock.advance(100)
        expect(store.sqlite.prepare('select count(*) from receptions').pluck().get()).toBe(count)
      }),
  }
}

it('one packet that two radios and three gateways hear is one message with five receptions', async () => {
  const { devices, broker, get, stored } = await startSources()
  const value = textPacket(9, 'to all')
  for (const device of devices) device.send(fromRadio({ case: 'packet', value }))
  for (const gateway of [0xa, 0xb, 0xc]) await broker.publishPacket(value, gateway)
  await broker.publishPacket(value, 0xa)
  await stored(5)
  const { messages } = await get('/api/messages')
  expect(messages).toMatchObject([{ packetId: 9, text: 'to all', hopsAway: 1 }])
  expect(messages).toHaveLength(1)
  const { receptions } = await get('/api/messages/1/receptions')
  const ways = Array.isArray(receptions) ? receptions.map(({ source, gateway }) => `${source} ${gateway}`) : []
  const brokerName = broker.url
  expect(ways.toSorted((a, b) => a.localeCompare(b))).toStrictEqual(
    [
      ...devices.map(({ port }) => `127.0.0.1:${port} null`),
      ...[10, 11, 12].map((gateway) => `${brokerName} ${gateway}`),
    ].toSorted((a, b) => a.localeCompare(b)),
  )
})

it('each link has its state and reason in /api/info, without the password of the broker', async () => {
  const { devices, broker, get, stored, logged } = await startSources()
  devices[1].kick()
  broker.kick()
  await until(async () => {
    const { links } = await get('/api/info')
    expect(links).toMatchObject([
      { kind: 'tcp', state: 'connected', reason: null, radio: { nodeNum: 0xa0cb0001 } },
      { kind: 'tcp', state: 'waiting', reason: expect.stringMatching(/^the radio (closed|reset) the connection$/) },
      { kind: 'mqtt', name: broker.url, state: 'waiting', radio: null },
    ])
  })
  await until(async () => {
    await stored(0)
    const { links } = await get('/api/info')
    expect(links).toMatchObject([{ reconnects: 0 }, { reconnects: 1 }, { reconnects: 1, state: 'connected' }])
  })
  const { channels } = await get('/api/channels')
  expect(JSON.stringify([await get('/api/info'), channels, logged])).not.toContain('hidden-word')
})

it('texts are sent by the first radio that is connected', async () => {
  const { devices, admin } = await startSources()
  await admin.send('POST', '/api/messages', { text: 'by the first' })
  expect((await devices[0].next('packet')).payloadVariant.case).toBe('packet')
  devices[0].kick()
  await until(async () => {
    const answer = await admin.send('POST', '/api/messages', { text: 'by the second' })
    expect(answer.status).toBe(202)
    expect(devices[1].received.map(({ payloadVariant }) => payloadVariant.case)).toContain('packet')
  })
})
