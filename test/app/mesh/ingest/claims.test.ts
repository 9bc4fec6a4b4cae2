import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createIngest, type Ingest } from '../../../../src/app/mesh/ingest/ingest.ts'
import { auditRows, type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { item } from '../../../support/mesh/delivery.ts'
import {
  FAR,
  heard,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  RADIO,
  seconds,
  store,
  text,
  user,
} from '../../../support/mesh/mesh.ts'
import { createSigner } from '../../../support/mesh/signer.ts'

const HOUR = 3_600_000
const KEY = (byte: number) => new Uint8Array(32).fill(byte)
const base64 = (key: Uint8Array) => Buffer.from(key).toString('base64')

let app: TestApp
let admin: Client
let token: string
let ingest: Ingest

beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
  token = await makeToken('collector')
  const link = { kind: RADIO.kind, name: RADIO.name }
  Object.assign(app.ports, { radio: { links: () => [link], collector: () => null } })
  ingest = createIngest(app.store, { radios: [RADIO.name] })
  await store(ingest, [myInfo])
})
afterEach(() => app.close())

async function makeToken(name: string): Promise<string> {
  const made = await admin.send('POST', '/api/tokens', { name, scopes: ['ingest'] })
  return Object(await made.json()).token
}

const claim = { case: 'myInfo', value: { myNodeNum: FAR } } as const
const named = (longName: string, key: number) => user({ longName, shortName: 'XX', publicKey: KEY(key) })

async function deliver(variants: readonly Parameters<typeof item>[0][], source = 'valley', by = token) {
  const headers = { authorization: `Bearer ${by}` }
  const answer = await app.client().send('POST', '/api/ingest', { source, packets: variants.map(item) }, headers)
  return Object(await answer.json())
}

/** The collector calls the node its own radio, before our own radio has heard it. */
const claimed = async () => {
  await deliver([claim, nodeInfo({ num: FAR, user: { longName: 'Claimed', shortName: 'CL', publicKey: KEY(1) } })])
  expect(await node()).toMatchObject({ isLocal: true, claims: [{ source: 'valley', believed: true }] })
}
const hear = (...variants: Parameters<typeof heard>[0][]) => store(ingest, variants, { at: app.clock.now })

async function node(): Promise<Record<string, unknown>> {
  return Object(await (await admin.send('GET', `/api/nodes/${FAR}`)).json())
}
const decide = (own: boolean | null, by: Client = admin) => by.send('PUT', `/api/nodes/${FAR}/own`, { own })
const ended = () => auditRows(app).filter(({ action }) => action === 'radio_claim_ended')

describe('a node that a collector calls its radio', () => {
  it('is an ordinary node as soon as our own radio hears it, and the audit log names both', async () => {
    await claimed()
    await hear(packet(named('Owner', 2)))
    expect(await node()).toMatchObject({
      isLocal: false,
      longName: 'Owner',
      publicKey: base64(KEY(2)),
      keyMismatch: true,
      claims: [{ source: 'valley', believed: false }],
    })
    const details = { nodeNum: FAR, nodeId: '!a0cb0002', heardBy: RADIO.name, claimedBy: 'valley' }
    expect(ended()).toStrictEqual([{ action: 'radio_claim_ended', username: 'system', details }])
    // Neither the next delivery nor another collector brings the claim back.
    const refused = [{ index: 0, reason: 'not_your_radio' }]
    expect(await deliver([claim])).toMatchObject({ rejected: refused })
    expect(await deliver([claim], 'thief', await makeToken('another'))).toMatchObject({ rejected: refused })
    await deliver([packet(named('Claimed', 1))])
    expect(await node()).toMatchObject({ isLocal: false, longName: 'Owner', refusedPublicKey: base64(KEY(1)) })
    await hear(packet(named('Owner', 2)))
    expect(ended()).toHaveLength(1)
  })

  it('is trusted as an ordinary node in the batch that ends the claim, not as our radio', async () => {
    await claimed()
    await hear(packet(named('Owner', 2)), packet(named('Liar', 3)))
    expect(await node()).toMatchObject({ longName: 'Owner', refusedPublicKey: base64(KEY(3)), refusedLongName: 'Liar' })
  })

  it('stays the collector’s while our own radio only remembers it, or hears others speak in its name', async () => {
    const signer = createSigner(5)
    const own = { case: 'myInfo', value: { myNodeNum: signer.nodeNum } } as const
    const shown = async () => Object(await (await admin.send('GET', `/api/nodes/${signer.nodeNum}`)).json())
    await deliver([own, nodeInfo({ num: signer.nodeNum, user: { longName: 'Hill', publicKey: signer.publicKey } })])
    const old = { num: signer.nodeNum, lastHeard: seconds(START - 30 * 24 * HOUR), user: { longName: 'Old' } }
    await hear(nodeInfo(old))
    await store(ingest, [packet(named('Old', 4), { from: signer.nodeNum })], { at: START, replayed: true })
    await hear(packet(named('Old', 4), { from: signer.nodeNum, viaMqtt: true }))
    const garbage = { ...text('x'), xeddsaSignature: new Uint8Array(64).fill(3) }
    await deliver([signer.packet(signer.user({ longName: 'Hill' }))])
    await hear(packet(garbage, { from: signer.nodeNum }))
    expect(await shown()).toMatchObject({ isLocal: true, longName: 'Hill', claims: [{ believed: true }] })
    expect(ended()).toStrictEqual([])
    await hear(nodeInfo({ ...old, lastHeard: seconds(START - HOUR) }))
    expect(await shown()).toMatchObject({ isLocal: false, claims: [{ believed: false }] })
  })

  it('can be claimed again once our own radio has not heard it for a day', async () => {
    await claimed()
    await hear(packet(named('Owner', 2)))
    app.clock.advance(25 * HOUR)
    admin = await app.admin()
    expect(await deliver([claim])).toMatchObject({ accepted: 1, rejected: [] })
    expect(await node()).toMatchObject({ isLocal: true, claims: [{ source: 'valley', believed: true }] })
  })
})

describe('somebody who knows the radios says', () => {
  it('that it is ours: the collector alone is believed, whatever our own radio hears', async () => {
    await claimed()
    await hear(packet(named('Forged', 2)))
    expect((await decide(true)).status).toBe(200)
    expect(await node()).toMatchObject({ isLocal: true, declaredOwn: true, claims: [{ believed: true }] })
    await deliver([nodeInfo({ num: FAR, user: { longName: 'Ours', shortName: 'OU', publicKey: KEY(1) } })])
    await hear(packet(named('Forged', 2)))
    expect(await node()).toMatchObject({ isLocal: true, longName: 'Ours', spoofSuspected: true })
    expect(ended()).toHaveLength(1)
    const [entry] = auditRows(app).filter(({ action }) => action === 'node_updated')
    expect(entry?.details).toMatchObject({
      nodeNum: FAR,
      claimedBy: ['valley'],
      before: { own: null },
      after: { own: true },
    })
  })

  it('that it is ours: that says nothing about the collectors of other users', async () => {
    await claimed()
    await decide(true)
    const { tokens } = Object(await (await admin.send('GET', '/api/tokens')).json())
    expect((await admin.send('DELETE', `/api/tokens/${tokens[0].id}`)).status).toBe(204)
    await hear(packet(named('Owner', 2)))
    const other = await app.user('other', { configuration: { read: true, write: true } })
    const made = Object(await (await other.send('POST', '/api/tokens', { name: 'x', scopes: ['ingest'] })).json())
    for (const source of ['valley', 'thief']) {
      expect(await deliver([claim], source, made.token)).toMatchObject({ rejected: [{ reason: 'not_your_radio' }] })
    }
    expect(await node()).toMatchObject({ isLocal: false, declaredOwn: true })
    // Another token of the same user takes over.
    expect(await deliver([claim], 'valley-2', await makeToken('again'))).toMatchObject({ accepted: 1, rejected: [] })
    await hear(packet(named('Forged', 3)))
    expect(await node()).toMatchObject({ isLocal: true })
  })

  it('that it is not: no collector can claim it again, however long it is silent', async () => {
    await claimed()
    expect((await decide(false)).status).toBe(200)
    expect(await node()).toMatchObject({ isLocal: false, declaredOwn: false, claims: [{ believed: false }] })
    app.clock.advance(25 * HOUR)
    admin = await app.admin()
    expect(await deliver([claim])).toMatchObject({ accepted: 0, rejected: [{ reason: 'not_your_radio' }] })
    expect(await node()).toMatchObject({ isLocal: false })
    expect((await decide(null)).status).toBe(200)
    expect(await deliver([claim])).toMatchObject({ accepted: 1 })
    expect(await node()).toMatchObject({ isLocal: true, declaredOwn: null })
  })

  it('so only with the right to configure, and only about what a collector claims', async () => {
    await hear(packet(named('Owner', 2)), nodeInfo({ num: LOCAL, user: { longName: 'Roof' } }))
    expect((await decide(true)).status).toBe(400)
    expect((await decide(null)).status).toBe(400)
    expect((await admin.send('PUT', `/api/nodes/${LOCAL}/own`, { own: false })).status).toBe(400)
    expect((await admin.send('PUT', '/api/nodes/77/own', { own: false })).status).toBe(404)
    const writer = await app.user('writer', { nodes: { read: true, write: true } })
    expect((await decide(true, writer)).status).toBe(403)
  })
})
