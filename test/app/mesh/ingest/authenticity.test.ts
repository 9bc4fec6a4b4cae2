import type { Heard } from '../../../../src/app/mesh/heard/heard.ts'
import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { NeighborInfoSchema, WaypointSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import type { FromRadioVariant } from '../../../support/radio/device.ts'
import {
  createTestMesh,
  FAR,
  heard,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  position,
  RADIO,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'
import { auditRows, START } from '../../../support/app.ts'
import { createSigner, type Signer } from '../../../support/mesh/signer.ts'

const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const
const OTHER_RADIO = { kind: 'tcp', name: 'radio-2' } as const
const HERE = { latitudeI: 525000000, longitudeI: 134000000 }
const THERE = { latitudeI: 100000000, longitudeI: -700000000 }
const OWN_KEY = new Uint8Array(32).fill(11)
const base64 = (key: Uint8Array) => Buffer.from(key).toString('base64')

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
})
afterEach(() => mesh.app.close())

async function get(path: string): Promise<Record<string, unknown>> {
  const admin = await mesh.app.admin()
  return Object(await (await admin.send('GET', path)).json())
}
const detail = (nodeNum: number) => get(`/api/nodes/${nodeNum}`)
const texts = async () => Object(await get('/api/messages'))['messages'].map((each: { text: string }) => each.text)
const packets = async () => Object(await get('/api/packets'))['packets']

/** As a gateway publishes it and the broker link passes it on. */
function byBroker(variant: FromRadioVariant, gateway = 0x77): Heard {
  if (variant.case !== 'packet') throw new Error('a broker delivers packets only')
  const value = { ...variant.value, viaMqtt: true, rxRssi: undefined, rxSnr: 0 }
  const told = heard({ case: 'packet', value }, { source: BROKER })
  return told.event.type === 'packet' ? { ...told, event: { ...told.event, gateway } } : told
}
const publish = (...variants: FromRadioVariant[]) => mesh.ingest.store(variants.map((each) => byBroker(each)))

/** Without the fields that only a receiver adds: as a radio reports its own packets. */
const ownPacket = (data: Parameters<typeof packet>[0], id?: number) =>
  packet(data, { from: LOCAL, rxRssi: undefined, rxSnr: 0, hopStart: 0, ...(id === undefined ? {} : { id }) })

const battery = (batteryLevel: number) => telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel } } })

const waypoint = (name: string) => ({
  portnum: PortNum.WAYPOINT_APP,
  payload: toBinary(WaypointSchema, create(WaypointSchema, { id: 5, name, ...HERE })),
})

/** Field 2000 with 180 bytes, which no firmware knows. */
const PADDING = [0x82, 0x7d, 180, 1, ...new Uint8Array(180)]

describe('in the name of our own radio', () => {
  beforeEach(async () => {
    await store(mesh.ingest, [
      myInfo,
      nodeInfo({ num: LOCAL, user: { longName: 'Ours', shortName: 'OU', publicKey: OWN_KEY }, position: HERE }),
    ])
  })

  const believed = {
    longName: 'Ours',
    shortName: 'OU',
    publicKey: base64(OWN_KEY),
    position: expect.objectContaining({ latitude: 52.5, longitude: 13.4 }),
    deviceMetrics: null,
    keyMismatch: false,
    isLocal: true,
  }

  it.each([
    ['a name', user({ longName: 'Not ours', shortName: 'OU' })],
    ['a key', user({ longName: 'Ours', shortName: 'OU', publicKey: new Uint8Array(32).fill(66) })],
    ['a place', position({ ...THERE, time: seconds(START) })],
    ['a measurement', battery(1)],
    ['a text', text('reset your radios')],
  ])('%s from a broker is rejected and flagged', async (_, data) => {
    await publish(packet(data, { from: LOCAL }))
    expect(await detail(LOCAL)).toMatchObject({ ...believed, spoofSuspected: true })
    expect(await texts()).toStrictEqual([])
    expect(mesh.count('positions')).toBe(0)
    expect(mesh.count('telemetry')).toBe(0)
    expect(await packets()).toMatchObject([{ fromNodeNum: LOCAL, spoofSuspected: true, signed: false }])
  })

  it.each([
    ['a text', text('reset your radios')],
    ['a measurement', battery(1)],
    ['a name', user({ longName: 'Not ours' })],
  ])(
    '%s that our radio hears in its own name is not believed: by radio, by a broker, or marked as from a broker',
    async (_, data) => {
      const ways = [{}, { viaMqtt: true }, { viaMqtt: true, rxRssi: undefined, rxSnr: 0 }]
      await store(
        mesh.ingest,
        ways.map((way) => packet(data, { from: LOCAL, ...way })),
      )
      expect(await detail(LOCAL)).toMatchObject({ ...believed, spoofSuspected: true })
      expect(await texts()).toStrictEqual([])
      expect(mesh.count('telemetry')).toBe(0)
      expect((await packets()).map((each: Record<string, unknown>) => each['spoofSuspected'])).toStrictEqual([
        true,
        true,
        true,
      ])
    },
  )

  it('its neighbours, waypoints and position are never taken from others', async () => {
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: FAR } }], { source: OTHER_RADIO })
    const near = create(NeighborInfoSchema, { nodeId: LOCAL, neighbors: [{ nodeId: 9, snr: 5 }] })
    const hut = create(WaypointSchema, { id: 5, name: 'Free beer', ...HERE })
    const made = [
      packet({ portnum: PortNum.NEIGHBORINFO_APP, payload: toBinary(NeighborInfoSchema, near) }, { from: LOCAL }),
      packet({ portnum: PortNum.WAYPOINT_APP, payload: toBinary(WaypointSchema, hut) }, { from: LOCAL, id: 1 }),
      packet({ portnum: PortNum.PAXCOUNTER_APP }, { from: LOCAL, id: 2, hopLimit: 1 }),
    ]
    const collector = { kind: 'ingest', name: 'collector' } as const
    expect(await store(mesh.ingest, made, { source: collector })).toStrictEqual([])
    expect(await detail(LOCAL)).toMatchObject({ ...believed, hopsAway: null, snr: null, lastHeard: null })
    await store(mesh.ingest, made, { source: OTHER_RADIO })
    await publish(...made)
    expect([mesh.count('neighbors'), mesh.count('waypoints')]).toStrictEqual([0, 0])
  })

  it('a forgery causes no event, automation or metric', async () => {
    const { news } = await publish(
      packet(text('fake'), { from: LOCAL }),
      packet(user({ longName: 'X' }), { from: LOCAL }),
    )
    expect(news).toStrictEqual([])
  })

  it('a refused key is shown', async () => {
    const forged = new Uint8Array(32).fill(66)
    await publish(packet(user({ longName: 'Ours', publicKey: forged }), { from: LOCAL }))
    expect(await detail(LOCAL)).toMatchObject({ publicKey: base64(OWN_KEY), refusedPublicKey: base64(forged) })
  })

  it("a forgery does not block the radio's own packet with the same id", async () => {
    await publish(packet(battery(1), { from: LOCAL, id: 42 }), packet(text('fake'), { from: LOCAL, id: 43 }))
    await store(mesh.ingest, [ownPacket(battery(77), 42), ownPacket(text('mine'), 43)])
    expect(await detail(LOCAL)).toMatchObject({ deviceMetrics: expect.objectContaining({ batteryLevel: 77 }) })
    expect(await texts()).toStrictEqual(['mine'])
    const log = (await packets()).map((each: Record<string, unknown>) => [each['packetId'], each['spoofSuspected']])
    expect(log.toSorted()).toStrictEqual([
      [42, false],
      [42, true],
      [43, false],
      [43, true],
    ])
  })

  it('its own broadcasts, heard by others, raise no suspicion', async () => {
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: FAR } }], { source: OTHER_RADIO })
    await store(mesh.ingest, [ownPacket(battery(50), 7), ownPacket(text('hello'), 8)])
    const air = (data: Parameters<typeof packet>[0], id: number) => packet(data, { from: LOCAL, id })
    const rounded = position({ latitudeI: 524900000, longitudeI: 134100000, precisionBits: 13 })
    const all = [
      air(battery(50), 7),
      air(text('hello'), 8),
      air(user({ longName: 'Ours', shortName: 'OU' }), 9),
      air(rounded, 10),
    ]
    await store(mesh.ingest, all, { source: OTHER_RADIO })
    await publish(...all.map((each) => each), packet({ portnum: PortNum.ROUTING_APP }, { from: LOCAL, id: 11 }))
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Ours', spoofSuspected: false, position: { latitude: 52.5 } })
    expect(await texts()).toStrictEqual(['hello'])
    const [message] = Object(await get('/api/messages'))['messages']
    const ways = Object(await get(`/api/messages/${message.id}/receptions`))['receptions']
    expect(ways.map((way: { source: string }) => way.source).toSorted()).toStrictEqual([
      BROKER.name,
      RADIO.name,
      OTHER_RADIO.name,
    ])
  })

  it('what another of our radios hears is rejected too, and flagged if it contradicts the radio itself', async () => {
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: FAR } }], { source: OTHER_RADIO })
    await store(mesh.ingest, [nodeInfo({ num: LOCAL, user: { longName: 'Before' } })], { source: OTHER_RADIO })
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Ours', spoofSuspected: false })
    await store(mesh.ingest, [packet(user({ longName: 'Not ours' }), { from: LOCAL })], { source: OTHER_RADIO })
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Ours', spoofSuspected: true })
  })

  it('a suspicion ends only when the radio itself says the same', async () => {
    await publish(packet(user({ longName: 'New name' }), { from: LOCAL }))
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Ours', spoofSuspected: true })
    await store(mesh.ingest, [nodeInfo({ num: LOCAL, user: { longName: 'Ours' } })])
    expect(await detail(LOCAL)).toMatchObject({ spoofSuspected: true })
    await store(mesh.ingest, [nodeInfo({ num: LOCAL, user: { longName: 'New name' } })])
    expect(await detail(LOCAL)).toMatchObject({ longName: 'New name', spoofSuspected: false })
    await publish(packet(user({ longName: 'A' }), { from: LOCAL }), packet(user({ longName: 'B' }), { from: LOCAL }))
    await store(mesh.ingest, [nodeInfo({ num: LOCAL, user: { longName: 'B' } })])
    expect(await detail(LOCAL)).toMatchObject({ longName: 'B', spoofSuspected: true })
  })

  it('our radio is known after a restart, before it connects again', async () => {
    const restarted = createIngest(mesh.app.store, { radios: [RADIO.name] })
    await restarted.store([byBroker(packet(user({ longName: 'Not ours' }), { from: LOCAL }))])
    expect(await detail(LOCAL)).toMatchObject({ ...believed, spoofSuspected: true })
  })

  it('only the current radio is protected: a replaced or no longer configured one is a node like any other', async () => {
    await store(mesh.ingest, [
      { case: 'myInfo', value: { myNodeNum: FAR } },
      nodeInfo({ num: FAR, user: { longName: 'New' } }),
    ])
    await publish(
      packet(user({ longName: 'Given away' }), { from: LOCAL }),
      packet(user({ longName: 'X' }), { from: FAR }),
    )
    // A broker does not rename what a radio told.
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Ours', spoofSuspected: true, isLocal: false })
    await store(mesh.ingest, [packet(user({ longName: 'Given away' }), { from: LOCAL })])
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Given away', spoofSuspected: false, isLocal: false })
    expect(await detail(FAR)).toMatchObject({ longName: 'New', spoofSuspected: true })
    const without = createIngest(mesh.app.store, { radios: [] })
    await without.store([byBroker(packet(user({ longName: 'On its own' }), { from: FAR }))])
    expect(await detail(FAR)).toMatchObject({ longName: 'New', refusedLongName: 'On its own', isLocal: false })
  })

  it('a collector that claims its number is not believed beside the radio itself', async () => {
    const ingest = createIngest(mesh.app.store, { radios: [RADIO.name] })
    const source = { kind: 'ingest', name: 'impostor' } as const
    await store(ingest, [myInfo, nodeInfo({ num: LOCAL, user: { longName: 'Not ours' } })], { source })
    await store(ingest, [ownPacket(user({ longName: 'Not ours' }))], { source })
    expect(await detail(LOCAL)).toMatchObject({ longName: 'Ours', spoofSuspected: true })
  })

  it('a signature by its key proves that a packet is not a forgery', async () => {
    const signer = createSigner(5)
    const { nodeNum } = signer
    const info = nodeInfo({ num: nodeNum, user: { longName: 'Ours', publicKey: signer.publicKey } })
    await store(mesh.ingest, [{ case: 'myInfo', value: { myNodeNum: nodeNum } }, info])
    await publish(signer.packet(battery(3)), signer.packet(text('typed at the radio')))
    expect(await detail(nodeNum)).toMatchObject({ spoofSuspected: false, signed: true, deviceMetrics: null })
    expect(await texts()).toStrictEqual(['typed at the radio'])
    await publish(createSigner(6, nodeNum).packet(text('fake')))
    expect(await detail(nodeNum)).toMatchObject({ spoofSuspected: true })
    expect(await texts()).toHaveLength(1)
  })
})

describe('a signing node', () => {
  let node: Signer

  beforeEach(() => {
    node = createSigner(1)
  })

  it('is recognised by its first NodeInfo, with the key in it', async () => {
    await publish(node.packet(node.user({ longName: 'Hill' })), node.packet(text('hello')))
    expect(await detail(node.nodeNum)).toMatchObject({
      longName: 'Hill',
      publicKey: node.base64,
      signed: true,
      nameSigned: true,
      positionSigned: false,
      signedAt: START,
      spoofSuspected: false,
      keyMismatch: false,
      weakKey: false,
    })
    expect((await mesh.nodes())[0]).toMatchObject({ signed: true })
    expect(Object(await get('/api/messages'))['messages']).toMatchObject([{ text: 'hello', signed: true }])
    expect(await packets()).toMatchObject([{ signed: true }, { signed: true }])
  })

  it('does not count as signing because a broker or a collector says so', async () => {
    const flagged = (source: Heard['source']) => {
      const variant = packet(user({ longName: 'Hill', publicKey: node.publicKey }), {
        from: node.nodeNum,
        xeddsaSigned: true,
      })
      return mesh.ingest.store([heard(variant, { source })])
    }
    await flagged(BROKER)
    await flagged({ kind: 'ingest', name: 'collector' })
    await store(mesh.ingest, [nodeInfo({ num: node.nodeNum, hasXeddsaSigned: true, user: { longName: 'Hill' } })], {
      source: { kind: 'ingest', name: 'collector' },
    })
    expect(await detail(node.nodeNum)).toMatchObject({ signed: false })
    await flagged(RADIO)
    expect(await detail(node.nodeNum)).toMatchObject({ signed: true, nameSigned: true })
  })

  it('counts as signing when the memory of our own radio says so, but its names may be older than its signature', async () => {
    const told = { longName: 'Hill', publicKey: node.publicKey }
    const lastHeard = seconds(START) - 3600
    await store(mesh.ingest, [nodeInfo({ num: node.nodeNum, lastHeard, hasXeddsaSigned: true, user: told })])
    await publish(packet(user({ longName: 'Not Hill' }), { from: node.nodeNum }))
    const remembered = { longName: 'Hill', signed: true, nameSigned: false, signedAt: lastHeard * 1000 }
    expect(await detail(node.nodeNum)).toMatchObject(remembered)
    await publish(node.packet(node.user({ longName: 'Summit' })))
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Summit', nameSigned: true })
    await store(mesh.ingest, [nodeInfo({ num: node.nodeNum, hasXeddsaSigned: true, user: told })])
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Summit', nameSigned: true, spoofSuspected: true })
  })

  it('keeps name, key and position against everything unsigned', async () => {
    await publish(
      node.packet(node.user({ longName: 'Hill' })),
      node.packet(position({ ...HERE, time: seconds(START) })),
    )
    const { nodeNum: from } = node
    const forged = new Uint8Array(32).fill(9)
    const attack = [
      packet(user({ longName: 'Gone' }), { from }),
      packet(user({ longName: 'Gone', publicKey: forged }), { from }),
      packet(position({ ...THERE, time: seconds(START) + 60 }), { from }),
    ]
    await publish(...attack)
    await store(
      mesh.ingest,
      attack.map((each) => ({ ...each })),
    )
    await store(mesh.ingest, [nodeInfo({ num: from, user: { longName: 'Gone', publicKey: forged }, position: THERE })])
    expect(await detail(from)).toMatchObject({
      longName: 'Hill',
      publicKey: node.base64,
      previousPublicKey: null,
      refusedPublicKey: base64(forged),
      keyMismatch: true,
      spoofSuspected: true,
      position: { latitude: 52.5, longitude: 13.4 },
    })
    expect(mesh.count('positions')).toBe(1)
  })

  it('changes them with a signature', async () => {
    await publish(node.packet(node.user({ longName: 'Hill' })), node.packet(position(HERE)))
    await publish(node.packet(node.user({ longName: 'Summit' })), node.packet(position(THERE)))
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Summit', position: { latitude: 10, longitude: -70 } })
  })

  it('is not changed by a forged signature, and is flagged', async () => {
    await publish(node.packet(node.user({ longName: 'Hill' })))
    const liar = createSigner(2, node.nodeNum)
    await publish(
      liar.packet(text('I am Hill')),
      liar.packet(liar.user({ longName: 'Liar' })),
      liar.packet(position(THERE)),
    )
    expect(await detail(node.nodeNum)).toMatchObject({
      longName: 'Hill',
      publicKey: node.base64,
      refusedPublicKey: liar.base64,
      keyMismatch: true,
      spoofSuspected: true,
      position: null,
    })
    expect(await texts()).toStrictEqual([])
  })

  it.each([1, 63, 65])('is not changed by a packet with a signature of %d bytes', async (length) => {
    await publish(node.packet(node.user({ longName: 'Hill' })))
    const xeddsaSignature = new Uint8Array(length).fill(1)
    await publish(packet({ ...text('cut'), xeddsaSignature }, { from: node.nodeNum }))
    await publish(packet({ ...user({ longName: 'Cut' }), xeddsaSignature }, { from: FAR }))
    expect(await texts()).toStrictEqual([])
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Hill', spoofSuspected: true })
    expect(await detail(FAR)).toMatchObject({ longName: null, spoofSuspected: true })
  })

  it('is flagged when it suddenly stops signing over a link that kept its signatures', async () => {
    await publish(node.packet(node.user({ longName: 'Hill' })))
    const unsigned = packet(battery(1), { from: node.nodeNum })
    await mesh.ingest.store([byBroker(unsigned, 0x99)])
    expect(await detail(node.nodeNum)).toMatchObject({ spoofSuspected: false })
    const direct = packet(text('for you alone'), { from: node.nodeNum, to: LOCAL })
    const large = packet(text('x'.repeat(180)), { from: node.nodeNum })
    await publish(direct, large)
    expect(await detail(node.nodeNum)).toMatchObject({ spoofSuspected: false })
    await publish(packet(battery(2), { from: node.nodeNum }), packet(text('unsigned'), { from: node.nodeNum }))
    expect(await detail(node.nodeNum)).toMatchObject({ spoofSuspected: true, deviceMetrics: { batteryLevel: 1 } })
    expect(await texts()).toContain('unsigned')
  })

  it.each([
    ['metrics', battery(3)],
    ['a position', position({ ...THERE, time: seconds(START) })],
    ['a name', user({ longName: 'Liar' })],
    ['a waypoint', waypoint('Free beer')],
  ])('%s without a signature are not excused by unknown fields that make them too large for one', async (_, data) => {
    const padded = { ...data, payload: Uint8Array.from([...(data.payload ?? []), ...PADDING]) }
    for (const say of [publish, (...variants: FromRadioVariant[]) => store(mesh.ingest, variants)]) {
      await say(node.packet(node.user({ longName: 'Hill' })))
      await say(packet(padded, { from: node.nodeNum }))
    }
    const suspicions = [{ reason: 'unsigned' }, { reason: 'unsigned' }]
    const calm = { longName: 'Hill', position: null, deviceMetrics: null }
    expect(await detail(node.nodeNum)).toMatchObject({ ...calm, suspicions })
    expect(mesh.count('waypoints')).toBe(0)
  })

  it('is not taken over by somebody whose key does not belong to the number', async () => {
    await publish(packet(user({ longName: 'Hill', publicKey: node.publicKey }), { from: node.nodeNum }))
    const liar = createSigner(2, node.nodeNum)
    await publish(liar.packet(liar.user({ longName: 'Liar' })), liar.packet(text('signed by a liar')))
    expect(await detail(node.nodeNum)).toMatchObject({
      longName: 'Hill',
      publicKey: node.base64,
      refusedPublicKey: liar.base64,
      keyMismatch: true,
      signed: false,
      spoofSuspected: true,
    })
    await publish(node.packet(node.user({ longName: 'Hill' })))
    expect(await detail(node.nodeNum)).toMatchObject({ signed: true, publicKey: node.base64 })
  })

  it('takes its number back from somebody who came first with another key', async () => {
    const liar = createSigner(2, node.nodeNum)
    await publish(liar.packet(liar.user({ longName: 'Liar' })))
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Liar' })
    await publish(node.packet(node.user({ longName: 'Hill' })))
    expect(await detail(node.nodeNum)).toMatchObject({
      longName: 'Hill',
      publicKey: node.base64,
      previousPublicKey: liar.base64,
      keyMismatch: true,
    })
  })

  it('with firmware before 2.8 is not locked by whoever first signs in its name', async () => {
    const liar = createSigner(2, FAR)
    await publish(packet(user({ longName: 'Old', publicKey: OWN_KEY }), { from: FAR }))
    await publish(
      liar.packet(liar.user({ longName: 'Liar' })),
      liar.packet(text('again')),
      liar.packet(position(THERE)),
    )
    const both = { publicKey: base64(OWN_KEY), refusedPublicKey: liar.base64 }
    expect(await detail(FAR)).toMatchObject({ longName: 'Old', signed: false, keyMismatch: true, ...both })
    await publish(packet(user({ longName: 'Old' }), { from: FAR }))
    expect(await detail(FAR)).toMatchObject({ longName: 'Old', signed: false })
  })

  it('keeps the text that it signed, even if a forgery used the id first', async () => {
    await publish(node.packet(node.user({ longName: 'Hill' })))
    await publish(packet(text('forged'), { from: node.nodeNum, id: 900 }))
    await publish(node.packet(text('true'), { id: 900 }))
    expect(Object(await get('/api/messages'))['messages']).toMatchObject([{ text: 'true', signed: true }])
  })

  it('is found by a filter, and marked in events', async () => {
    const { news } = await publish(node.packet(node.user({ longName: 'Hill' })), packet(text('x'), { from: FAR }))
    expect(news.map(({ isSigned }) => isSigned)).toStrictEqual([true, false])
    const nums = async (query: string) =>
      Object(await get(`/api/nodes?signed=${query}`)).map((each: { nodeNum: number }) => each.nodeNum)
    expect(await nums('true')).toStrictEqual([node.nodeNum])
    expect(await nums('false')).toStrictEqual([FAR])
    const admin = await mesh.app.admin()
    expect((await admin.send('GET', '/api/nodes?signed=yes')).status).toBe(400)
  })
})

describe('an accepted key', () => {
  const first = base64(OWN_KEY)
  const other = new Uint8Array(32).fill(12)
  const accept = async (nodeNum: number, publicKey: unknown) => {
    const admin = await mesh.app.admin()
    const answer = await admin.send('PUT', `/api/nodes/${nodeNum}/key`, { publicKey })
    return [answer.status, await answer.json()]
  }
  const announce = (publicKey: Uint8Array) =>
    publish(packet(user({ longName: 'Old', shortName: 'OL', publicKey }), { from: FAR }))

  it('becomes the key of the node, without a warning, and the change is recorded', async () => {
    await announce(OWN_KEY)
    await announce(other)
    const refused = { publicKey: first, refusedPublicKey: base64(other), keyMismatch: true, previousPublicKey: null }
    expect(await detail(FAR)).toMatchObject(refused)
    const accepted = { publicKey: base64(other), previousPublicKey: null, refusedPublicKey: null, keyMismatch: false }
    expect(await accept(FAR, base64(other))).toMatchObject([200, accepted])
    expect(await detail(FAR)).toMatchObject(accepted)
    const entries = () => auditRows(mesh.app).filter(({ action }) => action === 'node_updated')
    expect(entries()).toMatchObject([
      {
        details: {
          nodeNum: FAR,
          before: { publicKey: first, keyMismatch: true },
          after: { publicKey: base64(other), keyMismatch: false },
        },
      },
    ])
    expect(await accept(FAR, base64(other))).toMatchObject([200, accepted])
    expect(entries()).toHaveLength(1)
    await announce(OWN_KEY)
    expect(await detail(FAR)).toMatchObject({ keyMismatch: true, publicKey: base64(other) })
  })

  it('may be one that was refused: the signatures of the previous key no longer count', async () => {
    const node = createSigner(1)
    const liar = createSigner(2, node.nodeNum)
    await publish(node.packet(node.user({ longName: 'Hill' })), liar.packet(liar.user({ longName: 'New radio' })))
    expect(await detail(node.nodeNum)).toMatchObject({ spoofSuspected: true, refusedPublicKey: liar.base64 })
    const accepted = { publicKey: liar.base64, signed: false, nameSigned: false, spoofSuspected: false }
    expect(await accept(node.nodeNum, liar.base64)).toMatchObject([200, accepted])
    await publish(liar.packet(liar.user({ longName: 'New radio' })))
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'New radio', signed: false, keyMismatch: false })
  })

  it('must be one that was announced; for our own radio, the one that it reports', async () => {
    await announce(OWN_KEY)
    await store(mesh.ingest, [myInfo, nodeInfo({ num: LOCAL, user: { longName: 'Ours', publicKey: OWN_KEY } })])
    await publish(packet(user({ longName: 'Ours', publicKey: other }), { from: LOCAL }))
    expect(await detail(LOCAL)).toMatchObject({ refusedPublicKey: base64(other) })
    for (const [nodeNum, key] of [
      [FAR, base64(other)],
      [LOCAL, base64(other)],
      [FAR, 'abc'],
      [FAR, null],
    ] as const) {
      const issues = expect.arrayContaining([expect.objectContaining({ path: 'publicKey' })])
      expect(await accept(nodeNum, key)).toMatchObject([400, { code: 'invalid_request', issues }])
    }
    expect(await accept(77, first)).toMatchObject([404, { code: 'node_not_found' }])
    expect(await accept(LOCAL, first)).toMatchObject([200, { publicKey: first, spoofSuspected: false }])
  })
})

it('signatures are counted by result', async () => {
  let counted = {}
  const ingest = createIngest(mesh.app.store, {
    onCounted: ({ signatures }) => (counted = Object.fromEntries(signatures)),
  })
  const node = createSigner(1)
  const liar = createSigner(2, node.nodeNum)
  const said = [node.packet(node.user({ longName: 'Hill' })), liar.packet(text('x')), packet(text('x'), { from: FAR })]
  await ingest.store([heard(myInfo), ...said.map((each) => byBroker(each))])
  expect(counted).toStrictEqual({ valid: 1, invalid: 1, none: 1 })
})

it('signed messages are found by a filter', async () => {
  const node = createSigner(1)
  await publish(node.packet(node.user({ longName: 'Hill' })), node.packet(text('proven')), packet(text('said')))
  const found = Object(await get('/api/messages?signed=true'))['messages']
  expect(found).toMatchObject([{ text: 'proven', signed: true }])
  const plan = mesh.app.store.sqlite.prepare(
    'explain query plan select * from messages where signed order by id desc limit 9',
  )
  expect(JSON.stringify(plan.all())).toContain('messages_signed')
  expect((await (await mesh.app.admin()).send('GET', '/api/messages?signed=false')).status).toBe(400)
})
