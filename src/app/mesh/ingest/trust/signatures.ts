import { base64Decode } from '@bufbuild/protobuf/wire'
import { prepareOnce } from '../../../../db/store.ts'
import type { Packet } from '../../../../meshtastic/packet.ts'
import { createVerifier } from '../../../../meshtastic/crypto/xeddsa.ts'

/** Verifications for one source: burst, and rate per second after it. They cost a few percent of a processor. */
const BURST = 500
const PER_SECOND = 100
/**
 * The number of sources whose budget is cached, and of packets whose verified signature is cached: most packets arrive
 * again through other gateways.
 */
const KEPT_BUDGETS = 500
const KEPT_PACKETS = 5000

/** Verifies signatures of packets within the budget of each source. */
export type Checker = {
  /**
   * Returns the first of `keys`, in base64, that verifies the packet's signature; `invalid` if none does, `unchecked`
   * if the source has used up its budget. `now` in milliseconds.
   */
  check(
    packet: Packet,
    keys: readonly string[],
    at: { readonly source: string; readonly now: number },
  ): Promise<{ readonly key: string } | 'invalid' | 'unchecked'>
}

/** The verifier of a database in this process. */
export const signatureChecker = prepareOnce(createChecker)

export function createChecker(): Checker {
  const verify = createVerifier()
  const budgets = new Map<string, { tokens: number; at: number }>()
  const good = new Map<string, { readonly print: string; readonly key: string }>()
  const spend = (source: string, now: number): boolean => {
    const { tokens, at } = budgets.get(source) ?? { tokens: BURST, at: now }
    const filled = Math.min(BURST, tokens + (Math.max(0, now - at) * PER_SECOND) / 1000)
    budgets.delete(source)
    budgets.set(source, { tokens: Math.max(0, filled - 1), at: Math.max(at, now) })
    trim(budgets, KEPT_BUDGETS)
    return filled >= 1
  }
  return {
    async check({ from, id, port, bytes, signature }, keys, { source, now }) {
      if (signature === null || port === null) return 'invalid'
      const name = `${from}:${id}`
      const print = `${port} ${signature.join()} ${bytes.join()}`
      const known = good.get(name)
      if (known !== undefined && known.print === print && keys.includes(known.key)) return { key: known.key }
      for (const key of keys) {
        if (!spend(source, now)) return 'unchecked'
        if (!(await verify(base64Decode(key), signature, { from, id, port, payload: bytes }))) continue
        good.set(name, { print, key })
        trim(good, KEPT_PACKETS)
        return { key }
      }
      return 'invalid'
    },
  }
}

function trim(map: Map<string, unknown>, most: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}
