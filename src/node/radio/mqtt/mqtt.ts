import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { IClientOptions, IPublishPacket, MqttClient } from 'mqtt'
import { shownValue } from '../../../app/config/shown.ts'
import { StartRefused } from '../../start/problems.ts'
import { type Clock, systemClock } from '../../clock.ts'
import { createFeedLink, type Subscription, type SubscriptionEvents } from '../feeds/feed-link.ts'
import type { Link } from '../link.ts'
import { createMqttReader, type MqttReader, type MqttReaderOptions } from './reader.ts'
import { explainMqttError } from './reasons.ts'
import { trustOf } from './trust.ts'
import type { ReceivedEvent } from '../session.ts'
import { LINK_TIMINGS, type LinkTimings } from '../timings.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

export type MqttLinkOptions = MqttReaderOptions & {
  readonly name: string
  /** `mqtt:`, `mqtts:`, `ws:` or `wss:`; it may contain user name and password. */
  readonly url: string
  /** Instead of those in the URL. */
  readonly login?: { readonly username: string; readonly password: string } | null
  /** Certificates in PEM form that are trusted in addition to the system's. */
  readonly ca?: string | null
  /** SHA-256 of the only certificate that is accepted, whoever issued it, as hexadecimal digits. */
  readonly fingerprint?: string | null
  /** Topic filters, e.g. `msh/#`. */
  readonly topics: readonly string[]
  /** Gets events in order; the next message waits for it. Must not throw. */
  onFrames(batch: readonly ReceivedEvent[]): void | Promise<void>
  /** Called after each change of state. */
  onState?(info: LinkInfo): void
  readonly clock?: Clock
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  readonly timings?: Partial<LinkTimings>
}

/** A subscription to a broker that is renewed until `stop`. It only listens. */
export function createMqttLink(options: MqttLinkOptions): Link {
  const { name, clock = systemClock, random = Math.random, onState } = options
  const timings: LinkTimings = { ...LINK_TIMINGS, ...options.timings }
  const reader = createMqttReader({ ...options, clock })
  const open = (events: SubscriptionEvents) => subscribe(options, timings, reader, events)
  return createFeedLink({ kind: 'mqtt', name, clock, random, timings, open, onState })
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

/** One connection to the broker, from opening to its end. The first one loads the library. */
function subscribe(
  options: MqttLinkOptions,
  timings: LinkTimings,
  reader: MqttReader,
  events: SubscriptionEvents,
): Subscription {
  let isOver = false
  let client: MqttClient | null = null
  let reason: string = LINK_REASONS.broker_closed
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
    if (isOver) return
    events.onMessage()
    if (batch.length > 0) await options.onFrames(batch)
  }
  const connect = async () => {
    const { default: mqtt } = await import('mqtt')
    const trust = await trustOf(options, timings.connectMs)
    if (isOver) return
    const made = mqtt.connect({ ...addressOf(options.url), ...options.login, ...settingsOf(timings), ...trust })
    client = made
    made.on('error', (error) => {
      reason = explainMqttError(error)
    })
    made.on('close', () => end(reason))
    made.on('connect', () => {
      made.subscribe([...options.topics], { qos: 1 }, (error, granted) => {
        if (isOver) return
        const refused =
          granted?.find(({ qos }) => qos > 2)?.topic ?? (error === null ? null : options.topics.join(', '))
        if (refused === null) events.onOpen()
        else end(`the broker refuses the topic ${refused}`)
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
  return (error: unknown) => end(error instanceof Error ? error.message : LINK_REASONS.broker_failed)
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
