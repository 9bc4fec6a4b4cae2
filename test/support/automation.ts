import type { Heard } from '../../src/app/mesh/heard/heard.ts'
import type { LinkInfo, OutgoingKind, Radio } from '../../src/app/mesh/radios/radio.ts'
import type { Meter } from '../../src/app/system/metrics/meter.ts'
import { expect } from 'vitest'
import { createEngine, type Engine } from '../../src/app/automation/engine.ts'
import { AppError } from '../../src/app/http/errors.ts'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import type { LoraSettings } from '../../src/meshtastic/airtime.ts'
import { type Client, createTestApp, START, type TestApp } from './app.ts'
import { FAR, heard, LOCAL, myInfo, nodeInfo, packet, RADIO, seconds, telemetry, text } from './mesh/mesh.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export const ANNOUNCE = {
  kind: 'announce',
  name: 'Hello',
  enabled: true,
  when: { kind: 'interval', hours: 6 },
  channels: [0],
  text: 'Hello from {shortName}',
} as const

export const ACKNOWLEDGE = {
  kind: 'acknowledge',
  name: 'Ping',
  enabled: true,
  match: { words: ['ping'] },
  channels: [0],
  direct: true,
  answer: { kind: 'text', text: 'heard you, {senderShortName}' },
} as const

export const TRACEROUTE = {
  kind: 'traceroute',
  name: 'Ways',
  enabled: true,
  everyMinutes: 30,
  targets: { kind: 'oldest' },
} as const

export const SCHEDULE = {
  kind: 'schedule',
  name: 'Net',
  enabled: true,
  cron: '0 20 * * *',
  action: { kind: 'text', text: 'Net tonight' },
} as const

/** A radio that records its sent packets in a list. */
export type PortRadio = Radio & {
  readonly sent: { kind: OutgoingKind; source: string; nodeNum: number; packetId: number }[]
  state: LinkInfo['state']
  txEnabled: boolean | null
  isFull: boolean
  loraSettings: LoraSettings | null
}

function createPortRadio(): PortRadio {
  let packetId = 0
  const radio: PortRadio = {
    sent: [],
    state: 'connected',
    txEnabled: true,
    isFull: false,
    loraSettings: null,
    waiting: () => 0,
    sending: () => 0,
    devices: () => [],
    collector: () => null,
    lora: () => radio.loraSettings,
    withdraw: () => {},
    hearings: () => [],
    links: () => [
      {
        ...RADIO,
        state: radio.state,
        since: START,
        lastFrameAt: START,
        reconnects: 0,
        reason: null,
        radio: { nodeNum: LOCAL, firmwareVersion: '2.8.0', hwModel: null, role: null },
        queue: null,
        txEnabled: radio.txEnabled,
        notice: null,
      },
    ],
    reserve(kind) {
      if (radio.state !== 'connected') throw new AppError('radio_unavailable')
      if (radio.isFull) throw new AppError('queue_full')
      packetId += 1
      const place = { source: RADIO.name, nodeNum: LOCAL, packetId, hopLimit: 3 }
      return { ...place, send: () => void radio.sent.push({ kind, ...place }), release: () => {} }
    },
  }
  return radio
}

export type TestAutomation = {
  readonly app: TestApp
  readonly admin: Client
  readonly radio: PortRadio
  /** Saves a rule; returns its id. */
  add(rule: object): Promise<number>
  get(id: number): Promise<Record<string, unknown>>
  /** Runs of an automation, newest first, as in the API. */
  runs(id: number): Promise<Record<string, unknown>[]>
  /** `outcome reason` of the latest run. */
  lastRun(id: number): Promise<string>
  /** The radio hears something; it is stored, and the rules see it. */
  say(words: string, more?: Parameters<typeof packet>[1] & { data?: object; replayed?: boolean }): Promise<void>
  hear(...batch: Heard[]): Promise<void>
  /** The radio reports its channel utilization, in percent. */
  measure(channelUtilization: number): Promise<void>
  runDue(): Promise<number | null>
  /** Advances time from tick to tick as the service does; returns the number of packets sent. */
  pass(ms: number): Promise<number>
  /** Another process on the same database. */
  restart(): void
  /** Sent texts, oldest first. */
  texts(): string[]
}

/** The administrator, who signs in again after some days. */
async function patientAdmin(app: TestApp): Promise<Client> {
  let client = await app.admin()
  return {
    cookie: null,
    async send(...request) {
      const answer = await client.send(...request)
      if (answer.status !== 401) return answer
      client = await app.admin()
      return client.send(...request)
    },
  }
}

/** The app with a radio of node LOCAL, which hears a node FAR, and rules that only the test runs. */
export async function createTestAutomation(meter: Meter | null = null): Promise<TestAutomation> {
  const radio = createPortRadio()
  const app = await createTestApp({ ports: { radio, meter } })
  const admin = await patientAdmin(app)
  const ingest = createIngest(app.store)
  let engine: Engine = createEngine(app.ports)
  const hear = async (...batch: Heard[]) => {
    const { suspected } = await ingest.store(batch)
    await engine.hear(batch, suspected)
  }
  const ask = async (path: string) => {
    const answer = await admin.send('GET', path)
    expect(answer.status, path).toBe(200)
    return Object(await answer.json())
  }
  await hear(
    heard(myInfo),
    heard(nodeInfo({ num: LOCAL, user: { longName: 'Test Radio', shortName: 'TR' } })),
    heard(nodeInfo({ num: FAR, user: { longName: 'Far Hill', shortName: 'FH' } })),
    heard(packet(text('good morning'))),
  )
  return {
    app,
    admin,
    radio,
    hear,
    async add(rule) {
      const answer = await admin.send('POST', '/api/automation', rule)
      const body = Object(await answer.json())
      expect(answer.status, JSON.stringify(body)).toBe(201)
      return Number(body.automation.id)
    },
    get: async (id) => (await ask(`/api/automation/${id}`)).automation,
    runs: async (id) => (await ask(`/api/automation/${id}/runs`)).runs,
    async lastRun(id) {
      const { lastRun } = (await ask(`/api/automation/${id}`)).automation
      return lastRun === null ? 'none' : `${lastRun.outcome} ${lastRun.reason ?? ''}`.trim()
    },
    say: (words, { data = {}, replayed = false, ...more } = {}) =>
      hear(heard(packet(text(words, data), more), { at: app.clock.now, replayed })),
    measure(channelUtilization) {
      const variant = { case: 'deviceMetrics', value: { channelUtilization } } as const
      const measured = packet(telemetry({ time: seconds(app.clock.now), variant }), { from: LOCAL, rxRssi: undefined })
      return hear(heard(measured, { at: app.clock.now }))
    },
    runDue: () => engine.runDue(),
    async pass(ms) {
      const before = radio.sent.length
      const end = app.clock.now + ms
      while (app.clock.now < end) {
        const next = await engine.runDue()
        app.clock.now = Math.min(Math.max(next ?? end, app.clock.now + 1), end)
      }
      await engine.runDue()
      return radio.sent.length - before
    },
    restart() {
      engine = createEngine(app.ports)
    },
    texts: () =>
      app.store.sqlite
        .prepare("select text from messages where direction = 'out' order by id")
        .pluck()
        .all()
        .map(String),
  }
}
