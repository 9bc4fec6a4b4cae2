import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { summariseHearings } from '../../../../src/app/mesh/history/hearings.ts'
import { NeighborInfoSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { createTestAlerts } from '../../../support/alerts.ts'
import { type Client, START } from '../../../support/app.ts'
import {
  type At,
  createTestMesh,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

const MINUTE = 60_000
const READ = { read: true, write: false }
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** The node that falls silent, its repeater, and a node that never does. */
const GONE = 0xc0000001
const HILL = 0xc0000002
const OTHER = 0xc0000003
const END = START + 2 * DAY
const NOW = END + 2 * DAY
const BROKER = { kind: 'mqtt', name: 'mqtt' } as const

let mesh: TestMesh
let admin: Client | null
beforeEach(async () => {
  mesh = await createTestMesh()
  admin = null
})
afterEach(() => mesh.app.close())

const key = (n: number) => new Uint8Array(32).fill(n)
const named = (longName: string, more: object = {}) => user({ longName, shortName: longName.slice(0, 4), ...more })

type Said = Parameters<typeof packet>[0]

async function hear(from: number, at: number, said: Said, more: Parameters<typeof packet>[1] = {}, by: At = {}) {
  await store(mesh.ingest, [packet(said, { from, ...more })], { at, ...by })
}

/** Once an hour from `from` to `to`. */
async function talk(
  from: number,
  span: readonly [number, number],
  more: Parameters<typeof packet>[1] = {},
  by: At = {},
) {
  for (let at = span[0]; at <= span[1]; at += HOUR) await hear(from, at, text(`at ${at}`), more, by)
}

const RELAYED = { hopStart: 3, hopLimit: 1, rxSnr: 1 }

/** What the service says about the node at `now`. */
async function silence(now = NOW, nodeNum = GONE, as?: Client) {
  mesh.app.clock.now = now
  await summariseHearings(mesh.app.store, async () => true)
  admin ??= await mesh.app.admin()
  const answer = await (as ?? admin).send('GET', `/api/nodes/${nodeNum}/silence`)
  expect(answer.status).toBe(200)
  const found: { isSilent: boolean; reasons: { kind: string; isLikely: boolean }[] } = Object(await answer.json())
  return found
}
const kindsOf = ({ reasons }: { reasons: { kind: string }[] }) => reasons.map(({ kind }) => kind)

/** A healthy mesh but for the node: it speaks until END, the others until now. */
async function fallSilent(more: Parameters<typeof packet>[1] = {}) {
  await hear(GONE, START, named('Gone', { publicKey: key(7) }))
  await hear(OTHER, START, named('Other', { publicKey: key(8) }))
  await talk(GONE, [START, END], more)
  await talk(OTHER, [START, NOW])
}

async function measure(
  at: number,
  value: { batteryLevel?: number; voltage?: number; uptimeSeconds?: number },
  time = at,
) {
  await hear(GONE, at, telemetry({ time: seconds(time), variant: { case: 'deviceMetrics', value } }))
}

describe('what may be the reason, with its evidence', () => {
  it('nothing: it says so', async () => {
    await fallSilent()
    expect(await silence()).toMatchObject({ isSilent: true, reasons: [] })
  })

  it('a node that is only a little late is not silent', async () => {
    await fallSilent()
    expect(await silence(END + 90 * MINUTE)).toMatchObject({ isSilent: false, reasons: [] })
  })

  it('its battery was low, or had to be empty by now', async () => {
    await fallSilent()
    for (const [hours, batteryLevel] of [
      [10, 31],
      [7, 24],
      [4, 17],
      [1, 11],
    ] as const)
      await measure(END - hours * HOUR, { batteryLevel })
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'battery', isLikely: true, level: 11, at: END - HOUR })
    expect(first).toHaveProperty('perDay', expect.closeTo(53.6, 1))
  })

  it('a full battery and one on external power are no reason', async () => {
    await fallSilent()
    for (const hours of [10, 7, 4, 1]) await measure(END - hours * HOUR, { batteryLevel: hours === 1 ? 101 : 14 })
    expect((await silence()).reasons).toEqual([])
  })

  it('the repeater that heard it fell silent at the same time', async () => {
    await fallSilent(RELAYED)
    await hear(HILL, START, named('Castle Hill'))
    const neighbors = [{ nodeId: GONE, snr: 7 }]
    const payload = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, { nodeId: HILL, neighbors }))
    await hear(HILL, START + HOUR, { portnum: PortNum.NEIGHBORINFO_APP, payload })
    await talk(HILL, [START, END + 30 * MINUTE])
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'repeater', isLikely: true, others: 0 })
    expect(first).toHaveProperty('gone', [expect.objectContaining({ nodeNum: HILL, name: 'Castle Hill' })])
  })

  it('a repeater that is still heard is no reason', async () => {
    await fallSilent(RELAYED)
    const neighbors = [{ nodeId: GONE, snr: 7 }]
    const payload = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, { nodeId: HILL, neighbors }))
    await hear(HILL, START + HOUR, { portnum: PortNum.NEIGHBORINFO_APP, payload })
    await talk(HILL, [START, NOW])
    expect((await silence()).reasons).toEqual([])
  })

  it('it had moved away', async () => {
    await fallSilent()
    const at = (latitudeI: number, time: number) => position({ latitudeI, longitudeI: 80_000_000, time: seconds(time) })
    await hear(GONE, START - 3 * DAY, at(470_000_000, START - 3 * DAY))
    await hear(GONE, END - 2 * HOUR, at(471_500_000, END - 2 * HOUR))
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'moved', isLikely: true, at: END - 2 * HOUR })
    expect(first).toHaveProperty('metres', expect.closeTo(16_680, -2))
  })

  it('it had got another role, which it reported', async () => {
    await fallSilent()
    await hear(GONE, END - HOUR, named('Gone', { publicKey: key(7), role: 8 }))
    await hear(GONE, END, named('Gone', { publicKey: key(7), role: 8 }))
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'changed', field: 'role', before: 'CLIENT', after: 'CLIENT_HIDDEN' })
  })

  it('it had got another name or another key', async () => {
    await fallSilent()
    await hear(GONE, END - 2 * HOUR, named('Gone away', { publicKey: key(7) }))
    const [renamed] = (await silence()).reasons
    expect(renamed).toMatchObject({ kind: 'changed', field: 'longName', before: 'Gone', after: 'Gone away' })
    mesh.app.store.sqlite
      .prepare("insert into node_changes (node_num, t, field, before, after) values (?, ?, 'publicKey', 'a', 'b')")
      .run(GONE, END - HOUR)
    expect((await silence()).reasons[0]).toMatchObject({ kind: 'changed', field: 'publicKey', at: END - HOUR })
  })

  it('it goes on under another number, by its key', async () => {
    await fallSilent()
    await hear(0xc0000009, END + HOUR, named('Renewed', { publicKey: key(7) }))
    await talk(0xc0000009, [END + HOUR, NOW])
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'renumbered', isLikely: true, nodeNum: 0xc0000009, sameKey: true })
  })

  it('our radio hears nothing any more', async () => {
    await fallSilent()
    mesh.app.store.sqlite.prepare('delete from packets where t > ?').run(END)
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'radio', isLikely: true, source: 'radio-1', since: END, state: null })
  })

  it('the connection to the broker is down', async () => {
    await talk(OTHER, [START, NOW])
    await talk(GONE, [START, END], { viaMqtt: true }, { source: BROKER })
    const [first] = (await silence()).reasons
    expect(first).toMatchObject({ kind: 'broker', isLikely: true, source: 'mqtt', since: END })
  })

  it('we ignore it', async () => {
    await fallSilent()
    await silence()
    await admin?.send('PUT', `/api/nodes/${GONE}`, { isIgnored: true })
    expect((await silence()).reasons[0]).toMatchObject({ kind: 'ignored', isLikely: true })
  })

  it('we set aside what comes in its name', async () => {
    await fallSilent()
    const { sqlite } = mesh.app.store
    sqlite
      .prepare(
        `insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, port, hop_limit, via_mqtt,
          pki_encrypted, replayed, trust_level, payload)
        select source_id, t + ?, packet_id + 1, from_node_num, to_node_num, channel, port, hop_limit, 0, 0, 0, 'spoofed', '{}'
        from packets where from_node_num = ? and t > ?`,
      )
      .run(3 * HOUR, GONE, END - 3 * HOUR)
    expect((await silence()).reasons[0]).toEqual({
      kind: 'filtered',
      isLikely: true,
      by: 'suspicion',
      source: null,
      packets: 3,
      since: END + HOUR,
    })
  })

  it('the collector that delivered it leaves out what it sends; with one packet of the kind nothing says so', async () => {
    const collector = { source: { kind: 'ingest', name: 'far away' } } as const
    for (let at = START; at <= END; at += HOUR) await hear(GONE, at, named('Gone'), {}, collector)
    for (let at = START; at <= NOW; at += HOUR / 3) await hear(OTHER, at, text(`at ${at}`), {}, collector)
    const filtered = { kind: 'filtered', isLikely: false, by: 'collector', source: 'far away', since: END }
    expect((await silence()).reasons).toEqual([{ ...filtered, packets: null }])
    // What came later in its name is not what it sent: it is not evidence, however much.
    mesh.app.store.sqlite
      .prepare(
        `with recursive i(n) as (select 1 union all select n + 1 from i where n < 3000)
        insert into packets (source_id, t, packet_id, from_node_num, to_node_num, channel, port, hop_limit, via_mqtt,
          pki_encrypted, replayed, trust_level, payload)
        select p.source_id, ?, n, ?, 4294967295, 0, p.port, 0, 0, 0, 0, null, '{}'
        from i, (select source_id, port from packets where from_node_num = ? limit 1) p`,
      )
      .run(NOW, GONE, OTHER)
    expect((await silence()).reasons).toEqual([{ ...filtered, packets: null }])
    await hear(OTHER, NOW, named('Other'), {}, collector)
    expect((await silence()).reasons).toEqual([])
  })

  it('new numbers of its source were refused, perhaps its own', async () => {
    await fallSilent()
    const refuse = (hour: number) =>
      mesh.app.store.sqlite
        .prepare(
          'insert or replace into newcomers (source_id, hour, asked, refused) select id, ?, 9000, 3000 from sources',
        )
        .run(hour)
    refuse(END / HOUR - 5)
    expect((await silence()).reasons).toEqual([])
    refuse(Math.floor(END / HOUR) + 5)
    expect((await silence()).reasons).toMatchObject([{ kind: 'filtered', by: 'newcomers', packets: 3000 }])
  })

  it('what heard it is no connection of this service any more', async () => {
    const { app, ingest, links } = await createTestAlerts()
    try {
      for (let at = START; at <= END; at += HOUR)
        await store(ingest, [packet(text(`at ${at}`), { from: GONE })], { at })
      app.clock.now = NOW
      await summariseHearings(app.store, async () => true)
      const client = await app.admin()
      const reasons = async () => Object(await (await client.send('GET', `/api/nodes/${GONE}/silence`)).json()).reasons
      expect((await reasons()).map(({ kind }: { kind: string }) => kind)).toEqual(['radio'])
      Object.assign(links[0] ?? {}, { name: 'another' })
      expect((await reasons())[0]).toMatchObject({ kind: 'filtered', by: 'removed', isLikely: true, since: END })
    } finally {
      app.close()
    }
  })

  it('the clock was ahead when it was heard', async () => {
    await fallSilent()
    const [first] = (await silence(END - 3 * DAY)).reasons
    expect(first).toMatchObject({ kind: 'clock', whose: 'service', ahead: 3 * DAY })
  })

  it('its own clock is behind, so its measurements are elsewhere', async () => {
    await fallSilent()
    await measure(END, { voltage: 4.1 }, END - 20 * DAY)
    expect((await silence()).reasons[0]).toEqual({
      kind: 'clock',
      isLikely: false,
      whose: 'node',
      ahead: -20 * DAY,
    })
  })

  /** Broadcasts of the node on a channel whose key nobody here has, each hour. */
  async function lock(span: readonly [number, number], hash = 77) {
    const payloadVariant = { case: 'encrypted', value: Uint8Array.of(1, 2, 3) } as const
    await talk(GONE, span, { channel: hash, payloadVariant })
  }
  const changeChannels = (at: number, section = 'channels') =>
    mesh.app.store.sqlite
      .prepare(
        `insert into audit_log (timestamp, username, action, resource, details)
          values (?, 'anna', 'configuration_updated', 'configuration', ?)`,
      )
      .run(at, JSON.stringify({ source: 'radio-1', section, secretsChanged: ['channels.0.settings.psk'] }))

  it('its packets come and cannot be read any more: our key was changed, or its own', async () => {
    await fallSilent()
    await lock([END + HOUR, NOW])
    const unread = { kind: 'unread', isLikely: true, packets: 48, since: END + HOUR, change: null }
    // It is heard, and still nobody knows what it says.
    expect(await silence()).toMatchObject({ isSilent: true, reasons: [unread] })
    changeChannels(END + 30 * MINUTE, 'lora')
    expect((await silence()).reasons).toEqual([unread])
    changeChannels(END + 30 * MINUTE)
    const change = { at: END + 30 * MINUTE, by: 'anna', source: 'radio-1' }
    expect((await silence()).reasons).toEqual([{ ...unread, change }])
    // Who changed it is for those who may read the audit log, and a channel for those who may read it.
    const all = { channels: 'all', direct: { read: true, write: false } } as const
    const reader = await mesh.app.user('reader', { nodes: READ, info: READ }, all)
    expect((await silence(NOW, GONE, reader)).reasons).toEqual([unread])
    // A token of an administrator reads no audit log either.
    const scopes = ['info:read', 'nodes:read', 'messages:read']
    const made = await (admin ?? reader).send('POST', '/api/tokens', { name: 'a program', scopes })
    const headers = { authorization: `Bearer ${Object(await made.json()).token}` }
    const told = await mesh.app.request(`/api/nodes/${GONE}/silence`, { headers })
    expect(Object(await told.json()).reasons).toEqual([unread])
    const none = { channels: { read: [5], write: [] }, direct: { read: false, write: false } }
    const other = await mesh.app.user('other', { nodes: READ, info: READ }, none)
    expect(await silence(NOW, GONE, other)).toMatchObject({ isSilent: false, reasons: [] })
    // Silent as well: the change is named first.
    expect(kindsOf(await silence(NOW + 8 * HOUR))[0]).toBe('unread')
  })

  it('two packets that nobody can read, or a foreign channel beside ours, are no changed key', async () => {
    await lock([START, END], 99)
    await fallSilent()
    await lock([END + HOUR, NOW], 99)
    expect((await silence()).reasons).toEqual([])
    await lock([NOW - HOUR, NOW])
    expect((await silence()).reasons).toEqual([])
    await hear(GONE, NOW, text('still here'))
    await lock([NOW, NOW])
    expect((await silence()).reasons).toEqual([])
    // Nor some on a channel of its own, just after one that was read.
    await lock([NOW + HOUR, NOW + 3 * HOUR], 55)
    expect((await silence(NOW + 3 * HOUR)).reasons).toEqual([])
  })

  it('nothing comes since our channels were changed; if others still speak on its channel, that is no reason', async () => {
    await hear(GONE, START, named('Gone', { publicKey: key(7) }))
    await talk(GONE, [START, END], { channel: 1 })
    await talk(OTHER, [START, NOW])
    expect((await silence()).reasons).toEqual([])
    changeChannels(END + HOUR)
    expect((await silence()).reasons[0]).toEqual({
      kind: 'unread',
      isLikely: false,
      packets: 0,
      since: END,
      change: { at: END + HOUR, by: 'anna', source: 'radio-1' },
    })
    await hear(OTHER, NOW, text('on the same channel'), { channel: 1 })
    expect((await silence()).reasons).toEqual([])
  })

  it('packets of that time are no longer kept', async () => {
    await fallSilent()
    await silence()
    mesh.app.store.sqlite.prepare('delete from packets where t <= ?').run(END + HOUR)
    expect(kindsOf(await silence())).toEqual(['retention'])
  })
})

describe('what a viewer may not see is no evidence', () => {
  it('measurements of a channel, and hidden nodes', async () => {
    await fallSilent(RELAYED)
    const neighbors = [{ nodeId: GONE, snr: 7 }]
    const payload = toBinary(NeighborInfoSchema, create(NeighborInfoSchema, { nodeId: HILL, neighbors }))
    await hear(HILL, START, { portnum: PortNum.NEIGHBORINFO_APP, payload })
    await talk(HILL, [START, END])
    await measure(END, { batteryLevel: 3 })
    expect(kindsOf(await silence())).toEqual(['repeater', 'battery'])
    expect((await admin?.send('PUT', `/api/nodes/${HILL}`, { hidden: true }))?.status).toBe(200)
    const scope = { channels: { read: [5], write: [] }, direct: { read: false, write: false } }
    const reader = await mesh.app.user('anna', { nodes: READ, info: READ }, scope)
    expect(kindsOf(await silence(NOW, GONE, reader))).toEqual([])
    expect((await reader.send('GET', `/api/nodes/${HILL}/silence`)).status).toBe(404)
  })
})

describe('the past of a node', () => {
  async function past(nodeNum = GONE) {
    mesh.app.clock.now = NOW
    await summariseHearings(mesh.app.store, async () => true)
    admin ??= await mesh.app.admin()
    return Object(await (await admin.send('GET', `/api/nodes/${nodeNum}/past`)).json())
  }

  it('counts each packet once, however often and in which slices the log is summarised', async () => {
    await fallSilent()
    await summariseHearings(
      mesh.app.store,
      async () => false,
      () => 0.01,
    )
    await summariseHearings(
      mesh.app.store,
      async () => false,
      () => 0.01,
      3,
    )
    expect(mesh.app.store.sqlite.prepare('select packets from node_days where day = 0').pluck().get()).toBe(20)
    await summariseHearings(
      mesh.app.store,
      async () => true,
      () => 0.01,
    )
    const { hours, receivers } = await past()
    expect(hours).toHaveLength(49)
    expect(hours[0]).toEqual({ t: START, packets: 2 })
    expect(hours.at(-1)).toEqual({ t: END, packets: 1 })
    expect(receivers).toEqual([
      expect.objectContaining({ source: 'radio-1', gateway: null, packets: 50, direct: 50, snr: 6.25, hops: 0 }),
    ])
  })

  it('counts each packet once in two runs at once, and nothing of a node that is deleted meanwhile', async () => {
    await fallSilent()
    const { store: database } = mesh.app
    await Promise.all(
      [0.01, 0.02].map((part) =>
        summariseHearings(
          database,
          async () => true,
          () => part,
        ),
      ),
    )
    const { hours, receivers } = await past()
    expect([hours[0], receivers[0]]).toMatchObject([{ packets: 2 }, { packets: 50 }])
    await talk(HILL, [START, END])
    const forgetting: typeof database = {
      ...database,
      atomic: async (statements, flush) => {
        database.sqlite.prepare('delete from nodes where node_num = ?').run(HILL)
        await database.atomic(statements, flush)
      },
    }
    await summariseHearings(forgetting, async () => true)
    const left = ['node_days', 'node_receivers'].map((table) =>
      database.sqlite.prepare(`select count(*) from ${table} where node_num = ?`).pluck().get(HILL),
    )
    expect(left).toEqual([0, 0])
  })

  it('goes on with a log that begins anew, and counts what was there before only once', async () => {
    await fallSilent()
    await past()
    mesh.app.store.sqlite.exec("delete from packets; delete from sqlite_sequence where name = 'packets'")
    await past()
    await hear(GONE, NOW - HOUR, text('back'))
    const { receivers } = await past()
    expect(receivers[0]).toMatchObject({ packets: 51, lastAt: NOW - HOUR })
  })

  it('keeps the 16 receivers that heard it last, in however many slices', async () => {
    await hear(GONE, START, text('hello'))
    const { store: database } = mesh.app
    const gateways = () =>
      database.sqlite
        .prepare('select gateway from node_receivers where node_num = ? order by last_at')
        .pluck()
        .all(GONE)
    const hearBy = async (first: number, last: number, at: number) => {
      database.sqlite.exec(`with recursive i(n) as (select ${first} union all select n + 1 from i where n < ${last})
        insert into packets (source_id, t, packet_id, from_node_num, to_node_num, gateway, channel, port, rx_snr, hops_away,
          hop_limit, via_mqtt, pki_encrypted, replayed, payload)
        select source_id, ${at} + n, 1000 + n, from_node_num, to_node_num, n, channel, port, 5, 1, 3, 1, 0, 0, payload
          from i cross join (select * from packets limit 1)`)
      await summariseHearings(
        database,
        async () => true,
        () => 0.01,
        2,
      )
    }
    const from = (first: number) => Array.from({ length: 16 }, (_, n) => first + n)
    await hearBy(1, 24, START + HOUR)
    expect(gateways()).toEqual(from(9))
    // One that was known, and one that is new.
    await hearBy(9, 9, START + 2 * HOUR)
    await hearBy(25, 25, START + 3 * HOUR)
    expect(gateways()).toEqual([...from(11).slice(0, 14), 9, 25])
  })

  it('hours that a clock ahead has left are not told', async () => {
    await fallSilent()
    await hear(GONE, NOW + 300 * DAY, text('from the future'))
    const { hours } = await past()
    expect(hours.at(-1)).toEqual({ t: END, packets: 1 })
  })

  it('tells changes, restarts, silences and moves, the latest first, and nothing of a deleted node', async () => {
    await hear(GONE, START, named('Gone', { publicKey: key(7) }))
    await measure(START + HOUR, { uptimeSeconds: 90_000 })
    await measure(START + 2 * HOUR, { uptimeSeconds: 60 })
    await hear(GONE, START + 3 * HOUR, named('Gone for good', { publicKey: key(7) }))
    const { events } = await past()
    const told = events.map(({ kind, field }: { kind: string; field?: string }) => field ?? kind)
    expect(told).toEqual(['silent', 'longName', 'restarted', 'first_heard'])
    expect(events[1]).toMatchObject({ before: 'Gone', after: 'Gone for good', t: START + 3 * HOUR })
    await admin?.send('DELETE', `/api/nodes/${GONE}`)
    for (const table of ['node_days', 'node_receivers', 'node_changes']) {
      const left = mesh.app.store.sqlite.prepare(`select count(*) from ${table} where node_num = ?`).pluck().get(GONE)
      expect(left).toBe(0)
    }
  })

  it('how it came on each day, and who set what about it: that only for administrators', async () => {
    await fallSilent()
    await talk(GONE, [END - 3 * HOUR, END - 2 * HOUR], RELAYED)
    await past()
    await admin?.send('PUT', `/api/nodes/${GONE}`, { isFavorite: true, notes: 'On the roof' })
    await admin?.send('PUT', `/api/nodes/${OTHER}`, { isFavorite: true })
    mesh.app.store.sqlite
      .prepare(
        `insert into audit_log (timestamp, username, action, resource, details)
          values (?, 'anna', 'configuration_updated', 'configuration', ?)`,
      )
      .run(
        NOW - HOUR,
        JSON.stringify({
          nodeNum: GONE,
          section: 'lora',
          before: { hopLimit: 3 },
          after: { hopLimit: 5 },
          source: 'x',
        }),
      )
    const { events, days, hours } = await past()
    const sum = (list: { packets: number }[]) => list.reduce((total, { packets }) => total + packets, 0)
    expect(sum(days)).toBe(sum(hours))
    expect(days).toContainEqual(expect.objectContaining({ minHops: 0, maxHops: 2 }))
    const set = events.filter(({ kind }: { kind: string }) => kind === 'set')
    expect(set).toEqual([
      { kind: 'set', t: NOW, by: 'admin', section: null, fields: ['isFavorite', 'notes'], isRestart: false },
      { kind: 'set', t: NOW - HOUR, by: 'anna', section: 'lora', fields: ['hopLimit'], isRestart: false },
    ])
    expect(JSON.stringify(set)).not.toContain('roof')
    const reader = await mesh.app.user('reader', { nodes: { read: true, write: true }, info: READ })
    const told = Object(await (await reader.send('GET', `/api/nodes/${GONE}/past`)).json())
    expect(told.events.map(({ kind }: { kind: string }) => kind)).not.toContain('set')
    expect(told.days).toEqual(days)
  })

  it('a node that flips its name in each packet keeps its latest hundred changes', async () => {
    for (let index = 0; index < 120; index += 1)
      await hear(GONE, START + index * MINUTE, named(`Name ${index % 2} ${index}`))
    expect(mesh.count('node_changes')).toBe(100)
    const { events } = await past()
    expect(events[1]).toMatchObject({ field: 'longName', after: 'Name 1 119' })
  })

  it('is told only to who may read both nodes and network information', async () => {
    await fallSilent()
    const answerTo = async (username: string, nodes: typeof READ, info: typeof READ) => {
      const client = await mesh.app.user(username, { nodes, info })
      return (await client.send('GET', `/api/nodes/${GONE}/past`)).status
    }
    const none = { read: false, write: false }
    expect(await answerTo('both', READ, READ)).toBe(200)
    expect(await answerTo('only-nodes', READ, none)).toBe(403)
    expect(await answerTo('only-info', none, READ)).toBe(404)
  })
})
