import { parseConfig } from '../../../src/app/config/config.ts'
import type { Ports } from '../../../src/app/base/context.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { createEvents } from '../../../src/app/mesh/live/events.ts'
import { openDatabase, type SqliteStore } from '../../../src/node/database.ts'
import { type NodeRadio, openRadio } from '../../../src/node/radio/radio.ts'
import { type Client, createTestApp, START, type TestApp } from '../app.ts'
import { type ConfigDevice, type SettingsInit, startConfigDevice } from './config-device.ts'
import { createManualClock } from '../manual-clock.ts'
import { fromRadio } from './device.ts'
import { until } from './service.ts'

export const OWN = 0xa0cb0001

export const CHANNEL_KEY = new Uint8Array(32).fill(7)

/** Settings of an invented radio. */
export const SETTINGS: SettingsInit = {
  owner: { id: '!a0cb0001', longName: 'Test Radio', shortName: 'TR', publicKey: new Uint8Array(32).fill(1) },
  channels: [
    { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } },
    { index: 1, role: 2, settings: { name: 'Rescue', psk: CHANNEL_KEY, moduleSettings: { positionPrecision: 13 } } },
    { index: 2, role: 0 },
  ],
  configs: [
    { payloadVariant: { case: 'device', value: { role: 2, tzdef: 'CET-1' } } },
    // Two flags, and a bit without a name.
    { payloadVariant: { case: 'position', value: { positionFlags: 0x403 } } },
    { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true } } },
    { payloadVariant: { case: 'network', value: { wifiEnabled: true, wifiSsid: 'home', wifiPsk: 'wifi secret' } } },
    { payloadVariant: { case: 'security', value: { publicKey: CHANNEL_KEY, privateKey: CHANNEL_KEY } } },
    { payloadVariant: { case: 'sessionkey', value: {} } },
  ],
  modules: [{ payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: 'mqtt secret' } } }],
}

type Answer = { readonly status: number; readonly body: Record<string, unknown>; readonly text: string }

/** The service with a radio whose settings can be changed; the test controls time. */
export type ConfigService = {
  readonly app: TestApp
  readonly device: ConfigDevice
  readonly radio: NodeRadio
  readonly clock: ReturnType<typeof createManualClock>
  readonly store: SqliteStore
  readonly admin: Client
  /** All lines of the radio's log, at debug. */
  readonly lines: string[]
  readonly source: string
  ask(method: string, path: string, body?: object, client?: Client): Promise<Answer>
  read(section: string): Promise<Record<string, unknown>>
  /** Sends a change that must be accepted. */
  change(section: string, body: object): Promise<Answer>
  /** The outcome of the section's latest change, once it has one; time advances by `stepMs` meanwhile. */
  outcome(section: string, stepMs?: number): Promise<Record<string, unknown>>
  untilConnected(stepMs?: number): Promise<void>
  /** Until the service has read everything that the radio has sent so far. */
  settle(): Promise<void>
  /** Another process on the same database and radio, and on radios at these ports as well. */
  restart(morePorts?: readonly number[]): Promise<NodeRadio>
  stop(): Promise<void>
}

const running: ConfigService[] = []

/** A service with a radio with these settings, until `afterEach(stopServices)`. */
export async function start(init?: SettingsInit): Promise<ConfigService> {
  const service = await startConfigService(init)
  running.push(service)
  return service
}

export async function stopServices(): Promise<void> {
  for (const each of running.splice(0)) await each.stop()
}

export async function startConfigService(
  init: SettingsInit = SETTINGS,
  options: {
    readonly file?: string
    readonly ports?: Partial<Ports>
    readonly env?: Record<string, string>
    /** Settings of its connections. */
    readonly radioEnv?: Record<string, string>
  } = {},
): Promise<ConfigService> {
  const endings: (() => unknown)[] = []
  const device = await startConfigDevice(OWN, init)
  endings.push(() => device.stop())
  const clock = createManualClock(START)
  const store = openDatabase(options.file ?? ':memory:')
  endings.push(() => store.close())
  const events = createEvents(clock)
  const lines: string[] = []
  const now = () => clock.now()
  const log = createLog({ level: 'debug', format: 'json', now, write: (line) => lines.push(line) })
  const open = (morePorts: readonly number[] = []) => {
    const targets = [device.port, ...morePorts].map((port) => `127.0.0.1:${port}`)
    const parsed = parseConfig({ MESHTASTIC_TCP: targets.join(), ...options.radioEnv })
    if (!parsed.ok) throw new Error(parsed.problems.join())
    const opened = openRadio({ config: parsed.config, store, log, clock, events })
    opened.start()
    endings.push(() => opened.close())
    return opened
  }
  let radio = open()
  const port: NodeRadio = {
    ...radio,
    links: () => radio.links(),
    devices: () => radio.devices(),
    hearings: (nodeNum) => radio.hearings(nodeNum),
    get remote() {
      return radio.remote
    },
  }
  const app = await createTestApp({
    store,
    ports: { radio: port, events, now, ...options.ports },
    env: options.env ?? {},
  })
  const admin = await app.admin()
  const ask: ConfigService['ask'] = async (method, path, body, client = admin) => {
    const answer = await client.send(method, path, body)
    const text = await answer.text()
    return { status: answer.status, body: Object(JSON.parse(text)), text }
  }
  const read = async (section: string) => (await ask('GET', `/api/configuration/${section}`)).body
  let polls = 0
  /** Time advances slowly while the radio may answer, so that no timeout overtakes an answer under way. */
  const pass = (stepMs: number) => {
    polls += 1
    if (polls % 5 === 0 || radio.links()[0]?.state !== 'connected') clock.advance(stepMs)
  }
  const untilConnected = (stepMs = 0) =>
    until(() => {
      pass(stepMs)
      const state = radio.links()[0]?.state
      if (state !== 'connected') throw new Error(`the link is ${state}`)
    })
  await untilConnected()
  return {
    app,
    device,
    get radio() {
      return radio
    },
    clock,
    store,
    admin,
    lines,
    source: `127.0.0.1:${device.port}`,
    ask,
    read,
    async change(section, body) {
      const answer = await ask('PUT', `/api/configuration/${section}`, body)
      if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`)
      return answer
    },
    async outcome(section, stepMs = 0) {
      let change: Record<string, unknown> = {}
      await until(async () => {
        pass(stepMs)
        change = Object((await read(section))['lastChange'])
        if (change['state'] === 'applying') throw new Error('still applying')
      })
      return change
    },
    untilConnected,
    async settle() {
      const queue = () => radio.links()[0]?.queue?.free
      await until(() => {
        // The answer to a heartbeat may come in between.
        device.send(fromRadio({ case: 'queueStatus', value: { free: 7, maxlen: 16 } }))
        if (queue() !== 7) throw new Error('not there yet')
      })
    },
    async restart(morePorts = []) {
      await radio.close()
      radio = open(morePorts)
      return radio
    },
    async stop() {
      for (const end of endings.splice(0).toReversed()) await end()
    },
  }
}
