import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MapReportSchema } from '../../../../src/meshtastic/gen/mqtt_pb.ts'
import {
  MeshBeaconSchema,
  NeighborInfoSchema,
  RouteDiscoverySchema,
  StoreAndForward_RequestResponse,
  StoreAndForwardSchema,
  WaypointSchema,
} from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { type Client, START } from '../../../support/app.ts'
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
} from '../../../support/mesh/mesh.ts'

let mesh: TestMesh
let admin: Client

beforeEach(async () => {
  mesh = await createTestMesh()
  admin = await mesh.app.admin()
})
afterEach(() => mesh.app.close())

async function get(path: string, client = admin): Promise<Record<string, unknown>> {
  const answer = await client.send('GET', path)
  expect([path, answer.status]).toStrictEqual([path, 200])
  return Object(await answer.json())
}

describe('traceroutes', () => {
  const route = { route: [7, 0xffffffff], snrTowards: [24, -128, 8], routeBack: [7], snrBack: [20, -40] }
  const reply = (init: object = route) => ({
    portnum: PortNum.TRACEROUTE_APP,
    payload: toBinary(RouteDiscoverySchema, create(RouteDiscoverySchema, init)),
  })

  it('stores the answer with the request', async () => {
    mesh.app.store.sqlite.exec(`insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, state,
      routing_error, requested_by) values (55, ${LOCAL}, ${FAR}, 1000, 'failed', 'MAX_RETRANSMIT', 'admin')`)
    await store(mesh.ingest, [myInfo, packet({ ...reply(), requestId: 55 }, { to: LOCAL })])
    expect(await get('/api/traceroutes')).toStrictEqual({
      nextBefore: null,
      traceroutes: [
        {
          id: 1,
          requestId: 55,
          fromNodeNum: LOCAL,
          fromNodeId: '!a0cb0001',
          toNodeNum: FAR,
          toNodeId: '!a0cb0002',
          timestamp: 1000,
          answeredAt: START,
          state: 'delivered',
          routingError: null,
          route: [7, null],
          snrTowards: [6, null, 2],
          routeBack: [7],
          snrBack: [5, -10],
          requestedBy: 'admin',
          radio: null,
          previous: null,
        },
      ],
    })
  })

  it('stores answers to others, but no requests', async () => {
    await store(mesh.ingest, [
      packet({ ...reply(), wantResponse: true }, { to: 9 }),
      packet({ ...reply({ route: [], snrTowards: [40] }), requestId: 3 }, { to: 9 }),
      packet({ ...reply(), requestId: 4 }, { to: 11 }),
    ])
    const { traceroutes } = await get('/api/traceroutes?node=!00000009')
    expect(traceroutes).toMatchObject([
      { fromNodeNum: 9, toNodeNum: FAR, requestId: 3, route: [], snrTowards: [10], routeBack: [], requestedBy: null },
    ])
    expect(mesh.count('traceroutes')).toBe(2)
  })

  it('of our own radio are answered once, by the node that was asked, and not through a broker', async () => {
    const ask = `insert into traceroutes (request_id, from_node_num, to_node_num, timestamp, state) values (?, ?, ?, ?, ?)`
    mesh.app.store.sqlite.prepare(ask).run(55, LOCAL, FAR, 1000, 'sent')
    await store(mesh.ingest, [myInfo])
    const answer = (route: number[], requestId = 55, from = FAR) =>
      packet({ ...reply({ route }), requestId }, { to: LOCAL, from })
    const source = { kind: 'mqtt', name: 'mqtt://broker' } as const
    await store(mesh.ingest, [answer([66]), answer([66], 56)], { source })
    await store(mesh.ingest, [answer([67], 55, 99)])
    expect(await get('/api/traceroutes')).toMatchObject({ traceroutes: [{ state: 'sent', route: null }] })
    await store(mesh.ingest, [answer([7]), answer([68])])
    expect(await get('/api/traceroutes')).toMatchObject({ traceroutes: [{ state: 'delivered', route: [7] }] })
  })
})

describe('neighbours', () => {
  const info = (nodeNum: number, near: readonly (readonly [number, number])[]) => ({
    portnum: PortNum.NEIGHBORINFO_APP,
    payload: toBinary(
      NeighborInfoSchema,
      create(NeighborInfoSchema, { nodeId: nodeNum, neighbors: near.map(([nodeId, snr]) => ({ nodeId, snr })) }),
    ),
  })

  it('are those of the latest report of each node', async () => {
    const later = START + 1000
    await store(mesh.ingest, [
      packet(
        info(FAR, [
          [7, 5],
          [8, -2.5],
        ]),
      ),
      packet(info(7, [[FAR, 4.25]]), { from: 7 }),
    ])
    await store(
      mesh.ingest,
      [
        packet(
          info(FAR, [
            [8, 1.5],
            [9, Number.NaN],
          ]),
        ),
      ],
      { at: later },
    )
    expect(await get('/api/neighbors')).toStrictEqual({
      neighbors: [
        { nodeNum: FAR, nodeId: '!a0cb0002', neighborNum: 8, neighborId: '!00000008', snr: 1.5, timestamp: later },
        { nodeNum: 7, nodeId: '!00000007', neighborNum: FAR, neighborId: '!a0cb0002', snr: 4.25, timestamp: START },
      ],
    })
  })

  it('of one node are what it hears, and who hears it, but not hidden nodes', async () => {
    const reports: [number, [number, number][]][] = [
      [FAR, [[7, 5]]],
      [7, [[8, 2]]],
      [8, [[FAR, 1]]],
    ]
    await store(
      mesh.ingest,
      reports.map(([from, near]) => packet(info(from, near), { from })),
    )
    const pairs = async (client: Client, node: string | number) => {
      const { neighbors } = Object(await (await client.send('GET', `/api/neighbors?node=${node}`)).json())
      return Object(neighbors).map(({ nodeNum, neighborNum }: Record<string, unknown>) => [nodeNum, neighborNum])
    }
    const admin = await mesh.app.admin()
    expect(await pairs(admin, '!a0cb0002')).toStrictEqual([
      [8, FAR],
      [FAR, 7],
    ])
    expect((await admin.send('GET', '/api/neighbors?node=castle')).status).toBe(400)
    await admin.send('PUT', '/api/nodes/8', { hidden: true })
    const viewer = await mesh.app.user('anna', { info: { read: true, write: false } })
    expect(await pairs(viewer, FAR)).toStrictEqual([[FAR, 7]])
  })
})

describe('waypoints', () => {
  const place = { latitudeI: 498_000_000, longitudeI: 108_000_000 }
  const waypoint = (init: object) => ({
    portnum: PortNum.WAYPOINT_APP,
    payload: toBinary(WaypointSchema, create(WaypointSchema, init)),
  })
  const names = async () => {
    const { waypoints } = await get('/api/waypoints')
    return Array.isArray(waypoints) ? waypoints.map(({ id, name }) => [id, name]) : null
  }

  it('are created, changed and deleted', async () => {
    const expire = START / 1000 + 600
    await store(mesh.ingest, [
      packet(waypoint({ id: 1, ...place, name: 'Hut', description: 'Tea', icon: 9749, expire })),
    ])
    expect(await get('/api/waypoints')).toStrictEqual({
      waypoints: [
        {
          id: 1,
          fromNodeNum: FAR,
          fromNodeId: '!a0cb0002',
          timestamp: START,
          name: 'Hut',
          description: 'Tea',
          icon: '☕',
          latitude: 49.8,
          longitude: 10.8,
          expiresAt: expire * 1000,
          lockedTo: null,
        },
      ],
    })
    await store(mesh.ingest, [packet(waypoint({ id: 1, ...place, name: 'Old hut' }), { from: 9 })])
    expect(await names()).toStrictEqual([[1, 'Old hut']])
    await store(mesh.ingest, [packet(waypoint({ id: 1, name: 'Old hut', expire: 1 }))])
    expect([await names(), mesh.count('waypoints')]).toStrictEqual([[], 0])
  })

  it('that are locked can only be changed by their owner', async () => {
    await store(mesh.ingest, [packet(waypoint({ id: 1, ...place, name: 'Mine', lockedTo: FAR }))])
    await store(mesh.ingest, [packet(waypoint({ id: 1, ...place, name: 'Yours' }), { from: 9 })])
    await store(mesh.ingest, [packet(waypoint({ id: 1, name: 'Gone', expire: 1 }), { from: 9 })])
    expect(await names()).toStrictEqual([[1, 'Mine']])
    await store(mesh.ingest, [packet(waypoint({ id: 1, ...place, name: 'Free now' }))])
    expect(await names()).toStrictEqual([[1, 'Free now']])
  })

  it('that are locked for another node than their sender are ignored, also if anybody may change them', async () => {
    await store(mesh.ingest, [packet(waypoint({ id: 1, ...place, name: 'Open' }))])
    await store(mesh.ingest, [packet(waypoint({ id: 1, ...place, name: 'Taken', lockedTo: FAR }), { from: 9 })])
    await store(mesh.ingest, [packet(waypoint({ id: 2, ...place, name: 'Made up', lockedTo: FAR }), { from: 9 })])
    expect(await names()).toStrictEqual([[1, 'Open']])
  })

  it('without coordinates or an id are ignored', async () => {
    await store(mesh.ingest, [
      packet(waypoint({ id: 2, name: 'Nowhere' })),
      packet(waypoint({ ...place, name: 'Nobody' })),
    ])
    expect(mesh.count('waypoints')).toBe(0)
  })
})

describe('store & forward', () => {
  it('repeats a message, at an unknown time', async () => {
    const replay = create(StoreAndForwardSchema, {
      rr: StoreAndForward_RequestResponse.ROUTER_TEXT_BROADCAST,
      variant: { case: 'text', value: new TextEncoder().encode('missed') },
    })
    const payload = toBinary(StoreAndForwardSchema, replay)
    const hourAgo = START / 1000 - 3600
    await store(mesh.ingest, [packet({ portnum: PortNum.STORE_FORWARD_APP, payload }, { to: LOCAL, rxTime: hourAgo })])
    const { messages } = await get('/api/messages')
    expect(messages).toMatchObject([{ text: 'missed', timestamp: START, toNodeId: '!ffffffff' }])
  })
})

describe('receptions', () => {
  const OTHER = { kind: 'tcp', name: 'radio-2' } as const
  const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const

  it('of one message by several radios and gateways', async () => {
    const far = packet(text('hi'), { hopStart: 5, hopLimit: 3, rxSnr: 1, rxRssi: -99 })
    const near = packet(text('hi'), { ...Object(far.value), hopLimit: 4, rxSnr: 2, rxRssi: -88 })
    const byGateway = (gateway: number) => {
      const { source, event } = heard(far, { source: BROKER })
      return { source, event: { ...event, gateway } }
    }
    await mesh.ingest.store([heard(far), heard(far), heard(near, { source: OTHER, at: START + 5 })])
    await mesh.ingest.store([byGateway(0xa), byGateway(0xb), byGateway(0xa)])
    const { messages } = await get('/api/messages')
    expect(messages).toMatchObject([{ id: 1, text: 'hi', hopsAway: 1, rxSnr: 2 }])
    const { receptions } = await get('/api/messages/1/receptions')
    expect(receptions).toMatchObject([
      { source: 'radio-1', gateway: null, gatewayId: null, timestamp: START, rxSnr: 1, rxRssi: -99, hopsAway: 2 },
      {
        source: 'mqtt://broker',
        gateway: 10,
        gatewayId: '!0000000a',
        timestamp: START,
        rxSnr: 1,
        rxRssi: -99,
        hopsAway: 2,
      },
      {
        source: 'mqtt://broker',
        gateway: 11,
        gatewayId: '!0000000b',
        timestamp: START,
        rxSnr: 1,
        rxRssi: -99,
        hopsAway: 2,
      },
      { source: 'radio-2', gateway: null, gatewayId: null, timestamp: START + 5, rxSnr: 2, rxRssi: -88, hopsAway: 1 },
    ])
    expect(Object(receptions).map(({ differs }: { differs: unknown }) => differs)).toStrictEqual([[], [], [], []])
    mesh.app.store.sqlite.exec('delete from messages')
    expect(mesh.count('receptions')).toBe(0)
    expect((await admin.send('GET', '/api/messages/1/receptions')).status).toBe(404)
  })
})

describe('the packet log', () => {
  it('lists each packet once, decoded, newest first, in pages', async () => {
    const twice = packet(text('hi'))
    await store(mesh.ingest, [twice, packet(position({ latitudeI: 1, longitudeI: 2 }), { from: 9 }), twice])
    await store(mesh.ingest, [packet({ portnum: Object(300).valueOf(), payload: Uint8Array.of(1, 2) })], {
      at: START + 1,
    })
    const first = await get('/api/packets?limit=2')
    expect(first).toMatchObject({
      packets: [
        { port: 300, portName: 'UNKNOWN_300', timestamp: START + 1, payload: { kind: 'unknown', bytes: 'AQI=' } },
        { port: 3, portName: 'POSITION_APP', fromNodeNum: 9, payload: { kind: 'position', fix: { latitude: 1e-7 } } },
      ],
      nextBefore: 2,
    })
    expect(await get('/api/packets?limit=2&before=2')).toMatchObject({
      packets: [
        { id: 1, source: 'radio-1', toNodeId: '!ffffffff', rxSnr: 6.25, payload: { kind: 'text', text: 'hi' } },
      ],
      nextBefore: null,
    })
  })

  it.each([
    ['from=9', [2]],
    ['from=!00000009', [2]],
    ['to=!ffffffff', [2, 1]],
    ['to=9', [3]],
    ['port=3', [2]],
    [`since=${START + 1}`, [3]],
    ['port=3&from=10', []],
    ['after=1', [3, 2]],
    ['after=3', []],
    ['after=1&to=!ffffffff', [2]],
    ['after=1&before=3', [2]],
  ])('is filtered by %s', async (query, ids) => {
    await store(mesh.ingest, [packet(text('hi')), packet(position({ latitudeI: 1, longitudeI: 2 }), { from: 9 })])
    await store(mesh.ingest, [packet(text('later'), { to: 9 })], { at: START + 1 })
    const { packets } = await get(`/api/packets?${query}`)
    expect(Array.isArray(packets) && packets.map(({ id }) => id)).toStrictEqual(ids)
  })

  it.each(['limit=0', 'limit=501', 'from=0', 'port=512', 'port=text', 'before=0', 'after=0', 'since=-1'])(
    'refuses %s',
    async (query) => {
      expect((await admin.send('GET', `/api/packets?${query}`)).status).toBe(400)
    },
  )

  it('contains no secret and no ciphertext', async () => {
    const secret = new TextEncoder().encode('wifi password 16')
    const offerChannel = { name: 'Hut', psk: secret }
    const beacon = toBinary(MeshBeaconSchema, create(MeshBeaconSchema, { message: 'Join us', offerChannel }))
    await store(mesh.ingest, [
      packet({ portnum: PortNum.MESH_BEACON_APP, payload: beacon }),
      packet({ portnum: PortNum.MESH_BEACON_APP, payload: Uint8Array.from([...beacon, 0x1f]) }),
      packet({ portnum: PortNum.ADMIN_APP, payload: secret }),
      packet({ portnum: PortNum.REMOTE_SHELL_APP, payload: secret }),
      { case: 'packet', value: { from: FAR, id: 3, payloadVariant: { case: 'encrypted', value: secret } } },
    ])
    const { packets } = Object(await get('/api/packets'))
    const told = packets.map((one: { port: number; payload: { kind: string } }) => `${one.port} ${one.payload.kind}`)
    expect(told).toEqual(['null encrypted', '13 unknown', '6 admin', '37 malformed', '37 beacon'])
    expect(packets.at(-1)).toMatchObject({ payload: { message: 'Join us', channelName: 'Hut', hasKey: true } })
    const stored = JSON.stringify(mesh.app.store.sqlite.prepare('select * from logged').all())
    expect(stored).not.toContain('wifi')
    for (const before of [0, 1, 2]) {
      const bytes = Buffer.from([...new Uint8Array(before), ...secret])
      expect(stored).not.toContain(bytes.toString('base64').slice(4, 16))
    }
  })

  it('hides what a user may not read elsewhere', async () => {
    await store(mesh.ingest, [packet(text('private')), packet(position({ latitudeI: 1, longitudeI: 2 }))])
    const none = { read: false, write: false }
    const reader = await mesh.app.user('reader', { messages: none, nodes: none })
    const { packets } = await get('/api/packets', reader)
    expect(packets).toMatchObject([{ payload: { kind: 'position' } }, { payload: { kind: 'text' } }])
    expect(JSON.stringify(packets)).not.toMatch(/private|latitude/)
  })
})

it('map reports give the name, firmware and approximate position of a node', async () => {
  const report = (init: object) =>
    packet({
      portnum: PortNum.MAP_REPORT_APP,
      payload: toBinary(
        MapReportSchema,
        create(MapReportSchema, { latitudeI: 498_000_000, longitudeI: 108_000_000, ...init }),
      ),
    })
  const told = { hwModel: 43, firmwareVersion: '2.7.15.567b8ea', positionPrecision: 13 }
  await store(mesh.ingest, [report({ longName: 'Far Hill', ...told })])
  expect(await mesh.node()).toMatchObject({
    longName: 'Far Hill',
    hwModel: 'HELTEC_V3',
    firmwareVersion: '2.7.15.567b8ea',
    position: { latitude: 49.8, precisionBits: 13 },
  })
  await store(mesh.ingest, [packet(position({ latitudeI: 501_000_000, longitudeI: 108_000_000, precisionBits: 32 }))])
  await store(mesh.ingest, [report({ longName: 'Farther Hill' })])
  // A report without a version does not delete the known one.
  expect(await mesh.node()).toMatchObject({
    longName: 'Farther Hill',
    firmwareVersion: '2.7.15.567b8ea',
    position: { latitude: 50.1, precisionBits: 32 },
  })
})

it('channels are listed by radio, without keys', async () => {
  const psk = new TextEncoder().encode('0123456789abcdef')
  await store(mesh.ingest, [
    { case: 'channel', value: { index: 0, role: 1, settings: { psk } } },
    { case: 'channel', value: { index: 1, role: 2, settings: { name: 'Rescue', psk } } },
  ])
  const answer = await get('/api/channels')
  expect(answer).toStrictEqual({
    channels: [
      { source: 'radio-1', index: 0, name: '', role: 'PRIMARY' },
      { source: 'radio-1', index: 1, name: 'Rescue', role: 'SECONDARY' },
    ],
  })
})
