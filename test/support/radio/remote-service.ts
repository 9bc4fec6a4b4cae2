import { expect } from 'vitest'
import { type ConfigService, SETTINGS, startConfigService } from './config-service.ts'
import type { SettingsInit } from './config-device.ts'
import { addRemoteNode, REMOTE, REMOTE_KEY, type RemoteNode } from './remote-node.ts'
import { until } from './service.ts'

export const WIFI_SECRET = 'remote wifi secret'
export const MQTT_SECRET = 'remote mqtt secret'
export const CHANNEL_SECRET = Uint8Array.from({ length: 32 }, (_, index) => 200 - index)
export const PRIVATE_SECRET = Uint8Array.from({ length: 32 }, (_, index) => 50 + index)
/** The public key of our radio. */
export const OUR_KEY = new Uint8Array(32).fill(7)

/** Settings of an invented node on a hill. */
export const REMOTE_SETTINGS: SettingsInit = {
  owner: { id: '!a0cb0042', longName: 'Hill', shortName: 'HL', publicKey: REMOTE_KEY },
  channels: Array.from({ length: 8 }, (_, index) =>
    index === 0
      ? { index, role: 1, settings: { psk: Uint8Array.of(1) } }
      : index === 1
        ? { index, role: 2, settings: { name: 'Rescue', psk: CHANNEL_SECRET } }
        : { index, role: 0 },
  ),
  configs: [
    { payloadVariant: { case: 'device', value: { role: 2, tzdef: 'CET-1' } } },
    { payloadVariant: { case: 'position', value: { positionBroadcastSecs: 900, gpsMode: 1 } } },
    { payloadVariant: { case: 'power', value: { lsSecs: 300 } } },
    { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true } } },
    { payloadVariant: { case: 'network', value: { wifiEnabled: true, wifiSsid: 'hut', wifiPsk: WIFI_SECRET } } },
    {
      payloadVariant: {
        case: 'security',
        value: { publicKey: REMOTE_KEY, privateKey: PRIVATE_SECRET, adminKey: [OUR_KEY] },
      },
    },
  ],
  modules: [{ payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: MQTT_SECRET } } }],
}

export type RemoteService = ConfigService & {
  readonly node: RemoteNode
  /** Names the node as own. */
  name(): Promise<void>
  overview(): Promise<Record<string, unknown>>
  /** Reads a section over the mesh; returns how that ended. */
  readOver(section: string): Promise<Record<string, unknown>>
  section(section: string): Promise<Record<string, unknown>>
  put(section: string, body: object): ReturnType<ConfigService['ask']>
  /** Sends a change that must be accepted; returns how it ended. */
  changeOver(section: string, body: object): Promise<Record<string, unknown>>
  /** How the latest action ended; time advances meanwhile. */
  ended(): Promise<Record<string, unknown>>
  /** The states of the latest action so far, from the log. */
  states(): string[]
}

const PATH = `/api/remote/${REMOTE}`

export async function startRemoteService(
  options: Parameters<typeof startConfigService>[1] = {},
  init: SettingsInit = SETTINGS,
): Promise<RemoteService> {
  const service = await startConfigService(init, options)
  const node = addRemoteNode(service.device, service.clock, REMOTE_SETTINGS)
  hear(service)
  const body = async (answer: ReturnType<ConfigService['ask']>, status: number) => {
    const found = await answer
    expect([found.status, found.text]).toStrictEqual([status, found.text])
    return found.body
  }
  const overview = () => body(service.ask('GET', PATH), 200)
  const ended = async () => {
    let action: Record<string, unknown> = {}
    let polls = 0
    await until(() => {
      polls += 1
      // Slowly, so that no time limit overtakes an answer under way.
      if (polls % 3 === 0) service.clock.advance(1000)
      const { settled_at: settledAt } = Object(latest(service))
      if (settledAt === null) throw new Error('not ended')
    })
    action = Object((await overview())['lastAction'])
    return action
  }
  const put: RemoteService['put'] = (section, change) => service.ask('PUT', `${PATH}/${section}`, change)
  return Object.assign(service, {
    node,
    async name() {
      await body(service.ask('PUT', PATH, { own: true }), 200)
    },
    overview,
    async readOver(section: string) {
      await body(service.ask('POST', PATH, { action: 'read', section }), 202)
      return ended()
    },
    section: (section: string) => body(service.ask('GET', `${PATH}/${section}`), 200),
    put,
    async changeOver(section: string, change: object) {
      await body(put(section, change), 202)
      return ended()
    },
    ended,
    states: () => statesIn(service),
  })
}

function latest({ store }: ConfigService): unknown {
  return store.sqlite.prepare('select * from remote_actions order by requested_at desc, rowid desc limit 1').get()
}

function statesIn({ lines }: ConfigService): string[] {
  return lines.flatMap((line) => {
    const { message, msg, state } = Object(JSON.parse(line))
    return (message ?? msg) === 'Remote administration' ? [String(state)] : []
  })
}

/** The service has heard the node: its name and key, one hop away. */
export function hear({ store, clock }: Pick<ConfigService, 'store' | 'clock'>, key = REMOTE_KEY): void {
  store.sqlite
    .prepare(
      `insert into nodes (node_num, long_name, short_name, public_key, first_heard, last_heard, hops_away)
        values (?, 'Hill', 'HL', ?, ?, ?, 1) on conflict do update set public_key = excluded.public_key`,
    )
    .run(REMOTE, Buffer.from(key).toString('base64'), clock.now(), clock.now())
}
