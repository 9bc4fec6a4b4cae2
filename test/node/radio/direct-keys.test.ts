import { create, toBinary } from '@bufbuild/protobuf'
import { x25519 } from '@noble/curves/ed25519.js'
import { createCipheriv, createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import type { Heard, News } from '../../../src/app/mesh/heard/heard.ts'
import { readPublicKeys } from '../../../src/app/mesh/nodes/nodes.ts'
import { ServiceEnvelopeSchema } from '../../../src/meshtastic/gen/mqtt_pb.ts'
import { DataSchema, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { createMqttReader } from '../../../src/node/radio/mqtt/reader.ts'
import { createDirectOpener } from '../../../src/node/radio/sending/direct-messages.ts'
import { START } from '../../support/app.ts'
import {
  createTestMesh,
  FAR,
  heard,
  LOCAL,
  myInfo,
  packet,
  position,
  store,
  type TestMesh,
  text,
  user,
} from '../../support/mesh/mesh.ts'
import { createSigner, type Signer } from '../../support/mesh/signer.ts'

const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const
const COLLECTOR = { kind: 'ingest', name: 'collector' } as const
const GATEWAY = 0x77
const OURS = createSigner(9)

let mesh: TestMesh
let owner: Signer
let liar: Signer

beforeEach(async () => {
  mesh = await createTestMesh()
  await store(mesh.ingest, [myInfo])
  owner = createSigner(1, FAR)
  liar = createSigner(2, FAR)
  // The owner's key is in force. Anybody can announce another one, which is kept as the refused one.
  await store(mesh.ingest, [packet(owner.user({ longName: 'Owner' }))])
  await publishUser(liar.user({ longName: 'Owner', shortName: 'OW' }))
})
afterEach(() => mesh.app.close())

async function get(path: string): Promise<Record<string, unknown>> {
  const admin = await mesh.app.admin()
  return Object(await (await admin.send('GET', path)).json())
}
const detail = () => get(`/api/nodes/${FAR}`)
const messages = async () => Object(await get('/api/messages'))['messages']

function publishUser(data: ReturnType<typeof user>) {
  const told = packet(data)
  const value = { ...Object(told.value), viaMqtt: true, rxRssi: undefined, rxSnr: 0 }
  return store(mesh.ingest, [{ case: 'packet', value }], { source: BROKER })
}

type Data = Parameters<typeof packet>[0]

/** As firmware encrypts it for one node, by another implementation of the key agreement. */
function seal(by: Signer, data: Data, id: number): Uint8Array {
  const shared = x25519.getSharedSecret(by.privateKey, OURS.publicKey)
  const key = createHash('sha256').update(shared).digest()
  const extra = Buffer.from([1, 2, 3, 4])
  const nonce = Buffer.alloc(13)
  nonce.writeUInt32LE(id, 0)
  extra.copy(nonce, 4)
  nonce.writeUInt32LE(FAR, 8)
  const aes = createCipheriv('aes-256-ccm', key, nonce, { authTagLength: 8 })
  const sealed = aes.update(toBinary(DataSchema, create(DataSchema, data)))
  aes.final()
  return Uint8Array.from(Buffer.concat([sealed, aes.getAuthTag(), extra]))
}

/** Through the reader of the broker link, which opens it with the private key of our radio. */
async function publish(by: Signer, data: Data, id: number, at = START): Promise<readonly News[]> {
  return (await mesh.ingest.store(await readFromBroker(by, data, id, at))).news
}

async function readFromBroker(by: Signer, data: Data, id: number, at = START): Promise<Heard[]> {
  const opener = createDirectOpener({
    privateKeys: new Map([[LOCAL, OURS.privateKey]]),
    publicKeysOf: (nodeNum) => readPublicKeys(mesh.app.store, nodeNum),
  })
  const read = createMqttReader({ keys: [], openDirect: opener, clock: { now: () => at } })
  const value = seal(by, data, id)
  const sent = { from: FAR, to: LOCAL, id, pkiEncrypted: true, hopStart: 3, hopLimit: 3 }
  const envelope = create(ServiceEnvelopeSchema, {
    packet: create(MeshPacketSchema, { ...sent, payloadVariant: { case: 'encrypted', value } }),
    channelId: 'PKI',
    gatewayId: '!00000077',
  })
  const payload = toBinary(ServiceEnvelopeSchema, envelope)
  const events = await read({ topic: 'msh/2/e/PKI/!00000077', payload, isRetained: false })
  return events.map(({ event }): Heard => ({ source: BROKER, event }))
}

describe('a direct message', () => {
  it('shows its sender if the key in force opened it', async () => {
    const batch = await readFromBroker(owner, text('meet at noon'), 50)
    const { suspected } = await mesh.ingest.store(batch)
    expect(await messages()).toMatchObject([
      { text: 'meet at noon', pkiEncrypted: true, keyDoubt: null, toNodeNum: LOCAL },
    ])
    expect(batch.map(({ event }) => suspected.has(event))).toStrictEqual([false])
    expect(await detail()).toMatchObject({ spoofSuspected: false })
  })

  it('opened with the refused key is shown and marked, and nothing acts upon it', async () => {
    const batch = await readFromBroker(liar, text('send me the keys'), 51)
    const { suspected } = await mesh.ingest.store(batch)
    expect(await messages()).toMatchObject([{ text: 'send me the keys', pkiEncrypted: true, keyDoubt: 'other' }])
    expect(batch.map(({ event }) => suspected.has(event))).toStrictEqual([true])
    const suspicions = [expect.objectContaining({ reason: 'sealed', gateway: GATEWAY, source: BROKER.name, count: 1 })]
    expect(await detail()).toMatchObject({
      longName: 'Owner',
      publicKey: owner.base64,
      spoofSuspected: true,
      suspicions,
    })
  })

  it('opened with the refused key says nothing else about the node', async () => {
    await publish(liar, position({ latitudeI: 100000000, longitudeI: -700000000 }), 52)
    await publish(liar, user({ longName: 'Liar', shortName: 'LI' }), 53)
    expect(await detail()).toMatchObject({ longName: 'Owner', position: null, spoofSuspected: true })
    expect([mesh.count('positions'), mesh.count('messages')]).toStrictEqual([0, 0])
  })

  it('opened with a replaced key is marked as well', async () => {
    const admin = await mesh.app.admin()
    await admin.send('PUT', `/api/nodes/${FAR}/identity`, { use: 'refused' })
    await publishUser(owner.user({ longName: 'Owner', shortName: 'OW' }))
    await publish(owner, text('from the old radio'), 54)
    await publish(liar, text('from the new one'), 55)
    expect(await messages()).toMatchObject([
      { text: 'from the new one', keyDoubt: null },
      { text: 'from the old radio', keyDoubt: 'other' },
    ])
  })

  it.each(['before', 'after'])('forged under the ID of a true one %s it never takes its place', async (order) => {
    const both = [() => publish(owner, text('yes'), 56), () => publish(liar, text('no'), 56)]
    for (const each of order === 'before' ? both.toReversed() : both) await each()
    expect(await messages()).toMatchObject([{ text: 'yes', keyDoubt: null, conflicting: true }])
    // So it is after a restart.
    mesh = { ...mesh, ingest: createIngest(mesh.app.store) }
    await publish(liar, text('no'), 56)
    expect(await messages()).toMatchObject([{ text: 'yes', keyDoubt: null }])
  })

  it.each([
    ['a broker', { source: BROKER }, { viaMqtt: true, rxRssi: undefined }],
    ['the air', {}, {}],
  ])('is not replaced by an unencrypted copy from %s, whichever is first', async (_, from, around) => {
    const forge = (id: number) => store(mesh.ingest, [packet(text('no'), { id, to: LOCAL, ...around })], from)
    await publish(owner, text('yes'), 57)
    await forge(57)
    expect(await messages()).toMatchObject([{ text: 'yes', pkiEncrypted: true }])
    await forge(58)
    await publish(owner, text('yes'), 58)
    expect((await messages())[0]).toMatchObject({ text: 'yes', pkiEncrypted: true, conflicting: true })
  })

  it('captured and sent again after hours is no new message, not even after a restart', async () => {
    await publish(owner, text('open the gate'), 59)
    const later = START + 7 * 3_600_000
    const before = await detail()
    for (const ingest of [mesh.ingest, createIngest(mesh.app.store)]) {
      mesh = { ...mesh, ingest }
      expect(await publish(owner, text('open the gate'), 59, later)).toStrictEqual([])
      const direct = { id: 59, to: LOCAL, pkiEncrypted: true, publicKey: owner.publicKey }
      expect(await store(ingest, [packet(text('open the gate'), direct)], { at: later })).toStrictEqual([])
    }
    expect(await detail()).toStrictEqual(before)
    expect(mesh.count('messages')).toBe(1)
  })

  it('that our own radio opened names the key of its memory, which may be another one', async () => {
    const direct = (words: string, publicKey: Uint8Array) =>
      packet(text(words), { to: LOCAL, pkiEncrypted: true, publicKey })
    await store(mesh.ingest, [direct('known', owner.publicKey), direct('other', liar.publicKey)])
    expect(await messages()).toMatchObject([
      { text: 'other', keyDoubt: 'other' },
      { text: 'known', keyDoubt: null },
    ])
  })

  it('for our radio cannot have been opened by a collector', async () => {
    const forged = packet(text('trust me'), { to: LOCAL, pkiEncrypted: true, publicKey: owner.publicKey })
    await mesh.ingest.store([heard(forged, { source: COLLECTOR })])
    expect(await messages()).toMatchObject([{ text: 'trust me', keyDoubt: 'unproven' }])
  })
})
