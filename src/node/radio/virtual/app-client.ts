import type { Socket } from 'node:net'
import { createFrameDecoder, encodeFrame, MAX_FRAME_PAYLOAD } from '../../../meshtastic/link/framing.ts'
import { decodeToRadio } from '../../../meshtastic/link/app-messages.ts'
import type { ToRadio } from '../../../meshtastic/gen/stream_pb.ts'
import { createTimer, type Clock } from '../../clock.ts'

/** Bytes handed to the operating system at a time. The rest waits here, where it can be counted. */
const MAX_UNSENT_BYTES = 64 * 1024
/** Packets that may wait for an app, besides its handshake. */
const MAX_PACKETS = 500
const MAX_REPLIES = 200
/** An app that takes nothing for so long is dropped, and one that says nothing for as long as a radio waits. */
const STALLED_MS = 15_000
const SILENT_MS = 900_000
/** Messages that an app may send at once, and how often one more. */
const BURST = 200
const ONE_MORE_MS = 50
/** Bytes that are no messages: apps wake a radio with 32. */
const MAX_NOISE_BYTES = 16 * 1024

/** One app that is connected. */
export type AppClient = {
  readonly id: number
  readonly address: string
  lastHeardAt(): number
  /** Whether its first handshake is complete: until then packets wait. */
  isReady(): boolean
  /** Whether it takes a handshake at the moment, the first or another one. */
  isReading(): boolean
  /** Sends a handshake in place of one that is under way. */
  begin(frames: Iterator<Uint8Array, void>): void
  /** Queues a payload for the app. `reply`: an answer to itself, which does not wait for the handshake. */
  push(payload: Uint8Array, how: 'packet' | 'reply'): void
  /** Closes the connection after these last words. */
  end(...words: readonly Uint8Array[]): void
}

export type AppClientOptions = {
  readonly id: number
  readonly address: string
  readonly socket: Socket
  readonly clock: Clock
  readonly onMessage: (message: ToRadio) => void
  /** Called once. `why`: it was dropped; null: it left. */
  readonly onEnd: (why: string | null) => void
}

export function createAppClient({ id, address, socket, clock, onMessage, onEnd }: AppClientOptions): AppClient {
  const decoder = createFrameDecoder(decodeToRadio)
  const silence = createTimer(clock)
  const stall = createTimer(clock)
  const replies: Uint8Array[] = []
  const packets: Uint8Array[] = []
  let handshake: Iterator<Uint8Array, void> | null = null
  let isReady = false
  let isStalled = false
  let hasEnded = false
  let lastHeardAt = clock.now()
  let left = BURST
  let filledAt = clock.now()

  const finish = (why: string | null) => {
    if (hasEnded) return
    hasEnded = true
    silence.stop()
    stall.stop()
    onEnd(why)
  }
  const drop = (why: string) => {
    socket.destroy()
    finish(why)
  }
  const fromHandshake = (): Uint8Array | undefined => {
    const next = handshake?.next()
    if (next === undefined) return undefined
    if (next.done !== true) return next.value
    handshake = null
    isReady = true
    return undefined
  }
  const takesMore = () => !hasEnded && socket.writableLength < MAX_UNSENT_BYTES
  const pump = () => {
    while (takesMore()) {
      const next = replies.shift() ?? fromHandshake() ?? (isReady && handshake === null ? packets.shift() : undefined)
      if (next === undefined) return
      // No radio sends more, and none of its apps would take it.
      if (next.length <= MAX_FRAME_PAYLOAD) socket.write(encodeFrame(next))
    }
    if (hasEnded || isStalled) return
    isStalled = true
    stall.start(STALLED_MS, () => drop('it takes nothing'))
  }
  const admit = (): boolean => {
    const now = clock.now()
    const more = Math.max(0, Math.floor((now - filledAt) / ONE_MORE_MS))
    left = Math.min(BURST, left + more)
    filledAt = left === BURST || now < filledAt ? now : filledAt + more * ONE_MORE_MS
    left -= 1
    return left >= 0
  }
  const watch = () => silence.start(SILENT_MS, () => drop('it has gone silent'))
  socket.setNoDelay(true)
  socket.setKeepAlive(true, 30_000)
  socket.on('drain', () => {
    isStalled = false
    stall.stop()
    pump()
  })
  socket.on('data', (bytes) => {
    if (hasEnded) return
    const frames = decoder.push(bytes, clock.now())
    if (frames.length > 0) {
      lastHeardAt = clock.now()
      watch()
    }
    for (const { message } of frames) {
      if (!hasEnded && !admit()) drop('it sends too much')
      if (!hasEnded) onMessage(message)
    }
    if (!hasEnded && decoder.skippedBytes() > MAX_NOISE_BYTES) drop('it does not speak the protocol')
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => finish(null))
  watch()
  return {
    id,
    address,
    lastHeardAt: () => lastHeardAt,
    isReady: () => isReady,
    isReading: () => handshake !== null,
    begin(frames) {
      handshake = frames
      pump()
    },
    push(payload, how) {
      if (hasEnded) return
      const [queue, most] = how === 'reply' ? [replies, MAX_REPLIES] : [packets, MAX_PACKETS]
      queue.push(payload)
      pump()
      if (queue.length > most) drop('it is too slow')
    },
    end(...words) {
      if (hasEnded) return
      for (const word of words) socket.write(encodeFrame(word))
      socket.end()
      // It may not take the last words.
      const cancel = clock.after(1000, () => socket.destroy())
      socket.once('close', cancel)
      finish(null)
    },
  }
}
