import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Heard } from '../../../../src/app/mesh/heard/heard.ts'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { WINDOW_SIZE } from '../../../../src/app/mesh/ingest/duplicates/packet-window.ts'
import { eachTurn } from '../../../../src/app/base/pacing/slices.ts'
import { readPublicKeys } from '../../../../src/app/mesh/nodes/nodes.ts'
import { fadeSuspicions } from '../../../../src/app/mesh/nodes/identity/suspicions.ts'
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
const COLLECTOR = { kind: 'ingest', name: 'collector' } as const
const HERE = { latitudeI: 525000000, longitudeI: 134000000 }
const THERE = { latitudeI: 100000000, longitudeI: -700000000 }
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const KEY = (byte: number) => new Uint8Array(32).fill(byte)
const base64 = (key: Uint8Array) => Buffer.from(key).toString('base64')

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
  await store(mesh.ingest, [myInfo])
})
afterEach(() => mesh.app.close())

async function get(path: string): Promise<Record<string, unknown>> {
  const admin = await mesh.app.admin()
  return Object(await (await admin.send('GET', path)).json())
}
const detail = (nodeNum: number) => get(`/api/nodes/${nodeNum}`)
const messages = async () => Object(await get('/api/messages'))['messages']

type From = { readonly at?: number; readonly gateway?: number; readonly source?: Heard['source'] }

/** As a gateway publishes it and the broker link passes it on. */
function byBroker(variant: FromRadioVariant, { at = START, gateway = 0x77, source = BROKER }: From = {}) {
  if (variant.case !== 'packet') throw new Error('a broker delivers packets only')
  const value = { ...variant.value, viaMqtt: true, rxRssi: undefined, rxSnr: 0 }
  const told = heard({ case: 'packet', value }, { source, at })
  return told.event.type === 'packet' ? { ...told, event: { ...told.event, gateway } } : told
}
const publish = async (variants: readonly FromRadioVariant[], at?: Parameters<typeof byBroker>[1]) =>
  (await mesh.ingest.store(variants.map((each) => byBroker(each, at)))).news
const hear = (variants: readonly FromRadioVariant[], at = START) => store(mesh.ingest, variants, { at })

const battery = (batteryLevel: number, time?: number) =>
  telemetry({
    ...(time === undefined ? {} : { time: seconds(time) }),
    variant: { case: 'deviceMetrics', value: { batteryLevel } },
  })

describe('a key that anybody can make', () => {
  it.each<[string, Heard['source']]>([
    ['from a broker', BROKER],
    ['from a broker, delivered by a collector', COLLECTOR],
  ])('proves nothing on first contact %s: the owner, heard by our own radio, is believed', async (_, source) => {
    const liar = createSigner(2, FAR)
    const minted = [liar.packet(liar.user({ longName: 'Liar' })), liar.packet(position(THERE)), liar.packet(text('hi'))]
    await publish(minted, { source })
    expect(await detail(FAR)).toMatchObject({ signed: false, nameSigned: false, positionSigned: false })
    expect((await messages())[0]).toMatchObject({ text: 'hi', signed: false })
    const owner = user({ longName: 'Owner', shortName: 'OW', publicKey: KEY(7) })
    await hear([packet(owner), packet(position({ ...HERE, time: seconds(START) - 60 }))])
    const believed = {
      longName: 'Owner',
      publicKey: base64(KEY(7)),
      previousPublicKey: liar.base64,
      position: expect.objectContaining({ latitude: 52.5 }),
      keyMismatch: true,
    }
    expect(await detail(FAR)).toMatchObject(believed)
    await publish([liar.packet(liar.user({ longName: 'Liar' })), liar.packet(position(THERE))], { source })
    expect(await detail(FAR)).toMatchObject({ ...believed, refusedPublicKey: liar.base64, refusedLongName: 'Liar' })
  })

  it('proves something where its CRC-32 is the number of the node, and only for broadcasts', async () => {
    const node = createSigner(1)
    await publish([node.packet(node.user({ longName: 'Hill' }), { to: LOCAL })])
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Hill', signed: false })
    await publish([node.packet(node.user({ longName: 'Hill' }))])
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Hill', signed: true, nameSigned: true })
  })

  it('is not believed because our own radio verified it, either', async () => {
    const liar = createSigner(2, FAR)
    await hear([packet(liar.user({ longName: 'Liar' }), { xeddsaSigned: true })])
    await hear([nodeInfo({ num: FAR, hasXeddsaSigned: true, user: { longName: 'Liar', publicKey: liar.publicKey } })])
    expect(await detail(FAR)).toMatchObject({ signed: false, nameSigned: false })
    const node = createSigner(1)
    await hear([node.packet(text('for you'), { to: LOCAL, xeddsaSigned: true })])
    expect((await messages())[0]).toMatchObject({ text: 'for you', signed: false })
  })
})

describe('what our own radio heard', () => {
  const told = user({ longName: 'Owner', shortName: 'OW', publicKey: KEY(7) })

  it('is not replaced by a broker, and the conflict is shown with its gateway', async () => {
    await hear([packet(told), packet(position({ ...HERE, time: seconds(START) }))])
    await publish([packet(user({ longName: 'Renamed', shortName: 'RE' }))], { at: START + MINUTE })
    await publish([packet(position({ ...THERE, time: seconds(START) + 60 }))], { at: START + MINUTE, gateway: 0x78 })
    expect(await detail(FAR)).toMatchObject({
      longName: 'Owner',
      position: { latitude: 52.5 },
      spoofSuspected: true,
      refusedLongName: 'Renamed',
      suspicions: expect.arrayContaining([
        expect.objectContaining({ reason: 'name', gateway: 0x77, source: BROKER.name, count: 1 }),
        expect.objectContaining({ reason: 'position', gateway: 0x78, count: 1 }),
      ]),
    })
  })

  it('includes device metrics: a broker does not replace them for a day, and a chart has both', async () => {
    await hear([packet(battery(80, START))])
    const later = START + HOUR
    await publish([packet(battery(3, later)), packet(battery(2))], { at: later })
    const collector = { case: 'packet', value: { ...Object(packet(battery(1, later + 1000)).value) } } as const
    await mesh.ingest.store([heard(collector, { source: COLLECTOR, at: later })])
    const memory = { num: FAR, lastHeard: seconds(later), deviceMetrics: { batteryLevel: 4 }, viaMqtt: true }
    await hear([nodeInfo(memory)], later)
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 80, time: START } })
    expect(mesh.count('telemetry')).toBe(3)
    await publish([packet(battery(60, START + 25 * HOUR))], { at: START + 25 * HOUR })
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 60 } })
    // A slow clock on the air outranks a broker's time.
    await hear([packet(battery(50, START + 24 * HOUR))], START + 25 * HOUR)
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 50 } })
  })

  it('outranks metrics of a broker within one batch, in whatever order', async () => {
    for (const [first, at] of [
      [true, START],
      [false, START + HOUR],
    ] as const) {
      const both = [heard(packet(battery(80)), { at }), byBroker(packet(battery(3)), { at })]
      await mesh.ingest.store(first ? both : both.toReversed())
      expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 80 } })
    }
  })

  it('is outranked by signed metrics', async () => {
    const node = createSigner(1)
    await hear([node.packet(node.user({ longName: 'Hill' })), packet(battery(80, START), { from: node.nodeNum })])
    await publish([node.packet(battery(60, START + HOUR))], { at: START + HOUR })
    expect(await detail(node.nodeNum)).toMatchObject({ deviceMetrics: { batteryLevel: 60 } })
  })

  it.each<[string, Heard['source'], number]>([
    ['what a collector delivered does not count as heard', COLLECTOR, 90],
    ['what our own radio heard does', { kind: 'tcp', name: 'radio-2' }, 5],
  ])('after a restart: %s', async (_, source, batteryLevel) => {
    const radios = ['radio-1', 'radio-2']
    const said = (level: number) => packet(battery(level), { id: 700 })
    const before = createIngest(mesh.app.store, { radios })
    await before.store([heard(said(5), { source })])
    const again = createIngest(mesh.app.store, { radios })
    await again.store([heard(said(90), { at: START + 1000 })])
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel } })
  })

  it('includes how it hears a node: for a day no broker, collector or memory says otherwise, whatever is signed', async () => {
    const node = createSigner(1)
    const way = { hopsAway: 1, viaMqtt: false, channel: 2, snr: null }
    await hear([node.packet(node.user({ longName: 'Hill' }), { hopLimit: 2, channel: 2 })])
    const later = START + HOUR
    const far = () => node.packet(text('from afar'), { hopLimit: 0, hopStart: 7, channel: 5 })
    await publish([far()], { at: later })
    const near = { hopLimit: 3, hopStart: 3, channel: 5, rxSnr: 9, rxRssi: -20 }
    await mesh.ingest.store([heard(node.packet(text('at the collector'), near), { source: COLLECTOR, at: later })])
    const memory = { num: node.nodeNum, lastHeard: seconds(later), viaMqtt: true, hopsAway: 4, channel: 5 }
    await hear([nodeInfo(memory)], later)
    expect(await detail(node.nodeNum)).toMatchObject({ ...way, lastHeardByBroker: later })
    await publish([far()], { at: START + 25 * HOUR })
    expect(await detail(node.nodeNum)).toMatchObject({ hopsAway: 7, viaMqtt: true, channel: 5 })
  })

  it('lifts a suspicion when it hears the same itself', async () => {
    await hear([packet(told)])
    const renamed = packet(user({ longName: 'Renamed', shortName: 'RE', publicKey: KEY(7) }), { id: 99 })
    await publish([renamed])
    expect(await detail(FAR)).toMatchObject({ longName: 'Owner', spoofSuspected: true })
    await hear([renamed])
    expect(await detail(FAR)).toMatchObject({ longName: 'Renamed', spoofSuspected: false, suspicions: [] })
  })

  it('leaves its place to brokers once it has been out of range for a day', async () => {
    await hear([packet(told), packet(position({ ...HERE, time: seconds(START) }))])
    const later = START + 25 * HOUR
    await publish([packet(position({ ...THERE, time: seconds(later) }))], { at: later })
    expect(await detail(FAR)).toMatchObject({ position: { latitude: 10 }, spoofSuspected: false })
  })

  it('is outranked by a proof, and the conflict is shown', async () => {
    const node = createSigner(1)
    await hear([packet(user({ longName: 'Old', publicKey: KEY(7) }), { from: node.nodeNum })])
    await publish([node.packet(node.user({ longName: 'Hill' }))])
    expect(await detail(node.nodeNum)).toMatchObject({
      longName: 'Hill',
      signed: true,
      previousPublicKey: base64(KEY(7)),
      keyMismatch: true,
    })
  })

  it.each([
    ['known', { longName: 'Owner', publicKey: base64(KEY(7)) }],
    ['refused', { longName: 'New radio', publicKey: base64(KEY(8)) }],
  ])('a conflict is settled in both directions: %s', async (use, settled) => {
    const other = packet(user({ longName: 'New radio', shortName: 'NR', publicKey: KEY(8) }))
    await hear([packet(told)])
    await publish([other])
    expect(await detail(FAR)).toMatchObject({ longName: 'Owner', keyMismatch: true })
    const admin = await mesh.app.admin()
    const answer = await admin.send('PUT', `/api/nodes/${FAR}/identity`, { use })
    const calm = { keyMismatch: false, spoofSuspected: false, refusedPublicKey: null, keyConfirmed: true }
    expect([answer.status, await answer.json()]).toMatchObject([200, { ...settled, ...calm }])
    const entries = auditRows(mesh.app).filter(({ action }) => action === 'node_updated')
    expect(entries).toMatchObject([{ details: { before: { keyMismatch: true }, after: settled } }])
    // Neither our own radio nor a broker undoes the decision.
    await hear([packet(told), packet(user({ longName: 'New radio', shortName: 'NR', publicKey: KEY(8) }))])
    expect(await detail(FAR)).toMatchObject({ ...settled, keyMismatch: true })
  })

  describe('a refused key that it heard', () => {
    const renamed = user({ longName: 'New radio', shortName: 'NR', publicKey: KEY(8) })
    const forged = user({ longName: 'Liar', shortName: 'LI', publicKey: KEY(9) })
    const heardEntry = {
      publicKey: base64(KEY(8)),
      longName: 'New radio',
      heard: true,
      source: 'radio-1',
      gateway: null,
    }
    const toldEntry = { publicKey: base64(KEY(9)), longName: 'Liar', heard: false, source: BROKER.name, gateway: 0x79 }

    it.each([
      ['before', true],
      ['after', false],
    ])('is not hidden by one of a broker that comes %s it, and each is shown with its origin', async (_, isFirst) => {
      await hear([packet(told)])
      const both = [
        () => publish([packet(forged)], { gateway: 0x79 }),
        () => hear([packet(renamed)]),
        () => publish([packet(forged)], { gateway: 0x79, at: START + MINUTE }),
      ]
      for (const each of isFirst ? both.slice(0, 2) : both.slice(1)) await each()
      expect(await detail(FAR)).toMatchObject({
        longName: 'Owner',
        refusedPublicKey: base64(KEY(8)),
        refusedLongName: 'New radio',
        refused: [heardEntry, toldEntry],
      })
      expect(await readPublicKeys(mesh.app.store, FAR)).toStrictEqual([7, 8, 9].map((byte) => base64(KEY(byte))))
    })

    it('is not hidden within one batch, either', async () => {
      await hear([packet(told)])
      await mesh.ingest.store([heard(packet(renamed)), byBroker(packet(forged), { gateway: 0x79 })])
      expect(await detail(FAR)).toMatchObject({ refusedLongName: 'New radio', refused: [heardEntry, toldEntry] })
    })

    it.each([
      ['identity', { use: 'known' }, 'Owner', 7],
      ['identity', { use: 'refused' }, 'New radio', 8],
      ['identity', { use: 'refused', refusedPublicKey: base64(KEY(8)) }, 'New radio', 8],
      ['identity', { use: 'refused', refusedPublicKey: base64(KEY(9)), refusedLongName: 'Liar' }, 'Liar', 9],
      ['key', { publicKey: base64(KEY(7)) }, 'Owner', 7],
      ['key', { publicKey: base64(KEY(8)) }, 'New radio', 8],
      ['key', { publicKey: base64(KEY(9)) }, 'Liar', 9],
    ])('and the other one are settled in each direction: %s %j', async (path, body, longName, key) => {
      await hear([packet(told), packet(renamed)])
      await publish([packet(forged)], { gateway: 0x79 })
      const admin = await mesh.app.admin()
      const answer = await admin.send('PUT', `/api/nodes/${FAR}/${path}`, body)
      const calm = { keyMismatch: false, refusedPublicKey: null, refused: [], keyConfirmed: true }
      expect([answer.status, await answer.json()]).toMatchObject([
        200,
        { longName, publicKey: base64(KEY(key)), ...calm },
      ])
      expect(mesh.count('refused_identities')).toBe(0)
      // A new one of a broker is shown again.
      await publish([packet(user({ longName: 'Again', publicKey: KEY(5) }))])
      expect(await detail(FAR)).toMatchObject({ refusedPublicKey: base64(KEY(5)), refused: [{ heard: false }] })
    })

    it('is forgotten together with the node', async () => {
      await hear([packet(told), packet(renamed)])
      const admin = await mesh.app.admin()
      await admin.send('DELETE', `/api/nodes/${FAR}`)
      expect(mesh.count('refused_identities')).toBe(0)
    })

    it('of an earlier version is listed without its origin', async () => {
      await hear([packet(told)])
      mesh.app.store.sqlite.exec(`update nodes set key_mismatch = 1, refused_public_key = '${base64(KEY(8))}'`)
      const entry = { publicKey: base64(KEY(8)), heard: false, source: null, gateway: null, lastAt: null }
      expect(await detail(FAR)).toMatchObject({ refused: [entry] })
    })
  })

  it('nothing that was not refused can be taken, and nothing for our own radio', async () => {
    await hear([packet(told), nodeInfo({ num: LOCAL, user: { longName: 'Ours' } })])
    const admin = await mesh.app.admin()
    for (const nodeNum of [FAR, LOCAL]) {
      expect((await admin.send('PUT', `/api/nodes/${nodeNum}/identity`, { use: 'refused' })).status).toBe(400)
    }
    expect((await admin.send('PUT', '/api/nodes/77/identity', { use: 'known' })).status).toBe(404)
  })
})

describe('a signature does not cover', () => {
  let node: Signer

  beforeEach(async () => {
    node = createSigner(1)
    await publish([node.packet(node.user({ longName: 'Hill' }))])
  })

  it('the recipient: a broadcast sent on to us alone is no verified direct message', async () => {
    const data = text('yes')
    const said = node.packet(data, { id: 4000 })
    await publish([{ case: 'packet', value: { ...Object(said.value), to: LOCAL } }])
    expect(await messages()).toMatchObject([{ text: 'yes', toNodeNum: LOCAL, signed: false, conflicting: false }])
    await publish([said], { gateway: 0x99 })
    const [message] = await messages()
    expect(message).toMatchObject({ toNodeNum: 0xffffffff, signed: true, conflicting: true })
    const ways = Object(await get(`/api/messages/${message.id}/receptions`))['receptions']
    expect(ways.map(({ gateway }: { gateway: number }) => gateway)).toStrictEqual([0x77, 0x99])
  })

  it('what it answers: copies that disagree are flagged', async () => {
    const said = node.packet(text('yes', { replyId: 5 }), { id: 4001 })
    const changed = {
      ...text('yes', { replyId: 6, emoji: 1 }),
      xeddsaSignature: node.sign({ from: node.nodeNum, id: 4001, data: text('yes') }),
    }
    await publish([said])
    await publish([packet(changed, { from: node.nodeNum, id: 4001 })], { gateway: 0x99 })
    const [message] = await messages()
    expect(message).toMatchObject({ replyId: 5, emoji: false, signed: true, conflicting: true })
    const ways = Object(await get(`/api/messages/${message.id}/receptions`))['receptions']
    expect(ways.map(({ differs }: { differs: string[] }) => differs)).toStrictEqual([[], ['replyId', 'emoji']])
  })

  it('an unsigned text: the copy that our own radio heard replaces that of a broker', async () => {
    await publish([packet(text('forged', { replyId: 7 }), { id: 4002 })])
    await hear([packet(text('true'), { id: 4002 })])
    expect(await messages()).toMatchObject([{ text: 'true', replyId: null, conflicting: true }])
    expect(mesh.count('messages')).toBe(1)
  })
})

describe('a packet sent again', () => {
  let node: Signer
  const later = START + 7 * HOUR

  beforeEach(async () => {
    node = createSigner(1)
  })

  it.each(['broker', 'radio'])('after six hours by a %s moves neither name nor place nor last heard', async (by) => {
    const old = [
      node.packet(node.user({ longName: 'Old name' })),
      node.packet(position({ ...THERE, time: seconds(START) })),
    ]
    await publish(old)
    await publish([node.packet(node.user({ longName: 'New name' })), node.packet(position(HERE))], { at: START + HOUR })
    const before = await detail(node.nodeNum)
    expect(before).toMatchObject({ longName: 'New name', lastHeardByBroker: START + HOUR, lastHeardByRadio: null })
    const again = createIngest(mesh.app.store)
    const { news } = await again.store(
      old.map((each) => (by === 'broker' ? byBroker(each, { at: later }) : heard(each, { at: later }))),
    )
    expect(news).toStrictEqual([])
    expect(await detail(node.nodeNum)).toStrictEqual(before)
    expect(mesh.count('logged')).toBe(4)
  })

  it('after a flood that left no room to remember it is not new', async () => {
    const old = [node.packet(node.user({ longName: 'Old name' })), node.packet(text('open the gate'))]
    await publish(old)
    await publish([node.packet(node.user({ longName: 'New name' }))], { at: START + MINUTE })
    const before = await detail(node.nodeNum)
    mesh.app.store.sqlite.exec(`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${WINDOW_SIZE})
      insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, hop_limit, via_mqtt,
      pki_encrypted, replayed, payload) select 1, ${START + MINUTE}, n, 77, 1, 0, 3, 0, 0, 0, '{}' from i`)
    const again = createIngest(mesh.app.store)
    expect((await again.store(old.map((each) => byBroker(each, { at: START + HOUR })))).news).toStrictEqual([])
    expect(await detail(node.nodeNum)).toStrictEqual(before)
  })

  it('changes nothing if its own time is older than the newest of its sender', async () => {
    await publish([packet(battery(50, later)), packet(position({ ...HERE, time: seconds(later) }))], { at: later })
    const before = await detail(FAR)
    const old = [packet(battery(9, START)), packet(position({ ...THERE, time: seconds(START) }))]
    expect(await publish(old, { at: later + HOUR })).toHaveLength(0)
    expect(await detail(FAR)).toStrictEqual(before)
    // Its history is as old as it is.
    expect([mesh.count('telemetry'), mesh.count('positions')]).toStrictEqual([2, 2])
  })

  it('that is signed changes nothing if any other packet of its sender is newer', async () => {
    const captured = [
      node.packet(position({ ...THERE, time: seconds(START - 20 * HOUR) })),
      node.packet(position({ ...THERE, time: seconds(START - 20 * HOUR), timestamp: seconds(START - 30 * HOUR) })),
    ]
    await publish([node.packet(node.user({ longName: 'Hill' })), node.packet(battery(50, START))])
    const before = await detail(node.nodeNum)
    expect(await publish(captured, { at: START + HOUR })).toHaveLength(0)
    expect(await detail(node.nodeNum)).toStrictEqual(before)
    // An old fix that is sent now is no old packet.
    const now = START + 2 * HOUR
    const fix = { ...HERE, time: seconds(now), timestamp: seconds(START - 30 * HOUR) }
    await publish([node.packet(position(fix))], { at: now })
    expect(await detail(node.nodeNum)).toMatchObject({ position: { latitude: 52.5 }, lastHeardByBroker: now })
  })

  it('a broker moves only the time at which a broker heard the node', async () => {
    await hear([packet(user({ longName: 'Hill' }))])
    await publish([packet(battery(5))], { at: later })
    expect(await detail(FAR)).toMatchObject({ lastHeard: later, lastHeardByRadio: START, lastHeardByBroker: later })
  })

  it('counts as heard by our own radio, even if a broker was faster', async () => {
    const said = packet(battery(5), { id: 700 })
    await publish([said])
    await hear([said], START + 1000)
    expect(await detail(FAR)).toMatchObject({ lastHeardByRadio: START + 1000, lastHeardByBroker: START })
    expect([mesh.count('logged'), mesh.count('telemetry')]).toStrictEqual([1, 1])
  })
})

describe('nobody is accused', () => {
  let node: Signer

  beforeEach(async () => {
    node = createSigner(1)
    await publish([node.packet(node.user({ longName: 'Hill' })), node.packet(position(HERE))])
  })

  const calm = { spoofSuspected: false, keyMismatch: false, longName: 'Hill', position: { latitude: 52.5 } }

  it('by what firmware changes before it passes a packet on', async () => {
    const xeddsaSignature = KEY(5)
    const signature = Uint8Array.from([...xeddsaSignature, ...xeddsaSignature])
    const neighbors = create(NeighborInfoSchema, { nodeId: node.nodeNum, lastSentById: 9 })
    const altered = [
      node.user({ longName: 'Hill', id: '!00000001' }),
      position({ ...HERE, precisionBits: 13 }),
      { portnum: PortNum.NEIGHBORINFO_APP, payload: toBinary(NeighborInfoSchema, neighbors) },
    ]
    await publish(altered.map((data) => packet({ ...data, xeddsaSignature: signature }, { from: node.nodeNum })))
    expect(await detail(node.nodeNum)).toMatchObject({ ...calm, suspicions: [] })
  })

  it('by a gateway that publishes its own packets before it signs them', async () => {
    await publish([node.packet(text('signed'))], { gateway: node.nodeNum })
    await publish([packet(text('plain'), { from: node.nodeNum })], { gateway: node.nodeNum })
    expect(await detail(node.nodeNum)).toMatchObject(calm)
  })

  it('forever: one wrong signature is listed with its gateway, and expires', async () => {
    const garbage = { ...text('garbage'), xeddsaSignature: new Uint8Array(64).fill(3) }
    const send = (gateway: number, at: number) => publish([packet(garbage, { from: node.nodeNum })], { gateway, at })
    await send(0x81, START)
    await send(0x81, START + HOUR)
    await send(0x82, START + DAY)
    const listed = [
      { reason: 'signature', gateway: 0x82, count: 1, firstAt: START + DAY, lastAt: START + DAY },
      { reason: 'signature', gateway: 0x81, count: 2, firstAt: START, lastAt: START + HOUR },
    ]
    expect(await detail(node.nodeNum)).toMatchObject({ spoofSuspected: true, suspicions: listed })
    await fadeSuspicions(mesh.app.store, START + 3 * DAY + 2 * HOUR, eachTurn)
    expect(await detail(node.nodeNum)).toMatchObject({ spoofSuspected: true, suspicions: listed.slice(0, 1) })
    await fadeSuspicions(mesh.app.store, START + 5 * DAY, eachTurn)
    expect(await detail(node.nodeNum)).toMatchObject({ ...calm, suspicions: [] })
  })

  it('more gateways than can be listed are not listed', async () => {
    const garbage = { ...text('garbage'), xeddsaSignature: new Uint8Array(64).fill(3) }
    for (let gateway = 1; gateway <= 30; gateway++) {
      await publish([packet(garbage, { from: node.nodeNum })], { gateway })
    }
    expect(mesh.count('suspicions')).toBe(20)
  })
})

describe('a third attack', () => {
  const links = (neighborId: number) => ({
    portnum: PortNum.NEIGHBORINFO_APP,
    payload: toBinary(
      NeighborInfoSchema,
      create(NeighborInfoSchema, { nodeId: FAR, neighbors: [{ nodeId: neighborId, snr: 5 }] }),
    ),
  })
  const hut = (name: string, more: object = {}) => ({
    portnum: PortNum.WAYPOINT_APP,
    payload: toBinary(WaypointSchema, create(WaypointSchema, { id: 5, name, ...HERE, lockedTo: FAR, ...more })),
  })
  const column = (sql: string) => mesh.app.store.sqlite.prepare(sql).pluck().all()

  it.each(['before', 'after'])('a text of a collector %s it never replaces what our own radio heard', async (order) => {
    const forged = () => mesh.ingest.store([heard(packet(text('forged'), { id: 900 }), { source: COLLECTOR })])
    const both = [() => hear([packet(text('true'), { id: 900 })]), forged]
    for (const each of order === 'before' ? both.toReversed() : both) await each()
    expect(await messages()).toMatchObject([{ text: 'true', conflicting: true }])
  })

  it('neighbours and locked waypoints that our own radio heard are not replaced by others for a day', async () => {
    await hear([packet(hut('Hut')), packet(links(77))])
    const later = START + HOUR
    const forged = [packet(hut('Free beer')), packet(hut('', { expire: 1 })), packet(links(66))]
    await publish(forged, { at: later })
    await mesh.ingest.store(forged.map((each) => heard(each, { source: COLLECTOR, at: later })))
    const shown = () => [column('select neighbor_num from neighbors'), column('select name from waypoints')]
    expect(shown()).toStrictEqual([[77], ['Hut']])
    await hear([packet(hut('Hut 2')), packet(links(78))], later)
    expect(shown()).toStrictEqual([[78], ['Hut 2']])
    await publish([packet(hut('Moved')), packet(links(66))], { at: START + 26 * HOUR })
    expect(shown()).toStrictEqual([[66], ['Moved']])
  })

  it('neighbours that a broker tells after our own radio, in one batch, do not hide its word', async () => {
    await mesh.ingest.store([heard(packet(links(77))), byBroker(packet(links(66)))])
    expect(column('select neighbor_num from neighbors')).toStrictEqual([77])
  })

  it('a gateway that calls itself our own radio hears nothing for us', async () => {
    await hear([packet(user({ longName: 'Hill' })), packet(battery(80, START))])
    await publish([packet(user({ longName: 'Liar' })), packet(battery(3))], { at: START + HOUR, gateway: LOCAL })
    expect(await detail(FAR)).toMatchObject({
      longName: 'Hill',
      deviceMetrics: { batteryLevel: 80 },
      lastHeardByRadio: START,
      suspicions: [{ reason: 'name', source: BROKER.name, gateway: LOCAL }],
    })
  })

  it('a broker that echoes our own packets altered changes nothing about our radio', async () => {
    const own = nodeInfo({ num: LOCAL, user: { longName: 'Ours', publicKey: KEY(7) }, position: HERE })
    const said = packet(position({ ...HERE, time: seconds(START) }), {
      from: LOCAL,
      id: 950,
      rxRssi: undefined,
      hopStart: 0,
    })
    await hear([own, said])
    const before = await detail(LOCAL)
    // Under the ID of a true packet, and under another one.
    for (const id of [950, 951]) {
      await publish([packet(position({ ...THERE, time: seconds(START) + 60 }), { from: LOCAL, id })], {
        gateway: LOCAL,
      })
      await publish([packet(user({ longName: 'Not ours', publicKey: KEY(8) }), { from: LOCAL, id })], {
        gateway: LOCAL,
      })
    }
    const { longName, publicKey, position: place } = before
    expect(await detail(LOCAL)).toMatchObject({ longName, publicKey, position: place, keyMismatch: false })
  })

  it('times of a sender a year ahead are not believed, of whatever payload', async () => {
    const year = START + 365 * DAY
    const ahead = { rxTime: seconds(year) }
    const made = [
      packet(battery(3, year), ahead),
      packet(position({ ...THERE, time: seconds(year) }), ahead),
      packet(text('from the future'), ahead),
      packet(links(66), ahead),
    ]
    await publish(made)
    await hear(made.map((each) => packet({ ...Object(Object(each.value).payloadVariant.value) }, ahead)))
    const latest = 'select max(last_heard, last_heard_by_radio, device_metrics_time, position_time) from nodes'
    expect(column(`${latest} where node_num = ${FAR}`)).toStrictEqual([START])
    expect(column('select max(t) from neighbors union all select max(timestamp) from messages')).toStrictEqual([
      START,
      START,
    ])
    const now = START + HOUR
    await hear([packet(battery(90, now)), packet(links(77))], now)
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 90 }, lastHeard: now })
    expect(column('select neighbor_num from neighbors')).toStrictEqual([77])
  })
})

describe('a second attack', () => {
  let node: Signer

  beforeEach(() => {
    node = createSigner(1)
  })

  it('a signed text whose key was unknown at first is not new when it is sent again', async () => {
    const said = node.packet(text('open the gate'))
    expect(await publish([said])).toHaveLength(1)
    await publish([node.packet(node.user({ longName: 'Hill' }))], { at: START + HOUR })
    const again = createIngest(mesh.app.store)
    expect((await again.store([byBroker(said, { at: START + 7 * HOUR })])).news).toHaveLength(0)
    expect(await detail(node.nodeNum)).toMatchObject({ lastHeardByBroker: START + HOUR })
  })

  it('signatures that there is no time to verify accuse nobody', async () => {
    await publish([node.packet(node.user({ longName: 'Hill' })), node.packet(position(HERE))])
    const liar = createSigner(2)
    const flood = Array.from({ length: 501 }, () => {
      const value = { ...liar.user({ longName: 'x' }), xeddsaSignature: new Uint8Array(64).fill(3) }
      return packet(value, { from: liar.nodeNum })
    })
    await publish(flood, { at: START + MINUTE })
    const renamed = [node.packet(node.user({ longName: 'Hilltop' })), node.packet(position(THERE))]
    await publish(renamed, { at: START + MINUTE, gateway: 0x99 })
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Hill', spoofSuspected: false, suspicions: [] })
    await publish([node.packet(node.user({ longName: 'Hilltop' }))], { at: START + 2 * MINUTE })
    expect(await detail(node.nodeNum)).toMatchObject({ longName: 'Hilltop' })
  })

  it('an unsigned broadcast of a signer is not excused by a claim of encryption', async () => {
    await publish([node.packet(node.user({ longName: 'Hill' }))])
    await publish([packet(text('forged'), { from: node.nodeNum, pkiEncrypted: true })])
    expect(await detail(node.nodeNum)).toMatchObject({ suspicions: [{ reason: 'unsigned' }] })
  })

  it('a time ahead of ours keeps out nothing that comes later', async () => {
    const ahead = START + 9 * MINUTE
    await publish([packet(battery(1, ahead)), packet(position({ ...THERE, time: seconds(ahead) }))])
    const now = START + MINUTE
    await publish([packet(battery(90, now)), packet(position({ ...HERE, time: seconds(now) }))], { at: now })
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 90 }, position: { latitude: 52.5 } })
  })

  it('a mark of an earlier version ends, too', async () => {
    await hear([packet(user({ longName: 'Owner' }))])
    mesh.app.store.sqlite.exec(`update nodes set spoof_suspected = 1, spoof_claim = 'packet 1' where node_num = ${FAR}`)
    await fadeSuspicions(mesh.app.store, START + DAY, eachTurn)
    expect(await detail(FAR)).toMatchObject({ spoofSuspected: false })
  })

  it('names that were refused with a key stay with it', async () => {
    await hear([packet(user({ longName: 'Owner', shortName: 'OW', publicKey: KEY(7) }))])
    await hear([packet(user({ longName: 'New radio', shortName: 'NR', publicKey: KEY(8) }))])
    const liar = packet(user({ longName: 'Liar', shortName: 'LI', publicKey: KEY(7) }))
    await publish([liar])
    expect(await detail(FAR)).toMatchObject({
      refusedPublicKey: base64(KEY(8)),
      refusedLongName: 'New radio',
      refusedShortName: 'NR',
    })
  })

  it('a settlement takes only what somebody saw', async () => {
    await hear([packet(user({ longName: 'Owner', publicKey: KEY(7) }))])
    await publish([packet(user({ longName: 'Liar', publicKey: KEY(9) }))])
    const admin = await mesh.app.admin()
    const seen = { refusedPublicKey: base64(KEY(8)), refusedLongName: 'New radio', refusedShortName: null }
    const answer = await admin.send('PUT', `/api/nodes/${FAR}/identity`, { use: 'refused', ...seen })
    expect(answer.status).toBe(412)
    expect(await detail(FAR)).toMatchObject({ longName: 'Owner', keyMismatch: true })
    const shown = { refusedPublicKey: base64(KEY(9)), refusedLongName: 'Liar' }
    const taken = await admin.send('PUT', `/api/nodes/${FAR}/identity`, { use: 'refused', ...shown })
    expect(taken.status).toBe(200)
  })

  it('a forged copy at a broker, faster than the air, hides nothing that our own radio hears', async () => {
    const from = { from: FAR }
    await hear([packet(user({ longName: 'Hill' }))])
    await publish([packet(battery(1), { id: 801 })], { at: START + 1000 })
    await hear([packet(battery(90), { id: 801 })], START + 2000)
    expect(await detail(FAR)).toMatchObject({ deviceMetrics: { batteryLevel: 90 } })
    const links = (neighborId: number) => ({
      portnum: PortNum.NEIGHBORINFO_APP,
      payload: toBinary(
        NeighborInfoSchema,
        create(NeighborInfoSchema, { nodeId: FAR, neighbors: [{ nodeId: neighborId, snr: 5 }] }),
      ),
    })
    await publish([packet(links(66), { ...from, id: 802 })], { at: START + 1000 })
    await hear([packet(links(77), { ...from, id: 802 })], START + 2000)
    expect(mesh.app.store.sqlite.prepare('select neighbor_num from neighbors').pluck().all()).toStrictEqual([77])
  })
})
