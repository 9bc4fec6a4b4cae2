import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'

/** PKCS #8 wrapping of a bare X25519 private key (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex')

/** A private key of 32 bytes, in the form of node:crypto. */
export function openPrivateKey(privateKey: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, privateKey]), format: 'der', type: 'pkcs8' })
}

/** The 32 bytes of the public key that belongs to a private one. */
export function derivePublicKey(privateKey: Uint8Array): Uint8Array {
  const { x } = createPublicKey(openPrivateKey(privateKey)).export({ format: 'jwk' })
  return Uint8Array.from(Buffer.from(x ?? '', 'base64url'))
}
