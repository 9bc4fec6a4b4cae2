import { create } from '@bufbuild/protobuf'
import { createChannelReader } from '../../meshtastic/channel-identity.ts'
import { createFrameDecoder, encodeFrame, type Frame, WAKE_BYTES } from '../../meshtastic/link/framing.ts'
import { bytesWithoutSecrets, decodeFromRadio } from '../../meshtastic/link/from-radio.ts'
import type { Channel } from '../../meshtastic/gen/channel_pb.ts'
import { type FromRadio, FromRadioSchema } from '../../meshtastic/gen/stream_pb.ts'
import { type RadioEvent, toRadioEvent } from '../../meshtastic/radio-event.ts'
import { createReplayDetector } from '../../meshtastic/replay.ts'
import { describeChannel } from '../../meshtastic/config/channel-info.ts'
import { createLockdown } from '../../meshtastic/link/lockdown.ts'
import { createOtherProtocols } from '../../meshtastic/link/other-protocols.ts'
import { encodeHeartbeat } from '../../meshtastic/link/to-radio.ts'
import { RADIO_PROBLEMS, type RadioProblem } from '../../shared/mesh/radio-problems.ts'
import { createTimer, type Clock } from '../clock.ts'
import { type Connect } from './connection.ts'
import { createHandshake } from './handshake.ts'
import type { LinkTimings } from './timings.ts'
import { LINK_REASONS } from '../../shared/mesh/link-reasons.ts'

/** An event, and the bytes of its FromRadio to pass on; null if they may contain secrets. */
export type ReceivedEvent = { readonly event: RadioEvent; readonly raw: Uint8Array | null }

export type SessionOptions = {
  readonly connect: Connect
  readonly clock: Clock
  readonly random: () => number
  readonly timings: LinkTimings
  /** `isLocked`: the radio does not show its settings. */
  onPhase(phase: 'handshake' | 'connected', isLocked: boolean): void
  /** Each complete message, before the events of its batch. */
  readonly onMessage?: ((message: FromRadio) => void) | undefined
  onEvents(batch: readonly ReceivedEvent[]): void
  /** Called once, as the last event; not after `close`. */
  onEnd(end: SessionEnd): void
}

/**
 * `unreached`: the stream was never open; `hung-up`: a radio that had already sent something closed it. `reason` is for
 * people.
 */
export type SessionEnd = {
  readonly reason: string
  readonly how: 'unreached' | 'hung-up' | 'failed'
  readonly problem: RadioProblem | null
}

/** One connection with its handshake, from opening to its end. */
export type Session = {
  /** Sends an encoded ToRadio. */
  send(message: Uint8Array): void
  /** Restarts the handshake. */
  readAgain(): void
  close(): void
}

export function openSession(options: SessionOptions): Session {
  const { clock, timings } = options
  const decoder = createFrameDecoder(decodeFromRadio)
  const toReceived = createReader(clock)
  const lockdown = createLockdown()
  const others = createOtherProtocols()
  const pace = createTimer(clock)
  const silence = createTimer(clock)
  let phase: 'opening' | 'handshake' | 'connected' | 'ended' = 'opening'
  let heard = false
  /** The state of the radio when it was last read. */
  let isLocked = false
  let readings = 0

  const send = (message: Uint8Array) => connection.write(encodeFrame(message))
  const close = () => {
    phase = 'ended'
    for (const timer of [pace, silence, handshake]) timer.stop()
    connection.destroy()
  }
  const end = (reason: string, isClosedByRadio = false, known: RadioProblem | null = null) => {
    if (phase === 'ended') return
    const failed = isClosedByRadio && heard ? 'hung-up' : 'failed'
    const how = phase === 'opening' ? 'unreached' : failed
    // What speaks, but not as a radio, is none.
    const other = heard ? null : others.verdict()
    close()
    options.onEnd({ reason: other === null ? reason : RADIO_PROBLEMS[other], how, problem: other ?? known })
  }
  const onStalled = () => end(LINK_REASONS.stalled)
  const handshake = createHandshake({ clock, timings, random: options.random, send, onStalled })
  const enter = (next: 'handshake' | 'connected') => {
    phase = next
    if (next === 'handshake') {
      readings += 1
      handshake.start()
    } else {
      isLocked = lockdown.isLocked()
      sendHeartbeat()
    }
    options.onPhase(next, lockdown.isLocked())
  }
  const sendHeartbeat = () => {
    send(encodeHeartbeat())
    pace.start(timings.heartbeatMs, sendHeartbeat)
  }
  const watchSilence = () => silence.start(timings.silenceMs, () => end(LINK_REASONS.silent))
  const follow = (message: FromRadio) => {
    if (phase === 'ended') return
    if (message.payloadVariant.case === 'rebooted') enter('handshake')
    else if (phase === 'handshake' && handshake.advance(message)) enter('connected')
    else if (phase === 'connected' && lockdown.isLocked() !== isLocked && readings < MAX_READINGS) enter('handshake')
  }
  const connection = options.connect({
    onOpen() {
      pace.stop()
      watchSilence()
      connection.write(WAKE_BYTES)
      enter('handshake')
    },
    onData(bytes) {
      const frames = phase === 'ended' ? [] : decoder.push(bytes, clock.now())
      if (frames.length === 0 && !heard) others.take(bytes)
      if (frames.length === 0) return
      heard = true
      watchSilence()
      const real = frames.filter(({ message }) => !lockdown.take(message))
      for (const { message } of real) options.onMessage?.(message)
      options.onEvents(real.flatMap(toReceived))
      for (const { message } of frames) follow(message)
    },
    onClose: (reason, problem) => end(reason, true, problem ?? null),
  })
  pace.start(timings.connectMs, () => end(LINK_REASONS.unanswered))
  return { send, readAgain: () => enter('handshake'), close }
}

/** Reads the frames of one connection, in order. */
function createReader(clock: Clock): (frame: Frame<FromRadio>) => ReceivedEvent[] {
  const replay = createReplayDetector()
  const readChannels = createChannelReader()
  return ({ message, payload }) => {
    const now = clock.now()
    const channels = readChannels(message).map(({ channel, identity }) => toChannelEvent(channel, identity, now))
    if (message.payloadVariant.case === 'channel') return channels
    const event = toRadioEvent(message, now, replay.isReplayed(message, now))
    return [...channels, { event, raw: bytesWithoutSecrets(message, payload) }]
  }
}

function toChannelEvent(value: Channel, identity: string | null, receivedAt: number): ReceivedEvent {
  const message = create(FromRadioSchema, { payloadVariant: { case: 'channel', value } })
  const channel = describeChannel(value, identity)
  return { event: { receivedAt, type: 'channel', channel }, raw: bytesWithoutSecrets(message, NOTHING) }
}

/** When a radio is locked or unlocked, it is read again, at most this often on one connection. */
const MAX_READINGS = 20

const NOTHING = new Uint8Array(0)
