import { fromBinary } from '@bufbuild/protobuf'
import type { Config } from '../../../app/config/config.ts'
import { createFrameDecoder, encodeFrame } from '../../../meshtastic/link/framing.ts'
import { type ToRadio, ToRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import { type Clock, systemClock } from '../../clock.ts'
import type { ConfiguredRadio, Connect, ConnectionEvents } from '../connection.ts'
import { createDemoRadio, type DemoRadio } from './radio.ts'
import { createSeededRandom } from './seeded-random.ts'

export type DemoOptions = {
  /** The same seed makes the same mesh. */
  readonly seed?: number
  readonly clock?: Clock
  /** Mean time between two packets from the mesh. */
  readonly paceMs?: number
}

/** The simulated radio, if DEMO is true. */
export function demoRadio({ DEMO: isOn }: Config): readonly ConfiguredRadio[] {
  return isOn ? [{ kind: 'demo', name: 'demo', connect: connectDemo }] : []
}

/** Opens a stream to a made-up radio in this process. It speaks the same protocol as a real one. */
export function connectDemo({ seed = 1, clock = systemClock, paceMs = 3000 }: DemoOptions = {}): Connect {
  const random = createSeededRandom(seed)
  const radio = createDemoRadio(random, () => clock.now())
  return (events) => {
    const stage = createStage(clock)
    const say = (payload: Uint8Array) => events.onData(encodeFrame(payload))
    const live = () => {
      say(radio.hear())
      stage.after(paceMs * (0.5 + random()), live)
    }
    const hangUp = () => {
      stage.close()
      events.onClose('the radio restarts')
    }
    const decoder = createFrameDecoder(readToRadio)
    stage.after(0, () => {
      events.onOpen()
      stage.after(paceMs, live)
    })
    return {
      write(bytes) {
        // Stream events never come during the call.
        for (const { message } of decoder.push(bytes, clock.now()))
          stage.after(0, () => answer(message, radio, { stage, say, hangUp }))
      },
      destroy: stage.close,
    }
  }
}

/** The time between the command to save and the disconnection. */
const RESTART_MS = 2000

/** The radio's end of one connection. */
type Ends = { readonly stage: Stage; readonly say: Say; readonly hangUp: () => void }

type Say = (payload: Uint8Array) => ReturnType<ConnectionEvents['onData']>

/** Timers of one connection, which end with it. */
type Stage = { after(delayMs: number, run: () => void): void; readonly close: () => void }

function createStage(clock: Clock): Stage {
  const pending = new Set<() => void>()
  return {
    after(delayMs, run) {
      const cancel = clock.after(delayMs, () => {
        pending.delete(cancel)
        run()
      })
      pending.add(cancel)
    },
    close() {
      for (const cancel of pending) cancel()
      pending.clear()
    },
  }
}

function answer({ payloadVariant }: ToRadio, radio: DemoRadio, { stage, say, hangUp }: Ends): void {
  const { case: variant, value } = payloadVariant
  if (variant === 'wantConfigId') for (const payload of radio.describe(value)) say(payload)
  if (variant === 'heartbeat') say(radio.queueStatus(0))
  if (variant !== 'packet') return
  say(radio.queueStatus(value.id))
  const { answers, restarts } = radio.react(value)
  for (const { afterMs, payload } of answers) stage.after(afterMs, () => say(payload))
  if (restarts) stage.after(RESTART_MS, hangUp)
}

function readToRadio(payload: Uint8Array): ToRadio | null {
  try {
    return fromBinary(ToRadioSchema, payload)
  } catch {
    return null
  }
}
