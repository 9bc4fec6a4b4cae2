import { create } from '@bufbuild/protobuf'
import { createChannelReader } from '../../meshtastic/channel-identity.ts'
import { createFrameDecoder, encodeFrame, type Frame, WAKE_BYTES } from '../../meshtastic/link/framing.ts'
import { bytesWithoutSecrets, decodeFromRadio } from '../../meshtastic/link/from-radio.ts'
import type { Channel } from '../../meshtastic/gen/channel_pb.ts'
import { type FromRadio, FromRadioSchema } from '../../meshtastic/gen/stream_pb.ts'
import { type RadioEvent, toRadioEvent } from '../../meshtastic/radio-event.ts'
import { createReplayDetector } from '../../meshtastic/replay.ts'
import { describeChannel } from '../../meshtastic/config/settings.ts'
import { encodeHeartbeat } from '../../meshtastic/link/to-radio.ts'
import { createTimer, type Clock } from '../clock.ts'
import { type Connect } from './connection.ts'
import { createHandshake } from './handshake.ts'
import type { LinkTimings } from './timings.ts'

/** An event, and the bytes of its FromRadio to pass on: null when there may be secrets in them. */
export type ReceivedEvent = { readonly event: RadioEvent; readonly raw: Uint8Array | null }

export type SessionOptions = {
  readonly connect: Connect
  readonly clock: Clock
  readonly random: () => number
  readonly timings: LinkTimings
  onPhase(phase: 'handshake' | 'connected'): void
  /** Each complete message, before the events of its batch. */
  readonly onMessage?: ((message: FromRadio) => void) | undefined
  onEvents(batch: readonly ReceivedEvent[]): void
  /**
   * Called once, as the last event; not after `close`. `hungUp`: a radio that had talked to us closed the connection.
   */
  onEnd(reason: string, hungUp: boolean): void
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
  const pace = createTimer(clock)
  const silence = createTimer(clock)
  let phase: 'opening' | 'handshake' | 'connected' | 'ended' = 'opening'
  let heard = false

  const send = (message: Uint8Array) => connection.write(encodeFrame(message))
  const close = () => {
    phase = 'ended'
    for (const timer of [pace, silence, handshake]) timer.stop()
    connection.destroy()
  }
  const end = (reason: string, hungUp: boolean) => {
    if (phase === 'ended') return
    close()
    options.onEnd(reason, hungUp)
  }
  const onStalled = () => end('the handshake has stalled', false)
  const handshake = createHandshake({ clock, timings, random: options.random, send, onStalled })
  const enter = (next: 'handshake' | 'connected') => {
    phase = next
    if (next === 'handshake') handshake.start()
    else beat()
    options.onPhase(next)
  }
  const beat = () => {
    send(encodeHeartbeat())
    pace.start(timings.heartbeatMs, beat)
  }
  const watchSilence = () => silence.start(timings.silenceMs, () => end('the radio has gone silent', false))
  const follow = (message: FromRadio) => {
    if (phase === 'ended') return
    if (message.payloadVariant.case === 'rebooted') enter('handshake')
    else if (phase === 'handshake' && handshake.advance(message)) enter('connected')
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
      if (frames.length === 0) return
      heard = true
      watchSilence()
      for (const { message } of frames) options.onMessage?.(message)
      options.onEvents(frames.flatMap(toReceived))
      for (const { message } of frames) follow(message)
    },
    onClose: (reason) => end(reason, heard),
  })
  pace.start(timings.connectMs, () => end('the radio does not answer', false))
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

const NOTHING = new Uint8Array(0)
