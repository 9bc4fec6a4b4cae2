import { HOUR_MS } from '../../../shared/time.ts'

/** Copies of one packet from several sources arrive within this time. */
const COPIES_MS = HOUR_MS
const FIRST_PLACES = 2 ** 12
/** More are not kept, so that a file with a million packets in an hour needs no more memory. */
const MAX_PLACES = 2 ** 17

export type Copies = {
  /** Whether this value of the packet was asked about before. `series`: an integer for its node and type. */
  isCopy(packetId: number, series: number, t: number): boolean
}

/** Recognises the same packet from another source by its id. Rows must come in the order of time. */
export function createCopies(): Copies {
  let earlier = createPairs()
  let latest = createPairs()
  let since = 0
  return {
    isCopy(packetId, series, t) {
      if (packetId === 0) return false
      if (t - since > COPIES_MS || latest.isFull()) {
        const oldest = earlier
        earlier = latest
        latest = oldest
        latest.clear()
        since = t
      }
      return earlier.has(packetId, series) || !latest.add(packetId, series)
    },
  }
}

/** A set of pairs of integers, the first not 0, in one block of memory: a `Set` would need an object for each. */
function createPairs() {
  let pairs = new Float64Array(2 * FIRST_PLACES)
  let size = 0
  /** Where a pair is, or would be: places are taken one after the other from that of its hash. */
  const find = (a: number, b: number): number => {
    const places = pairs.length / 2
    const mixed = Math.imul(a, 0x9e_37_79_b1) ^ Math.imul(b, 0x85_eb_ca_6b)
    let place = ((mixed ^ (mixed >>> 15)) >>> 0) % places
    while (pairs[2 * place] !== 0 && (pairs[2 * place] !== a || pairs[2 * place + 1] !== b)) {
      place = (place + 1) % places
    }
    return 2 * place
  }
  const put = (at: number, a: number, b: number) => {
    pairs[at] = a
    pairs[at + 1] = b
  }
  const grow = () => {
    const old = pairs
    pairs = new Float64Array(2 * old.length)
    for (let i = 0; i < old.length; i += 2) {
      const [a = 0, b = 0] = old.subarray(i, i + 2)
      if (a !== 0) put(find(a, b), a, b)
    }
  }
  return {
    isFull: () => size >= MAX_PLACES / 2,
    has: (a: number, b: number) => pairs[find(a, b)] !== 0,
    /** Returns whether it was not there. */
    add(a: number, b: number): boolean {
      const at = find(a, b)
      if (pairs[at] !== 0) return false
      put(at, a, b)
      size++
      if (size > pairs.length / 4 && !this.isFull()) grow()
      return true
    },
    clear() {
      pairs.fill(0)
      size = 0
    },
  }
}
