import { START_1, START_2 } from './framing.ts'

/** The beginning of what a device says is enough. */
const MAX_BYTES = 1024

/** The longest frame of a MeshCore companion has 176 bytes; later firmware may have somewhat more. */
const MAX_MESHCORE = 255
const FROM_MESHCORE = 0x3e
/** The first byte of an answer, or of a message without a question. */
const isMeshcoreCode = (code: number): boolean => code <= 0x20 || (code >= 0x80 && code <= 0x9f)

const FRAME_END = 0xc0
const DETECT = 0x08
const RNODE_HERE = 0x46

/**
 * Asks a MeshCore companion for its device information, and an RNode whether it is there. A Meshtastic radio skips both.
 * To be sent first: a companion on WLAN would wait for the rest of a frame that begins with other bytes.
 */
export const OTHER_QUESTIONS: Uint8Array = Uint8Array.of(0x3c, 2, 0, 22, 3, FRAME_END, DETECT, 0x73, FRAME_END)

export type OtherProtocol = 'meshcore' | 'rnode' | 'not_a_radio'

/** Listens to a device that sends no frames of Meshtastic. */
export type OtherProtocols = {
  take(bytes: Uint8Array): void
  /** What the device is; null: it has said nothing, or began a frame of Meshtastic. */
  verdict(): OtherProtocol | null
}

export function createOtherProtocols(): OtherProtocols {
  let heard: Uint8Array = new Uint8Array(0)
  return {
    take(bytes) {
      const more = bytes.subarray(0, MAX_BYTES - heard.length)
      if (more.length === 0) return
      const both = new Uint8Array(heard.length + more.length)
      both.set(heard)
      both.set(more, heard.length)
      heard = both
    },
    verdict() {
      if (heard.length === 0 || hasStart(heard)) return null
      if (hasMeshcoreFrame(heard)) return 'meshcore'
      return hasRnodeAnswer(heard) ? 'rnode' : 'not_a_radio'
    },
  }
}

function hasStart(bytes: Uint8Array): boolean {
  return bytes.some((byte, at) => byte === START_1 && (bytes[at + 1] ?? START_2) === START_2)
}

/** `>`, the length as 16-bit little-endian, and the whole frame; then the end or the next one. */
function hasMeshcoreFrame(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(FROM_MESHCORE); at !== -1; at = bytes.indexOf(FROM_MESHCORE, at + 1)) {
    const [low = 0, high = 1, code = 0] = bytes.subarray(at + 1, at + 4)
    const length = low + high * 256
    const end = at + 3 + length
    const isWhole = length > 0 && length <= MAX_MESHCORE && end <= bytes.length
    if (isWhole && isMeshcoreCode(code) && (bytes[end] ?? FROM_MESHCORE) === FROM_MESHCORE) return true
  }
  return false
}

function hasRnodeAnswer(bytes: Uint8Array): boolean {
  return bytes.some(
    (byte, at) =>
      byte === FRAME_END && bytes[at + 1] === DETECT && bytes[at + 2] === RNODE_HERE && bytes[at + 3] === FRAME_END,
  )
}
