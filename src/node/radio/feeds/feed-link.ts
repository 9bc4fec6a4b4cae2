import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import { backOff } from '../../../shared/back-off.ts'
import type { FeedKind } from '../../../shared/mesh/link-kinds.ts'
import { createTimer, type Clock } from '../../clock.ts'
import type { Link } from '../link.ts'
import type { LinkTimings } from '../timings.ts'

export type Subscription = { close(): void }

export type SubscriptionEvents = {
  onOpen(): void
  /** Called for each message, even if the service does not use it. */
  onMessage(): void
  /** Called once, as the last event; not after `close`. `reason` is for people. */
  onEnd(reason: string): void
}

export type FeedLinkOptions = {
  readonly kind: FeedKind
  readonly name: string
  readonly clock: Clock
  /** Numbers from 0 to below 1. */
  readonly random: () => number
  readonly timings: LinkTimings
  /** Opens one subscription. Events come later, never during the call. */
  open(events: SubscriptionEvents): Subscription
  /** Called after each change of state. */
  readonly onState?: ((info: LinkInfo) => void) | undefined
}

/** State kept from one subscription to the next. */
type Memory = {
  state: LinkInfo['state']
  since: number
  reason: string | null
  lastFrameAt: number | null
  connections: number
  failures: number
  connectedAt: number | null
}

/** A subscription that is renewed until `stop`. It only listens. */
export function createFeedLink(options: FeedLinkOptions): Link {
  const { kind, name, clock, random, timings } = options
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

  const info = (): LinkInfo => describe(kind, name, memory)
  const enter = (state: LinkInfo['state'], reason: string | null) => {
    if (state !== memory.state) memory.since = clock.now()
    Object.assign(memory, { state, reason } satisfies Partial<Memory>)
    options.onState?.(info())
  }
  const open = () => {
    enter('connecting', memory.reason)
    current = options.open({
      onOpen() {
        memory.connections += 1
        memory.connectedAt = clock.now()
        enter('connected', null)
      },
      onMessage() {
        memory.lastFrameAt = clock.now()
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

function describe(kind: FeedKind, name: string, memory: Memory): LinkInfo {
  const { state, since, reason, lastFrameAt, connections } = memory
  const reconnects = Math.max(0, connections - 1)
  return {
    name,
    kind,
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
