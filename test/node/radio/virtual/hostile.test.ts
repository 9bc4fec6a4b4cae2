import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import * as fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { virtualNodeOptions } from '../../../../src/app/connections/virtual-node-options.ts'
import { AdminMessageSchema } from '../../../../src/meshtastic/gen/admin_pb.ts'
import { ModuleConfigSchema } from '../../../../src/meshtastic/gen/module_config_pb.ts'
import { Routing_Error as Error_, UserSchema } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { ToRadioSchema } from '../../../../src/meshtastic/gen/stream_pb.ts'
import { encodeFrame } from '../../../../src/meshtastic/link/framing.ts'
import {
  type AppPeer,
  type AppPort,
  BROKER,
  FAR_KEY,
  PRIVATE_KEY,
  PSK,
  PUBLIC_KEY,
  SECRET,
  startAppPort,
  wholeHandshake,
  WIFI,
} from '../../../support/radio/app-port.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import { FAR, OWN, until } from '../../../support/radio/service.ts'

let port: AppPort
afterEach(() => port.stop())

const ALL = { mayConfigure: true, mayReboot: true, sharesChannelKeys: true } as const
const raw = (number: number, wire: 'number' | 'bytes', value: Uint8Array | number = 1) => {
  const writer = new BinaryWriter()
  if (wire === 'number') return writer.tag(number, WireType.Varint).uint32(Number(value)).finish()
  return writer
    .tag(number, WireType.LengthDelimited)
    .bytes(value instanceof Uint8Array ? value : Uint8Array.of())
    .finish()
}
/** The number of the variant of each admin message that the radio got. */
const variantsOfRadio = () =>
  port.packetsSent().flatMap(({ payloadVariant: { case: variant, value } }) => {
    if (variant !== 'decoded' || value.portnum !== PortNum.ADMIN_APP) return []
    const [first = 0, second = 0] = value.payload
    return [first < 128 ? first >> 3 : ((first & 127) | (second << 7)) >> 3]
  })

describe('admin messages', () => {
  const FREE = [10, 14, 19, 39, 40, 47, 48, 49]
  const CONFIGURE = [32, 33, 34, 35, 36, 37, 41, 42, 64, 65]
  const REBOOT = [97, 98]

  it.each([
    ['nothing allowed', {}, FREE],
    ['may configure', { mayConfigure: true }, [...FREE, ...CONFIGURE]],
    ['may reboot', { mayReboot: true }, [...FREE, ...REBOOT]],
    ['all allowed', ALL, [...FREE, ...CONFIGURE, ...REBOOT]],
  ])('of every number, known or not: only these reach the radio with %s', async (_name, options, passed) => {
    port = await startAppPort(options)
    const app = await port.app1()
    port.onPacket(({ id }) => port.answers(id))
    for (let number = 1; number <= 130; number += 1) {
      if (number === 101) continue
      for (const wire of ['number', 'bytes'] as const) {
        app.admin(raw(number, wire))
        port.clock.advance(2500)
      }
      await app.settled()
    }
    const unexpected = new Set(variantsOfRadio().filter((number) => !passed.includes(number)))
    expect(unexpected).toStrictEqual(new Set())
    port.clock.advance(60_000)
    await app.refusal(app.admin(raw(94, 'number')))
    const asked = port.requests()
    expect(asked.reduce((all, { unrecorded = 0 }) => all + 1 + unrecorded, 0)).toBe(2 * 129 + 1)
    expect(asked.every(({ ip, username }) => ip === '127.0.0.1' && username === 'admin')).toBe(true)
  })

  it('are refused as the firmware does, and recorded with port, address and user', async () => {
    port = await startAppPort()
    const app = await port.app1()
    expect(await app.refusal(app.admin(raw(94, 'number')))).toBe(Error_.NOT_AUTHORIZED)
    const status = await app.next('queueStatus')
    expect(status.payloadVariant.value).toMatchObject({ res: Error_.NOT_AUTHORIZED, maxlen: 16 })
    expect(port.requests()).toStrictEqual([
      {
        radio: `127.0.0.1:${port.device.port}`,
        port: port.info().port,
        request: 'factory_reset_device',
        outcome: 'refused',
        reason: 'apps may not do this',
        ip: '127.0.0.1',
        username: 'admin',
      },
    ])
  })

  it('with two variants, or that are no message, are refused', async () => {
    port = await startAppPort(ALL)
    const app = await port.app1()
    const two = Uint8Array.of(...raw(39, 'number', FAR & 0x7fffffff), ...raw(94, 'number'))
    for (const payload of [two, Uint8Array.of(0xff, 0xff), Uint8Array.of(), Uint8Array.of(0x0b, 0x0c)]) {
      expect(await app.refusal(app.admin(payload))).toBe(Error_.BAD_REQUEST)
    }
    expect(variantsOfRadio()).toStrictEqual([])
  })

  it('to other nodes are refused, whatever key they carry', async () => {
    port = await startAppPort(ALL)
    const app = await port.app1()
    const value = { portnum: PortNum.ADMIN_APP, payload: raw(97, 'number') }
    const payloadVariant = { case: 'decoded', value } as const
    expect(await app.refusal(app.packet({ to: FAR, payloadVariant }))).toBe(Error_.NOT_AUTHORIZED)
    expect(await app.refusal(app.packet({ to: FAR, payloadVariant, pkiEncrypted: true, publicKey: FAR_KEY }))).toBe(
      Error_.NOT_AUTHORIZED,
    )
    expect(await app.refusal(app.packet({ to: OWN, payloadVariant, pkiEncrypted: true, publicKey: PUBLIC_KEY }))).toBe(
      Error_.BAD_REQUEST,
    )
    expect(port.requests()).toHaveLength(3)
    expect(port.packetsSent()).toStrictEqual([])
  })

  it('change nothing that the user of the port may not change or see, whatever the port allows', async () => {
    const both = { read: true, write: true }
    const seen = { nodes: { read: true, write: false }, messages: both, configuration: both }
    const scope = { channels: { read: [0], write: [0] }, direct: { read: false, write: false } }
    port = await startAppPort(ALL, async (app) => (await app.user('operator', seen, scope)).id)
    const app = await port.app1()
    const settings = { name: 'mine', psk: new Uint8Array(16).fill(1) }
    expect(await app.refusal(app.admin({ case: 'setChannel', value: { index: 1, role: 2, settings } }))).toBe(
      Error_.NOT_AUTHORIZED,
    )
    expect(await app.refusal(app.admin({ case: 'setFavoriteNode', value: FAR }))).toBe(Error_.NOT_AUTHORIZED)
    const id = app.admin({ case: 'setChannel', value: { index: 2, role: 2, settings } })
    expect(await port.sent()).toMatchObject({ id })
    await port.stop()
    const reader = { ...seen, configuration: { read: true, write: false } }
    port = await startAppPort(ALL, async (app_) => (await app_.user('reader', reader, scope)).id)
    const other = await port.app1()
    for (const payload of [raw(64, 'number'), raw(97, 'number'), raw(42, 'number')]) {
      expect(await other.refusal(other.admin(payload))).toBe(Error_.NOT_AUTHORIZED)
    }
    expect(port.packetsSent()).toStrictEqual([])
  })

  it('a flood of them costs the log 30 entries, then one a minute, from however many connections', async () => {
    port = await startAppPort()
    const apps = [await port.app1(), await port.app1()]
    for (let at = 0; at < 150; at += 1) apps[at % 2]?.admin(raw(94, 'number'))
    for (const app of apps) await app.settled()
    expect(port.requests()).toHaveLength(30)
    const [app] = apps
    for (const missed of [120, 0]) {
      port.clock.advance(60_000)
      expect(await app?.refusal(app.admin(raw(94, 'number')))).toBe(Error_.NOT_AUTHORIZED)
      expect(port.requests().at(-1)?.unrecorded ?? 0).toBe(missed)
    }
  })

  it('that read are all answered, with one entry an hour for an address', async () => {
    port = await startAppPort()
    const [app, other] = [await port.app1(), await port.app1()]
    const ask = async (peer: AppPeer, times: number) => {
      for (let at = 0; at < times; at += 1) {
        const id = peer.admin({ case: 'getOwnerRequest', value: true })
        await peer.next('packet', ({ payloadVariant: { value } }) => {
          const { payloadVariant } = Object(value)
          return payloadVariant?.value.portnum === PortNum.ADMIN_APP && payloadVariant.value.requestId === id
        })
      }
    }
    await ask(app, 50)
    await ask(other, 50)
    expect(port.requests()).toMatchObject([{ request: 'get_owner', outcome: 'answered' }])
    // The apps have gone silent by then, and so has the radio.
    port.clock.advance(3_600_000)
    await Promise.all([app.closed(), other.closed()])
    await until(() => {
      port.clock.advance(1000)
      expect(port.info()).toMatchObject({ state: 'open', clients: 0 })
    })
    await ask(await port.app1(), 1)
    expect(port.requests()).toMatchObject([{}, { outcome: 'answered', unrecorded: 99 }])
  })

  it('without an entry of their own do not reach the radio', async () => {
    port = await startAppPort({ mayConfigure: true })
    const app = await port.app1()
    for (let at = 0; at < 85; at += 1) {
      const id = app.admin({ case: 'setOwner', value: { longName: `Name ${at}`, shortName: 'N' } })
      if (at >= 80) expect(await app.refusal(id)).toBe(Error_.RATE_LIMIT_EXCEEDED)
      else await port.sent()
    }
    expect(port.packetsSent()).toHaveLength(80)
    expect(port.requests()).toHaveLength(80)
  })
})

it('a LoRa section that is written back keeps the ignored nodes that the app did not get', async () => {
  const both = { read: true, write: true }
  const rights = { nodes: { read: true, write: false }, messages: both, configuration: both }
  port = await startAppPort(ALL, async (app) => (await app.user('operator', rights)).id)
  const admin = await port.app.admin()
  await until(async () => expect((await admin.send('PUT', `/api/nodes/${SECRET}`, { hidden: true })).status).toBe(200))
  const app = await port.app1()
  for (const ignoreIncoming of [[], [FAR], [1, 2, SECRET], [1, 2, 3]]) {
    app.admin({
      case: 'setConfig',
      value: { payloadVariant: { case: 'lora', value: { hopLimit: 5, ignoreIncoming } } },
    })
    const { payloadVariant } = await port.sent()
    const payload = payloadVariant.case === 'decoded' ? payloadVariant.value.payload : Uint8Array.of()
    // Firmware takes three.
    expect(fromBinary(AdminMessageSchema, payload).payloadVariant.value).toMatchObject({
      payloadVariant: { value: { hopLimit: 5, ignoreIncoming: [...new Set([SECRET, ...ignoreIncoming])].slice(0, 3) } },
    })
  }
})

describe('a redacted key that is written back', () => {
  it('is refused without the keys, in every section that has some', async () => {
    port = await startAppPort({ mayConfigure: true })
    const app = await port.app1()
    for (const variant of [
      { case: 'security', value: { publicKey: PUBLIC_KEY } },
      { case: 'network', value: { wifiSsid: 'home', wifiPsk: 'sekrit' } },
    ] as const) {
      expect(await app.refusal(app.admin({ case: 'setConfig', value: { payloadVariant: variant } }))).toBe(
        Error_.NOT_AUTHORIZED,
      )
    }
    for (const variant of [
      { case: 'mqtt', value: { address: 'broker.example', password: 'sekrit' } },
      { case: 'meshBeacon', value: { broadcastMessage: 'x' } },
    ]) {
      const value = create(ModuleConfigSchema, { payloadVariant: Object(variant) })
      expect(await app.refusal(app.admin({ case: 'setModuleConfig', value }))).toBe(Error_.NOT_AUTHORIZED)
    }
    const channel = { index: 1, role: 2, settings: { name: 'club' } } as const
    expect(await app.refusal(app.admin({ case: 'setChannel', value: channel }))).toBe(Error_.NOT_AUTHORIZED)
    expect(port.packetsSent()).toStrictEqual([])
  })

  it('changes nothing: the radio gets its own again', async () => {
    port = await startAppPort(ALL)
    const app = await port.app1()
    const shown = app.received.flatMap(({ payloadVariant: { case: variant, value } }) =>
      variant === 'config' || variant === 'moduleConfig' ? [value.payloadVariant] : [],
    )
    const written: unknown[] = []
    for (const payloadVariant of shown) {
      const isModule = payloadVariant.case === 'mqtt' || payloadVariant.case === 'telemetry'
      const message = { case: isModule ? 'setModuleConfig' : 'setConfig', value: { payloadVariant } }
      app.admin(toBinary(AdminMessageSchema, create(AdminMessageSchema, { payloadVariant: Object(message) })))
      await app.settled()
      const sent = await port.sent()
      written.push(
        Buffer.from(sent.payloadVariant.case === 'decoded' ? sent.payloadVariant.value.payload : []).toString('latin1'),
      )
    }
    const all = written.join()
    for (const secret of [PRIVATE_KEY, Buffer.from(WIFI), Buffer.from(BROKER)]) {
      expect(all).toContain(Buffer.from(secret).toString('latin1'))
    }
    expect(all).not.toContain('sekrit')
    expect(written.join()).toContain(
      Buffer.from([0x18, ...new BinaryWriter().uint32(424_242).finish()]).toString('latin1'),
    )
  })

  it('never sends a password elsewhere, and never replaces the identity', async () => {
    port = await startAppPort(ALL)
    const app = await port.app1()
    for (const variant of [
      { case: 'security', value: { privateKey: new Uint8Array(32).fill(66) } },
      { case: 'network', value: { wifiSsid: 'evil', wifiPsk: 'sekrit' } },
    ] as const) {
      expect(await app.refusal(app.admin({ case: 'setConfig', value: { payloadVariant: variant } }))).toBe(
        Error_.NOT_AUTHORIZED,
      )
    }
    const mqtt = { case: 'mqtt', value: { address: 'evil.example', password: 'sekrit' } } as const
    expect(await app.refusal(app.admin({ case: 'setModuleConfig', value: { payloadVariant: mqtt } }))).toBe(
      Error_.NOT_AUTHORIZED,
    )
    expect(port.packetsSent()).toStrictEqual([])
  })

  it('reading the sections by admin messages shows no more than the handshake', async () => {
    port = await startAppPort()
    const app = await port.app1()
    for (let number = 0; number <= 9; number += 1) app.admin(Uint8Array.of(0x28, number))
    for (let number = 0; number <= 16; number += 1) app.admin(Uint8Array.of(0x38, number))
    for (let number = 1; number <= 8; number += 1) app.admin({ case: 'getChannelRequest', value: number })
    await app.settled()
    const answers = app.received.flatMap(({ payloadVariant: { value } }) => {
      const data = Object(value).payloadVariant
      return data?.case === 'decoded' && data.value.portnum === PortNum.ADMIN_APP ? [data.value.payload] : []
    })
    // Six sections, two modules and eight channels of this radio; the others are refused.
    expect(answers).toHaveLength(5 + 2 + 8)
    const all = Buffer.concat(answers)
    for (const secret of [PRIVATE_KEY, PSK, Buffer.from(WIFI), Buffer.from(BROKER)]) {
      expect(all.indexOf(Buffer.from(secret))).toBe(-1)
    }
    expect(port.packetsSent()).toStrictEqual([])
  })
})

describe('forged packets', () => {
  const text = { case: 'decoded', value: { portnum: PortNum.TEXT_MESSAGE_APP, payload: Uint8Array.of(65) } } as const

  it('as another node, as an answer, encrypted, or with a wrong key are refused', async () => {
    port = await startAppPort(ALL)
    const app = await port.app1()
    expect(await app.refusal(app.packet({ from: FAR, payloadVariant: text }))).toBe(Error_.BAD_REQUEST)
    const answer = { case: 'decoded', value: { ...text.value, requestId: 7 } } as const
    expect(await app.refusal(app.packet({ payloadVariant: answer }))).toBe(Error_.BAD_REQUEST)
    const cipher = { case: 'encrypted', value: Uint8Array.of(1, 2, 3) } as const
    expect(await app.refusal(app.packet({ payloadVariant: cipher }))).toBe(Error_.BAD_REQUEST)
    const wrong = { to: FAR, payloadVariant: text, pkiEncrypted: true, publicKey: PUBLIC_KEY }
    expect(await app.refusal(app.packet(wrong))).toBe(Error_.PKI_FAILED)
    expect(await app.refusal(app.packet({ ...wrong, to: 0xffffffff }))).toBe(Error_.PKI_FAILED)
    expect(await app.refusal(app.packet({ channel: 8, payloadVariant: text }))).toBe(Error_.NO_CHANNEL)
    expect(await app.refusal(app.packet({ channel: 5, payloadVariant: text }))).toBe(Error_.NO_CHANNEL)
    const routing = {
      case: 'decoded',
      value: { portnum: PortNum.ROUTING_APP, payload: Uint8Array.of(0x18, 0) },
    } as const
    expect(await app.refusal(app.packet({ to: FAR, payloadVariant: routing }))).toBe(Error_.BAD_REQUEST)
    expect(port.packetsSent()).toStrictEqual([])
    expect(port.requests().map(({ reason }) => reason)).toStrictEqual([
      'the sender is another node',
      'it answers a packet as another node would',
      'not the key of that node',
      'not the key of that node',
    ])
  })

  it('under the radio’s own number pass as the radio’s, and with the key of the recipient as official apps send them', async () => {
    port = await startAppPort()
    const app = await port.app1()
    app.packet({
      from: OWN,
      to: FAR,
      payloadVariant: text,
      pkiEncrypted: true,
      publicKey: FAR_KEY,
      nextHop: 9,
      relayNode: 9,
      viaMqtt: true,
    })
    expect(await port.sent()).toMatchObject({
      from: 0,
      to: FAR,
      pkiEncrypted: true,
      publicKey: FAR_KEY,
      nextHop: 0,
      relayNode: 0,
      viaMqtt: false,
    })
  })

  it('names of the radio are its own, whatever the app says they are', async () => {
    port = await startAppPort()
    const app = await port.app1()
    const forged = {
      longName: 'Somebody Else',
      shortName: 'SE',
      publicKey: FAR_KEY,
      isLicensed: true,
      role: 2,
    } as const
    const payload = toBinary(UserSchema, create(UserSchema, forged))
    const value = { portnum: PortNum.NODEINFO_APP, payload, wantResponse: true }
    app.packet({ to: FAR, payloadVariant: { case: 'decoded', value } })
    const { payloadVariant } = await port.sent()
    if (payloadVariant.case !== 'decoded') throw new Error('encrypted')
    expect(payloadVariant.value).toMatchObject({ portnum: PortNum.NODEINFO_APP, wantResponse: true })
    const own = { longName: 'Test Radio', shortName: 'Test', publicKey: PUBLIC_KEY }
    expect(fromBinary(UserSchema, payloadVariant.value.payload)).toStrictEqual(create(UserSchema, own))
    // A radio that says no names of its own.
    port.says({ whole: (nonce) => wholeHandshake(nonce, { firmware: '2.9.0' }).toSpliced(2, 1) })
    port.device.send(fromRadio({ case: 'rebooted', value: true }))
    await app.closed()
    await until(() => expect(port.info()).toMatchObject({ state: 'open', clients: 0 }))
    const other = await port.app1()
    expect(await other.refusal(other.packet({ to: FAR, payloadVariant: { case: 'decoded', value } }))).toBe(
      Error_.NO_INTERFACE,
    )
    expect(port.packetsSent()).toHaveLength(1)
  })

  it('to a hidden node are answered as to one that does not exist, and never sent', async () => {
    const both = { read: true, write: true }
    const rights = { nodes: { read: true, write: false }, messages: both, info: both }
    const scope = { channels: { read: [0], write: [0] }, direct: both }
    port = await startAppPort({}, async (app) => (await app.user('sender', rights, scope)).id)
    const admin = await port.app.admin()
    await until(async () =>
      expect((await admin.send('PUT', `/api/nodes/${SECRET}`, { hidden: true })).status).toBe(200),
    )
    const app = await port.app1()
    const route = { case: 'decoded', value: { portnum: PortNum.TRACEROUTE_APP, wantResponse: true } } as const
    for (const to of [SECRET, 0xa0cb0077]) {
      const sealed = { pkiEncrypted: true, publicKey: FAR_KEY }
      for (const packet of [{ payloadVariant: text }, { payloadVariant: text, ...sealed }, { payloadVariant: route }]) {
        expect(await app.refusal(app.packet({ to, ...packet }))).toBe(Error_.NO_ROUTE)
      }
    }
    expect(port.packetsSent()).toStrictEqual([])
    expect(port.store.sqlite.prepare('select count(*) n from messages').get()).toStrictEqual({ n: 0 })
    app.text('to one that is seen', { to: FAR })
    expect(await port.sent()).toMatchObject({ to: FAR })
  })

  it('an answer of a node that is hidden by now does not reach the app', async () => {
    const both = { read: true, write: true }
    const rights = { nodes: { read: true, write: false }, messages: both }
    const scope = { channels: { read: [0], write: [0] }, direct: both }
    port = await startAppPort({}, async (app) => (await app.user('sender', rights, scope)).id)
    const app = await port.app1()
    const id = app.text('hello', { to: FAR })
    await port.sent()
    const admin = await port.app.admin()
    await until(async () => expect((await admin.send('PUT', `/api/nodes/${FAR}`, { hidden: true })).status).toBe(200))
    port.answers(id, Error_.NO_RESPONSE, FAR)
    // The radio itself says what became of it, also then.
    port.answers(id, Error_.MAX_RETRANSMIT)
    expect(await app.refusal(id)).toBe(Error_.MAX_RETRANSMIT)
  })

  it.each([PortNum.POSITION_APP, PortNum.TELEMETRY_APP, PortNum.NODEINFO_APP])(
    'that ask on port %s need the rights of the page',
    async (portnum) => {
      const both = { read: true, write: true }
      const rights = { nodes: { read: true, write: false }, messages: both }
      const scope = { channels: { read: [0, 1], write: [0] }, direct: both }
      const asking = { to: FAR, payloadVariant: { case: 'decoded', value: { portnum, wantResponse: true } } } as const
      port = await startAppPort({}, async (app) => (await app.user('teller', rights, scope)).id)
      const teller = await port.app1()
      expect(await teller.refusal(teller.packet(asking))).toBe(Error_.NOT_AUTHORIZED)
      const id = teller.packet({ to: FAR, payloadVariant: { case: 'decoded', value: { portnum } } })
      expect(await port.sent()).toMatchObject({ id })
      await port.stop()
      port = await startAppPort({}, async (app) => (await app.user('asker', { ...rights, info: both }, scope)).id)
      const asker = await port.app1()
      expect(await asker.refusal(asker.packet({ ...asking, channel: 1 }))).toBe(Error_.NOT_AUTHORIZED)
      const asked = asker.packet(asking)
      expect(await port.sent()).toMatchObject({ id: asked })
    },
  )

  it('an id is used once: of the same app it is ignored, of another one refused', async () => {
    port = await startAppPort()
    const first = await port.app1()
    const second = await port.app1()
    const id = first.text('once')
    await port.sent()
    first.text('again', { id })
    await first.settled()
    expect(await second.refusal(second.text('stolen', { id }))).toBe(Error_.BAD_REQUEST)
    port.clock.advance(60_000)
    await first.settled()
    expect(port.packetsSent()).toHaveLength(1)
    // An app that comes back is the same one.
    first.close()
    await until(() => expect(port.info().clients).toBe(1))
    const back = await port.app1()
    back.text('again', { id })
    await back.settled()
    expect(port.packetsSent()).toHaveLength(1)
  })

  it('an id that the page used is refused', async () => {
    port = await startAppPort()
    const app = await port.app1()
    port.store.sqlite
      .prepare(
        `insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction) values (4242, ?, 4294967295, 0, 'x', 0, 'out')`,
      )
      .run(OWN)
    expect(await app.refusal(app.text('mine', { id: 4242 }))).toBe(Error_.BAD_REQUEST)
  })
})

it('a radio that lists nodes without end is believed 5,000 of them', async () => {
  port = await startAppPort()
  const first = await port.app1()
  port.says({ nodes: 5100, firmware: '2.9.0' })
  port.device.send(fromRadio({ case: 'rebooted', value: true }))
  await first.closed()
  await until(() => expect(port.info()).toMatchObject({ state: 'open', clients: 0 }))
  const app = await port.app1(69_421)
  const nums = app.received.flatMap(({ payloadVariant: { case: variant, value } }) =>
    variant === 'nodeInfo' ? [value.num] : [],
  )
  expect(nums).toHaveLength(5000)
  expect(nums.slice(0, 2)).toStrictEqual([OWN, FAR])
})

describe('what is no message', () => {
  it('random bytes, half frames and single bytes disturb nobody', async () => {
    port = await startAppPort()
    const good = await port.app1()
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 600 }), { maxLength: 20 }), async (chunks) => {
        const bad = await port.connect()
        for (const chunk of chunks) bad.sendRaw(chunk)
        bad.close()
        port.clock.advance(10_000)
        await until(() => expect(port.info().clients).toBe(1))
      }),
      { numRuns: 25 },
    )
    const half = await port.connect()
    const frame = encodeFrame(
      toBinary(ToRadioSchema, create(ToRadioSchema, { payloadVariant: { case: 'wantConfigId', value: 9 } })),
    )
    half.sendRaw(frame.slice(0, 5))
    await good.settled()
    for (const byte of frame.slice(5)) half.sendRaw(Uint8Array.of(byte))
    await half.next('configCompleteId')
    expect(port.packetsSent()).toStrictEqual([])
  })

  it('an app that sends noise without end is dropped', async () => {
    port = await startAppPort()
    const bad = await port.connect()
    bad.sendRaw(new Uint8Array(40_000).fill(0x41))
    await bad.closed()
    await until(() => expect(port.logged.join()).toContain('it does not speak the protocol'))
  })

  it('an app that sends too much is dropped', async () => {
    port = await startAppPort()
    const bad = await port.app1()
    for (let at = 0; at < 300; at += 1) bad.send({ case: 'heartbeat', value: {} })
    await bad.closed()
    await until(() => expect(port.logged.join()).toContain('it sends too much'))
  })

  it('a file is refused, a heartbeat is answered here, and disconnect ends this app alone', async () => {
    port = await startAppPort()
    const [app, other] = [await port.app1(), await port.app1()]
    app.sendRaw(encodeFrame(Uint8Array.of(0x2a, 2, 8, 1)))
    expect((await app.next('xmodemPacket')).payloadVariant.value).toStrictEqual(Uint8Array.of(8, 21))
    const before = port.device.received.length
    app.send({ case: 'heartbeat', value: { nonce: 1 } })
    await app.next('queueStatus')
    app.send({
      case: 'mqttClientProxyMessage',
      value: { topic: 'msh/x', payloadVariant: { case: 'data', value: PSK } },
    })
    app.send({ case: 'disconnect', value: true })
    await app.closed()
    await other.settled()
    expect(port.device.received).toHaveLength(before)
  })
})

describe('connections', () => {
  it('a thousand at once: some are taken, the others refused, and the port works again', async () => {
    port = await startAppPort()
    const before = await port.app1()
    const many = await Promise.all(Array.from({ length: 1000 }, () => port.connect().catch(() => null)))
    await before.settled()
    await until(() => expect(many.filter((peer) => peer?.isClosed() === false).length).toBeLessThanOrEqual(7))
    expect(port.info().clients).toBeLessThanOrEqual(8)
    for (const peer of many) peer?.close()
    await until(() => expect(port.info().clients).toBe(1))
    port.clock.advance(60_000)
    expect(port.logged.join()).toContain('too many connections')
    await port.app1()
  })

  it('the ninth app has no place, until one of the others was silent for long', async () => {
    port = await startAppPort()
    const apps = await Promise.all(Array.from({ length: 8 }, () => port.app1()))
    const ninth = await port.connect()
    await ninth.closed()
    port.clock.advance(119_000)
    for (const app of apps.slice(1)) await app.settled()
    port.clock.advance(2000)
    await port.app1()
    expect(apps.map((app) => app.isClosed())).toStrictEqual([true, ...Array.from({ length: 7 }, () => false)])
  })

  it('are refused from other networks than those named', async () => {
    port = await startAppPort({ allowedNetworks: ['192.0.2.0/24', '2001:db8::/32'] })
    const app = await port.connect()
    await app.closed()
    port.clock.advance(60_000)
    expect(port.logged.join()).toContain('from another network')
    await port.stop()
    port = await startAppPort({ allowedNetworks: ['127.0.0.0/8'], host: '0.0.0.0' })
    await port.app1()
  })

  it('every address of the machine is refused without networks', async () => {
    for (const host of ['0.0.0.0', '::', '0:0::0', '::0.0.0.0']) {
      await expect(startAppPort({ host })).rejects.toThrow(RangeError)
      expect(virtualNodeOptions.safeParse({ port: 4403, userId: null, host }).success).toBe(false)
      const allowedNetworks = ['192.0.2.0/24', '2001:db8::1']
      expect(virtualNodeOptions.safeParse({ port: 4403, userId: null, host, allowedNetworks }).success).toBe(true)
    }
    port = await startAppPort()
  })

  it('an IPv4 address in the dress of IPv6 is refused in every spelling, with networks or without', async () => {
    const everywhere = ['::ffff:0.0.0.0', '::FFFF:0:0', '0:0:0:0:0:ffff:0:0', '0::ffff:0:0', '0:0:0:0:0:ffff:0.0.0.0']
    for (const host of [...everywhere, '::ffff:192.0.2.1', '0:0:0:0:0:FFFF:c000:201']) {
      for (const allowedNetworks of [[], ['192.0.2.0/24']]) {
        await expect(startAppPort({ host, allowedNetworks })).rejects.toThrow(RangeError)
        expect(virtualNodeOptions.safeParse({ port: 4403, userId: null, host, allowedNetworks }).success).toBe(false)
      }
    }
    port = await startAppPort()
  })

  it('of IPv4 to a port on every address of both kinds are judged by the networks of IPv4', async () => {
    port = await startAppPort({ host: '::', allowedNetworks: ['127.0.0.0/8'] })
    await port.app1()
    await port.stop()
    port = await startAppPort({ host: '::', allowedNetworks: ['192.0.2.0/24', '::1'] })
    const app = await port.connect()
    await app.closed()
  })

  it('a port in use is said in words, and taken when it is free', async () => {
    port = await startAppPort()
    const { port: taken } = port.info()
    const other = await startAppPort({ port: taken }, undefined, 'failed')
    expect(other.info()).toMatchObject({ state: 'failed', reason: `another program uses port ${taken}` })
    await port.stop()
    other.clock.advance(10_000)
    await until(() => expect(other.info().state).toBe('open'))
    port = other
  })
})
