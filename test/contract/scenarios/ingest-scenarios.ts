import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { NeighborInfoSchema, RouteDiscoverySchema, WaypointSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { item } from '../../support/mesh/delivery.ts'
import { LOGGED, MEASUREMENTS, RECEPTIONS } from '../../support/mesh/measurements.ts'
import { nodeStatus, packet, position, seconds, telemetry, text, user } from '../../support/mesh/mesh.ts'
import { createSigner } from '../../support/mesh/signer.ts'
import { type Client, createClient, refusal } from '../service.ts'

const OWN = 0xb0cb0001
const HEARD = 0xb0cb0002
const KEY = 'a channel key of 32 characters !!'

const TABLES = ['messages', 'receptions', 'telemetry', 'positions', 'packets', 'traceroutes', 'neighbors', 'waypoints']
/** Those that have two forms. */
const BOTH_FORMS: Readonly<Record<string, string>> = {
  receptions: RECEPTIONS,
  telemetry: MEASUREMENTS,
  packets: LOGGED,
}

/** A collector on another machine delivers what its radio hears. */
export function ingestScenarios(admin: () => Client): void {
  const deliver = async (body: object, scopes = ['ingest']) => {
    const made = await admin().send('POST', '/api/tokens', { name: 'collector', scopes })
    const { token } = Object(made.body)
    return createClient(admin().service).send('POST', '/api/ingest', body, { authorization: `Bearer ${token}` })
  }
  const count = async () =>
    Object.fromEntries(
      await Promise.all(
        [...TABLES, 'nodes', 'sources', 'channels'].map(async (table) => {
          const [row] = await admin().service.sql(`select count(*) as n from ${BOTH_FORMS[table] ?? table}`)
          return [table, Number(row?.['n'])] as const
        }),
      ),
    )
  const difference = (before: Record<string, number>, after: Record<string, number>) =>
    Object.fromEntries(Object.entries(after).map(([table, n]) => [table, n - (before[table] ?? 0)]))

  test('a delivery is stored once, however often and whenever it arrives', async () => {
    const before = await count()
    const body = { source: 'hill', packets: everyKind(), receivedAt: Date.now() - 60_000 }
    const answers = await Promise.all([deliver(body), deliver(body), deliver(body)])
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { accepted: 13, rejected: [] } })
    const once = await count()
    expect(difference(before, once)).toStrictEqual({
      messages: 2,
      receptions: 2,
      telemetry: 2,
      positions: 1,
      packets: 9,
      traceroutes: 1,
      neighbors: 1,
      waypoints: 1,
      nodes: 2,
      sources: 1,
      channels: 1,
    })
    const node = async () => (await admin().send('GET', `/api/nodes/${HEARD}`)).body
    const told = await node()
    expect(told).toMatchObject({ longName: 'Heard Far', isLocal: false, position: { latitude: 5e-7 } })
    expect(await deliver(body)).toMatchObject({ status: 200, body: { accepted: 13, duplicates: 8, rejected: [] } })
    expect(await count()).toStrictEqual(once)
    expect(await node()).toStrictEqual(told)
    expect((await admin().send('GET', `/api/nodes/${OWN}`)).body).toMatchObject({ isLocal: true })
  })

  test('signatures are verified: signed data is believed, data signed by others is not', async () => {
    const node = createSigner(21)
    const liar = createSigner(22, node.nodeNum)
    const packets = [node.packet(node.user({ longName: 'Signed Hill' })), liar.packet(liar.user({ longName: 'Liar' }))]
    expect(await deliver({ source: 'signatures', packets: packets.map(item) })).toMatchObject({ status: 200 })
    expect((await admin().send('GET', `/api/nodes/${node.nodeNum}`)).body).toMatchObject({
      longName: 'Signed Hill',
      publicKey: node.base64,
      signed: true,
      nameSigned: true,
      refusedPublicKey: liar.base64,
      keyMismatch: true,
      spoofSuspected: true,
    })
    const path = `/api/nodes/${node.nodeNum}/key`
    expect(await admin().send('PUT', path, { publicKey: node.base64 })).toMatchObject({
      status: 200,
      body: { publicKey: node.base64, signed: true, keyMismatch: false, spoofSuspected: false },
    })
  })

  test('a signed position that a radio made less precise is taken from that radio, without a shield', async () => {
    const node = createSigner(25)
    const told = (latitudeI: number, more: object) => {
      const precise = position({ latitudeI: 525_111_111, longitudeI: 134_000_000 })
      const cell = position({ latitudeI, longitudeI: 134_000_000, precisionBits: 13 })
      const xeddsaSignature = node.sign({ from: node.nodeNum, id: latitudeI, data: precise })
      return item(packet({ ...cell, xeddsaSignature }, { from: node.nodeNum, id: latitudeI, ...more }))
    }
    const radio = (...packets: string[]) => ({
      source: 'clamping',
      packets: [item({ case: 'myInfo', value: { myNodeNum: 0xb0cb0080 } }), ...packets],
    })
    const shown = async () => (await admin().send('GET', `/api/nodes/${node.nodeNum}`)).body
    await deliver(radio(item(node.packet(node.user({ longName: 'Rounded' })))))
    await deliver({
      source: 'clamping-broker',
      packets: [{ data: told(100_000_000, { xeddsaSigned: true }), gateway: 7 }],
    })
    await deliver(radio(told(110_000_000, {})))
    expect(await shown()).toMatchObject({ position: null, signed: true, spoofSuspected: false })
    await deliver(radio(told(525_000_000, { xeddsaSigned: true })))
    expect(await shown()).toMatchObject({
      position: { latitude: 52.5 },
      positionSigned: false,
      spoofSuspected: false,
    })
  })

  test('a key that anybody can make proves nothing, and a radio outranks a broker', async () => {
    const nodeNum = 0xb0cb0042
    const liar = createSigner(23, nodeNum)
    const minted = item(liar.packet(liar.user({ longName: 'Liar' })))
    const byBroker = { source: 'minted', packets: [{ data: minted, gateway: 0x77 }] }
    expect(await deliver(byBroker)).toMatchObject({ status: 200, body: { accepted: 1 } })
    const shown = async () => (await admin().send('GET', `/api/nodes/${nodeNum}`)).body
    expect(await shown()).toMatchObject({ longName: 'Liar', signed: false, nameSigned: false, lastHeardByRadio: null })
    const owner = user({ longName: 'Owner', shortName: 'OW', publicKey: new Uint8Array(32).fill(7) })
    const packets = [item({ case: 'myInfo', value: { myNodeNum: OWN + 9 } }), item(packet(owner, { from: nodeNum }))]
    expect(await deliver({ source: 'ears', packets })).toMatchObject({ status: 200, body: { accepted: 2 } })
    const believed = { longName: 'Owner', previousPublicKey: liar.base64, keyMismatch: true }
    expect(await shown()).toMatchObject(believed)
    const again = item(liar.packet(liar.user({ longName: 'Liar again' })))
    await deliver({ source: 'minted', packets: [{ data: again, gateway: 0x77 }] })
    expect(await shown()).toMatchObject({ ...believed, refusedPublicKey: liar.base64, refusedLongName: 'Liar again' })
    expect(await admin().send('PUT', `/api/nodes/${nodeNum}/identity`, { use: 'known' })).toMatchObject({
      status: 200,
      body: { longName: 'Owner', keyMismatch: false, keyConfirmed: true, refusedPublicKey: null },
    })
  })

  test('a direct message shows its sender by the key in force, to the radio of its collector', async () => {
    const [own, nodeNum] = [0xb0cb0061, 0xb0cb0062]
    const [known, other] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(8)]
    const direct = (words: string, to: number, publicKey: Uint8Array) =>
      item(packet(text(words), { from: nodeNum, to, pkiEncrypted: true, publicKey }))
    const packets = [
      item({ case: 'myInfo', value: { myNodeNum: own } }),
      item(packet(user({ longName: 'Owner', shortName: 'OW', publicKey: known }), { from: nodeNum })),
      direct('known', own, known),
      direct('other', own, other),
      direct('elsewhere', 0xb0cb0063, known),
    ]
    expect(await deliver({ source: 'direct', packets })).toMatchObject({ status: 200, body: { accepted: 5 } })
    const { messages } = Object((await admin().send('GET', '/api/messages?limit=3')).body)
    expect(messages).toMatchObject([
      { text: 'elsewhere', keyDoubt: 'unproven' },
      { text: 'other', keyDoubt: 'other' },
      { text: 'known', keyDoubt: null },
    ])
    expect((await admin().send('GET', `/api/nodes/${nodeNum}`)).body).toMatchObject({
      spoofSuspected: true,
      suspicions: [{ reason: 'sealed', source: 'direct' }],
    })
  })

  test('what a broker delivers does not replace metrics that a radio heard', async () => {
    const nodeNum = 0xb0cb0065
    const battery = (batteryLevel: number) =>
      item(packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel } } }), { from: nodeNum }))
    const radio = [item({ case: 'myInfo', value: { myNodeNum: 0xb0cb0064 } }), battery(80)]
    expect(await deliver({ source: 'metrics', packets: radio })).toMatchObject({ status: 200, body: { accepted: 2 } })
    await deliver({ source: 'metrics-broker', packets: [{ data: battery(3), gateway: 0x77 }] })
    expect((await admin().send('GET', `/api/nodes/${nodeNum}`)).body).toMatchObject({
      deviceMetrics: { batteryLevel: 80 },
    })
  })

  test('a refused key that a radio heard is not hidden by that of a broker, and either one can be taken', async () => {
    const nodeNum = 0xb0cb0071
    const key = (byte: number) => new Uint8Array(32).fill(byte)
    const base64 = (byte: number) => Buffer.from(key(byte)).toString('base64')
    const said = (longName: string, byte: number) =>
      item(packet(user({ longName, shortName: 'RE', publicKey: key(byte) }), { from: nodeNum }))
    const radio = [item({ case: 'myInfo', value: { myNodeNum: 0xb0cb0070 } }), said('Owner', 7), said('New radio', 8)]
    expect(await deliver({ source: 'refusing', packets: radio })).toMatchObject({ status: 200, body: { accepted: 3 } })
    await deliver({ source: 'refusing-broker', packets: [{ data: said('Liar', 9), gateway: 0x77 }] })
    expect((await admin().send('GET', `/api/nodes/${nodeNum}`)).body).toMatchObject({
      refusedPublicKey: base64(8),
      refused: [
        { publicKey: base64(8), longName: 'New radio', heard: true, source: 'refusing', gateway: null },
        { publicKey: base64(9), longName: 'Liar', heard: false, source: 'refusing-broker', gateway: 0x77 },
      ],
    })
    const decision = { use: 'refused', refusedPublicKey: base64(9) }
    expect(await admin().send('PUT', `/api/nodes/${nodeNum}/identity`, decision)).toMatchObject({
      status: 200,
      body: { longName: 'Liar', publicKey: base64(9), refused: [], keyMismatch: false },
    })
  })

  test('a user decides whether a node that a collector calls its radio is one', async () => {
    const nodeNum = 0xb0cb0075
    const claim = { source: 'deciding', packets: [item({ case: 'myInfo', value: { myNodeNum: nodeNum } })] }
    const told = item({ case: 'nodeInfo', value: { num: nodeNum, user: { longName: 'Claimed' } } })
    await deliver({ ...claim, packets: [...claim.packets, told] })
    const decide = (own: boolean | null) => admin().send('PUT', `/api/nodes/${nodeNum}/own`, { own })
    const isLocal = async () => Object((await admin().send('GET', `/api/nodes/${nodeNum}`)).body).isLocal
    expect(await decide(false)).toMatchObject({
      status: 200,
      body: { declaredOwn: false, claims: [{ source: 'deciding', believed: false }] },
    })
    expect(await isLocal()).toBe(false)
    expect(await deliver(claim)).toMatchObject({ body: { rejected: [{ reason: 'not_your_radio' }] } })
    expect(await decide(true)).toMatchObject({
      status: 200,
      body: { declaredOwn: true, claims: [{ believed: true }] },
    })
    expect(await isLocal()).toBe(true)
    expect(await deliver(claim)).toMatchObject({ body: { accepted: 1, rejected: [] } })
  })

  test("another token cannot call a collector's radio its own, nor change its own radio", async () => {
    const [first, second] = [0xb0cb0051, 0xb0cb0052]
    const made = await admin().send('POST', '/api/tokens', { name: 'valley', scopes: ['ingest'] })
    const headers = { authorization: `Bearer ${Object(made.body).token}` }
    const client = createClient(admin().service)
    const claims = (nodeNum: number, source: string) => ({
      source,
      packets: [{ case: 'myInfo', value: { myNodeNum: nodeNum } } as const].map(item),
    })
    const own = (nodeNum: number, source = 'claimed') =>
      client.send('POST', '/api/ingest', claims(nodeNum, source), headers)
    const refused = { status: 200, body: { accepted: 0, rejected: [{ index: 0, reason: 'not_your_radio' }] } }
    expect(await own(first)).toMatchObject({ status: 200, body: { accepted: 1, rejected: [] } })
    expect(await own(second)).toMatchObject(refused)
    expect(await deliver(claims(first, 'thief'))).toMatchObject(refused)
    const { sources } = Object((await admin().send('GET', '/api/info')).body)
    const told = sources.filter(({ name }: { name: string }) => name === 'claimed' || name === 'thief')
    expect(told).toMatchObject([{ localNodeNum: null }, { localNodeNum: first, token: { name: 'valley' } }])
    expect((await admin().send('DELETE', `/api/tokens/${Object(made.body).id}`)).status).toBe(204)
    expect(await deliver(claims(first, 'thief'))).toMatchObject({ status: 200, body: { accepted: 1, rejected: [] } })
  })

  test('a signed packet that is sent again after hours changes nothing', async () => {
    const node = createSigner(24)
    const hours = (n: number) => Date.now() - n * 3_600_000
    const old = { data: item(node.packet(node.user({ longName: 'Old name' }))), gateway: 0x77 }
    const fresh = { data: item(node.packet(node.user({ longName: 'New name' }))), gateway: 0x77 }
    await deliver({
      source: 'minted',
      packets: [
        { ...old, receivedAt: hours(9) },
        { ...fresh, receivedAt: hours(8) },
      ],
    })
    const shown = async () => (await admin().send('GET', `/api/nodes/${node.nodeNum}`)).body
    const before = await shown()
    expect(before).toMatchObject({ longName: 'New name', signed: true })
    expect(await deliver({ source: 'minted', packets: [old] })).toMatchObject({ body: { accepted: 1, duplicates: 1 } })
    expect(await shown()).toStrictEqual(before)
  })

  test('invalid items are listed one by one, and keys are not stored', async () => {
    const good = item(packet(text('among broken ones'), { from: HEARD }))
    const secret = { psk: new TextEncoder().encode(KEY), name: 'Team' }
    const packets = [
      'not base64 at all!',
      good,
      Buffer.from('debug text').toString('base64'),
      item({ case: 'config', value: { payloadVariant: { case: 'network', value: { wifiPsk: KEY } } } }),
      item({ case: 'channel', value: { index: 3, role: 2, settings: secret } }),
      item(packet({ portnum: PortNum.ADMIN_APP, payload: new TextEncoder().encode(KEY) }, { from: HEARD })),
      'A'.repeat(2000),
      { data: good, receivedAt: Date.now() + 3_600_000 },
      { data: good, receivedAt: 1000 },
    ]
    const answer = await deliver({ source: 'valley', packets })
    expect(answer).toMatchObject({ status: 200, body: { accepted: 2, duplicates: 0 } })
    expect(Object(answer.body).rejected).toStrictEqual([
      { index: 0, reason: 'not_base64' },
      { index: 2, reason: 'not_a_message' },
      { index: 3, reason: 'not_taken' },
      { index: 5, reason: 'not_taken' },
      { index: 6, reason: 'too_long' },
      { index: 7, reason: 'received_in_future' },
      { index: 8, reason: 'received_too_early' },
    ])
    const tables = await admin().service.sql(
      `select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name not like '\\_cf%' escape '\\'
        and sql not like 'create virtual %'`,
    )
    for (const { name } of tables) {
      expect(JSON.stringify(await admin().service.sql(`select * from ${String(name)}`)), String(name)).not.toContain(
        KEY,
      )
    }
    const channels = await admin().service.sql('select name from channels where channel_index = 3')
    expect(channels).toStrictEqual([{ name: 'Team' }])
  })

  test('values that no radio can send are left out, and their packets stay', async () => {
    const nodeNum = 0xb0cb0077
    const power = { case: 'deviceMetrics', value: { batteryLevel: 200, voltage: 4 } } as const
    const packets = [
      packet(user({ longName: 'Ever\u202egreen', shortName: 'EVG' }), { from: nodeNum }),
      packet(telemetry({ time: seconds(Date.now()) - 5, variant: power }), { from: nodeNum }),
      packet(position({ latitudeI: 5, longitudeI: 6, precisionBits: 77 }), { from: nodeNum }),
      packet(nodeStatus('on\u200b duty'), { from: nodeNum }),
      packet(text('far away'), { from: nodeNum, hopStart: 200, hopLimit: 3 }),
    ]
    const answer = await deliver({ source: 'odd', packets: packets.map(item) })
    expect(answer).toMatchObject({ status: 200, body: { accepted: 5, rejected: [] } })
    expect((await admin().send('GET', `/api/nodes/${nodeNum}`)).body).toMatchObject({
      longName: 'Evergreen',
      shortName: 'EVG',
      nameAltered: true,
      status: { text: 'on duty' },
      deviceMetrics: { batteryLevel: null, voltage: 4 },
      position: { latitude: 5e-7, precisionBits: null },
    })
    const { messages } = Object((await admin().send('GET', '/api/messages?q=far%20away')).body)
    expect(messages).toMatchObject([{ hopsAway: null }])
  })

  test('delivering needs a token with the scope and a valid body', async () => {
    const body = { source: 'hill', packets: [item(packet(text('x')))] }
    expect(await admin().send('POST', '/api/ingest', body)).toMatchObject(refusal(403, 'forbidden'))
    expect(await deliver(body, ['nodes:read', 'nodes:write', 'messages:write'])).toMatchObject(
      refusal(403, 'forbidden'),
    )
    for (const bad of [
      { ...body, packets: [] },
      { ...body, packets: Array(501).fill('AA==') },
      { ...body, packets: [5] },
      { ...body, source: '' },
      { ...body, source: 'a\nb' },
      { ...body, more: 1 },
    ]) {
      expect(await deliver(bad)).toMatchObject(refusal(400, 'invalid_request'))
    }
    expect(await deliver({ ...body, packets: ['A'.repeat(1_100_000)] })).toMatchObject(
      refusal(413, 'payload_too_large'),
    )
  })

  test('500 packets of one delivery are all stored', async () => {
    const packets = Array.from({ length: 500 }, (_, n) =>
      item(
        n % 2 === 0
          ? packet(text(`number ${n}`), { from: 5000 + (n % 50) })
          : packet(telemetry({ time: seconds(Date.now()) - n, variant: METRICS }), { from: 5000 + (n % 50) }),
      ),
    )
    expect(await deliver({ source: 'hill', packets })).toMatchObject({ body: { accepted: 500, duplicates: 0 } })
    const [texts] = await admin().service.sql("select count(*) as n from messages where text like 'number %'")
    expect(texts).toStrictEqual({ n: 250 })
  })
}

const METRICS = { case: 'deviceMetrics', value: { batteryLevel: 80, voltage: 4, uptimeSeconds: 5 } } as const

/** A handshake, and a packet of each kind. */
function everyKind(): string[] {
  const route = create(RouteDiscoverySchema, { route: [7], snrTowards: [24, -128] })
  const neighbors = create(NeighborInfoSchema, { nodeId: HEARD, neighbors: [{ nodeId: 7, snr: 2.5 }] })
  const point = create(WaypointSchema, { id: 77, latitudeI: 5, longitudeI: 6, name: 'Hut' })
  const time = seconds(Date.now()) - 90
  const power = { case: 'deviceMetrics', value: { batteryLevel: 80, voltage: 4 } } as const
  const from = { from: HEARD }
  const data = (portnum: PortNum, payload: Uint8Array) => ({ portnum, payload })
  return [
    item({ case: 'myInfo', value: { myNodeNum: OWN } }),
    item({ case: 'metadata', value: { firmwareVersion: '2.8.0.test' } }),
    item({ case: 'channel', value: { index: 0, role: 1, settings: { name: 'Hill' } } }),
    item({ case: 'nodeInfo', value: { num: OWN, user: { longName: 'Collector', shortName: 'CO' } } }),
    ...[
      packet(text('once'), from),
      packet(text('twice'), from),
      packet(user({ longName: 'Heard Far', shortName: 'HF' }), from),
      packet(position({ latitudeI: 5, longitudeI: 6, time }), from),
      packet(telemetry({ time, variant: power }), from),
      packet(
        { ...data(PortNum.TRACEROUTE_APP, toBinary(RouteDiscoverySchema, route)), requestId: 3 },
        { ...from, to: 9 },
      ),
      packet(data(PortNum.NEIGHBORINFO_APP, toBinary(NeighborInfoSchema, neighbors)), from),
      packet(data(PortNum.WAYPOINT_APP, toBinary(WaypointSchema, point)), from),
      // Neither an id nor a clock: recognised by the time of receipt.
      packet(data(PortNum.PRIVATE_APP, Uint8Array.of(1)), { ...from, id: 0 }),
    ].map(item),
  ]
}
