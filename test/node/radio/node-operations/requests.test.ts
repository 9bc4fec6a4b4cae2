import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, it } from 'vitest'
import { RouteDiscoverySchema, UserSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../../../src/meshtastic/gen/position_pb.ts'
import { TelemetrySchema } from '../../../../src/meshtastic/gen/telemetry_pb.ts'
import { BROADCAST } from '../../../../src/meshtastic/node-id.ts'
import { WHOLE_SCOPE } from '../../../../src/shared/access/scope.ts'
import { auditRows, type Client } from '../../../support/app.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import { FAR, OWN, packetsSent, type RadioService, startRadioService, until } from '../../../support/radio/service.ts'

const running: RadioService[] = []

afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
})

const MAY_ASK = { info: { read: true, write: true }, nodes: { read: true, write: false } }
const NEAR = 0xa0cb0003

async function start() {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  const ask = (kind: string, client: Client = admin, node: number | string = FAR) =>
    client.send('POST', `/api/nodes/${node}/requests`, { kind })
  const requests = async (): Promise<Record<string, unknown>[]> =>
    Object(await (await admin.send('GET', `/api/nodes/${FAR}/requests`)).json()).requests
  let id = 700
  const answer = (from: number, data: object, more: object = {}) => {
    const payloadVariant = { case: 'decoded', value: data } as const
    const signal = { rxRssi: -80, rxSnr: 4.5, hopStart: 3, hopLimit: 3 }
    const packet = { from, to: OWN, id: (id += 1), ...signal, ...more, payloadVariant }
    service.device.send(fromRadio({ case: 'packet', value: packet }))
  }
  return { service, admin, ask, requests, answer }
}

const dataOf = ({ payloadVariant }: Awaited<ReturnType<RadioService['sent']>>) => {
  if (payloadVariant.case !== 'decoded') throw new Error('not decoded')
  return payloadVariant.value
}

const place = toBinary(PositionSchema, create(PositionSchema, { latitudeI: 471234567, longitudeI: 81234567 }))

it('asks for a position without telling its own, and shows the answer', async () => {
  const { service, ask, requests, answer } = await start()
  expect((await ask('position')).status).toBe(202)
  const packet = await service.sent()
  expect(packet).toMatchObject({ to: FAR, channel: 0, hopLimit: 2, wantAck: true })
  const data = dataOf(packet)
  expect(data).toMatchObject({ portnum: PortNum.POSITION_APP, wantResponse: true })
  const asked = fromBinary(PositionSchema, data.payload)
  expect([asked.time, asked.latitudeI, asked.longitudeI]).toStrictEqual([
    Math.floor(service.clock.now() / 1000),
    undefined,
    undefined,
  ])
  await until(async () =>
    expect(await requests()).toMatchObject([{ kind: 'position', state: 'sent', answeredAt: null }]),
  )
  // Another node, and another kind of packet, answer nothing.
  answer(NEAR, { portnum: PortNum.POSITION_APP, payload: place, requestId: packet.id })
  answer(FAR, { portnum: PortNum.TELEMETRY_APP, payload: new Uint8Array(0), requestId: packet.id })
  service.answer(packet.id, OWN)
  await until(async () => expect(await requests()).toMatchObject([{ state: 'relayed', answeredAt: null }]))
  answer(FAR, { portnum: PortNum.POSITION_APP, payload: place, requestId: packet.id })
  await until(async () =>
    expect(await requests()).toMatchObject([
      { kind: 'position', nodeNum: FAR, state: 'delivered', answeredAt: service.clock.now(), requestedBy: 'admin' },
    ]),
  )
  expect(auditRows(service.app).filter(({ action }) => action === 'message_sent')).toMatchObject([
    { username: 'admin', details: { kind: 'position', packetId: packet.id, to: FAR } },
  ])
})

it('asks for measurements by their empty form, ten seconds apart, and says why there is no answer', async () => {
  const { service, ask, requests } = await start()
  const kinds = {
    device: 'deviceMetrics',
    environment: 'environmentMetrics',
    'air-quality': 'airQualityMetrics',
    power: 'powerMetrics',
    health: 'healthMetrics',
    'local-stats': 'localStats',
    host: 'hostMetrics',
  }
  let sent = 0
  for (const [kind, variant] of Object.entries(kinds)) {
    expect((await ask(kind)).status).toBe(202)
    if (sent > 0) {
      service.clock.advance(9999)
      expect(packetsSent(service)).toBe(sent)
      service.clock.advance(1)
    }
    const packet = await service.sent()
    sent += 1
    const { payload, ...data } = dataOf(packet)
    expect(data).toMatchObject({ portnum: PortNum.TELEMETRY_APP, wantResponse: true })
    expect(fromBinary(TelemetrySchema, payload).variant.case).toBe(variant)
    service.answer(packet.id, FAR, 8)
    await until(async () =>
      expect((await requests())[0]).toMatchObject({ kind, state: 'failed', routingError: 'NO_RESPONSE' }),
    )
  }
})

it('asks for names with the names of the radio, as it reported them', async () => {
  const { service, ask, requests, answer } = await start()
  expect((await ask('node-info')).status).toBe(202)
  const packet = await service.sent()
  const { payload, ...data } = dataOf(packet)
  expect(data).toMatchObject({ portnum: PortNum.NODEINFO_APP, wantResponse: true })
  expect(fromBinary(UserSchema, payload)).toMatchObject({ longName: 'Test Radio', shortName: 'TR' })
  const user = toBinary(UserSchema, create(UserSchema, { longName: 'Far Hill', shortName: 'FH' }))
  answer(FAR, { portnum: PortNum.NODEINFO_APP, payload: user, requestId: packet.id })
  await until(async () => expect(await requests()).toMatchObject([{ state: 'delivered' }]))
})

it('gives up after two minutes, and still takes a late answer', async () => {
  const { service, ask, requests, answer } = await start()
  await ask('device')
  const packet = await service.sent()
  await until(async () => expect(await requests()).toMatchObject([{ state: 'sent' }]))
  service.clock.advance(120_000)
  await until(async () => expect(await requests()).toMatchObject([{ state: 'unknown' }]))
  const payload = toBinary(TelemetrySchema, create(TelemetrySchema, { variant: { case: 'deviceMetrics', value: {} } }))
  answer(FAR, { portnum: PortNum.TELEMETRY_APP, payload, requestId: packet.id })
  await until(async () => expect(await requests()).toMatchObject([{ state: 'delivered' }]))
})

it('a request to a hidden node is one to an unknown node', async () => {
  const { service, admin, ask } = await start()
  const user = await service.app.user('asker', MAY_ASK, WHOLE_SCOPE)
  await admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })
  const [hidden, unknown] = [await ask('position', user), await ask('position', user, 0xa0cb0999)]
  expect([hidden.status, unknown.status]).toStrictEqual([404, 404])
  expect({ ...Object(await hidden.json()), requestId: '' }).toStrictEqual({
    ...Object(await unknown.json()),
    requestId: '',
  })
  expect((await user.send('GET', `/api/nodes/${FAR}/requests`)).status).toBe(404)
  expect((await user.send('GET', `/api/nodes/${FAR}/radios`)).status).toBe(404)
  const silent = await service.app.user('silent', MAY_ASK, {
    channels: { read: [0], write: [] },
    direct: { read: true, write: true },
  })
  expect((await ask('position', silent, OWN)).status).toBe(403)
  expect((await ask('position')).status).toBe(202)
  await service.sent()
  expect(packetsSent(service)).toBe(1)
})

it('lists who answers a traceroute to all without hops, with both signals', async () => {
  const { service, admin, answer } = await start()
  const asked = await admin.send('POST', '/api/traceroutes/direct', {})
  expect(asked.status).toBe(202)
  const { traceroute } = Object(await asked.json())
  const packet = await service.sent()
  // With hops the radio refuses it; with an acknowledgement it would go through the whole mesh.
  expect(packet).toMatchObject({ to: BROADCAST, channel: 0, hopLimit: 0, wantAck: false })
  expect(dataOf(packet)).toMatchObject({ portnum: PortNum.TRACEROUTE_APP, wantResponse: true })
  const route = (hops: number[], snrTowards: number[]) => ({
    portnum: PortNum.TRACEROUTE_APP,
    payload: toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, { route: hops, snrTowards })),
    requestId: packet.id,
  })
  // Our radio adds itself to its own broadcast, and firmware 2.8 answers without hops.
  answer(FAR, route([OWN, FAR], [0, 20]), { hopStart: 0, hopLimit: 0, rxSnr: 4.5 })
  answer(NEAR, route([NEAR], [-10]), { hopStart: 3, hopLimit: 2 })
  answer(NEAR, route([NEAR], [99]))
  // It came by another node, so it is not in direct range.
  answer(0xa0cb0004, route([NEAR, 0xa0cb0004], [1, 2]))
  const path = `/api/traceroutes/${traceroute.id}/answers`
  const answers = async (client: Client = admin) => Object(await (await client.send('GET', path)).json()).answers
  await until(async () =>
    expect(await answers()).toMatchObject([
      { nodeNum: FAR, snrTowards: 5, snrBack: 4.5 },
      { nodeNum: NEAR, snrTowards: -2.5, snrBack: null },
    ]),
  )
  const { traceroutes } = Object(await (await admin.send('GET', '/api/traceroutes?origin=own')).json())
  expect(traceroutes).toMatchObject([{ id: traceroute.id, toNodeNum: BROADCAST, state: 'delivered', route: null }])
  const user = await service.app.user('guest', MAY_ASK, WHOLE_SCOPE)
  await admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })
  expect(await answers(user)).toMatchObject([{ nodeNum: NEAR }])
  const elsewhere = await service.app.user('elsewhere', MAY_ASK, {
    channels: { read: [3], write: [] },
    direct: { read: true, write: true },
  })
  expect(await answers(elsewhere)).toStrictEqual([])
  expect((await elsewhere.send('POST', '/api/traceroutes/direct', {})).status).toBe(403)
})
