import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import {
  type FromRadio,
  FromRadioSchema,
  LockdownStatus_State as Lockdown,
  ToRadioSchema,
} from '../../../../src/meshtastic/gen/stream_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { findPortViewer } from '../../../../src/app/accounts/access/port-viewer.ts'
import { encodeFrame } from '../../../../src/meshtastic/link/framing.ts'
import { createLink } from '../../../../src/node/radio/link.ts'
import { createTransmitter } from '../../../../src/node/radio/sending/transmitter.ts'
import { connectTcp } from '../../../../src/node/radio/transports/tcp.ts'
import { openVirtualNode } from '../../../../src/node/radio/virtual/virtual-node.ts'
import { START } from '../../../support/app.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import {
  type AppPeer,
  type AppPort,
  BROKER,
  connectApp,
  DEFAULTS,
  PRIVATE_KEY,
  PSK,
  SECRET,
  startAppPort,
  WIFI,
} from '../../../support/radio/app-port.ts'
import { readRadio } from '../../../support/radio/recorded.ts'
import { FAR, OWN, until } from '../../../support/radio/service.ts'

let port: AppPort
afterEach(() => port.stop())

const cases = (received: readonly FromRadio[]) => received.map(({ payloadVariant }) => payloadVariant.case)
const CONFIG = ['channel', 'channel', 'channel', 'channel', 'channel', 'channel', 'channel', 'channel']
const HEAD = ['myInfo', 'deviceuiConfig', 'nodeInfo', 'metadata', 'regionPresets', ...CONFIG]
const SECTIONS = ['config', 'config', 'config', 'config', 'config', 'moduleConfig', 'moduleConfig']
const text = (words: string) => ({
  case: 'decoded' as const,
  value: { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode(words) },
})
const heard = (words: string, more = {}) => ({
  from: FAR,
  to: 0xffffffff,
  id: 77,
  rxRssi: -80,
  hopLimit: 3,
  hopStart: 3,
  payloadVariant: text(words),
  ...more,
})
const wordsOf = ({ received }: AppPeer) =>
  received.flatMap(({ payloadVariant: { case: variant, value } }) =>
    variant === 'packet' && value.payloadVariant.case === 'decoded' && value.payloadVariant.value.portnum === 1
      ? [new TextDecoder().decode(value.payloadVariant.value.payload)]
      : [],
  )

describe('the handshake of an app', () => {
  it('comes whole and in the order of the firmware', async () => {
    port = await startAppPort()
    const { received } = await port.app1(4711)
    expect(cases(received)).toStrictEqual([
      ...HEAD,
      ...SECTIONS,
      'nodeInfo',
      'nodeInfo',
      'fileInfo',
      'configCompleteId',
    ])
    expect(received.at(-1)?.payloadVariant.value).toBe(4711)
    expect(received[0]?.payloadVariant).toMatchObject({ value: { myNodeNum: OWN, nodedbCount: 3 } })
  })

  it.each(['node-B', 'node-C'])('comes as that of a real radio, recorded: %s', async (source) => {
    port = await startAppPort()
    const { handshake } = readRadio(source)
    port.says({ whole: handshake })
    port.device.send(fromRadio({ case: 'rebooted', value: true }))
    const recorded = handshake(1234).map((bytes) => fromBinary(FromRadioSchema, bytes))
    const named = (messages: readonly FromRadio[]) =>
      messages.flatMap(({ payloadVariant: { case: variant, value } }) => {
        const section = variant === 'config' || variant === 'moduleConfig' ? value.payloadVariant.case : variant
        // What is newer than our table might hold a secret.
        return section === undefined ? [] : [section]
      })
    const [own] = recorded.flatMap(({ payloadVariant: { case: variant, value } }) =>
      variant === 'myInfo' ? [value.myNodeNum] : [],
    )
    await until(async () => {
      const app = await port.connect()
      app.send({ case: 'wantConfigId', value: 1234 })
      await app.settled()
      app.close()
      expect(app.received[0]?.payloadVariant.value).toMatchObject({ myNodeNum: own })
      const end = app.received.findIndex(({ payloadVariant }) => payloadVariant.value === 1234)
      expect(named(app.received.slice(0, end + 1))).toStrictEqual(named(recorded))
    })
  })

  it('leaves out the nodes for 69420, and all the rest for 69421', async () => {
    port = await startAppPort()
    const config = await port.app1(69_420)
    expect(cases(config.received)).toStrictEqual([...HEAD, ...SECTIONS, 'fileInfo', 'configCompleteId'])
    const nodes = await port.app1(69_421)
    expect(cases(nodes.received)).toStrictEqual(['nodeInfo', 'nodeInfo', 'nodeInfo', 'configCompleteId'])
    expect(nodes.received[0]?.payloadVariant).toMatchObject({ value: { num: OWN, isFavorite: true } })
  })

  it('is answered once for the same nonce within five seconds', async () => {
    port = await startAppPort()
    const app = await port.app1(5)
    app.send({ case: 'wantConfigId', value: 5 })
    await app.settled()
    const completed = () =>
      app.received.filter(
        ({ payloadVariant }) => payloadVariant.value === 5 && payloadVariant.case === 'configCompleteId',
      ).length
    expect(completed()).toBe(1)
    port.clock.advance(5000)
    app.send({ case: 'wantConfigId', value: 5 })
    await until(() => expect(completed()).toBe(2))
  })

  it('tells what was heard since', async () => {
    port = await startAppPort()
    const user = { longName: 'New Hill', shortName: 'NH' }
    port.hears(heard('hello', { from: 0xa0cb0044, rxTime: 1_768_000_000 }))
    port.device.send(fromRadio({ case: 'nodeInfo', value: { num: 0xa0cb0045, user } }))
    await until(async () => {
      const { received } = await port.app1(69_421)
      const nums = received.flatMap(({ payloadVariant: { case: variant, value } }) =>
        variant === 'nodeInfo' ? [value.num] : [],
      )
      expect(nums).toEqual(expect.arrayContaining([0xa0cb0044, 0xa0cb0045]))
    })
  })

  it('never contains the private key, a password, a PIN or, unless they are shared, a channel key', async () => {
    port = await startAppPort()
    const { received } = await port.app1()
    const all = Buffer.concat(received.map((message) => toBinary(FromRadioSchema, message)))
    for (const secret of [PRIVATE_KEY, PSK, Buffer.from(WIFI), Buffer.from(BROKER)]) {
      expect(all.indexOf(Buffer.from(secret))).toBe(-1)
    }
    const bluetooth = received.find(
      ({ payloadVariant: { value } }) => Object(value).payloadVariant?.case === 'bluetooth',
    )
    expect(bluetooth?.payloadVariant.value).toMatchObject({ payloadVariant: { value: { mode: 1, fixedPin: 0 } } })
  })

  it('contains the channel keys, and nothing else of these, where they are shared', async () => {
    port = await startAppPort({ sharesChannelKeys: true })
    const { received } = await port.app1()
    const all = Buffer.concat(received.map((message) => toBinary(FromRadioSchema, message)))
    expect(all.indexOf(Buffer.from(PSK))).toBeGreaterThan(0)
    for (const secret of [PRIVATE_KEY, Buffer.from(WIFI), Buffer.from(BROKER)]) {
      expect(all.indexOf(Buffer.from(secret))).toBe(-1)
    }
  })
})

describe('the copy is that of the radio now', () => {
  it.each([
    ['number', { num: 0xa0cb0099 }],
    ['key', { key: new Uint8Array(32).fill(77) }],
    ['firmware', { firmware: '2.9.0' }],
  ])('apps are told and closed when its %s changes, and get the new one', async (_what, said) => {
    port = await startAppPort()
    const app = await port.app1()
    port.says(said)
    port.device.send(fromRadio({ case: 'rebooted', value: true }))
    const notice = await app.next('clientNotification')
    expect(notice.payloadVariant.value).toMatchObject({ message: expect.stringContaining('another one') })
    await app.closed()
    await until(() => expect(port.info()).toMatchObject({ state: 'open', clients: 0 }))
    const { received } = await port.app1()
    const { num = OWN, firmware = '2.8.0.test' } = { num: undefined, firmware: undefined, ...said }
    expect(received[0]?.payloadVariant).toMatchObject({ value: { myNodeNum: num } })
    expect(received[3]?.payloadVariant).toMatchObject({ value: { firmwareVersion: firmware } })
  })

  it('apps are told and closed when it is locked, none is accepted, and then they get the new truth', async () => {
    port = await startAppPort()
    const app = await port.app1()
    // A locked radio tells its settings empty.
    port.says({ firmware: '' })
    port.device.send(fromRadio({ case: 'lockdownStatus', value: { state: Lockdown.LOCKED } }))
    await app.next('clientNotification')
    await app.closed()
    expect(port.info()).toMatchObject({ state: 'waiting', reason: expect.stringContaining('locked') })
    const other = await port.connect()
    await other.closed()
    expect(other.received).toStrictEqual([])
    port.says({ key: new Uint8Array(32).fill(78) })
    port.device.send(fromRadio({ case: 'lockdownStatus', value: { state: Lockdown.UNLOCKED } }))
    await until(() => expect(port.info().state).toBe('open'))
    const security = (await port.app1()).received.find(
      ({ payloadVariant: { value } }) => Object(value).payloadVariant?.case === 'security',
    )
    expect(security?.payloadVariant.value).toMatchObject({
      payloadVariant: { value: { publicKey: new Uint8Array(32).fill(78), privateKey: new Uint8Array(0) } },
    })
  })

  it('apps stay while it is away for a moment, and are closed when it stays away', async () => {
    port = await startAppPort()
    const app = await port.app1()
    await port.device.switchOff()
    await until(() => expect(port.logged.at(-1)).toContain('waiting'))
    port.clock.advance(30_000)
    await app.settled()
    expect(port.info()).toMatchObject({ state: 'open', clients: 1 })
    port.clock.advance(31_000)
    await app.closed()
    expect(port.info().state).toBe('waiting')
    const other = await port.connect()
    await other.closed()
  })

  it('apps read again when its channels or settings change', async () => {
    port = await startAppPort()
    const app = await port.app1()
    port.device.send(
      fromRadio({ case: 'channel', value: { index: 2, role: 2, settings: { name: 'new', psk: PSK } } }),
      fromRadio({ case: 'rebooted', value: true }),
    )
    expect((await app.next('rebooted')).payloadVariant.value).toBe(true)
    expect(app.isClosed()).toBe(false)
  })
})

it('a port that is opened later has the radio read again', async () => {
  port = await startAppPort()
  const clock = createManualClock(START)
  const link = createLink({
    name: 'late',
    kind: 'tcp',
    connect: connectTcp({ host: '127.0.0.1', port: port.device.port }),
    clock,
    onFrames() {},
  })
  link.start()
  await until(() => expect(link.info().state).toBe('connected'))
  const asked = port.device.received.length
  const late = openVirtualNode({
    link,
    transmitter: createTransmitter({
      link,
      clock,
      random: Math.random,
      onDelivery() {},
      onHandOver: (_key, then) => then(),
    }),
    claimSettings: () => true,
    store: port.store,
    options: { ...DEFAULTS, userId: 1 },
    findViewer: () => findPortViewer({ ...port.app.ports, now: clock.now }, 1),
    radios: null,
    events: null,
    log: port.app.ports.log,
    clock,
    random: Math.random,
  })
  await until(() => expect(late.info()).toMatchObject({ state: 'open', reason: null }))
  expect(port.device.received.length).toBeGreaterThan(asked)
  const app = await connectApp(late.info().port ?? 0)
  app.send({ case: 'wantConfigId', value: 1 })
  await app.next('configCompleteId')
  // Nothing is known yet about the channels of this source.
  expect(app.received.some(({ payloadVariant: { value } }) => Object(value).role === 1)).toBe(false)
  await late.close()
  await app.closed()
  expect(late.info()).toMatchObject({ state: 'closed', clients: 0, port: null })
  link.stop()
})

describe('live packets', () => {
  it('reach each app from its connection on, and none twice', async () => {
    port = await startAppPort()
    const first = await port.app1()
    port.hears(heard('one', { id: 1 }))
    await first.next('packet')
    const second = await port.app1()
    port.hears(heard('two', { id: 2 }))
    await Promise.all([first.next('packet'), second.next('packet')])
    await second.settled()
    expect([wordsOf(first), wordsOf(second)]).toStrictEqual([['one', 'two'], ['two']])
  })

  it('out of the memory of the radio are not shown as new', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const position = { portnum: PortNum.POSITION_APP, payload: Uint8Array.of(0x0d, 1, 0, 0, 0, 0x15, 1, 0, 0, 0) }
    port.hears({
      from: FAR,
      to: 0xffffffff,
      id: 9,
      transportMechanism: 1,
      payloadVariant: { case: 'decoded', value: position },
    })
    port.hears(heard('new'))
    await app.next('packet')
    expect(app.received.filter(({ payloadVariant }) => payloadVariant.case === 'packet')).toHaveLength(1)
    const { received } = await port.app1(69_421)
    expect(
      received.find(({ payloadVariant: { value } }) => Object(value).num === FAR)?.payloadVariant.value,
    ).toMatchObject({
      position: { latitudeI: 1 },
    })
  })

  it('what an app sends is, for the others, sent by the radio', async () => {
    port = await startAppPort()
    const first = await port.app1()
    const second = await port.app1()
    const id = first.text('from the first')
    const { payloadVariant } = await second.next('packet')
    expect(payloadVariant.value).toMatchObject({ from: OWN, id, to: 0xffffffff })
    await first.settled()
    expect([wordsOf(first), wordsOf(second)]).toStrictEqual([[], ['from the first']])
  })

  it('an app that takes nothing is dropped and costs the others nothing', async () => {
    port = await startAppPort()
    const slow = await port.app1()
    const quick = await port.app1()
    slow.stall()
    const payload = new Uint8Array(200).fill(65)
    let got = 0
    for (let round = 0; round < 400 && port.info().clients === 2; round += 1) {
      const packets = Array.from({ length: 60 }, (_, at) =>
        fromRadio({
          case: 'packet',
          value: {
            ...heard('x', { id: round * 60 + at + 1 }),
            payloadVariant: { case: 'decoded', value: { portnum: 256, payload } },
          },
        }),
      )
      port.device.send(...packets)
      for (let at = 0; at < 60; at += 1) await quick.next('packet')
      got += 60
    }
    expect(port.info().clients).toBe(1)
    expect(port.logged.join()).toContain('it is too slow')
    expect(quick.received.filter(({ payloadVariant }) => payloadVariant.case === 'packet')).toHaveLength(got)
  })
})

describe('a port is a viewer', () => {
  const RIGHTS = {
    nodes: { read: true, write: false },
    messages: { read: true, write: true },
    info: { read: true, write: true },
  }
  const SCOPE = { channels: { read: [0], write: [0] }, direct: { read: false, write: false } }
  const asUser = async (app: Parameters<NonNullable<Parameters<typeof startAppPort>[1]>>[0]) =>
    (await app.user('viewer', RIGHTS, SCOPE)).id

  it('a channel without right is disabled, and its packets and direct messages do not exist', async () => {
    port = await startAppPort({}, asUser)
    const app = await port.app1()
    const slots = app.received.flatMap(({ payloadVariant: { case: variant, value } }) =>
      variant === 'channel' ? [[value.index, value.role, value.settings?.name]] : [],
    )
    expect(slots.slice(0, 3)).toStrictEqual([
      [0, 1, ''],
      [1, 0, ''],
      [2, 0, ''],
    ])
    port.hears(heard('of the club', { id: 1, channel: 1 }))
    port.hears(heard('for one', { id: 2, to: OWN }))
    port.hears(heard('for one, sealed', { id: 3, to: OWN, pkiEncrypted: true }))
    port.hears(heard('own, of the club', { id: 4, from: OWN, rxRssi: undefined, channel: 1 }))
    port.hears(heard('for all', { id: 5 }))
    await app.next('packet')
    await app.settled()
    expect(wordsOf(app)).toStrictEqual(['for all'])
  })

  it('a hidden node does not exist, also not on a route', async () => {
    port = await startAppPort({}, asUser)
    const admin = await port.app.admin()
    await until(async () =>
      expect((await admin.send('PUT', `/api/nodes/${SECRET}`, { hidden: true })).status).toBe(200),
    )
    const app = await port.app1()
    const nums = app.received.flatMap(({ payloadVariant: { case: variant, value } }) =>
      variant === 'nodeInfo' ? [value.num] : [],
    )
    expect(nums).toStrictEqual([OWN, FAR])
    const sections = app.received.flatMap(({ payloadVariant: { value } }) => Object(value).payloadVariant ?? [])
    const section = (name: string): unknown => sections.find(({ case: each }) => each === name)?.value
    expect(section('lora')).toMatchObject({ hopLimit: 3, ignoreIncoming: [] })
    // The user may not read the configuration: no names and addresses of networks and servers, no keys of administrators.
    expect(section('network')).toMatchObject({ wifiSsid: '', wifiPsk: '' })
    expect(section('mqtt')).toMatchObject({ address: '', username: '', password: '' })
    expect(section('security')).toMatchObject({ adminKey: [] })
    port.hears(heard('hidden', { from: SECRET, id: 1 }))
    const hex = Buffer.alloc(4)
    hex.writeUInt32LE(SECRET)
    const route = { portnum: PortNum.TRACEROUTE_APP, payload: Uint8Array.of(0x0a, 4, ...hex), requestId: 5 }
    port.hears(heard('', { id: 2, to: 0xa0cb0050, payloadVariant: { case: 'decoded', value: route } }))
    const { payloadVariant } = await app.next('packet')
    const all = Buffer.concat(app.received.map((message) => toBinary(FromRadioSchema, message)))
    expect(payloadVariant.value).toMatchObject({ id: 2 })
    expect(all.indexOf(hex)).toBe(-1)
  })

  it('rights are those of now: what is taken away is gone, and its apps are closed with the last of them', async () => {
    port = await startAppPort({}, asUser)
    const admin = await port.app.admin()
    const app = await port.app1()
    const { id } = Object(port.store.sqlite.prepare(`select id from users where username = 'viewer'`).get())
    const none = { channels: { read: [], write: [] }, direct: { read: false, write: false } }
    await admin.send('PUT', `/api/users/${id}/permissions`, { permissions: RIGHTS, scope: none })
    port.hears(heard('not any more'))
    port.clock.advance(3000)
    await app.next('rebooted')
    await app.settled()
    expect(wordsOf(app)).toStrictEqual([])
    await admin.send('PUT', `/api/users/${id}/permissions`, {
      permissions: { ...RIGHTS, messages: { read: false, write: false } },
    })
    port.clock.advance(3000)
    await app.closed()
    const other = await port.connect()
    await other.closed()
    expect(port.info()).toMatchObject({ state: 'waiting', reason: expect.stringContaining('may not read') })
  })

  it('a handshake that lasts ends when rights are taken away: its rest would show what was seen before', async () => {
    port = await startAppPort({}, asUser)
    const admin = await port.app.admin()
    port.says({ nodes: 2000, firmware: '2.9.0' })
    const first = await port.app1()
    port.device.send(fromRadio({ case: 'rebooted', value: true }))
    await first.closed()
    await until(() => expect(port.info()).toMatchObject({ state: 'open', clients: 0 }))
    const [slow, other] = [await port.connect(), await port.app1()]
    // More than the operating system takes for an app that takes nothing.
    const asks = Array.from({ length: 150 }, (_, at) =>
      encodeFrame(
        toBinary(ToRadioSchema, create(ToRadioSchema, { payloadVariant: { case: 'wantConfigId', value: at + 1 } })),
      ),
    )
    slow.sendRaw(Buffer.concat(asks))
    await slow.next('myInfo')
    slow.stall()
    await other.settled()
    expect((await admin.send('PUT', `/api/nodes/${SECRET}`, { hidden: true })).status).toBe(200)
    port.clock.advance(3000)
    await until(() => expect(port.info().clients).toBe(1))
    await other.next('rebooted')
    await other.settled()
  })

  it('a deactivated user has no port', async () => {
    port = await startAppPort({}, asUser)
    const app = await port.app1()
    const { id } = Object(port.store.sqlite.prepare(`select id from users where username = 'viewer'`).get())
    await (await port.app.admin()).send('DELETE', `/api/users/${id}`)
    port.clock.advance(3000)
    await app.closed()
  })

  it('public access gets positions rounded, and none that its sender withholds', async () => {
    port = await startAppPort({}, null)
    const read = { read: true }
    const permissions = { dashboard: read, nodes: read, messages: read, info: read }
    const admin = await port.app.admin()
    const access = { enabled: true, channels: [0], permissions, positionPrecisionBits: 12 }
    expect((await admin.send('PUT', '/api/public-access', access)).status).toBe(200)
    const payload = Buffer.alloc(10)
    payload.writeUInt8(0x0d, 0)
    payload.writeInt32LE(481_234_567, 1)
    payload.writeUInt8(0x15, 5)
    payload.writeInt32LE(115_678_901, 6)
    const position = (bitfield: number) => ({
      payloadVariant: { case: 'decoded' as const, value: { portnum: PortNum.POSITION_APP, payload, bitfield } },
    })
    port.hears(heard('', { id: 1, from: 0xa0cb0060, ...position(1) }))
    const count = 'select count(*) n from nodes where latitude is not null'
    await until(() => {
      port.clock.advance(100)
      expect(port.store.sqlite.prepare(count).get()).toStrictEqual({ n: 1 })
    })
    const app = await port.app1()
    port.hears(heard('', { id: 2, from: 0xa0cb0061, ...position(0) }))
    port.hears(heard('', { id: 3, from: 0xa0cb0060, ...position(1) }))
    await app.next('packet')
    await app.settled()
    const all = Buffer.concat(app.received.map((message) => toBinary(FromRadioSchema, message)))
    expect(all.indexOf(payload.subarray(1, 5))).toBe(-1)
    const packets = app.received.flatMap(({ payloadVariant: { case: variant, value } }) =>
      variant === 'packet' ? [value.id] : [],
    )
    expect(packets).toStrictEqual([3])
    // Nodes that were never heard in public are not in the list of the radio, either.
    const nums = app.received.flatMap(({ payloadVariant: { case: variant, value } }) =>
      variant === 'nodeInfo' ? [value.num] : [],
    )
    expect([...new Set(nums)]).toStrictEqual([OWN, 0xa0cb0060])
  })

  it('public access sees its channels, may not send, and is closed when that is off', async () => {
    port = await startAppPort({}, null)
    const other = await port.connect()
    await other.closed()
    const admin = await port.app.admin()
    const read = { read: true }
    const access = {
      enabled: true,
      channels: [0],
      permissions: { dashboard: read, nodes: read, messages: read, info: read },
    }
    expect((await admin.send('PUT', '/api/public-access', access)).status).toBe(200)
    port.hears(heard('first', { bitfield: 1 }))
    const app = await port.app1()
    expect(app.received[0]?.payloadVariant).toMatchObject({ value: { deviceId: new Uint8Array(0) } })
    expect(await app.refusal(app.text('may I?'))).toBe(33)
    expect(port.packetsSent()).toStrictEqual([])
    // The view was just read; nothing else changes the database afterwards.
    await app.settled()
    await admin.send('PUT', '/api/public-access', { enabled: false })
    await app.settled()
    port.clock.advance(3000)
    await app.closed()
  })
})
