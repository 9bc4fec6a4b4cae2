import { sha256 } from '@oslojs/crypto/sha2'
import { encodeHexLowerCase } from '@oslojs/encoding'

const utf8 = new TextEncoder()

/** SHA-256 of a text as UTF-8, hexadecimal. For a short text faster than `crypto.subtle`, which is asynchronous. */
export function sha256Hex(text: string): string {
  return encodeHexLowerCase(sha256(utf8.encode(text)))
}
