/** What SHA-256 has to remember between two pieces: serializable, so that another invocation of the worker goes on. */
export type HashState = {
  readonly words: number[]
  /** All bytes so far. */
  readonly bytes: number
  /** Those of the block that is not full yet. */
  readonly rest: number[]
}

const primes = (count: number): number[] => {
  const found: number[] = []
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime > 0)) found.push(n)
  return found
}

const fraction = (root: number) => ((root - Math.floor(root)) * 2 ** 32) | 0
const K = Int32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)))

export const EMPTY_HASH: HashState = { words: primes(8).map((prime) => fraction(Math.sqrt(prime))), bytes: 0, rest: [] }

/**
 * SHA-256 (FIPS 180-4) of a text in pieces. Our own, because neither Web Crypto nor a library tells its state between two of
 * them. 32-bit arithmetic.
 */
export class ResumableHash {
  private readonly words: Int32Array
  private readonly schedule = new Int32Array(64)
  private bytes: number
  private rest: Uint8Array

  constructor(state: HashState = EMPTY_HASH) {
    this.words = Int32Array.from(state.words)
    this.bytes = state.bytes
    this.rest = Uint8Array.from(state.rest)
  }

  update(bytes: Uint8Array): void {
    this.bytes += bytes.length
    const all = this.rest.length === 0 ? bytes : joined(this.rest, bytes)
    const whole = all.length - (all.length % 64)
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength)
    for (let at = 0; at < whole; at += 64) this.block(view, at)
    this.rest = all.slice(whole)
  }

  state(): HashState {
    return { words: [...this.words], bytes: this.bytes, rest: [...this.rest] }
  }

  /** 64 hexadecimal digits in lower case. More pieces may follow. */
  hex(): string {
    const last = new ResumableHash(this.state())
    const end = new Uint8Array(((55 - (this.bytes % 64) + 64) % 64) + 9)
    end[0] = 0x80
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(this.bytes) * 8n)
    last.update(end)
    return [...last.words].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }

  private block(view: DataView, at: number): void {
    const w = this.schedule
    for (let t = 0; t < 16; t++) w[t] = view.getInt32(at + 4 * t)
    for (let t = 16; t < 64; t++) {
      const x = w[t - 15] ?? 0
      const y = w[t - 2] ?? 0
      const small = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
      const large = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
      w[t] = ((w[t - 16] ?? 0) + small + (w[t - 7] ?? 0) + large) | 0
    }
    const sums = this.words
    let a = sums[0] ?? 0
    let b = sums[1] ?? 0
    let c = sums[2] ?? 0
    let d = sums[3] ?? 0
    let e = sums[4] ?? 0
    let f = sums[5] ?? 0
    let g = sums[6] ?? 0
    let h = sums[7] ?? 0
    for (let t = 0; t < 64; t++) {
      const one = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
      const first = (h + one + ((e & f) ^ (~e & g)) + (K[t] ?? 0) + (w[t] ?? 0)) | 0
      const two = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
      h = g
      g = f
      f = e
      e = (d + first) | 0
      d = c
      const second = (two + ((a & b) ^ (a & c) ^ (b & c))) | 0
      c = b
      b = a
      a = (first + second) | 0
    }
    sums[0] = (a + (sums[0] ?? 0)) | 0
    sums[1] = (b + (sums[1] ?? 0)) | 0
    sums[2] = (c + (sums[2] ?? 0)) | 0
    sums[3] = (d + (sums[3] ?? 0)) | 0
    sums[4] = (e + (sums[4] ?? 0)) | 0
    sums[5] = (f + (sums[5] ?? 0)) | 0
    sums[6] = (g + (sums[6] ?? 0)) | 0
    sums[7] = (h + (sums[7] ?? 0)) | 0
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}
