import { rootCertificates } from 'node:tls'
import type { MqttClient } from 'mqtt'
import { backOff } from '../../shared/back-off.ts'
import { SECOND_MS } from '../../shared/time.ts'
import { type Clock, createTimer } from '../clock.ts'
import { addressOf } from '../radio/mqtt/mqtt.ts'
import { explainMqttError } from '../radio/mqtt/reasons.ts'

const RETRIES = { firstMs: SECOND_MS, mostMs: 60 * SECOND_MS }
const CONNECT_MS = 10_000
const KEEP_ALIVE_S = 60
/** How long the last message may take when the service stops. */
const CLOSE_MS = 2000

export type BrokerOptions = {
  readonly url: string
  /** Certificates in PEM form that are trusted in addition to the system's. */
  readonly ca: string | null
  readonly clientId: string
  /** Retained by the broker when the connection is lost. */
  readonly will: { readonly topic: string; readonly payload: string }
  readonly subscribe: readonly string[]
  readonly clock: Clock
  readonly random: () => number
  onOpen(): void
  /** Not for what is published over this connection and fails. */
  onMessage(topic: string, payload: string): void
  /** Null: connected; otherwise why not, in words without the URL's secrets. */
  onState(reason: string | null): void
  readonly retries?: typeof RETRIES
}

/** A connection to a broker that is renewed until `stop`. */
export type Broker = {
  start(): void
  /** Publishes and retains; an empty payload deletes. False: there is no connection. */
  publish(topic: string, payload: string): boolean
  /** Messages that the broker has not confirmed yet. */
  unconfirmed(): number
  /** Sends a last message and hangs up. */
  stop(last: { readonly topic: string; readonly payload: string }): Promise<void>
}

export function createBroker(options: BrokerOptions): Broker {
  const { clock, random, retries = RETRIES } = options
  const retry = createTimer(clock)
  let client: MqttClient | null = null
  let isOpen = false
  let isStopped = false
  let failures = 0
  let unconfirmed = 0

  const end = (reason: string) => {
    client?.removeAllListeners().on('error', () => {})
    client?.end(true)
    client = null
    isOpen = false
    unconfirmed = 0
    if (isStopped) return
    options.onState(reason)
    retry.start(backOff(failures, { ...retries, jitter: 0.75 + random() / 2 }), open)
    failures += 1
  }
  const connect = async () => {
    // Loaded for the first connection only.
    const { default: mqtt } = await import('mqtt')
    if (isStopped) return
    const { url, ca, clientId, will, subscribe } = options
    const made = mqtt.connect({
      ...addressOf(url),
      clientId,
      clean: true,
      will: { ...will, payload: Buffer.from(will.payload), qos: 1, retain: true },
      reconnectPeriod: 0,
      resubscribe: false,
      connectTimeout: CONNECT_MS,
      keepalive: KEEP_ALIVE_S,
      ...(ca !== null && { ca: [...rootCertificates, ca] }),
    })
    client = made
    let reason = 'the broker closed the connection'
    made.on('error', (error) => {
      reason = explainMqttError(error)
    })
    made.on('close', () => {
      if (client === made) end(reason)
    })
    made.on('message', (topic, payload) => options.onMessage(topic, payload.toString('utf8')))
    made.on('connect', () => {
      made.subscribe([...subscribe], { qos: 1 }, (error, granted) => {
        if (client !== made) return
        // Then what is left from before cannot be found.
        if (error !== null || granted?.some(({ qos }) => qos > 2) === true) return end('the broker refuses the topics')
        isOpen = true
        failures = 0
        options.onState(null)
        options.onOpen()
      })
    })
  }
  const open = () => {
    connect().catch((error: unknown) => end(error instanceof Error ? explainMqttError(error) : 'the connection failed'))
  }
  const send = (topic: string, payload: string): boolean => {
    const made = client
    if (made === null || !isOpen) return false
    unconfirmed += 1
    made.publish(topic, payload, { qos: 1, retain: true }, () => {
      if (client === made) unconfirmed -= 1
    })
    return true
  }
  return {
    start: open,
    publish: send,
    unconfirmed: () => unconfirmed,
    async stop({ topic, payload }) {
      isStopped = true
      retry.stop()
      const made = client
      if (made === null || !send(topic, payload)) return end('')
      await new Promise<void>((resolve) => {
        const cancel = clock.after(CLOSE_MS, resolve)
        made.end(false, {}, () => {
          cancel()
          resolve()
        })
      })
      end('')
    },
  }
}
