import { once } from 'node:events'
import { createConnection } from 'node:net'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { expect } from 'vitest'
import type { VirtualNodeOptions } from '../../../src/app/connections/virtual-node-options.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { createEvents } from '../../../src/app/mesh/live/events.ts'
import { AdminMessageSchema } from '../../../src/meshtastic/gen/admin_pb.ts'
import { Config_LoRaConfig_ModemPreset as Preset } from '../../../src/meshtastic/gen/config_pb.ts'
import { type Data, type DataSchema, type MeshPacket, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import { Routing_Error, RoutingSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { type FromRadio, type ToRadio, ToRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import { createFrameDecoder, encodeFrame } from '../../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import type { SqliteStore } from '../../../src/node/database.ts'
import { openRadio } from '../../../src/node/radio/radio.ts'
import { createTestApp, START, type TestApp } from '../app.ts'
import { createManualClock } from '../manual-clock.ts'
import { openMemoryStore } from '../memory-store.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from './device.ts'
import { FAR, OWN, until } from './service.ts'

export const PRIVATE_KEY = new Uint8Array(32).fill(7)
export const PUBLIC_KEY = new Uint8Array(32).fill(8)
export const FAR_KEY = new Uint8Array(32).fill(9)
export const PSK = new Uint8Array(16).fill(11)
export const WIFI = 'a wifi password'
export const BROKER = 'a broker password'
/** A node that the tests hide. */
export const SECRET = 0xa0cb0003

type Said = {
  /** All of it, in place of the rest. */
  readonly whole?: (nonce: number) => readonly Uint8Array[]
  readonly firmware?: string
  readonly num?: number
  readonly key?: Uint8Array
  readonly nodes?: number
}

/** All that a radio of firmware 2.8 tells: two channels, secrets, some nodes. */
export function wholeHandshake(nonce: number, said: Said = {}): Uint8Array[] {
  const { firmware = '2.8.0.test', num = OWN, key = PUBLIC_KEY, nodes = 0 } = said
  const user = (longName: string, publicKey: Uint8Array) => ({ longName, shortName: longName.slice(0, 4), publicKey })
  const many = Array.from({ length: nodes }, (_, at) =>
    fromRadio({
      case: 'nodeInfo',
      value: {
        num: 0xb0000000 + at,
        lastHeard: 1_700_000_000,
        user: user(`Node ${at}`, new Uint8Array(32).fill(at + 1)),
      },
    }),
  )
  return [
    fromRadio({
      case: 'myInfo',
      value: { myNodeNum: num, nodedbCount: 3, rebootCount: 1, deviceId: PUBLIC_KEY.slice(16) },
    }),
    fromRadio({ case: 'deviceuiConfig', value: { version: 1 } }),
    fromRadio({ case: 'nodeInfo', value: { num, user: user('Test Radio', key) } }),
    fromRadio({ case: 'metadata', value: { firmwareVersion: firmware, hwModel: 43 } }),
    fromRadio({ case: 'regionPresets', value: { groups: [{ presets: [Preset.LONG_FAST] }] } }),
    fromRadio({ case: 'channel', value: { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } } }),
    fromRadio({ case: 'channel', value: { index: 1, role: 2, settings: { name: 'club', psk: PSK } } }),
    ...[2, 3, 4, 5, 6, 7].map((index) => fromRadio({ case: 'channel', value: { index, role: 0, settings: {} } })),
    fromRadio({ case: 'config', value: { payloadVariant: { case: 'device', value: { role: 0 } } } }),
    fromRadio({
      case: 'config',
      value: { payloadVariant: { case: 'network', value: { wifiEnabled: true, wifiSsid: 'home', wifiPsk: WIFI } } },
    }),
    fromRadio({
      case: 'config',
      value: {
        payloadVariant: {
          case: 'lora',
          value: { usePreset: true, hopLimit: 3, txEnabled: true, region: 3, ignoreIncoming: [SECRET] },
        },
      },
    }),
    fromRadio({
      case: 'config',
      value: { payloadVariant: { case: 'bluetooth', value: { mode: 1, fixedPin: 424_242 } } },
    }),
    fromRadio({
      case: 'config',
      value: {
        payloadVariant: { case: 'security', value: { publicKey: key, privateKey: PRIVATE_KEY, adminKey: [FAR_KEY] } },
      },
    }),
    fromRadio({
      case: 'moduleConfig',
      value: {
        payloadVariant: { case: 'mqtt', value: { address: 'broker.example', username: 'u', password: BROKER } },
      },
    }),
    fromRadio({
      case: 'moduleConfig',
      value: { payloadVariant: { case: 'telemetry', value: { deviceUpdateInterval: 900 } } },
    }),
    fromRadio({ case: 'nodeInfo', value: { num: FAR, user: user('Far Hill', FAR_KEY), hopsAway: 1 } }),
    fromRadio({ case: 'nodeInfo', value: { num: SECRET, user: user('Hidden', FAR_KEY) } }),
    ...many,
    fromRadio({ case: 'fileInfo', value: { fileName: '/prefs/config.proto', sizeBytes: 10 } }),
    fromRadio({ case: 'configCompleteId', value: nonce }),
  ]
}

export const DEFAULTS: VirtualNodeOptions = {
  port: 0,
  host: '127.0.0.1',
  allowedNetworks: [],
  userId: null,
  mayConfigure: false,
  mayReboot: false,
  sharesChannelKeys: false,
  proxiesMqtt: false,
}

/** A service whose radio apps can connect to; the test controls the time. */
export type AppPort = {
  readonly app: TestApp
  readonly device: RadioDevice
  readonly store: SqliteStore
  readonly clock: ReturnType<typeof createManualClock>
  readonly logged: string[]
  info(): { state: string; clients: number; reason: string | null; port: number }
  /** What the radio says about itself from its next handshake on. */
  says(said: Said): void
  /** Answers each packet that the radio gets. */
  onPacket(answer: (packet: MeshPacket) => void): void
  /** An app that connects. */
  connect(): Promise<AppPeer>
  /** One that has completed its handshake. */
  app1(nonce?: number): Promise<AppPeer>
  /** The packet that the radio received next. */
  sent(): Promise<MeshPacket>
  packetsSent(): readonly MeshPacket[]
  /** A packet that the radio hears, or its own. */
  hears(packet: MessageInitShape<typeof MeshPacketSchema>): void
  /** The routing answer of the radio, or of another node, to a packet. */
  answers(requestId: number, error?: Routing_Error, from?: number): void
  /** Requests of apps in the audit log, in order. */
  requests(): {
    request: string
    outcome: string
    reason?: string
    unrecorded?: number
    ip: string | null
    username: string | null
  }[]
  stop(): Promise<void>
}

/** `user`: rights of the user of the port; null: public access. */
export async function startAppPort(
  options: Partial<VirtualNodeOptions> = {},
  userOf: ((app: TestApp) => Promise<number | null>) | null = async () => 1,
  state: 'open' | 'failed' = 'open',
): Promise<AppPort> {
  let said: Said = {}
  let answer: (packet: MeshPacket) => void = () => {}
  const device = await startRadioDevice({
    handshake: (nonce) => said.whole?.(nonce) ?? wholeHandshake(nonce, said),
    onPacket: (packet) => answer(packet),
  })
  const clock = createManualClock(START)
  const store = openMemoryStore()
  const logged: string[] = []
  const log = createLog({ level: 'info', format: 'json', now: () => clock.now(), write: (line) => logged.push(line) })
  const name = `127.0.0.1:${device.port}`
  const parsed = parseConfig({ MESHTASTIC_TCP: name })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const events = createEvents(clock)
  const ports = { now: () => clock.now(), events }
  const userId = userOf === null ? null : await userOf(await createTestApp({ store, ports }))
  const radio = openRadio({
    config: parsed.config,
    store,
    log,
    clock,
    events,
    virtualNodes: new Map([[name, { ...DEFAULTS, userId, ...options }]]),
  })
  const app = await createTestApp({ store, ports: { ...ports, radio } })
  try {
    radio.start()
  } catch (error) {
    await device.stop()
    store.close()
    throw error
  }
  await until(() => expect(radio.links()[0]?.state).toBe('connected'))
  clock.advance(100)
  await until(() => expect(store.sqlite.prepare('select count(*) n from channels').get()).toStrictEqual({ n: 8 }))
  const info = () => {
    const found = radio.virtualNodes().get(name)
    if (found === undefined) throw new Error('no port')
    return { ...found, port: found.port ?? 0 }
  }
  await until(() => expect(state === 'failed' ? info().state : info().port > 0).toBe(state === 'failed' ? state : true))
  const peers: AppPeer[] = []
  const port: AppPort = {
    app,
    device,
    store,
    clock,
    logged,
    info,
    says: (next) => void (said = next),
    onPacket: (next) => void (answer = next),
    async connect() {
      const peer = await connectApp(info().port)
      peers.push(peer)
      return peer
    },
    async app1(nonce = 1234) {
      const peer = await port.connect()
      peer.send({ case: 'wantConfigId', value: nonce })
      await peer.next('configCompleteId')
      return peer
    },
    async sent() {
      const { payloadVariant } = await device.next('packet')
      if (payloadVariant.case !== 'packet') throw new Error('no packet')
      return payloadVariant.value
    },
    packetsSent: () =>
      device.received.flatMap(({ payloadVariant }) => (payloadVariant.case === 'packet' ? [payloadVariant.value] : [])),
    hears: (packet) => device.send(fromRadio({ case: 'packet', value: create(MeshPacketSchema, packet) })),
    answers(requestId, error = Routing_Error.NONE, from = OWN) {
      const payload = toBinary(RoutingSchema, create(RoutingSchema, { variant: { case: 'errorReason', value: error } }))
      const value = { portnum: PortNum.ROUTING_APP, payload, requestId }
      const signal = from === OWN ? {} : { rxRssi: -70 }
      port.hears({ from, to: OWN, id: (requestId ^ from) >>> 0, ...signal, payloadVariant: { case: 'decoded', value } })
    },
    requests: () =>
      store.sqlite
        .prepare(`select details, ip, username from audit_log where action = 'app_requested' order by id`)
        .all()
        .map((row) => {
          const { details, ip, username } = Object(row)
          return { ...JSON.parse(details), ip, username }
        }),
    async stop() {
      for (const peer of peers) peer.close()
      await radio.close()
      await device.stop()
      store.close()
    },
  }
  return port
}

type Variant = NonNullable<Exclude<MessageInitShape<typeof ToRadioSchema>, ToRadio>['payloadVariant']>
type Case = NonNullable<FromRadio['payloadVariant']['case']>

/** What an app says of its packet. */
export type AppFields = Partial<Omit<MeshPacket, '$typeName' | '$unknown' | 'payloadVariant'>> & {
  readonly payloadVariant?:
    | { readonly case: 'decoded'; readonly value: Exclude<MessageInitShape<typeof DataSchema>, Data> }
    | { readonly case: 'encrypted'; readonly value: Uint8Array }
}

/** An app on the other end of a socket. */
export type AppPeer = {
  /** Everything so far, in order. */
  readonly received: readonly FromRadio[]
  send(variant: Variant): void
  /** A packet from the app; returns its id. */
  packet(packet: AppFields): number
  text(text: string, packet?: AppFields): number
  /** An admin message to the radio; returns its id. */
  admin(payload: Uint8Array | MessageInitShape<typeof AdminMessageSchema>['payloadVariant']): number
  sendRaw(bytes: Uint8Array): void
  /** The next message of this kind that was not asked for yet. */
  next(variant: Case, matches?: (value: FromRadio) => boolean): Promise<FromRadio>
  /** The routing error with which a packet was answered. */
  refusal(id: number): Promise<number>
  /** Until the service has handled all that was sent before. */
  settled(): Promise<void>
  isClosed(): boolean
  closed(): Promise<void>
  /** Reads nothing from now on. */
  stall(): void
  close(): void
}

let lastId = 1000

export async function connectApp(port: number): Promise<AppPeer> {
  const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
  const received: FromRadio[] = []
  const unread: FromRadio[] = []
  const wakers = new Set<() => void>()
  let isClosed = false
  const wake = () => {
    for (const each of wakers) each()
  }
  const decoder = createFrameDecoder(decodeFromRadio)
  socket.on('data', (bytes) => {
    for (const { message } of decoder.push(bytes, 0)) {
      received.push(message)
      unread.push(message)
    }
    wake()
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    isClosed = true
    wake()
  })
  await once(socket, 'connect')
  const wait = <T>(find: () => T | null) =>
    new Promise<T>((resolve) => {
      const check = () => {
        const found = find()
        if (found === null) return
        wakers.delete(check)
        resolve(found)
      }
      wakers.add(check)
      check()
    })
  const peer: AppPeer = {
    received,
    send: (payloadVariant) =>
      peer.sendRaw(encodeFrame(toBinary(ToRadioSchema, create(ToRadioSchema, { payloadVariant })))),
    packet(packet) {
      const id = packet.id ?? (lastId += 1)
      peer.send({ case: 'packet', value: create(MeshPacketSchema, { to: 0xffffffff, hopLimit: 3, ...packet, id }) })
      return id
    },
    text: (text, packet = {}) =>
      peer.packet({
        wantAck: true,
        ...packet,
        payloadVariant: {
          case: 'decoded',
          value: { portnum: PortNum.TEXT_MESSAGE_APP, payload: new TextEncoder().encode(text) },
        },
      }),
    admin(message) {
      const payload =
        message instanceof Uint8Array
          ? message
          : toBinary(
              AdminMessageSchema,
              create(AdminMessageSchema, message === undefined ? {} : { payloadVariant: message }),
            )
      const value = { portnum: PortNum.ADMIN_APP, payload, wantResponse: true }
      return peer.packet({ to: OWN, payloadVariant: { case: 'decoded', value } })
    },
    sendRaw: (bytes) => void socket.write(bytes),
    next: (variant, matches = () => true) =>
      wait(() => {
        const index = unread.findIndex((each) => each.payloadVariant.case === variant && matches(each))
        return index === -1 ? null : (unread.splice(index, 1)[0] ?? null)
      }),
    async refusal(id) {
      const message = await peer.next('packet', ({ payloadVariant: { value } }) => requestOf(value) === id)
      return routingOf(message)
    },
    async settled() {
      const nonce = (lastId += 1)
      peer.send({ case: 'wantConfigId', value: nonce })
      await peer.next('configCompleteId', ({ payloadVariant: { value } }) => value === nonce)
    },
    isClosed: () => isClosed,
    async closed() {
      await wait(() => (isClosed ? true : null))
    },
    stall: () => void socket.pause(),
    close: () => socket.destroy(),
  }
  return peer
}

function requestOf(value: unknown): number | null {
  const packet = Object(value)
  return packet.payloadVariant?.case === 'decoded' ? packet.payloadVariant.value.requestId : null
}

/** The routing error in a packet; throws for others. */
export function routingOf({ payloadVariant }: FromRadio): number {
  const data = payloadVariant.case === 'packet' ? payloadVariant.value.payloadVariant : null
  if (data?.case !== 'decoded' || data.value.portnum !== PortNum.ROUTING_APP) throw new Error('no routing answer')
  const [, error = 0] = data.value.payload
  return error
}
