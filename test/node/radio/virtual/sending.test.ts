import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { Routing_Error as Error_, WaypointSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { ToRadioSchema } from '../../../../src/meshtastic/gen/stream_pb.ts'
import { encodeFrame } from '../../../../src/meshtastic/link/framing.ts'
import { readRecordings } from '../../../meshtastic/recordings.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import { type AppPeer, type AppPort, startAppPort } from '../../../support/radio/app-port.ts'
import { FAR, OWN, until } from '../../../support/radio/service.ts'

let port: AppPort
afterEach(() => port.stop())

const data = (portnum: PortNum, payload: Uint8Array = new Uint8Array(0)) => ({
  payloadVariant: {
    case: 'decoded' as const,
    value: { portnum, payload, wantResponse: portnum === PortNum.TRACEROUTE_APP },
  },
})
const rows = (query: string) => port.store.sqlite.prepare(query).all()
const answersTo = ({ received }: AppPeer, id: number) =>
  received.filter(({ payloadVariant: { value } }) => Object(value).payloadVariant?.value?.requestId === id)

describe('what an app sends', () => {
  it('is stored as sent by the user of the port, with its delivery state', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const id = app.text('hello', { channel: 1, hopLimit: 7 })
    const status = await app.next('queueStatus')
    expect(status.payloadVariant.value).toMatchObject({ res: 0, meshPacketId: id })
    expect(await port.sent()).toMatchObject({ id, channel: 1, hopLimit: 3, wantAck: true, to: 0xffffffff })
    const stored = 'select packet_id, from_node_num f, channel, text, sent_by, delivery_state state from messages'
    await until(() =>
      expect(rows(stored)).toStrictEqual([
        { packet_id: id, f: OWN, channel: 1, text: 'hello', sent_by: 'admin', state: 'sent' },
      ]),
    )
    port.answers(id)
    await until(() => expect(rows(stored)).toMatchObject([{ state: 'relayed' }]))
    const audited = rows(`select username, ip, details from audit_log where action = 'message_sent'`)
    expect(audited).toMatchObject([{ username: 'admin', ip: '127.0.0.1' }])
  })

  it('is acknowledged to the app that sent it, and to no other', async () => {
    port = await startAppPort()
    const [first, second] = [await port.app1(), await port.app1()]
    const ids = [first.text('one', { to: FAR }), second.text('two', { to: FAR })]
    await port.sent()
    await second.settled()
    port.clock.advance(2200)
    await port.sent()
    for (const id of ids) port.answers(id, Error_.NONE, FAR)
    expect(await first.refusal(ids[0] ?? 0)).toBe(Error_.NONE)
    expect(await second.refusal(ids[1] ?? 0)).toBe(Error_.NONE)
    await Promise.all([first.settled(), second.settled()])
    expect([answersTo(first, ids[1] ?? 0), answersTo(second, ids[0] ?? 0)]).toStrictEqual([[], []])
    await until(() =>
      expect(rows(`select delivery_state s from messages`)).toStrictEqual([{ s: 'delivered' }, { s: 'delivered' }]),
    )
  })

  it('is acknowledged to an app that was away for a moment', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const id = app.text('hello', { to: FAR })
    await port.sent()
    app.close()
    await until(() => expect(port.info().clients).toBe(0))
    const back = await port.app1()
    port.answers(id, Error_.NONE, FAR)
    expect(await back.refusal(id)).toBe(Error_.NONE)
  })

  it('a text of the page is shown to apps as sent by the radio, and its acknowledgement to none', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const page = await port.app.admin()
    expect((await page.send('POST', '/api/messages', { text: 'from the page', to: FAR })).status).toBe(202)
    const { id } = await port.sent()
    expect((await app.next('packet')).payloadVariant.value).toMatchObject({ from: OWN, to: FAR, id })
    port.answers(id, Error_.NONE, FAR)
    await until(() => expect(rows(`select delivery_state s from messages`)).toStrictEqual([{ s: 'delivered' }]))
    await app.settled()
    expect(answersTo(app, id)).toStrictEqual([])
  })

  it('a traceroute is stored, and its answer reaches the app', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const id = app.packet({ to: FAR, wantAck: true, ...data(PortNum.TRACEROUTE_APP) })
    await port.sent()
    expect(rows('select request_id, to_node_num t, requested_by by from traceroutes')).toStrictEqual([
      { request_id: id, t: FAR, by: 'admin' },
    ])
    port.hears({
      from: FAR,
      to: OWN,
      id: 99,
      rxRssi: -70,
      payloadVariant: {
        case: 'decoded',
        value: { portnum: PortNum.TRACEROUTE_APP, payload: Uint8Array.of(0x12, 1, 8), requestId: id },
      },
    })
    await until(() => expect(answersTo(app, id)).toHaveLength(1))
    port.clock.advance(100)
    await until(() => expect(rows('select answered_at is not null a from traceroutes')).toStrictEqual([{ a: 1 }]))
    // The radio may have heard no acknowledgement before the answer: the app is not told that time is up.
    port.clock.advance(120_000)
    await app.settled()
    expect(answersTo(app, id)).toHaveLength(1)
  })

  it('a waypoint is stored and recorded as that of the user, and replaces none that the user may not change', async () => {
    const rights = { nodes: { read: true, write: false }, messages: { read: true, write: true } }
    const scope = { channels: { read: [0], write: [0] }, direct: { read: true, write: true } }
    port = await startAppPort({}, async (app) => (await app.user('sender', rights, scope)).id)
    port.store.sqlite
      .exec(`insert into waypoints (id, from_node_num, t, name, description, latitude, longitude, locked_to, channel)
      values (71, ${FAR}, 1, 'locked', '', 1, 1, ${FAR}, 0), (72, ${FAR}, 1, 'unseen', '', 1, 1, null, 1)`)
    const app = await port.app1()
    const share = (id: number, more = {}) =>
      app.packet({
        ...data(
          PortNum.WAYPOINT_APP,
          toBinary(
            WaypointSchema,
            create(WaypointSchema, { id, name: 'Hut', latitudeI: 10, longitudeI: 20, expire: 0x7fffffff, ...more }),
          ),
        ),
      })
    for (const id of [71, 72]) expect(await app.refusal(share(id))).toBe(Error_.NOT_AUTHORIZED)
    expect(await app.refusal(share(0))).toBe(Error_.BAD_REQUEST)
    expect(await app.refusal(app.packet(data(PortNum.WAYPOINT_APP, Uint8Array.of(0xff))))).toBe(Error_.BAD_REQUEST)
    const id = share(70, { geofenceRadius: 300 })
    expect(await port.sent()).toMatchObject({ id, to: 0xffffffff })
    await until(() => {
      port.clock.advance(100)
      expect(rows(`select id, from_node_num f, name, channel, rest from waypoints order by id`)).toStrictEqual([
        { id: 70, f: OWN, name: 'Hut', channel: 0, rest: 'SKwC' },
        { id: 71, f: FAR, name: 'locked', channel: 0, rest: '' },
        { id: 72, f: FAR, name: 'unseen', channel: 1, rest: '' },
      ])
    })
    const audited = rows(`select username, ip, details from audit_log where action = 'message_sent'`)
    expect(audited.map((row) => ({ ...Object(row), details: JSON.parse(Object(row).details) }))).toMatchObject([
      { username: 'sender', ip: '127.0.0.1', details: { kind: 'waypoint', packetId: id, channel: 0, waypoint: 70 } },
    ])
  })

  it('is refused without the right to send there', async () => {
    const rights = { nodes: { read: true, write: false }, messages: { read: true, write: true } }
    const scope = { channels: { read: [0, 1], write: [0] }, direct: { read: true, write: false } }
    port = await startAppPort({}, async (app) => (await app.user('sender', rights, scope)).id)
    const app = await port.app1()
    expect(await app.refusal(app.text('no', { channel: 1 }))).toBe(Error_.NOT_AUTHORIZED)
    expect(await app.refusal(app.text('no', { to: FAR }))).toBe(Error_.NOT_AUTHORIZED)
    expect(await app.refusal(app.packet({ to: FAR, ...data(PortNum.TRACEROUTE_APP) }))).toBe(Error_.NOT_AUTHORIZED)
    app.text('yes')
    await port.sent()
    expect(rows('select text, sent_by from messages')).toStrictEqual([{ text: 'yes', sent_by: 'sender' }])
  })

  it('too long, empty or of no port is refused', async () => {
    port = await startAppPort()
    const app = await port.app1()
    expect(await app.refusal(app.text('x'.repeat(201)))).toBe(Error_.TOO_LARGE)
    expect(await app.refusal(app.text(' '))).toBe(Error_.BAD_REQUEST)
    expect(await app.refusal(app.packet(data(PortNum.UNKNOWN_APP)))).toBe(Error_.BAD_REQUEST)
    expect(await app.refusal(app.packet({ ...data(PortNum.TRACEROUTE_APP), hopLimit: 3 }))).toBe(Error_.BAD_REQUEST)
    expect(await app.refusal(app.packet({ ...data(PortNum.PRIVATE_APP, new Uint8Array(234)), to: FAR }))).toBe(
      Error_.TOO_LARGE,
    )
    expect(port.packetsSent()).toStrictEqual([])
  })
})

it('what a real client wrote to its radio is understood, and passes where it may', async () => {
  port = await startAppPort({ mayConfigure: true })
  const app = await port.app1()
  const written = readRecordings('toradio').filter(({ source }) => source === 'setup')
  const packets = written.flatMap(({ bytes }) => {
    const { payloadVariant } = fromBinary(ToRadioSchema, bytes)
    return payloadVariant.case === 'packet' ? [payloadVariant.value] : []
  })
  // To one radio: begin, a LoRa section, a network section, its owner, commit.
  const edit = packets.filter(({ to }) => to === packets[0]?.to)
  for (const packet of edit) {
    app.sendRaw(
      encodeFrame(
        toBinary(
          ToRadioSchema,
          create(ToRadioSchema, { payloadVariant: { case: 'packet', value: { ...packet, to: OWN } } }),
        ),
      ),
    )
  }
  await until(() => expect(port.requests()).toHaveLength(5))
  expect(port.requests().map(({ request, outcome }) => [request, outcome])).toStrictEqual([
    ['begin_edit_settings', 'passed'],
    ['set_config lora', 'passed'],
    ['set_config network', 'refused'],
    ['set_owner', 'passed'],
    ['commit_edit_settings', 'passed'],
  ])
})

describe('the pace is that of the radio', () => {
  it('texts 2.2 s apart, traceroutes 30.5 s and telemetry 10 s, of all apps together', async () => {
    port = await startAppPort()
    const [first, second] = [await port.app1(), await port.app1()]
    const at: [number, number | null][] = []
    const start = port.clock.now()
    port.onPacket(({ payloadVariant: { value } }) => at.push([port.clock.now() - start, Object(value).portnum]))
    for (const app of [first, second]) {
      app.text('a')
      app.packet({ to: FAR, ...data(PortNum.TRACEROUTE_APP) })
      app.packet(data(PortNum.TELEMETRY_APP))
      await app.settled()
    }
    let before = 0
    for (let ms = 0; ms < 40_000; ms += 100) {
      port.clock.advance(100)
      await first.settled()
      if (port.packetsSent().length !== before) {
        before = port.packetsSent().length
        await until(() => expect(at.length).toBeGreaterThanOrEqual(before))
      }
    }
    const gaps = (kind: PortNum) => {
      const [one = 0, two = 0] = at.filter(([, portnum]) => portnum === kind).map(([ms]) => ms)
      return two - one
    }
    expect(at).toHaveLength(6)
    expect([gaps(PortNum.TEXT_MESSAGE_APP), gaps(PortNum.TELEMETRY_APP), gaps(PortNum.TRACEROUTE_APP)]).toStrictEqual([
      2200, 10_000, 30_500,
    ])
  })

  it('a flood of one app is refused as safe to send again, and leaves places for another app and the page', async () => {
    port = await startAppPort()
    const [flooder, other] = [await port.app1(), await port.app1()]
    const ids = Array.from({ length: 30 }, (_, at) => flooder.text(`flood ${at}`))
    expect(await flooder.refusal(ids.at(-1) ?? 0)).toBe(Error_.RATE_LIMIT_EXCEEDED)
    const id = other.text('mine')
    await other.next(
      'queueStatus',
      ({ payloadVariant: { value } }) => Object(value).meshPacketId === id && Object(value).res === 0,
    )
    // One was sent at once.
    expect(rows(`select count(*) n from messages where text like 'flood%'`)).toStrictEqual([{ n: 9 }])
  })

  it('positions of phones have the lowest class, and of each app only the newest waits', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const position = (at: number) => data(PortNum.POSITION_APP, Uint8Array.of(0x0d, at, 0, 0, 0, 0x15, at, 0, 0, 0))
    for (const at of [1, 2, 3, 4]) app.packet({ to: OWN, ...position(at) })
    await app.settled()
    app.text('first')
    await app.settled()
    port.clock.advance(10_000)
    await until(() => expect(port.packetsSent()).toHaveLength(3))
    port.clock.advance(60_000)
    await app.settled()
    const firsts = port
      .packetsSent()
      .map(({ payloadVariant: { value } }) => [Object(value).portnum, Object(value).payload[1]])
    expect(firsts.filter(([portnum]) => portnum === PortNum.POSITION_APP)).toStrictEqual([
      [PortNum.POSITION_APP, 1],
      [PortNum.POSITION_APP, 4],
    ])
  })

  it('what the radio refuses, or never gets, is said', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const refused = app.text('one')
    await port.sent()
    port.answers(refused, Error_.RATE_LIMIT_EXCEEDED)
    expect(await app.refusal(refused)).toBe(Error_.RATE_LIMIT_EXCEEDED)
    const waiting = app.text('two')
    await app.settled()
    await port.device.switchOff()
    await until(() => expect(port.logged.at(-1)).toContain('waiting'))
    expect(await app.refusal(app.text('three'))).toBe(Error_.NO_INTERFACE)
    void waiting
  })
})

describe('admin messages that pass', () => {
  it('marks of nodes reach the radio and, once it has taken them, our tables', async () => {
    port = await startAppPort()
    const app = await port.app1()
    await until(() => expect(rows(`select count(*) n from nodes where node_num = ${FAR}`)).toStrictEqual([{ n: 1 }]))
    const id = app.admin({ case: 'setFavoriteNode', value: FAR })
    const sent = await port.sent()
    expect(sent).toMatchObject({ id, to: OWN, hopLimit: 0 })
    const favourite = `select is_favorite f from nodes where node_num = ${FAR}`
    expect(rows(favourite)).toStrictEqual([{ f: 0 }])
    port.answers(id)
    expect(await app.refusal(id)).toBe(Error_.NONE)
    await until(() => expect(rows(favourite)).toStrictEqual([{ f: 1 }]))
    expect(rows(`select username from audit_log where action = 'node_updated'`)).toStrictEqual([{ username: 'admin' }])
    const nodes = await port.app1(69_421)
    const far = nodes.received.find(({ payloadVariant: { value } }) => Object(value).num === FAR)
    expect(far?.payloadVariant.value).toMatchObject({ isFavorite: true })
    // Each of these turns the mark over; one that the radio refuses does not.
    const muted = `select is_muted m from nodes where node_num = ${FAR}`
    for (const [error, is] of [
      [Error_.NONE, 1],
      [Error_.NONE, 0],
      [Error_.NOT_AUTHORIZED, 0],
      [Error_.NONE, 1],
    ] as const) {
      const toggled = nodes.admin({ case: 'toggleMutedNode', value: FAR })
      expect(await port.sent()).toMatchObject({ id: toggled })
      port.answers(toggled, error)
      expect(await nodes.refusal(toggled)).toBe(error)
      await until(() => expect(rows(muted)).toStrictEqual([{ m: is }]))
    }
  })

  it('an edit is not paced, keeps its order, and the radio is read again', async () => {
    port = await startAppPort({ mayConfigure: true })
    const app = await port.app1()
    const ids = [
      app.admin({ case: 'beginEditSettings', value: true }),
      app.admin({ case: 'setOwner', value: { longName: 'New Name', shortName: 'NN' } }),
      app.admin({ case: 'setConfig', value: { payloadVariant: { case: 'device', value: { role: 1 } } } }),
      app.admin({ case: 'commitEditSettings', value: true }),
    ]
    await until(() => expect(port.packetsSent().map(({ id }) => id)).toStrictEqual(ids))
    expect(port.requests().map(({ request, outcome }) => [request, outcome])).toStrictEqual([
      ['begin_edit_settings', 'passed'],
      ['set_owner', 'passed'],
      ['set_config device', 'passed'],
      ['commit_edit_settings', 'passed'],
    ])
    const asked = () =>
      port.device.received.filter(({ payloadVariant }) => payloadVariant.case === 'wantConfigId').length
    const before = asked()
    port.clock.advance(15_000)
    await until(() => expect(asked()).toBe(before + 1))
  })

  it('and the page do not change settings at once, and an app that vanished keeps the page waiting two minutes', async () => {
    port = await startAppPort({ mayConfigure: true, mayReboot: true })
    const app = await port.app1()
    const page = await port.app.admin()
    const change = async (nodeInfoBroadcastSecs = 7200) => {
      const source = port.app.ports.radio?.links()[0]?.name ?? ''
      const { revision } = Object(await (await page.send('GET', `/api/configuration/device?source=${source}`)).json())
      const body = { revision, values: { nodeInfoBroadcastSecs } }
      const answer = await page.send('PUT', `/api/configuration/device?source=${source}`, body)
      return [answer.status, Object(await answer.json()).detail]
    }
    const BUSY = [409, 'A Meshtastic app is changing the settings of this radio. Wait until it has finished']
    const written = async (message: Parameters<typeof app.admin>[0]) => {
      const id = app.admin(message)
      await until(() => expect(port.packetsSent().at(-1)?.id).toBe(id))
    }
    await written({ case: 'setOwner', value: { longName: 'New Name', shortName: 'NN' } })
    expect(await change()).toStrictEqual(BUSY)
    const asked = () => port.device.received.filter(({ payloadVariant: { case: is } }) => is === 'wantConfigId').length
    const before = asked()
    port.clock.advance(15_000)
    await until(() => expect(asked()).toBe(before + 1))
    // It has been read since: nothing is in the way of the page, which changes nothing here.
    await until(async () => expect(await change(0)).toStrictEqual([200, undefined]))
    await written({ case: 'beginEditSettings', value: true })
    app.close()
    port.clock.advance(119_000)
    expect(await change()).toStrictEqual(BUSY)
    port.clock.advance(1000)
    await until(async () => expect(await change()).toStrictEqual([202, undefined]))
    const back = await port.app1()
    for (const message of [
      { case: 'setOwner', value: { longName: 'Other', shortName: 'O' } },
      { case: 'rebootSeconds', value: 1 },
    ] as const) {
      expect(await back.refusal(back.admin(message))).toBe(Error_.RATE_LIMIT_EXCEEDED)
    }
    expect(port.requests().slice(-2)).toMatchObject([
      { request: 'set_owner', outcome: 'refused', reason: 'settings are being changed on the page' },
      { request: 'reboot', outcome: 'refused' },
    ])
  })

  it('the time is dropped', async () => {
    port = await startAppPort()
    const app = await port.app1()
    app.admin({ case: 'setTimeOnly', value: 1_700_000_000 })
    await app.settled()
    expect(port.packetsSent()).toStrictEqual([])
    expect(port.requests().map(({ request, outcome }) => [request, outcome])).toStrictEqual([['set_time', 'dropped']])
  })

  it('a contact is answered here, with the key of the radio only: it renames and marks nothing', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const contact = (key: number) => {
      const name = new TextEncoder().encode('Renamed')
      const user = Uint8Array.of(0x12, name.length, ...name, 0x42, 32, ...new Uint8Array(32).fill(key))
      // Ends with `manually_verified`.
      const shared = Uint8Array.of(0x08, ...varint(FAR), 0x12, user.length, ...user, 0x20, 1)
      return Uint8Array.of(0x92, 0x04, shared.length, ...shared)
    }
    expect(await app.refusal(app.admin(contact(1)))).toBe(Error_.NOT_AUTHORIZED)
    expect(await app.refusal(app.admin(contact(9)))).toBe(Error_.NONE)
    await app.settled()
    expect(port.packetsSent()).toStrictEqual([])
    expect(port.requests().map(({ request, outcome }) => [request, outcome])).toStrictEqual([
      ['add_contact', 'refused'],
      ['add_contact', 'answered'],
    ])
  })
})

describe('the packets of a broker', () => {
  it('go through exactly one app where proxying is on', async () => {
    port = await startAppPort({ proxiesMqtt: true })
    const [first, second] = [await port.app1(), await port.app1()]
    const message = { topic: 'msh/x', payloadVariant: { case: 'data', value: Uint8Array.of(1) } } as const
    port.device.send(fromRadio({ case: 'mqttClientProxyMessage', value: message }))
    await first.next('mqttClientProxyMessage')
    second.send({ case: 'mqttClientProxyMessage', value: message })
    await second.settled()
    first.send({ case: 'mqttClientProxyMessage', value: message })
    await port.device.next('mqttClientProxyMessage')
    await first.settled()
    expect(second.received.some(({ payloadVariant }) => payloadVariant.case === 'mqttClientProxyMessage')).toBe(false)
    expect(
      port.device.received.filter(({ payloadVariant }) => payloadVariant.case === 'mqttClientProxyMessage'),
    ).toHaveLength(1)
  })
})

function varint(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) + 128)
  }
}
