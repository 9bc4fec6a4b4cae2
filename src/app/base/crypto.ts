// The only file that imports oslo and @oslojs: docs/decisions/deprecated-packages.md.
import { hmac } from '@oslojs/crypto/hmac'
import { SHA256, sha256 as digest } from '@oslojs/crypto/sha2'
import { constantTimeEqual } from '@oslojs/crypto/subtle'
import {
  decodeBase64urlIgnorePadding,
  decodeHex,
  encodeBase32UpperCaseNoPadding,
  encodeBase64,
  encodeBase64urlNoPadding,
  encodeHexLowerCase,
} from '@oslojs/encoding'
import { TimeSpan } from 'oslo'
import { alphabet, generateRandomString } from 'oslo/crypto'
import { createTOTPKeyURI, generateHOTP } from 'oslo/otp'

const utf8 = new TextEncoder()

/** SHA-256 (FIPS 180-4): 32 bytes. For short input faster than `crypto.subtle`, which is asynchronous. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return digest(bytes)
}

/** SHA-256 of bytes or of a text as UTF-8, 64 hexadecimal digits in lower case. */
export function sha256Hex(data: string | Uint8Array): string {
  return toHex(sha256(typeof data === 'string' ? utf8.encode(data) : data))
}

/**
 * HMAC-SHA-256 (RFC 2104) of `data` as UTF-8 under `key` as UTF-8: 32 bytes, base64url.
 * Decision: docs/decisions/short-decisions.md#cookies-are-signed-and-hashed-without-web-crypto
 */
export function hmacSha256(key: string, data: string): string {
  return toBase64url(hmacSha256Bytes(key, data))
}

/** HMAC-SHA-256 (RFC 2104): 32 bytes. Texts count as UTF-8. */
export function hmacSha256Bytes(key: string | Uint8Array, data: string): Uint8Array {
  return hmac(SHA256, typeof key === 'string' ? utf8.encode(key) : key, utf8.encode(data))
}

/** Whether two texts are the same, in a time that depends on their lengths alone. */
export function isSameText(one: string, other: string): boolean {
  return constantTimeEqual(utf8.encode(one), utf8.encode(other))
}

/** Hexadecimal digits in lower case. */
export function toHex(bytes: Uint8Array): string {
  return encodeHexLowerCase(bytes)
}

/** The bytes of hexadecimal digits. Throws for any other text. */
export function fromHex(text: string): Uint8Array {
  return decodeHex(text)
}

/** Base64 (RFC 4648, section 4), with padding. */
export function toBase64(bytes: Uint8Array): string {
  return encodeBase64(bytes)
}

/** Base64url (RFC 4648, section 5), without padding. */
export function toBase64url(bytes: Uint8Array): string {
  return encodeBase64urlNoPadding(bytes)
}

/** The bytes of base64url, with or without padding. Throws for any other text. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(decodeBase64urlIgnorePadding(text))
}

/** Base32 (RFC 4648, section 6) in upper case, without padding. */
export function toBase32(bytes: Uint8Array): string {
  return encodeBase32UpperCaseNoPadding(bytes)
}

/** The lower-case letters, the upper-case letters and the digits of ASCII. */
export const LETTERS = alphabet('a-z')
export const CAPITALS = alphabet('A-Z')
export const DIGITS = alphabet('0-9')

/** A random text of this many of these characters, each equally likely. */
export function randomText(length: number, characters: string): string {
  return generateRandomString(length, characters)
}

/** The six digits of HOTP (RFC 4226) with HMAC-SHA-1, as TOTP (RFC 6238) needs them. */
export function oneTimeCode(seed: Uint8Array, counter: number): Promise<string> {
  return generateHOTP(new Uint8Array(seed).buffer, counter)
}

/** The `otpauth:` URI of an authenticator app for codes of six digits that change every `periodS` seconds. */
export function authenticatorUri(issuer: string, username: string, seed: Uint8Array, periodS: number): string {
  return createTOTPKeyURI(issuer, username, new Uint8Array(seed).buffer, {
    digits: 6,
    period: new TimeSpan(periodS, 's'),
  })
}
