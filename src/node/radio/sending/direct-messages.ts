import { createDecipheriv, createHash, createPublicKey, diffieHellman } from 'node:crypto'
import type { OpenDirect } from '../../../meshtastic/link/mqtt-envelope.ts'
import { openPrivateKey } from './x25519.ts'

const KEY_BYTES = 32
const TAG_BYTES = 8
const EXTRA_NONCE_BYTES = 4

export type DirectKeys = {
  /** Private keys of our own radios, 32 bytes each, by node number. */
  readonly privateKeys: ReadonlyMap<number, Uint8Array>
  /** Base64 of the public keys that a node may have, the likeliest first. */
  readonly publicKeysOf: (nodeNum: number) => Promise<readonly string[]>
}

/**
 * Decrypts direct messages to nodes whose private key is known: X25519, SHA-256, AES-256-CCM with a tag of 8 bytes; the
 * tag and the random half of the nonce follow the ciphertext.
 */
export function createDirectOpener({ privateKeys, publicKeysOf }: DirectKeys): OpenDirect {
  return async ({ from, to, id }, cipherText) => {
    const privateKey = privateKeys.get(to)
    if (privateKey === undefined || cipherText.length <= TAG_BYTES + EXTRA_NONCE_BYTES) return null
    for (const key of await publicKeysOf(from)) {
      const publicKey = Buffer.from(key, 'base64')
      if (publicKey.length !== KEY_BYTES) continue
      try {
        const data = decipher(agree(privateKey, publicKey), { from, id }, Buffer.from(cipherText))
        return { data, publicKey: Uint8Array.from(publicKey) }
      } catch {
        // The tag does not match: another key, or a forged packet.
      }
    }
    return null
  }
}

function agree(privateKey: Uint8Array, publicKey: Buffer): Buffer {
  const shared = diffieHellman({
    privateKey: openPrivateKey(privateKey),
    publicKey: createPublicKey({
      key: { kty: 'OKP', crv: 'X25519', x: publicKey.toString('base64url') },
      format: 'jwk',
    }),
  })
  return createHash('sha256').update(shared).digest()
}

function decipher(key: Buffer, { from, id }: { from: number; id: number }, blob: Buffer): Uint8Array {
  const tagAt = blob.length - TAG_BYTES - EXTRA_NONCE_BYTES
  const nonce = Buffer.alloc(13)
  nonce.writeUInt32LE(id, 0)
  blob.copy(nonce, 4, tagAt + TAG_BYTES)
  nonce.writeUInt32LE(from, 8)
  const aes = createDecipheriv('aes-256-ccm', key, nonce, { authTagLength: TAG_BYTES })
  aes.setAuthTag(blob.subarray(tagAt, tagAt + TAG_BYTES))
  const opened = aes.update(blob.subarray(0, tagAt))
  aes.final()
  return Uint8Array.from(opened)
}
