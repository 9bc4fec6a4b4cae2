import type { FromRadio } from '../../meshtastic/gen/stream_pb.ts'
import { encodeWantConfig } from '../../meshtastic/link/to-radio.ts'
import { createTimer, type Clock } from '../clock.ts'
import type { LinkTimings } from './timings.ts'

export type Handshake = {
  /** Requests everything, from the beginning. */
  start(): void
  /** Takes the next message; true for the one that completes the handshake. */
  advance(message: FromRadio): boolean
  stop(): void
}

/**
 * Requests the radio's settings and nodes, repeats the request if the handshake stalls, and finally calls `onStalled`.
 */
export function createHandshake(options: {
  readonly clock: Clock
  readonly timings: LinkTimings
  readonly random: () => number
  send(message: Uint8Array): void
  onStalled(): void
}): Handshake {
  const { timings } = options
  const patience = createTimer(options.clock)
  const nonces = new Set<number>()

  let isRetry = false

  const ask = () => {
    const nonce = 1 + Math.floor(options.random() * 0xfffffffe)
    nonces.add(nonce)
    options.send(encodeWantConfig(nonce))
  }
  // A radio that answers each request from the beginning and never finishes gets only one more request.
  const watch = () =>
    patience.start(isRetry ? timings.handshakeLimitMs - timings.handshakeRetryMs : timings.handshakeRetryMs, () => {
      if (isRetry) return options.onStalled()
      isRetry = true
      ask()
      watch()
    })
  return {
    start() {
      isRetry = false
      ask()
      watch()
    },
    advance(message) {
      const { case: variant, value } = message.payloadVariant
      if (variant === 'configCompleteId' && nonces.has(value)) {
        patience.stop()
        return true
      }
      if (PROGRESS.has(variant)) watch()
      return false
    },
    stop: () => patience.stop(),
  }
}

/** Reading a large node database takes minutes, which is not a stall. Unrelated messages are not progress. */
const PROGRESS: ReadonlySet<FromRadio['payloadVariant']['case']> = new Set([
  'myInfo',
  'nodeInfo',
  'metadata',
  'channel',
  'config',
  'moduleConfig',
  'deviceuiConfig',
  'fileInfo',
  'regionPresets',
  // Newer than our table.
  undefined,
])
