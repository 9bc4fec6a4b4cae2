import type { FromRadio } from '../../meshtastic/gen/stream_pb.ts'
import { encodeWantConfig } from '../../meshtastic/to-radio.ts'
import { createTimer, type LinkClock } from './connection.ts'
import type { LinkTimings } from './timings.ts'

export type Handshake = {
  /** Asks for everything, from the beginning. */
  start(): void
  /** Takes the next message; true for the one that completes the handshake. */
  advance(message: FromRadio): boolean
  stop(): void
}

/** Asks the radio for its settings and nodes, asks again when it stands still, and in the end calls `onStalled`. */
export function createHandshake(options: {
  readonly clock: LinkClock
  readonly timings: LinkTimings
  readonly random: () => number
  send(message: Uint8Array): void
  onStalled(): void
}): Handshake {
  const { timings } = options
  const patience = createTimer(options.clock)
  const nonces = new Set<number>()

  const ask = () => {
    const nonce = 1 + Math.floor(options.random() * 0xfffffffe)
    nonces.add(nonce)
    options.send(encodeWantConfig(nonce))
  }
  const watch = () =>
    patience.start(timings.handshakeRetryMs, () => {
      ask()
      patience.start(timings.handshakeLimitMs - timings.handshakeRetryMs, () => options.onStalled())
    })
  return {
    start() {
      ask()
      watch()
    },
    advance(message) {
      const { case: variant, value } = message.payloadVariant
      if (variant === 'configCompleteId' && nonces.has(value)) {
        patience.stop()
        return true
      }
      if (isProgress(variant)) watch()
      return false
    },
    stop: () => patience.stop(),
  }
}

/** A big node database takes minutes, which is no standstill; live traffic on the other hand is no progress. */
function isProgress(variant: FromRadio['payloadVariant']['case']): boolean {
  return variant !== 'packet' && variant !== 'queueStatus' && variant !== 'logRecord' && variant !== 'configCompleteId'
}
