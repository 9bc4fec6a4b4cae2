export const START_1 = 0x94
export const START_2 = 0xc3
const HEADER_BYTES = 4

/** The longest payload that a radio sends or accepts, in bytes; a header that announces more is not a header. */
export const MAX_FRAME_PAYLOAD = 512

/** How long a header may wait for its payload while other bytes arrive, in milliseconds. */
export const HEADER_PATIENCE_MS = 3000

/** Sent before the first frame: wakes a sleeping radio and completes any partial frame that it still waits for. */
export const WAKE_BYTES: Uint8Array = new Uint8Array(32).fill(START_2)

/**
 * One frame of the stream protocol: 0x94 0xC3, the length as 16-bit big-endian, the payload.
 * Throws `RangeError` for more than 512 bytes.
 */
export function encodeFrame(payload: Uint8Array): Uint8Array {
  if (payload.length > MAX_FRAME_PAYLOAD) throw new RangeError(`A frame holds at most ${MAX_FRAME_PAYLOAD} bytes`)
  const frame = new Uint8Array(HEADER_BYTES + payload.length)
  frame.set([START_1, START_2, payload.length >> 8, payload.length & 0xff])
  frame.set(payload, HEADER_BYTES)
  return frame
}

/** The payload of a frame, and the decoded message. */
export type Frame<T> = { readonly payload: Uint8Array; readonly message: T }

export type FrameDecoder<T> = {
  /** Takes the next bytes of the stream and returns the frames that they complete. `now` in milliseconds. */
  push(chunk: Uint8Array, now: number): Frame<T>[]
  /** The number of bytes so far that belonged to no frame: debug text, noise. */
  skippedBytes(): number
}

/**
 * Finds frames in a byte stream that may also contain debug text anywhere. Text may contain start bytes (an em dash is
 * E2 80 94) and so may payloads, so a start is accepted only when its payload decodes: otherwise `tryDecode` returns
 * null, and the search continues one byte further without losing anything.
 */
export function createFrameDecoder<T>(tryDecode: (payload: Uint8Array) => T | null): FrameDecoder<T> {
  let pending: Uint8Array = new Uint8Array(0)
  let waitingSince: number | null = null
  let skipped = 0

  const push = (chunk: Uint8Array, now: number): Frame<T>[] => {
    if (chunk.length === 0) return []
    const bytes = concat(pending, chunk)
    const frames: Frame<T>[] = []
    let at = 0
    for (;;) {
      const start = findStart(bytes, at)
      if (start > at) waitingSince = null
      skipped += start - at
      at = start
      const found = readFrame(bytes, at, tryDecode)
      if (found === 'incomplete' && !isOverdue(bytes.length - at, waitingSince, now)) break
      if (typeof found === 'string') {
        at += 1
        skipped += 1
      } else {
        at += HEADER_BYTES + found.payload.length
        frames.push(found)
      }
      waitingSince = null
    }
    pending = bytes.slice(at)
    if (pending.length >= HEADER_BYTES) waitingSince ??= now
    return frames
  }
  return { push, skippedBytes: () => skipped }
}

function isOverdue(pendingBytes: number, waitingSince: number | null, now: number): boolean {
  return pendingBytes >= HEADER_BYTES && waitingSince !== null && now - waitingSince > HEADER_PATIENCE_MS
}

/** The index of the next possible start, a 0x94 that is followed by 0xC3 or by nothing yet; else the end. */
function findStart(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(START_1, from)
  while (at !== -1) {
    const next = bytes[at + 1]
    if (next === undefined || next === START_2) return at
    at = bytes.indexOf(START_1, at + 1)
  }
  return bytes.length
}

function readFrame<T>(
  bytes: Uint8Array,
  at: number,
  tryDecode: (payload: Uint8Array) => T | null,
): Frame<T> | 'incomplete' | 'invalid' {
  const high = bytes[at + 2]
  const low = bytes[at + 3]
  if (high === undefined || low === undefined) return 'incomplete'
  const length = high * 256 + low
  if (length > MAX_FRAME_PAYLOAD) return 'invalid'
  const start = at + HEADER_BYTES
  if (bytes.length < start + length) return 'incomplete'
  const payload = bytes.slice(start, start + length)
  const message = tryDecode(payload)
  return message === null ? 'invalid' : { payload, message }
}

/** Always a copy: a platform may reuse the memory of its chunks. */
function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
