import { create, toBinary } from '@bufbuild/protobuf'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RoutingSchema } from '../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../src/meshtastic/gen/ports_pb.ts'
import { ADMIN_PASSWORD, type Client, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { type Built, buildService, type Service, startService } from '../support/built/built-service.ts'
import { type Gate, startGate } from '../support/gate.ts'
import { MEASUREMENTS } from '../support/mesh/measurements.ts'
import { FAR, LOCAL, packet, telemetry, text } from '../support/mesh/mesh.ts'
import { fromRadio, type RadioDevice, smallHandshake, startRadioDevice } from '../support/radio/device.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

const KEY = 'a channel key of 32 characters !!'

let built: Built
let workerd: Workerd
let admin: Client
let gate: Gate
let device: RadioDevice
let dataDir: string
let token: string
let service: Service

beforeAll(async () => {
  built = buildService()
  workerd = await openWorkerd(SCENARIO_ENV)
  admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
  const made = await admin.send('POST', '/api/tokens', { name: 'hill', scopes: ['ingest', 'radio'] })
  token = String(Object(made.body).token)
  gate = await startGate(workerd.url)
  const secret = fromRadio({
    case: 'channel',
    value: { index: 1, role: 2, settings: { name: 'Team', psk: new TextEncoder().encode(KEY) } },
  })
  const lora = fromRadio({
    case: 'config',
    value: { payloadVariant: { case: 'lora', value: { hopLimit: 3, txEnabled: true } } },
  })
  const network = fromRadio({
    case: 'config',
    value: { payloadVariant: { case: 'network', value: { wifiSsid: 'home', wifiPsk: KEY } } },
  })
  device = await startRadioDevice({
    handshake(nonce) {
      const all = smallHandshake(nonce)
      return [secret, ...all.slice(0, -1), lora, network, ...all.slice(-1)]
    },
  })
  dataDir = mkdtempSync(join(tmpdir(), 'mesh-collector-'))
  service = await startCollector()
})
afterAll(async () => {
  await service.stop('SIGKILL')
  await device.stop()
  await gate.stop()
  await workerd.close()
  rmSync(dataDir, { recursive: true })
})

function startCollector(): Promise<Service> {
  return startService(built, {
    DATA_DIR: dataDir,
    ADMIN_PASSWORD,
    MESHTASTIC_TCP: `127.0.0.1:${device.port}`,
    COLLECTOR_TARGET_URL: gate.url,
    COLLECTOR_TOKEN: token,
    COLLECTOR_NAME: 'hill',
    COLLECTOR_DOWNLINK: 'texts,traceroutes,requests,settings',
  })
}

/** The status of the collecting service at the radio. */
async function infoOf({ url }: Service): Promise<() => Promise<Record<string, unknown>>> {
  const local = await signIn({ ...workerd, url: new URL(url) }, 'admin', ADMIN_PASSWORD)
  return async () => Object((await local.send('GET', '/api/info')).body)
}

const heard: string[] = []

/** The radio hears a text. */
function hear(words: string): void {
  heard.push(words)
  device.send(fromRadio(packet(text(words))))
}

const texts = async () => {
  const rows = await workerd.sql('select text from messages order by id')
  return rows.map((row) => String(row['text']))
}
const untilDelivered = () => expect.poll(texts, { interval: 100 }).toStrictEqual(heard)

test('what a radio reports is on the edge, without its keys', async () => {
  await device.next('heartbeat')
  hear('over the hill')
  const power = { case: 'deviceMetrics', value: { batteryLevel: 77 } } as const
  device.send(fromRadio(packet(telemetry({ variant: power }))))
  await untilDelivered()
  await expect
    .poll(async () => (await admin.send('GET', '/api/nodes')).body)
    .toEqual(
      expect.arrayContaining([
        expect.objectContaining({ nodeNum: LOCAL, longName: 'Test Radio', isLocal: true }),
        expect.objectContaining({
          nodeNum: FAR,
          longName: 'Far Hill',
          deviceMetrics: expect.objectContaining({ batteryLevel: 77 }),
        }),
      ]),
    )
  const { channels } = Object((await admin.send('GET', '/api/channels')).body)
  expect(channels).toContainEqual(expect.objectContaining({ index: 1, name: 'Team' }))
  const [source] = await workerd.sql('select kind, name from sources')
  expect(source).toStrictEqual({ kind: 'ingest', name: `hill/127.0.0.1:${device.port}` })
  expect(service.lines.join('\n')).not.toContain(token)
  expect(service.lines.join('\n')).not.toMatch(/reject/)
  expect(workerd.logged().join('\n')).not.toContain(KEY)
})

test('nothing is lost while the edge is unreachable, and the service says so', async () => {
  const info = await infoOf(service)
  const collector = async () => (await info())['collector']
  gate.mode = 'shut'
  for (let n = 0; n < 20; n++) hear(`away ${n}`)
  const reason = expect.stringMatching(/^the target cannot be reached/)
  await expect.poll(collector).toMatchObject({ state: 'waiting', waiting: 20, reason })
  gate.mode = 'open'
  await untilDelivered()
  await expect.poll(collector).toMatchObject({ state: 'idle', waiting: 0, reason: null, dropped: 0 })
})

test('lost answers and a killed collector cause no duplicates', async () => {
  gate.mode = 'deaf'
  for (let n = 0; n < 20; n++) hear(`unconfirmed ${n}`)
  await expect.poll(() => gate.lost()).toBeGreaterThan(0)
  await untilDelivered()
  await service.stop('SIGKILL')
  gate.mode = 'open'
  service = await startCollector()
  const info = await infoOf(service)
  await expect.poll(info).toMatchObject({ links: [{ state: 'connected' }] })
  hear('after the kill')
  await untilDelivered()
  const [log] = await workerd.sql(
    'select count(*) as n, count(distinct e.value) as packets from packet_pages g, json_each(g.keys) e',
  )
  expect(log).toStrictEqual({ n: heard.length + 1, packets: heard.length + 1 })
  const [measured] = await workerd.sql(`select count(*) as n from ${MEASUREMENTS}`)
  expect(measured).toStrictEqual({ n: 1 })
})

/** The radio says that the receiver of a packet has acknowledged it. */
function acknowledge(requestId: number): void {
  const payload = toBinary(RoutingSchema, create(RoutingSchema, { variant: { case: 'errorReason', value: 0 } }))
  const data = { portnum: PortNum.ROUTING_APP, payload, requestId }
  const packet = { from: FAR, to: LOCAL, id: requestId - 1, rxRssi: -70 }
  device.send(
    fromRadio({ case: 'packet', value: { ...packet, payloadVariant: { case: 'decoded', value: data } } } as const),
  )
}

const sentIds = () =>
  device.received.flatMap(({ payloadVariant }) => (payloadVariant.case === 'packet' ? [payloadVariant.value.id] : []))

test('a text from the edge is sent by the radio of the collector, once, also if that is killed', async () => {
  const sends = async () => Object((await admin.send('GET', '/api/info')).body).sources[0].sends
  const send = async (words: string) => {
    const answer = await admin.send('POST', '/api/messages', { text: words, to: FAR })
    expect([answer.status, Object(answer.body).message.deliveryState]).toStrictEqual([202, 'waiting'])
    return Number(Object(answer.body).message.packetId)
  }
  const state = async (packetId: number) => {
    const { messages } = Object((await admin.send('GET', '/api/messages')).body)
    return messages.find((one: { packetId: number }) => one.packetId === packetId).deliveryState
  }
  await expect.poll(sends).toStrictEqual(['texts', 'traceroutes', 'requests', 'settings'])
  const first = await send('from the edge')
  await expect.poll(sentIds).toStrictEqual([first])
  await expect.poll(() => state(first)).toBe('sent')
  acknowledge(first)
  await expect.poll(() => state(first)).toBe('delivered')
  const asked = await admin.send('POST', `/api/nodes/${FAR}/requests`, { kind: 'position' })
  const { requestId, ...waiting } = Object(asked.body).request
  expect([asked.status, waiting.state]).toStrictEqual([202, 'waiting'])
  const request = async () => Object((await admin.send('GET', `/api/nodes/${FAR}/requests`)).body).requests[0]
  await expect.poll(request).toMatchObject({ requestId, state: 'sent', requestedBy: 'admin' })
  await service.stop('SIGKILL')
  const second = await send('to a collector that is down')
  service = await startCollector()
  await expect.poll(sentIds).toStrictEqual([first, requestId, second])
  await expect.poll(() => state(second)).toBe('sent')
  await service.stop('SIGKILL')
  service = await startCollector()
  await expect.poll(() => state(second)).toBe('unknown')
  expect([sentIds(), await state(first)]).toStrictEqual([[first, requestId, second], 'delivered'])
})

test('settings without secrets are on the edge, and are changed from there', async () => {
  const read = async () => Object((await admin.send('GET', '/api/configuration/lora')).body)
  await expect.poll(read).toMatchObject({ editable: true, values: { hopLimit: 3 }, secrets: {} })
  const { sections } = Object((await admin.send('GET', '/api/configuration')).body)
  expect(sections.map((one: { section: string }) => one.section)).toStrictEqual(['lora', 'owner'])
  const { revision } = await read()
  const asked = await admin.send('PUT', '/api/configuration/lora', { values: { hopLimit: 4 }, revision })
  expect(asked).toMatchObject({ status: 202, body: { change: { state: 'waiting', fields: ['hopLimit'] } } })
  // This radio does not know what to do with it.
  await expect.poll(async () => (await read()).lastChange.state).not.toBe('waiting')
  expect(JSON.stringify(await workerd.sql('select * from device_config'))).not.toContain(KEY)
})

test('the service stops at once, even during a delivery', async () => {
  gate.mode = 'deaf'
  hear('the last word')
  await expect.poll(texts).toContain('the last word')
  expect(await service.stop('SIGTERM')).toBe(0)
})
