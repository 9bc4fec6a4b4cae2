declare module 'http_ece' {
  import type { ECDH } from 'node:crypto'
  /** Content encodings of RFC 8188, and the keys of RFC 8291. */
  export function decrypt(body: Buffer, params: { version: 'aes128gcm'; privateKey: ECDH; authSecret: Buffer }): Buffer
}
