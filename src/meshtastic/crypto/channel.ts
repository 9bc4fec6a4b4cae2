/** The public default key: everybody can decrypt packets "encrypted" with it. 1PG7OiApB1nwvP+rz05pAQ== */
const DEFAULT_KEY: readonly number[] = [
  0xd4, 0xf1, 0xbb, 0x3a, 0x20, 0x29, 0x07, 0x59, 0xf0, 0xbc, 0xff, 0xab, 0xcf, 0x4e, 0x69, 0x01,
]

const MAX_PSK_BYTES = 32

type Bytes = Uint8Array<ArrayBuffer>

/**
 * The AES key of a channel's PSK. Empty or a single 0: no key, an empty array. One byte n: the default key with n − 1
 * added to its last byte. Other lengths are padded with zeros to 16 or 32 bytes. Throws `RangeError` for more than 32.
 */
export function expandPsk(psk: Uint8Array): Bytes {
  if (psk.length > MAX_PSK_BYTES) throw new RangeError(`A channel key has at most ${MAX_PSK_BYTES} bytes`)
  if (psk.length === 0) return new Uint8Array(0)
  if (psk.length > 1) {
    const key = new Uint8Array(psk.length <= 16 ? 16 : 32)
    key.set(psk)
    return key
  }
  const index = psk[0] ?? 0
  if (index === 0) return new Uint8Array(0)
  const key = Uint8Array.from(DEFAULT_KEY)
  key[15] = (key[15] ?? 0) + index - 1
  return key
}

/** One byte that hints at the channel of an encrypted packet. A channel without a name has its preset's name. */
export function hashChannel(name: string, key: Uint8Array): number {
  const xor = (hash: number, byte: number) => hash ^ byte
  return new TextEncoder().encode(name).reduce(xor, 0) ^ key.reduce(xor, 0)
}

/** The packet to which a key stream belongs. Both are u32. */
export type PacketNonce = { readonly id: number; readonly from: number }

/** Cached by the array of a key, which never changes: there are few keys, and each is tried on many packets. */
const imported = new WeakMap<Bytes, CryptoKey>()

/**
 * AES-CTR with a key from `expandPsk`, the same for both directions; without a key the bytes stay as they are. The
 * result does not show whether the key was right.
 */
export async function applyChannelKey(key: Bytes, { id, from }: PacketNonce, bytes: Uint8Array): Promise<Bytes> {
  const data = Uint8Array.from(bytes)
  if (key.length === 0) return data
  const counter = new Uint8Array(16)
  const view = new DataView(counter.buffer)
  view.setUint32(0, id, true)
  view.setUint32(8, from, true)
  const aes = imported.get(key) ?? (await crypto.subtle.importKey('raw', key, 'AES-CTR', false, ['encrypt']))
  imported.set(key, aes)
  return new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-CTR', counter, length: 32 }, aes, data))
}
