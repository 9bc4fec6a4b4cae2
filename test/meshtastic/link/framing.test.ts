import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createFrameDecoder,
  encodeFrame,
  HEADER_PATIENCE_MS,
  WAKE_BYTES,
} from '../../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import { createSeededRandom } from '../../../src/node/radio/demo/seeded-random.ts'
import { readRecordings } from '../recordings.ts'

const RECORDED = readRecordings('fromradio').map(({ bytes }) => bytes)

/**
 * First byte of a FromRadio with a packet: opaque variants (log text, unknown fields) would decode with any content.
 */
const PACKET_TAG = 0x12

const QUEUE_STATUS = Uint8Array.of(0x5a, 4, 0x10, 16, 0x18, 16)

/** FromRadio with a log line, which may contain any bytes. */
function logPayload(text: Uint8Array): Uint8Array {
  return Uint8Array.of(0x32, text.length + 2, 0x0a, text.length, ...text)
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]))
}

function decodeAll(chunks: readonly Uint8Array[], now = 0): Uint8Array[] {
  const decoder = createFrameDecoder(decodeFromRadio)
  return chunks.flatMap((chunk) => decoder.push(chunk, now)).map(({ payload }) => payload)
}

function byteByByte(bytes: Uint8Array): Uint8Array[] {
  return [...bytes].map((byte) => Uint8Array.of(byte))
}

describe('encodeFrame', () => {
  it('writes start bytes and a big-endian length', () => {
    expect([...encodeFrame(Uint8Array.of(1, 2))]).toStrictEqual([0x94, 0xc3, 0, 2, 1, 2])
    expect(encodeFrame(new Uint8Array(512)).slice(0, 4)).toStrictEqual(Uint8Array.of(0x94, 0xc3, 2, 0))
    expect([...encodeFrame(new Uint8Array(0))]).toStrictEqual([0x94, 0xc3, 0, 0])
  })

  it('refuses more than 512 bytes', () => {
    expect(() => encodeFrame(new Uint8Array(513))).toThrow(RangeError)
  })
})

describe('createFrameDecoder', () => {
  const good = encodeFrame(QUEUE_STATUS)

  it('reads frames in one piece, in halves and byte by byte', () => {
    const stream = join(...RECORDED.map(encodeFrame))
    expect(decodeAll([stream])).toStrictEqual(RECORDED)
    expect(decodeAll([stream.slice(0, 5000), stream.slice(5000)])).toStrictEqual(RECORDED)
    expect(decodeAll(byteByByte(stream))).toStrictEqual(RECORDED)
  })

  it('finds the same frames between any noise, however the stream is cut', () => {
    const part = fc.oneof(
      fc.constantFrom(...RECORDED).map(encodeFrame),
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom(Uint8Array.of(0x94), Uint8Array.of(0x94, 0xc3), Uint8Array.of(0x94, 0xc3, 0, 9), WAKE_BYTES),
    )
    // Where it is cut, in thousandths of its length.
    const cuts = fc.array(fc.nat(999), { maxLength: 12 })
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), cuts, (parts, places) => {
        const stream = join(...parts)
        const ends = [...places, 1000].toSorted((a, b) => a - b).map((end) => Math.floor((end * stream.length) / 1000))
        const pieces = ends.map((end, index) => stream.slice(ends[index - 1] ?? 0, end))
        expect(decodeAll(pieces)).toStrictEqual(decodeAll([stream]))
      }),
    )
  })

  it('reads a frame without payload', () => {
    expect(decodeAll([join(encodeFrame(new Uint8Array(0)), good)])).toStrictEqual([new Uint8Array(0), QUEUE_STATUS])
  })

  it.each([
    ['wake bytes', WAKE_BYTES],
    ['colours and line ends', bytesOf('\u001b[34mDEBUG\u001b[0m | 12:00:01 [Router] hello\r\n')],
    ['an em dash, whose last byte is 0x94', bytesOf('radio — ready')],
    ['an em dash at the very end', bytesOf('radio —')],
    ['start bytes with a length over 512', Uint8Array.of(0x94, 0xc3, 0x02, 0x01, 1, 2, 3)],
    ['start bytes with the greatest length', Uint8Array.of(0x94, 0xc3, 0xff, 0xff)],
    ['a doubled first start byte', Uint8Array.of(0x94, 0x94, 0x94)],
    ['start bytes alone', Uint8Array.of(0x94, 0xc3)],
    ['an em dash and a letter that starts with 0xC3', bytesOf('—Ä and more')],
    ['a frame that does not decode', encodeFrame(Uint8Array.of(0x12, 0xff, 1, 2, 3))],
    ['a false header in front of text', join(Uint8Array.of(0x94, 0xc3, 0, 7), bytesOf('garbage'))],
    ['a false header that swallows the start of the next frame', Uint8Array.of(0x94, 0xc3, 0, 6)],
  ])('finds the next frame after %s', (_, noise) => {
    const stream = join(noise, good, noise, good)
    expect(decodeAll([stream])).toStrictEqual([QUEUE_STATUS, QUEUE_STATUS])
    expect(decodeAll(byteByByte(stream))).toStrictEqual([QUEUE_STATUS, QUEUE_STATUS])
  })

  it('keeps a payload that contains start bytes in one piece', () => {
    const inside = logPayload(join(bytesOf('a'), Uint8Array.of(0x94, 0xc3, 0, 2, 0x94, 0xc3), good))
    expect(decodeAll(byteByByte(join(good, encodeFrame(inside), good)))).toStrictEqual([
      QUEUE_STATUS,
      inside,
      QUEUE_STATUS,
    ])
  })

  it('copies its payloads: the chunk may be reused', () => {
    const chunk = Buffer.from(join(good, good.slice(0, 5)))
    const decoder = createFrameDecoder(decodeFromRadio)
    const [first] = decoder.push(chunk, 0)
    chunk.fill(0xee)
    expect(first?.payload).toStrictEqual(QUEUE_STATUS)
    expect(decoder.push(good.slice(5), 0)).toHaveLength(1)
  })

  it('drops half a frame and nothing after it', () => {
    for (const payload of RECORDED.filter((each) => each[0] === PACKET_TAG)) {
      const half = encodeFrame(payload).slice(0, 10)
      const goodOnes = Array.from({ length: 100 }, () => QUEUE_STATUS)
      expect(decodeAll([join(half, ...goodOnes.map(encodeFrame))])).toStrictEqual(goodOnes)
    }
  })

  it("waits three seconds for a header's frame while other bytes arrive, then searches after it", () => {
    const decoder = createFrameDecoder(decodeFromRadio)
    const falseHeader = Uint8Array.of(0x94, 0xc3, 0x01, 0xff)
    expect(decoder.push(join(falseHeader, good), 1000)).toHaveLength(0)
    expect(decoder.push(good, 1000 + HEADER_PATIENCE_MS)).toHaveLength(0)
    expect(decoder.push(good, 1001 + HEADER_PATIENCE_MS)).toHaveLength(3)
    expect(decoder.skippedBytes()).toBe(falseHeader.length)
  })

  it('completes a slow frame even after three seconds', () => {
    const decoder = createFrameDecoder(decodeFromRadio)
    expect(decoder.push(good.slice(0, 6), 0)).toHaveLength(0)
    expect(decoder.push(good.slice(6), 10_000)).toHaveLength(1)
  })

  it('counts the waiting time for each header separately', () => {
    const decoder = createFrameDecoder(decodeFromRadio)
    expect(decoder.push(good.slice(0, 8), 0)).toHaveLength(0)
    expect(decoder.push(join(good.slice(8), good.slice(0, 8)), 2900)).toHaveLength(1)
    expect(decoder.push(good.slice(8, 9), 5000)).toHaveLength(0)
    expect(decoder.push(good.slice(9), 5100)).toHaveLength(1)
  })

  it('finds every frame between random noise in random pieces', () => {
    const noises = ['—', '\r\n', '\u001b[0m', 'text — text', 'ÃÃ', ''].map(bytesOf)
    noises.push(Uint8Array.of(0x94), Uint8Array.of(0x94, 0xc3, 3, 0), Uint8Array.of(0xc3, 0x94))
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = createSeededRandom(seed)
      const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)]
      const expected = Array.from({ length: 60 }, () => pick(RECORDED) ?? QUEUE_STATUS)
      const stream = join(...expected.flatMap((payload) => [pick(noises) ?? WAKE_BYTES, encodeFrame(payload)]))
      const chunks: Uint8Array[] = []
      for (let at = 0; at < stream.length;) {
        const size = 1 + Math.floor(random() * random() * 700)
        chunks.push(stream.slice(at, at + size))
        at += size
      }
      expect(decodeAll(chunks), `seed ${seed}`).toStrictEqual(expected)
    }
  })

  it('survives random bytes and then finds frames again', () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = createSeededRandom(seed)
      const byte = () => (random() < 0.2 ? 0x94 : random() < 0.3 ? 0xc3 : Math.floor(random() * 256))
      const decoder = createFrameDecoder(decodeFromRadio)
      for (let round = 0; round < 20; round += 1) decoder.push(Uint8Array.from({ length: 100 }, byte), round)
      const found = [
        ...decoder.push(good, 100_000),
        ...decoder.push(join(...Array.from({ length: 70 }, () => good)), 200_000),
      ]
      expect(found.length, `seed ${seed}`).toBeGreaterThanOrEqual(66)
    }
  })
})
