import { alertsOnBatch } from '../../src/app/alerts/findings/on-batch.ts'
import { evaluateRules } from '../../src/app/alerts/findings/evaluate.ts'
import { deliverDue, tidyOutbox } from '../../src/app/alerts/outbox/outbox.ts'
import { type Mail, type Outbound, type OutboundRequest, SendFailure } from '../../src/app/base/outgoing/ports.ts'
import type { LinkInfo, Radio } from '../../src/app/mesh/radios/radio.ts'
import { createIngest, type Ingest } from '../../src/app/mesh/ingest/ingest.ts'
import type { SqliteStore } from '../../src/node/database.ts'
import { type Client, createTestApp, START, type TestApp } from './app.ts'
import { RADIO } from './mesh/mesh.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** A rule about the batteries of all nodes. */
export const BATTERY = {
  kind: 'metric',
  name: 'Battery',
  nodes: { kind: 'all' },
  metric: 'deviceMetrics.batteryLevel',
  is: 'below',
  limit: 20,
  hysteresis: 5,
  forMinutes: 10,
} as const

/** A rule about all nodes that come within 1 km of 50° N, 10° E. */
export const AREA = {
  kind: 'area',
  name: 'Area',
  nodes: { kind: 'all' },
  when: 'enters',
  shape: { kind: 'circle', latitude: 50, longitude: 10, metres: 1000 },
} as const

/** A link whose state the test sets. */
export type TestLink = { name: string; state: LinkInfo['state']; since: number }

/** The app with rules that are evaluated, and messages that are sent, when the test says so. */
export type TestAlerts = {
  readonly app: TestApp
  readonly ingest: Ingest
  readonly admin: Client
  readonly links: TestLink[]
  /** When the service began to watch. */
  startedAt: number
  /** Messages sent to destinations, unchanged. */
  readonly sent: OutboundRequest[]
  /** Their bodies. */
  bodies(): { type: string; data: { title: string; text: string; total: number; alerts: unknown[] } }[]
  /** The answer of the receiver. */
  answer: (request: OutboundRequest) => { status: number; retryAfterMs: number | null }
  /** Advances time minute by minute, as the service does. */
  pass(ms: number): Promise<void>
  /** Evaluates rules and sends once. */
  look(): Promise<void>
  webhook(client?: Client): Promise<number>
  rule(rule: object, client?: Client): Promise<number>
  alerts(client?: Client): Promise<Record<string, unknown>[]>
}

/** `outbound`: replaces the one that only records what is sent. */
export async function createTestAlerts({
  outbound: other,
  mail = null,
  env = {},
  store,
}: {
  outbound?: Outbound
  mail?: Mail | null
  env?: Record<string, string>
  store?: SqliteStore
} = {}): Promise<TestAlerts> {
  const links: TestLink[] = [{ name: RADIO.name, state: 'connected', since: START - DAY }]
  const sent: OutboundRequest[] = []
  const outbound: Outbound = {
    send: async (request) => {
      sent.push(request)
      return test.answer(request)
    },
    read: async () => {
      throw new SendFailure('alerts read nothing')
    },
  }
  const app = await createTestApp({
    env,
    ports: { outbound: other ?? outbound, mail, radio: radioOf(links) },
    ...(store !== undefined && { store }),
  })
  const admin = await app.admin()
  const look = async () => {
    await evaluateRules({ ...app.ports, startedAt: test.startedAt }, async () => true)
    await tidyOutbox(app.ports)
    while ((await deliverDue(app.ports)) > 0);
  }
  const made = async (client: Client, path: string, body: object, key: string): Promise<number> => {
    const answer = await client.send('POST', path, body)
    const json = Object(await answer.json())
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(json)}`)
    return Number(json[key].id)
  }
  const test: TestAlerts = {
    app,
    ingest: createIngest(app.store, { onBatch: alertsOnBatch }),
    admin,
    links,
    sent,
    bodies: () => sent.map(({ body }) => JSON.parse(String(body))),
    startedAt: START - DAY,
    answer: () => ({ status: 200, retryAfterMs: null }),
    look,
    async pass(ms) {
      for (let left = ms; left > 0; left -= MINUTE) {
        app.clock.advance(Math.min(left, MINUTE))
        await look()
      }
    },
    webhook: (client = admin) =>
      made(
        client,
        '/api/alerts/destinations',
        { kind: 'webhook', name: 'Hook', settings: { url: 'https://hook.example.org/x' } },
        'destination',
      ),
    rule: (rule, client = admin) => made(client, '/api/alerts/rules', rule, 'rule'),
    alerts: async (client = admin) => Object(await (await client.send('GET', '/api/alerts?limit=500')).json()).alerts,
  }
  return test
}

function radioOf(links: readonly TestLink[]): Radio {
  return {
    links: () =>
      links.map((link): LinkInfo => {
        const rest = {
          lastFrameAt: null,
          reconnects: 0,
          reason: null,
          radio: null,
          queue: null,
          txEnabled: null,
          notice: null,
        }
        return { ...rest, ...link, kind: 'tcp' }
      }),
    devices: () => [],
    waiting: () => 0,
    sending: () => 0,
    collector: () => null,
    reserve: () => {
      throw new Error('nothing is sent here')
    },
    withdraw: () => {},
    hearings: () => [],
    lora: () => null,
  }
}
