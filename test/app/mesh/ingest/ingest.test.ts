import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Ports } from '../../../../src/app/base/context.ts'
import { createEvents } from '../../../../src/app/mesh/live/events.ts'
import { storeDelivery } from '../../../../src/app/mesh/collector/delivery.ts'
import { keepUp } from '../../../../src/app/upkeep/upkeep.ts'
import { createMeter } from '../../../../src/app/system/metrics/meter.ts'
import { MAX_NUMBER } from '../../../../src/meshtastic/channel-identity.ts'
import { MeshPacket_TransportMechanism } from '../../../../src/meshtastic/gen/packet_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { type Client, createTestApp, START, type TestApp } from '../../../support/app.ts'
import { item } from '../../../support/mesh/delivery.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { FAR, LOCAL, packet, position, seconds, telemetry, text, user } from '../../../support/mesh/mesh.ts'

const HOUR = 3_600_000
/** A port number that the protocol has not assigned. */
const UNHEARD_OF = JSON.parse('300')

let app: TestApp
let admin: Client
let token: string
let events: NonNullable<Ports['events']>
let meter: NonNullable<Ports['meter']>

beforeEach(async () => {
  events = createEvents(createManualClock(START))
  meter = createMeter({ now: () => 0, process: () => [] })
  app = await createTestApp({ ports: { events, meter } })
  admin = await app.admin()
  const made = await admin.send('POST', '/api/tokens', { name: 'collector', scopes: ['ingest'] })
  token = Object(await made.json()).token
})
afterEach(() => app.close())

type Item = string | { data: string; receivedAt?: number; replayed?: boolean; gateway?: number }

async function deliver(packets: readonly Item[], more: object = {}): Promise<{ status: number; body: unknown }> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await app.client().send('POST', '/api/ingest', { source: 'hill', packets, ...more }, headers)
  return { status: answer.status, body: await answer.json() }
}

async function get(path: string): Promise<Record<string, unknown>> {
  return Object(await (await admin.send('GET', path)).json())
}

const node = (nodeNum = FAR) => get(`/api/nodes/${nodeNum}`)
const messages = async (): Promise<Record<string, unknown>[]> => Object(await get('/api/messages')).messages
const series = async () => {
  const range = `nodeId=!a0cb0002&metric=deviceMetrics.batteryLevel&from=${START - 24 * HOUR}&to=${START + HOUR}`
  return (await get(`/api/telemetry?${range}`))['series']
}

const battery = (batteryLevel: number, time: number) =>
  telemetry({ time: time === 0 ? 0 : seconds(time), variant: { case: 'deviceMetrics', value: { batteryLevel } } })

describe('the time at which a packet was received', () => {
  test('comes from the collector, first from the packet, then from the delivery', async () => {
    const noClock = (words: string) => item(packet(text(words)))
    const packets = [noClock('of the delivery'), { data: noClock('of its own'), receivedAt: START - 3 * HOUR }]
    expect(await deliver(packets, { receivedAt: START - 2 * HOUR })).toMatchObject({ body: { accepted: 2 } })
    expect(await messages()).toMatchObject([
      { text: 'of its own', timestamp: START - 3 * HOUR },
      { text: 'of the delivery', timestamp: START - 2 * HOUR },
    ])
    expect(await node()).toMatchObject({ lastHeard: START - 2 * HOUR, firstHeard: START - 3 * HOUR })
  })

  test('comes from the radio if the collector gives none, otherwise it is now', async () => {
    const at = (rxTime: number) => item(packet(text(`at ${rxTime}`), { rxTime }))
    const heard = seconds(START - HOUR)
    const ahead = seconds(START) + 300
    await deliver([at(heard), at(ahead), at(0)])
    expect((await messages()).map(({ timestamp }) => timestamp)).toStrictEqual([START, START, START - HOUR])
    const times = app.store.sqlite.prepare('select t from logged order by id').pluck().all()
    expect(times).toStrictEqual([START - HOUR, START, START])
  })

  test('is at most ten minutes in the future', async () => {
    const data = item(packet(text('x')))
    expect(await deliver([{ data, receivedAt: START + 600_001 }])).toMatchObject({
      body: { accepted: 0, rejected: [{ index: 0, reason: 'received_in_future' }] },
    })
    expect(await deliver([{ data, receivedAt: START + 600_000 }])).toMatchObject({ body: { accepted: 1 } })
  })
})

describe('late data', () => {
  beforeEach(() =>
    deliver([
      item(packet(user({ longName: 'New name', shortName: 'NEW', publicKey: new Uint8Array(32).fill(2) }))),
      item(packet(position({ latitudeI: 50_000_000, longitudeI: 60_000_000 }))),
      item(packet(battery(80, START))),
    ]),
  )

  test('replaces nothing newer, and goes into the history', async () => {
    const before = await node()
    const late = [
      item(packet(user({ longName: 'Old name', shortName: 'OLD', publicKey: new Uint8Array(32).fill(1) }))),
      item(packet(position({ latitudeI: 10_000_000, longitudeI: 10_000_000 }), { rxSnr: -9 })),
      item(packet(battery(70, START - HOUR))),
      item(packet(text('said an hour ago'))),
    ]
    expect(await deliver(late, { receivedAt: START - HOUR })).toMatchObject({ body: { accepted: 4, duplicates: 0 } })
    expect(await node()).toStrictEqual({ ...before, firstHeard: START - HOUR })
    expect(await series()).toStrictEqual([
      [START - HOUR, 70],
      [START, 80],
    ])
    expect(await messages()).toMatchObject([{ text: 'said an hour ago', timestamp: START - HOUR }])
  })

  test('fills gaps, and replaces what is older', async () => {
    app.clock.advance(3 * HOUR)
    const late = [
      item(packet(user({ longName: 'Newest name', shortName: 'NEWS' }))),
      item({ case: 'nodeInfo', value: { num: 0xa0cb0099, lastHeard: seconds(START), user: { longName: 'Unheard' } } }),
    ]
    await deliver(late, { receivedAt: START + HOUR })
    expect(await node()).toMatchObject({ longName: 'Newest name', lastHeard: START + HOUR, keyMismatch: false })
    expect(await node(0xa0cb0099)).toMatchObject({ longName: 'Unheard', lastHeard: START })
  })
})

describe('a radio that a delivery calls its own', () => {
  const claim = (nodeNum: number, more: readonly Item[] = []) => [
    item({ case: 'myInfo', value: { myNodeNum: nodeNum } }),
    ...more,
  ]
  const refused = { body: { accepted: 0, rejected: [{ index: 0, reason: 'not_your_radio' }] } }
  const taken = { body: { accepted: 1, rejected: [] } }
  const known = item(packet(user({ longName: 'Repeater', shortName: 'RE' })))
  const isLocal = async (nodeNum = FAR) => (await node(nodeNum))['isLocal']
  const make = async (owner: Client, name = 'another'): Promise<{ id: number; token: string }> => {
    const made = await owner.send('POST', '/api/tokens', { name, scopes: ['ingest'] })
    return Object(await made.json())
  }
  const otherUser = async () => make(await app.user('other', { configuration: { read: true, write: true } }))
  const ownRadio = (nodeNum: number) => {
    app.store.sqlite.exec(
      `insert into sources (kind, name, local_node_num, created_at) values ('tcp', 'roof', ${nodeNum}, 1)`,
    )
    const link = { kind: 'tcp', name: 'roof' }
    Object.assign(app.ports, { radio: { links: () => [link], collector: () => null } })
  }

  test("is no radio of this service, and none of another token's source", async () => {
    await deliver([known, ...claim(LOCAL, [item({ case: 'nodeInfo', value: { num: LOCAL } })])])
    token = (await otherUser()).token
    expect(await deliver(claim(LOCAL), { source: 'thief' })).toMatchObject(refused)
    expect(app.logged.some((line) => line.includes('calls nodes its own radio that are not'))).toBe(true)
    ownRadio(FAR)
    expect(await deliver(claim(FAR), { source: 'thief' })).toMatchObject(refused)
    Object.assign(app.ports, { radio: null })
    const sources: Record<string, unknown>[] = Object(await get('/api/info')).sources
    expect(sources.find(({ name }) => name === 'thief')).toMatchObject({
      localNodeNum: null,
      token: { name: 'another', owner: 'other' },
    })
    const reader = await app.user('reader', { info: { read: true, write: false } })
    const { sources: seen } = Object(await (await reader.send('GET', '/api/info')).json())
    expect(seen.map(({ token }: { token: unknown }) => token)).toStrictEqual([null, null, null])
  })

  test('is no node that the own radio heard within a day', async () => {
    ownRadio(LOCAL)
    await deliver([known])
    app.store.sqlite.exec(`update nodes set last_heard_by_radio = ${START - 23 * HOUR} where node_num = ${FAR}`)
    expect(await deliver(claim(FAR))).toMatchObject(refused)
    expect(await isLocal()).toBe(false)
    app.clock.advance(2 * HOUR)
    expect(await deliver(claim(FAR))).toMatchObject(taken)
    expect(await isLocal()).toBe(true)
  })

  test('stays the first one: another number needs another token', async () => {
    const first = (await make(admin)).token
    const { id } = Object((await get('/api/tokens'))['tokens']).find((one: { name: string }) => one.name === 'another')
    token = first
    await deliver([known])
    expect(await deliver(claim(FAR))).toMatchObject(taken)
    expect(await deliver(claim(LOCAL))).toMatchObject(refused)
    expect(await deliver(claim(LOCAL, [item({ case: 'nodeInfo', value: { num: 5 } })]))).toMatchObject({
      body: { accepted: 1, rejected: [{ index: 0 }] },
    })
    expect(await isLocal()).toBe(true)
    expect((await admin.send('DELETE', `/api/tokens/${id}`)).status).toBe(204)
    expect(await isLocal()).toBe(false)
    token = (await make(admin, 'third')).token
    expect(await deliver(claim(LOCAL))).toMatchObject(taken)
  })

  test('is one of eight at most for one token', async () => {
    for (let n = 1; n <= 8; n++) expect(await deliver(claim(7000 + n), { source: `s${n}` })).toMatchObject(taken)
    expect(await deliver(claim(7009), { source: 's9' })).toMatchObject(refused)
    expect(await deliver(claim(7008), { source: 's9' })).toMatchObject(taken)
  })

  test.each(['held_at = 1', `expires_at = ${START - 1}`])(
    'is free when its token is no longer valid: %s',
    async (how) => {
      await deliver([known])
      expect(await deliver(claim(FAR))).toMatchObject(taken)
      const other = await otherUser()
      app.store.sqlite.exec(`update api_tokens set ${how} where id <> ${other.id}`)
      await keepUp(app.ports, async () => true)
      expect(await isLocal()).toBe(false)
      token = other.token
      expect(await deliver(claim(FAR), { source: 'new owner' })).toMatchObject(taken)
      app.store.sqlite.exec('update api_tokens set held_at = null')
      const owners = app.store.sqlite.prepare(`select name from sources where local_node_num = ${FAR}`).pluck()
      expect(owners.all()).toStrictEqual(['new owner'])
    },
  )

  test("a source that is taken over after another owner's token expired brings no claim", async () => {
    await deliver([known])
    expect(await deliver(claim(FAR))).toMatchObject(taken)
    app.store.sqlite.exec(`update api_tokens set expires_at = ${START - 1}`)
    token = (await otherUser()).token
    expect(await deliver([item(packet(text('mine now')))])).toMatchObject(taken)
    expect(await isLocal()).toBe(false)
  })
})

describe('beside the radios of this service', () => {
  test('a collector cannot use the name of one of them', async () => {
    app.store.sqlite.exec("insert into sources (kind, name, created_at) values ('tcp', 'hill', 1)")
    expect(await deliver([item({ case: 'myInfo', value: { myNodeNum: LOCAL } })])).toMatchObject({
      status: 409,
      body: { code: 'source_taken' },
    })
    expect(app.store.sqlite.prepare('select local_node_num from sources').pluck().all()).toStrictEqual([null])
  })

  test('a token has 20 sources at most, whatever their names', async () => {
    const packets = [item(packet(text('x')))]
    for (let n = 1; n <= 20; n++) expect((await deliver(packets, { source: `source ${n}` })).status).toBe(200)
    expect(await deliver(packets)).toMatchObject({ status: 409, body: { code: 'too_many_sources' } })
    expect(await deliver(packets, { source: 'source 7' })).toMatchObject({ status: 200, body: { accepted: 1 } })
    expect(app.store.sqlite.prepare('select count(*) from sources').pluck().get()).toBe(20)
  })

  test("a source belongs to its token: other users' tokens cannot use it, those of the same owner take it over", async () => {
    const told = [
      item({ case: 'myInfo', value: { myNodeNum: LOCAL } }),
      item({ case: 'channel', value: { index: 5, role: 2, settings: { name: 'Hill' } } }),
      item({ case: 'nodeInfo', value: { num: LOCAL, user: { longName: 'Collector' } } }),
    ]
    const claimed = async () => {
      const { channels } = await get('/api/channels')
      return [(await node(LOCAL))['isLocal'], Object(channels).length]
    }
    const make = async (owner: Client): Promise<{ id: number; token: string }> => {
      const made = await owner.send('POST', '/api/tokens', { name: 'another', scopes: ['ingest'] })
      return Object(await made.json())
    }
    const first = token
    expect(await deliver(told)).toMatchObject({ status: 200 })
    expect(await claimed()).toStrictEqual([true, 1])
    const other = await app.user('other', { configuration: { read: true, write: true } })
    token = (await make(other)).token
    expect(await deliver(told)).toMatchObject({ status: 409, body: { code: 'source_taken' } })
    const next = await make(admin)
    token = next.token
    expect(await deliver(told)).toMatchObject({ status: 200 })
    expect(await claimed()).toStrictEqual([true, 1])
    expect((await admin.send('DELETE', `/api/tokens/${next.id}`)).status).toBe(204)
    expect(await claimed()).toStrictEqual([false, 0])
    token = first
    expect(await deliver([item(packet(text('again')))])).toMatchObject({ status: 200 })
    expect(await claimed()).toStrictEqual([false, 1])
    expect(await deliver(told)).toMatchObject({ status: 200 })
    expect(await claimed()).toStrictEqual([true, 1])
  })

  test('a delivery cannot set favourites or ignored nodes', async () => {
    const value = { num: FAR, user: { longName: 'Far' }, isFavorite: true, isIgnored: true }
    expect(await deliver([item({ case: 'nodeInfo', value })])).toMatchObject({ body: { accepted: 1 } })
    expect(await node()).toMatchObject({ longName: 'Far', isFavorite: false, isIgnored: false })
  })

  test('two collectors that use one name are reported in the log', async () => {
    const warnings = () => app.logged.filter((line) => line.includes('do two collectors use the same name')).length
    await deliver([item({ case: 'myInfo', value: { myNodeNum: LOCAL } })])
    await deliver([item({ case: 'myInfo', value: { myNodeNum: LOCAL } })])
    expect(warnings()).toBe(0)
    await deliver([item({ case: 'myInfo', value: { myNodeNum: FAR } })])
    expect(warnings()).toBe(1)
  })

  test('a channel index must be one that a radio or a broker can have', async () => {
    const channels = [-1, 0, 7, 255, MAX_NUMBER, MAX_NUMBER + 1, 2 ** 31 - 1].map((index) =>
      item({ case: 'channel', value: { index, role: 2, settings: { name: 'c' } } }),
    )
    const rejected = [0, 5, 6].map((index) => ({ index, reason: 'not_taken' }))
    expect(await deliver(channels)).toMatchObject({ body: { accepted: 4, rejected } })
  })

  test('packets of its radio count as sent if it did not hear them, and those in its name from others are flagged', async () => {
    await deliver([item({ case: 'myInfo', value: { myNodeNum: LOCAL } })])
    const own = { from: LOCAL, rxRssi: undefined, rxSnr: 0, hopStart: 0 }
    await deliver([item(packet(text('ours'), own)), item(packet(text('not ours'), { from: LOCAL }))])
    expect(await messages()).toMatchObject([{ text: 'ours', direction: 'out' }])
    expect(app.store.sqlite.prepare('select spoof_suspected from nodes').pluck().all()).toStrictEqual([1])
  })

  test('a gateway and replayed packets are marked on the item', async () => {
    const kept = { data: item(packet(text('kept'))), gateway: 0x11, replayed: true }
    await deliver([kept, { data: item(packet(text('live'))), gateway: 0x12 }])
    const rows = app.store.sqlite.prepare('select gateway, replayed from logged order by id').all()
    expect(rows).toStrictEqual([
      { gateway: 0x11, replayed: 1 },
      { gateway: 0x12, replayed: 0 },
    ])
  })

  test('unless the collector marks them, packets replayed after a handshake are distinguished from live ones', async () => {
    const way = { transportMechanism: MeshPacket_TransportMechanism.TRANSPORT_LORA }
    const remembered = packet(position({ latitudeI: 1, longitudeI: 2 }), { rxRssi: undefined, rxSnr: 6, ...way })
    const own = packet(battery(50, START), { from: LOCAL, rxRssi: undefined, rxSnr: 0 })
    const complete = { case: 'configCompleteId', value: 7 } as const
    expect(
      await deliver([item({ case: 'myInfo', value: { myNodeNum: LOCAL } }), item(complete), item(remembered)]),
    ).toMatchObject({ body: { accepted: 2, rejected: [{ index: 1, reason: 'not_taken' }] } })
    await deliver([item(own)])
    const rows = app.store.sqlite.prepare('select from_node_num as node, replayed from logged order by id').all()
    expect(rows).toStrictEqual([
      { node: FAR, replayed: 1 },
      { node: LOCAL, replayed: 0 },
    ])
  })

  test('new data is published and counted once, and an unknown port is logged once', async () => {
    const packets = [
      item(packet(text('news'))),
      ...[1, 2].map(() => item(packet({ portnum: PortNum.CAYENNE_APP, payload: Uint8Array.of(1) }))),
      item(packet({ portnum: UNHEARD_OF, payload: Uint8Array.of(1) })),
    ]
    for (let time = 0; time < 3; time++) await deliver(packets)
    const counted = meter.families().find(({ name }) => name === 'mesh_packets_total')
    expect(counted?.samples).toStrictEqual([
      { labels: { port: 'TEXT_MESSAGE_APP' }, value: 1 },
      { labels: { port: 'CAYENNE_APP' }, value: 2 },
      { labels: { port: 'other' }, value: 1 },
    ])
    expect(events.since(0, 100)?.map(({ kind }) => kind)).toStrictEqual(['node', 'message'])
    await deliver([item(packet(text('late'), { from: 9 }))], { receivedAt: START - HOUR })
    expect(events.since(2, 1)).toMatchObject([{ kind: 'node', data: { nodeNum: 9, heardAt: START - HOUR } }])
    const named = app.logged.map((line) => Object(JSON.parse(line))).filter(({ port }) => port !== undefined)
    expect(named).toMatchObject([
      { level: 'info', message: 'Packets of an unknown port', port: 77, portName: 'CAYENNE_APP' },
      { level: 'info', port: 300, portName: 'UNKNOWN_300', from: FAR },
    ])
    const { packets: log } = Object(await get('/api/packets?port=300'))
    expect(log).toMatchObject([{ payload: { kind: 'unknown', bytes: 'AQ==' } }])
  })

  test('an item that the database refuses does not block the others', async () => {
    app.store.sqlite.exec(`create trigger refuse before insert on messages when new.text = 'refused'
      begin select raise(abort, 'no such words'); end`)
    const packets = ['one', 'refused', 'two', 'three'].map((words) => item(packet(text(words))))
    expect(await deliver(packets)).toStrictEqual({
      status: 200,
      body: { accepted: 3, duplicates: 0, rejected: [{ index: 1, reason: 'not_storable' }] },
    })
    expect((await messages()).map((message) => message['text'])).toStrictEqual(['three', 'two', 'one'])
  })

  test('a database that closes during a delivery rejects nothing for good', async () => {
    const { sqlite, atomic } = app.store
    const store = {
      ...app.store,
      atomic: (all: Parameters<typeof atomic>[0]) => {
        sqlite.close()
        return atomic(all)
      },
    }
    const delivery = { source: 'hill', packets: [item(packet(text('one')))] }
    sqlite.exec("insert into sources (kind, name, created_at, token_id) values ('ingest', 'hill', 1, 1)")
    const ctx = { ...app.ports, store, viewer: null, ip: null, requestId: 'one' }
    await expect(storeDelivery(ctx, delivery, 1)).rejects.toThrow('database connection is not open')
  })
})
