import type { HearBatch } from '../../../src/app/mesh/heard/heard.ts'
import { expect } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { expandPsk, hashChannel } from '../../../src/meshtastic/crypto/channel.ts'
import { Config_LoRaConfig_ModemPreset as Preset } from '../../../src/meshtastic/gen/config_pb.ts'
import { identifyChannel, numberChannel } from '../../../src/meshtastic/channel-identity.ts'
import { type ChannelKey, DEFAULT_CHANNEL_KEY } from '../../../src/meshtastic/link/mqtt-envelope.ts'
import { startAutomation } from '../../../src/node/automation.ts'
import { type NodeRadio, openRadio } from '../../../src/node/radio/radio.ts'
import { type Client, createTestApp, START } from '../app.ts'
import { createManualClock } from '../manual-clock.ts'
import { envelopeOf, type MqttBroker, startMqttBroker } from '../radio/mqtt-broker.ts'
import { fromRadio, type FromRadioVariant, type RadioDevice, startRadioDevice } from '../radio/device.ts'
import { until } from '../radio/service.ts'
import { textPacket } from './mesh.ts'
import { openMemoryStore } from '../memory-store.ts'

export const DEFAULT_PSK = Uint8Array.of(1)
export const CLUB_PSK = new Uint8Array(32).fill(7).fill(9, 1, 2)
export const CLUB: ChannelKey = { name: 'Rescue', key: expandPsk(CLUB_PSK) }
export const LONG_FAST = 'LongFast'

type Slot = { readonly name?: string; readonly psk?: Uint8Array; readonly off?: boolean }
/** What a radio reports; may change between two handshakes. */
export type Told = {
  channels: readonly Slot[]
  preset?: Preset
  txEnabled?: boolean
  nodes?: readonly Extract<FromRadioVariant, { case: 'nodeInfo' }>['value'][]
}

function handshakeOf(nodeNum: number, told: Told): (nonce: number) => Uint8Array[] {
  return (nonce) => [
    fromRadio({ case: 'myInfo', value: { myNodeNum: nodeNum } }),
    ...told.channels.map(({ name = '', psk = DEFAULT_PSK, off }, index) =>
      fromRadio({ case: 'channel', value: { index, role: off ? 0 : index === 0 ? 1 : 2, settings: { name, psk } } }),
    ),
    ...(told.nodes ?? []).map((value) => fromRadio({ case: 'nodeInfo', value })),
    fromRadio({
      case: 'config',
      value: {
        payloadVariant: {
          case: 'lora',
          value: {
            usePreset: true,
            modemPreset: told.preset ?? Preset.LONG_FAST,
            hopLimit: 3,
            txEnabled: told.txEnabled ?? true,
          },
        },
      },
    }),
    fromRadio({ case: 'configCompleteId', value: nonce }),
  ]
}

type Club = {
  readonly devices: readonly RadioDevice[]
  readonly broker: MqttBroker
  readonly admin: Client
  readonly clock: ReturnType<typeof createManualClock>
  readonly radio: () => NodeRadio
  /** A packet heard by radio `device` in its slot. */
  byRadio(id: number, slot?: number, device?: number): void
  byBroker(id: number, channel?: ChannelKey): Promise<void>
  get(path: string): Promise<Record<string, unknown>>
  /** Number of the channel by text; `m1` is packet 1. */
  numbers(): Promise<Record<string, number>>
  untilHeard(receptions: number): Promise<void>
  /** Numbers and names of enabled channels. */
  channels(): Promise<(readonly [number, string])[]>
  untilLinks(...states: string[]): Promise<void>
  /** Another process on the same database. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Radios that report this, and a broker; the rules of automation run. */
export async function startClub(
  radios: readonly Told[],
  { env = {}, refusing = false }: { env?: Readonly<Record<string, string>>; refusing?: boolean } = {},
): Promise<Club> {
  const endings: (() => unknown)[] = []
  const devices = await Promise.all(
    radios.map((told, i) => startRadioDevice({ handshake: (nonce) => handshakeOf(0xa0cb0001 + i, told)(nonce) })),
  )
  for (const device of devices) device.refuse(refusing)
  const broker = await startMqttBroker()
  endings.push(() => Promise.all([...devices.map((device) => device.stop()), broker.stop()]))
  const parsed = parseConfig({
    MESHTASTIC_TCP: devices.map(({ port }) => `127.0.0.1:${port}`).join(','),
    MESHTASTIC_MQTT_URL: broker.url,
    MESHTASTIC_MQTT_KEYS: `Rescue=${Buffer.from(CLUB_PSK).toString('base64')}`,
    ...env,
  })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const clock = createManualClock(START)
  const store = openMemoryStore()
  endings.push(() => store.close())
  let hear: HearBatch = () => {}
  const tell = () => {}
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const open = () => {
    const opened = openRadio({ config: parsed.config, store, log, clock })
    opened.start((batch, suspected) => hear(batch, suspected))
    return opened
  }
  let radio = open()
  endings.push(() => radio.close())
  const app = await createTestApp({ store, ports: { radio: proxyOf(() => radio), now: () => clock.now() } })
  const current = proxyOf(() => radio)
  const automation = startAutomation({ store, radio: current, events: null, log, now: () => clock.now() }, clock)
  hear = automation.hear
  endings.push(() => automation.stop())
  const admin = await app.admin()
  const get = async (path: string) => Object(await (await admin.send('GET', path)).json())
  const untilLinks = (...states: string[]) =>
    until(() => {
      clock.advance(100)
      expect(radio.links().map(({ state }) => state)).toStrictEqual(states)
    })
  return {
    devices,
    broker,
    admin,
    clock,
    radio: () => radio,
    byRadio: (id, slot = 0, device = 0) =>
      devices[device]?.send(fromRadio({ case: 'packet', value: { ...textPacket(id, `m${id}`), channel: slot } })),
    byBroker: async (id, channel = { ...DEFAULT_CHANNEL_KEY, name: LONG_FAST }) =>
      broker.publish(
        `msh/EU_868/2/e/${channel.name}/!0000000a`,
        await envelopeOf(textPacket(id, `m${id}`), 0xa, channel),
      ),
    get,
    async numbers() {
      const { messages } = await get('/api/messages')
      const found: { text: string; channel: number }[] = messages
      return Object.fromEntries(found.map((message) => [message.text, message.channel]))
    },
    untilHeard: (receptions) =>
      until(() => {
        clock.advance(100)
        expect(store.sqlite.prepare('select count(*) from receptions').pluck().get()).toBe(receptions)
      }),
    async channels() {
      const { channels } = await get('/api/channels')
      const found: { index: number; name: string; role: string }[] = channels
      return found.flatMap(({ index, name, role }) => (role === 'DISABLED' ? [] : [[index, name] as const]))
    },
    untilLinks,
    async restart() {
      await radio.close()
      radio = open()
    },
    async stop() {
      for (const end of endings.splice(0).toReversed()) await end()
    },
  }
}

/** The radios of the current process. */
function proxyOf(current: () => NodeRadio): NodeRadio {
  return {
    links: () => current().links(),
    devices: () => current().devices(),
    virtualNodes: () => current().virtualNodes(),
    waiting: () => current().waiting(),
    sending: () => current().sending(),
    collector: () => current().collector(),
    reserve: (...asked) => current().reserve(...asked),
    withdraw: (isStale) => current().withdraw(isStale),
    hearings: (nodeNum) => current().hearings(nodeNum),
    lora: () => current().lora(),
    start: (onHeard) => current().start(onHeard),
    close: () => current().close(),
  }
}

/** A channel with this hash that everybody can read. */
export function findOpenChannel(hash: number): ChannelKey {
  const { key } = DEFAULT_CHANNEL_KEY
  for (const first of LETTERS) {
    const found = LETTERS.find((second) => hashChannel(`Hut${first}${second}`, key) === hash)
    if (found !== undefined) return { name: `Hut${first}${found}`, key }
  }
  throw new Error('no such channel')
}

/** On a channel that no radio has. */
export const numberOf = ({ name, key }: ChannelKey) => numberChannel(identifyChannel(hashChannel(name, key), name))

const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789']
