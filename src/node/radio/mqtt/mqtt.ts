import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import { readFileSync } from 'node:fs'
import { createSecureContext, rootCertificates } from 'node:tls'
import type { IClientOptions, IPublishPacket, MqttClient } from 'mqtt'
import { shownValue } from '../../../app/config/shown.ts'
import { StartRefused } from '../../start/problems.ts'
import { createTimer, type Clock, systemClock } from '../../clock.ts'
import type { Link } from '../link.ts'
import { createMqttReader, type MqttReader, type MqttReaderOptions } from './reader.ts'
import { explainMqttError } from './reasons.ts'
import type { ReceivedEvent } from '../session.ts'
import { LINK_TIMINGS, type LinkTimings } from '../timings.ts'
import { backOff } from '../../../shared/back-off.ts'

export type MqttLinkOptions = MqttReaderOptions & {
  readonly name: string
  /** `mqtt:`, `mqtts:`, `ws:` or `wss:`, with user name and password if the broker wants them. */
  readonly url: string
  /** Certificates in PEM form that are trusted in addition to the system's. */
  readonly ca?: string | null
  /** Topic filter, e.g. `msh/#`. */
  readonly topic: string
  /** Gets events in order; the next message waits for it. Must not throw. */
  onFrames(batch: readonly ReceivedEvent[]): void | Promise<void>
  /** Called after each change of state. */
  onState?(info: LinkInfo): void
  readonly clock?: Clock
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  readonly timings?: Partial<LinkTimings>
}

/** State kept from one connection to the next. */
type Memory = {
  state: LinkInfo['state']
  since: number
  reason: string | null
  lastFrameAt: number | null
  connections: number
  failures: number
  connectedAt: number | null
}

/** A subscription to a broker that is renewed until `stop`. It only listens. */
export function createMqttLink(options: MqttLinkOptions): Link {
  const clock = options.clock ?? systemClock
  const random = options.random ?? Math.random
  const timings: LinkTimings = { ...LINK_TIMINGS, ...options.timings }
  const reader = createMqttReader({ ...options, clock })
  const retry = createTimer(clock)
  const memory: Memory = {
    state: 'stopped',
    since: clock.now(),
    reason: null,
    lastFrameAt: null,
    connections: 0,
    failures: 0,
    connectedAt: null,
  }
  let current: Subscription | null = null

  const info = (): LinkInfo => describe(options.name, memory)
  const enter = (state: LinkInfo['state'], reason: string | null) => {
    if (state !== memory.state) memory.since = clock.now()
    Object.assign(memory, { state, reason } satisfies Partial<Memory>)
    options.onState?.(info())
  }
  const open = () => {
    enter('connecting', memory.reason)
    current = subscribe(options, timings, reader, {
      onOpen() {
        memory.connections += 1
        memory.connectedAt = clock.now()
        enter('connected', null)
      },
      async onEvents(batch) {
        memory.lastFrameAt = clock.now()
        if (batch.length > 0) await options.onFrames(batch)
      },
      onEnd(reason) {
        current = null
        // The pauses also grow for a broker that accepts connections and closes them again.
        if (memory.connectedAt !== null && clock.now() - memory.connectedAt >= timings.stableMs) memory.failures = 0
        memory.connectedAt = null
        const { backoffFirstMs: firstMs, backoffMaxMs: mostMs } = timings
        retry.start(backOff(memory.failures, { firstMs, mostMs, jitter: 0.75 + random() / 2 }), open)
        memory.failures += 1
        enter('waiting', reason)
      },
    })
  }
  return {
    info,
    start() {
      if (memory.state === 'stopped') open()
    },
    stop() {
      retry.stop()
      current?.close()
      current = null
      enter('stopped', null)
    },
    send: () => false,
    expectRestart() {},
    readAgain: () => false,
  }
}

/** The certificates of the file in PEM format that a variable names. Throws StartRefused if there are none. */
export function readAuthorities(path: string, variable = 'MESHTASTIC_MQTT_CA'): string {
  try {
    const pem = readFileSync(path, 'utf8')
    createSecureContext({ ca: pem })
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem
    throw new Error('no certificate')
  } catch (error) {
    const expected = 'expected a file of certificates in PEM form'
    throw new StartRefused(`${variable}: found ${shownValue(path)}, ${expected}`, { cause: error })
  }
}

function describe(name: string, memory: Memory): LinkInfo {
  const { state, since, reason, lastFrameAt, connections } = memory
  const reconnects = Math.max(0, connections - 1)
  return {
    name,
    kind: 'mqtt',
    state,
    since,
    lastFrameAt,
    reconnects,
    reason,
    radio: null,
    queue: null,
    txEnabled: null,
    notice: null,
  }
}

type Subscription = { close(): void }

type SubscriptionEvents = {
  onOpen(): void
  /** Called for each message, even if the service does not use it. */
  onEvents(batch: readonly ReceivedEvent[]): Promise<void>
  /** Called once, as the last event; not after `close`. */
  onEnd(reason: string): void
}

/** One connection to the broker, from opening to its end. The first one loads the library. */
function subscribe(
  { url, topic, ca = null }: MqttLinkOptions,
  timings: LinkTimings,
  reader: MqttReader,
  events: SubscriptionEvents,
): Subscription {
  let isOver = false
  let client: MqttClient | null = null
  let reason = 'the broker closed the connection'
  const close = () => {
    isOver = true
    // A closed client may still emit a socket error, which must be handled.
    client?.removeAllListeners().on('error', () => {})
    client?.end(true)
  }
  const end = (why: string) => {
    if (isOver) return
    close()
    events.onEnd(why)
  }
  const take = async ({ topic: at, payload, retain }: IPublishPacket) => {
    const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : Uint8Array.from(payload)
    const batch = isOver ? [] : await reader({ topic: at, payload: bytes, isRetained: retain })
    if (!isOver) await events.onEvents(batch)
  }
  const connect = async () => {
    const { default: mqtt } = await import('mqtt')
    if (isOver) return
    const made = mqtt.connect({
      ...addressOf(url),
      ...settingsOf(timings),
      ...(ca !== null && { ca: [...rootCertificates, ca] }),
    })
    client = made
    made.on('error', (error) => {
      reason = explainMqttError(error)
    })
    made.on('close', () => end(reason))
    made.on('connect', () => {
      made.subscribe(topic, { qos: 1 }, (error, granted) => {
        if (isOver) return
        if (error !== null || granted?.some(({ qos }) => qos > 2) === true) end(`the broker refuses the topic ${topic}`)
        else events.onOpen()
      })
    })
    const watch = watchFlood(made, timings.heartbeatMs)
    // The library accepts the next message only after this call back. That keeps the order, and a flood waits in the
    // socket.
    made.handleMessage = (message, proceed) => {
      watch()
      take(message).then(() => proceed(), failWith(end))
    }
  }
  connect().catch(failWith(end))
  return { close }
}

/** The answer to a ping waits behind a flood of messages, so messages also show that the broker is alive. */
function watchFlood(client: MqttClient, heartbeatMs: number): () => void {
  let seenAt = systemClock.monotonic()
  return () => {
    if (systemClock.monotonic() - seenAt < heartbeatMs / 2) return
    seenAt = systemClock.monotonic()
    client.sendPing()
    client.reschedulePing(true)
  }
}

function failWith(end: (reason: string) => void) {
  return (error: unknown) => end(error instanceof Error ? error.message : 'the connection to the broker failed')
}

const PROTOCOLS = ['mqtt', 'mqtts', 'ws', 'wss'] as const

// The library separates user name and password at the last colon, but a password may contain one.
export function addressOf(url: string): IClientOptions {
  const { protocol, hostname, port, pathname, search, username, password } = new URL(url)
  const isWeb = protocol.startsWith('ws')
  return {
    protocol: PROTOCOLS.find((name) => `${name}:` === protocol) ?? 'mqtt',
    host: isWeb ? hostname : hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port === '' ? {} : { port: Number(port) }),
    ...(isWeb ? { path: pathname + search } : {}),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  }
}

/** The link itself reconnects. */
function settingsOf({ connectMs, heartbeatMs }: LinkTimings): IClientOptions {
  const keepalive = Math.max(1, Math.round(heartbeatMs / 1000))
  return { reconnectPeriod: 0, connectTimeout: connectMs, keepalive, resubscribe: false }
}
