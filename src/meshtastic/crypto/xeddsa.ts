/** Bytes of a signature. */
export const SIGNATURE_BYTES = 64

/** The number of keys whose Edwards form is cached: enough for several meshes. */
const KEPT_KEYS = 2000
const KEY_BYTES = 32

type Bytes = Uint8Array<ArrayBuffer>

/** The data that a signature covers. Node number, ID and port are u32. */
export type SignedContent = {
  readonly from: number
  readonly id: number
  readonly port: number
  readonly payload: Uint8Array
}

/**
 * Whether the holder of an X25519 key signed the content: XEdDSA (Signal's specification, section 2.5) over `from`, `id`
 * and `portnum` as u32 LE and the payload, as firmware 2.8 signs broadcasts. `publicKey` has 32 bytes. Never throws.
 */
export type VerifySignature = (publicKey: Uint8Array, signature: Uint8Array, content: SignedContent) => Promise<boolean>

/** Verifies by Web Crypto's Ed25519, and keeps the converted form of the latest keys. */
export function createVerifier(): VerifySignature {
  const kept = new Map<string, Promise<CryptoKey | null>>()
  const keyOf = (publicKey: Uint8Array) => {
    const name = publicKey.join()
    const key = kept.get(name) ?? importKey(publicKey)
    // Moves the key to the end: the least recently used one is dropped first.
    kept.delete(name)
    kept.set(name, key)
    for (const oldest of kept.keys()) {
      if (kept.size <= KEPT_KEYS) break
      kept.delete(oldest)
    }
    return key
  }
  return async (publicKey, signature, content) => {
    if (publicKey.length !== KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false
    const key = await keyOf(publicKey)
    const plain = Uint8Array.from(signature)
    return key !== null && (await crypto.subtle.verify('Ed25519', key, plain, signedBytes(content)))
  }
}

/** The signed bytes. */
export function signedBytes({ from, id, port, payload }: SignedContent): Bytes {
  const bytes = new Uint8Array(12 + payload.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, from, true)
  view.setUint32(4, id, true)
  view.setUint32(8, port, true)
  bytes.set(payload, 12)
  return bytes
}

/** Null for bytes that are not a key. */
async function importKey(publicKey: Uint8Array): Promise<CryptoKey | null> {
  const edwards = toEdwards(publicKey)
  if (edwards === null) return null
  try {
    return await crypto.subtle.importKey('raw', edwards, 'Ed25519', false, ['verify'])
  } catch {
    return null
  }
}

const P = 2n ** 255n - 19n

/** Points of low order (Curve25519's own list). Signatures that match them can be forged without the private key. */
const LOW_ORDER: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  P - 1n,
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
])

/**
 * The Edwards form of an X25519 key: y = (u − 1) / (u + 1), always with sign bit 0, as firmware converts it; the older
 * form with the sign in the signature is not accepted. Null for an invalid key, or for one whose signatures prove
 * nothing.
 */
function toEdwards(publicKey: Uint8Array): Bytes | null {
  const u = publicKey.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  if (u >= P || LOW_ORDER.has(u)) return null
  let y = ((u - 1n) * invert(u + 1n)) % P
  const bytes = new Uint8Array(KEY_BYTES)
  for (let i = 0; i < KEY_BYTES; i++, y >>= 8n) bytes[i] = Number(y & 0xffn)
  return bytes
}

/** By Fermat: x^(p − 2). */
function invert(x: bigint): bigint {
  let result = 1n
  for (let base = x, exponent = P - 2n; exponent > 0n; exponent >>= 1n, base = (base * base) % P) {
    if (exponent & 1n) result = (result * base) % P
  }
  return result
}
